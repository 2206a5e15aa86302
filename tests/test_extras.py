"""Extras: the core works without their packages, and what needs one asks for it by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from twofold.errors import UserError
from twofold.extras import EXTRAS, need

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# The modules that exist for an extra alone. All others import without it.
FOR_AN_EXTRA = re.compile(
    r"twofold\.(drawing|report\.(figures|page)|papers\.\w+\.figures|adapters\.(?!loop$)\w+"
    r"|experiments\.(plotting|ray_engine|ray_cluster))\b"
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happens in a process that can import no package of an extra."""
    folder = tmp_path_factory.mktemp("core")
    path = os.pathsep.join([str(ROOT / "src"), str(TESTS)])
    done = subprocess.run(
        [sys.executable, TESTS / "helpers" / "core_only.py", ROOT / "torture" / "blobs.py", "runs"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_only_modules_for_an_extra_import_its_packages(core):
    assert {name for name in core["modules"] if not FOR_AN_EXTRA.match(name)} == set()
    assert {"twofold.drawing", "twofold.report.page"} <= {*core["modules"]}  # they were refused


@pytest.mark.parametrize(
    "name", ["run", "runs", "show", "verify", "export", "table", "list", "forecast", "figure help"]
)
def test_commands_of_the_core_work(core, name):
    code, printed = core["commands"][name]
    assert code == 0, printed


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("figure", "a figure needs matplotlib: pip install 'twofold[figures]'"),
        ("report", "the page needs matplotlib and plotly: pip install 'twofold[report]'"),
        ("import", "the import of curves needs pandas: pip install 'twofold[frames]'"),
        (
            "tensorboard",
            "the option tensorboard needs tensorboard: pip install 'twofold[tensorboard]'",
        ),
        ("trackio", "the option live needs trackio: pip install 'twofold[trackio]'"),
        ("wandb", "the option live needs wandb: pip install 'twofold[wandb]'"),
        ("ray", "the engine ray needs ray: pip install 'twofold[ray]'"),
        ("torchjd", "a routine of TorchJD needs torchjd: pip install 'twofold[torchjd]'"),
    ],
)
def test_a_command_asks_for_its_extra_in_one_line(core, name, line):
    assert core["commands"][name] == [2, f"twofold: {line}\n"]


@pytest.mark.parametrize("name", ["curves", "frame", "measures"])
def test_data_frames_ask_for_pandas(core, name):
    line = "a DataFrame needs pandas: pip install 'twofold[frames]'"
    assert core["values"][name] == f"UserError: {line}"


def test_a_run_without_extras(core):
    values = core["values"]
    assert values["plot"] == "UserError: a figure needs matplotlib: pip install 'twofold[figures]'"
    assert values["html"].startswith("<div><table>")
    assert "img" not in values["html"]
    assert "weight" in values["weights"]
    assert core["left"] == ["runs", "runs-archive"]  # no figure or page that is half there


def test_the_extras_are_those_of_pyproject():
    declared = {*PROJECT["optional-dependencies"]} - {"all", "dev", "release", "site"}
    assert {*EXTRAS} == declared
    core = {re.split("[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert core == {"torch", "numpy", "scipy", "pyarrow", "rich", "safetensors"}
    (everything,) = PROJECT["optional-dependencies"]["all"]
    alone = {"lightning", "huggingface", "avalanche", "trackio", "wandb"}
    assert {*re.findall(r"\w+", everything.partition("[")[2])} == declared - alone


def test_only_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(UserError, match=r"^it needs plotly: pip install 'twofold\[report\]'$"):
        need("report", "it")
    need("figures", "it")


def test_every_extra_is_documented():
    listed = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    assert {name for line in listed for name in re.findall(r"`(\w+)`", line)} >= {*EXTRAS, "all"}
