"""What makes a run another run: data, plugins, numbers; and that nothing is taken for another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import twofold
from twofold import Benchmark, Store
from twofold.discovery import import_file
from twofold.experiments.ray_engine import _Errand

pytestmark = pytest.mark.usefixtures("registries")

SETTINGS = {"batch_size": 4, "eval_size": 5, "iterations": 2}
PLUGIN = """
from twofold import Routine

class Scaled(Routine, name="{name}"):
    def direct(self, g, step):
        return {factor} * g
"""


def own(value: float = 0.0, name: str = "mine", **options: object) -> Benchmark:
    x, y = torch.full((12, 3), value), torch.arange(12) % 2
    return Benchmark.from_tensors(name, [(x, y, x[:6], y[:6])] * 2, **options)


def test_runs_on_other_tensors_are_other_runs(tmp_path):
    first = twofold.run(own(0.0), "er", out=tmp_path, **SETTINGS)
    second = twofold.run(own(1.0), "er", out=tmp_path, **SETTINGS)
    again = twofold.run(own(0.0), "er", out=tmp_path, **SETTINGS)
    assert first.config.identity() == again.config.identity() != second.config.identity()
    assert len(Store(tmp_path).runs()) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"offline_iterations": 7},
        {"model": lambda: nn.Linear(3, 2)},
    ],
)
def test_so_are_those_with_another_length_or_network(options):
    usual = twofold.configure(own(), "er")
    assert twofold.configure(own(**options), "er").identity() != usual.identity()


def test_tensors_with_a_benchmarks_name_are_not_that_benchmark():
    config = twofold.configure(own(name="rotated-mnist"), "er")
    assert config.identity() != twofold.configure("rotated-mnist", "er").identity()
    assert config.command() is None


def test_looking_at_a_network_draws_nothing_from_the_users_generator():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    twofold.configure(own(), "er")
    assert torch.equal(before, torch.get_rng_state())


def write(path: Path, name: str, factor: float) -> str:
    path.write_text(PLUGIN.format(name=name, factor=factor))
    return str(path)


def test_a_plugin_that_is_edited_during_a_run_counts_as_it_was_executed(tmp_path):
    plugin = write(tmp_path / "scaled.py", "scaled-a", 1.0)
    config = twofold.configure(own(), "er+scaled-a", plugins=[plugin])
    before = config.identity()
    write(tmp_path / "scaled.py", "scaled-a", 2.0)
    assert config.identity() == before
    with pytest.raises(twofold.UserError, match="was changed after it was imported"):
        twofold.configure(own(), "er+scaled-a", plugins=[plugin])


def test_a_plugin_that_was_not_imported_counts_as_it_is(tmp_path):
    plugin = write(tmp_path / "scaled.py", "scaled-b", 1.0)
    config = twofold.configure(own(), "er", plugins=[])
    stored = twofold.Config(**{**vars(config), "plugins": [plugin]})
    before = stored.identity()
    write(tmp_path / "scaled.py", "scaled-b", 2.0)
    assert stored.identity() != before


def test_a_plugin_counts_for_the_runs_that_it_has_a_part_in(tmp_path):
    plugin = write(tmp_path / "scaled.py", "scaled-f", 1.0)
    config = twofold.configure(own(), "er", plugins=[plugin])
    assert config.plugins == []
    assert config.identity() == twofold.configure(own(), "er").identity()
    assert twofold.configure(own(), "er+scaled-f", plugins=[plugin]).plugins == [plugin]


def test_so_does_one_that_another_is_made_of(tmp_path):
    base = write(tmp_path / "scaled.py", "scaled-g", 1.0)
    import_file(base)
    more = tmp_path / "more.py"
    more.write_text(
        "from twofold import Routine\n"
        "class More(Routine.find('scaled-g'), name='more-g'):\n    pass\n"
    )
    plugins = [base, str(more)]
    assert twofold.configure(own(), "er+more-g", plugins=plugins).plugins == plugins


def test_a_plugin_that_defines_nothing_may_do_anything(tmp_path):
    (tmp_path / "patch.py").write_text("import torch\n")
    plugins = [str(tmp_path / "patch.py")]
    assert twofold.configure(own(), "er", plugins=plugins).plugins == plugins


@pytest.mark.parametrize("said", [{"tasks": 3}, {"iterations": 2000}, {"iterations": 5000}])
def test_what_holds_anyway_may_be_said(said):
    usual = twofold.configure("rotated-mnist", "er")
    assert twofold.configure("rotated-mnist", "er", **said) == usual


@pytest.mark.parametrize("said", [{"tasks": 2}, {"iterations": 1999}])
def test_what_does_not_makes_another_run(said):
    usual = twofold.configure("rotated-mnist", "er")
    assert twofold.configure("rotated-mnist", "er", **said).identity() != usual.identity()


def test_a_plugin_leaves_nothing_beside_it(tmp_path):
    import_file(write(tmp_path / "scaled.py", "scaled-c", 1.0))
    assert [path.name for path in tmp_path.iterdir()] == ["scaled.py"]


def test_nodes_of_a_cluster_tell_plugins_of_one_name_apart(tmp_path):
    """Where a node does not see the files, it writes them down from what it was sent."""
    names = ("scaled-d", "scaled-e")
    for name in names:
        (tmp_path / name).mkdir()
    plugins = [write(tmp_path / name / "scaled.py", name, 1.0) for name in names]
    config = twofold.configure(own(), "er+scaled-d+scaled-e", plugins=plugins)
    sent = {plugin: Path(plugin).read_bytes() for plugin in plugins}
    errand = _Errand(tmp_path, tmp_path / "token", None, sent, 30.0)
    (tmp_path / "apart").mkdir()
    there = errand._with_plugins_in(tmp_path / "apart", config)
    assert there.identity() == config.identity()


def test_a_long_chain_has_a_folder_that_file_systems_take(tmp_path):
    chain = "er" + "+warmup(500)+clip(0.123456789)" * 10
    config = twofold.configure("rotated-mnist", "er+gem")
    long = twofold.Config(**{**vars(config), "method": chain})
    (tmp_path / long.folder_name()).mkdir()
    assert long.folder_name().endswith(f"-{long.identity()}")
    assert config.folder_name() == f"rotated-mnist-offline-er+gem-paper-142-{config.identity()}"


@pytest.mark.parametrize("name", ["seed", "batch_size", "iterations", "tasks", "eval_size"])
@pytest.mark.parametrize("value", [1.9, "3", 2.0])
def test_counts_are_whole_numbers(name, value):
    with pytest.raises(twofold.UserError, match=f"{name.replace('_', ' ')} must be a whole"):
        twofold.configure(own(), "er", **{name: value})


def test_numpys_whole_numbers_are_whole_numbers():
    config = twofold.configure(own(), "er", seed=np.int64(3), iterations=np.int32(5))
    assert config.identity() == twofold.configure(own(), "er", seed=3, iterations=5).identity()
