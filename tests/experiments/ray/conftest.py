"""A real Ray cluster of three nodes, all on this machine and on 127.0.0.1 only."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.ray_cluster import PLUGIN

from torture.clusters import three_nodes
from twofold.experiments.config import Config, configure
from twofold.experiments.store import Store

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*.py"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the plugin, and what its routines write down."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "blobs.py").write_text(PLUGIN.format(folder=str(folder)))
    return folder


@pytest.fixture(scope="module")
def rays_folder() -> Iterator[Path]:
    """For Ray's sockets, whose paths must be short, and its logs."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(rays_folder: Path) -> Iterator[Cluster]:
    """Three nodes of one core."""
    with three_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def joined(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with this process connected to its first node."""
    from twofold.experiments import ray_cluster

    with ray_cluster.cluster(cluster.address, None):
        yield cluster


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "out")
    store.prepare()
    return store


@pytest.fixture
def config(folder: Path) -> Callable[[str], Config]:
    def make(method: str) -> Config:
        plugins = [str(folder / "blobs.py")]
        return configure("blobs", method, batch_size=10, eval_size=30, plugins=plugins)

    return make
