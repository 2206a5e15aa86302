"""Options are described once: conversion, ranges, and one entry that reaches every place."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from twofold import UserError
from twofold.options import above, between, convert, given_options, option, options

SOURCE = Path(__file__).parent.parent / "src" / "twofold"


@dataclass(frozen=True, kw_only=True)
class Sample:
    count: int = option(3, help="how many", check=between(1, 10))
    share: float = option(0.5, help="of all", check=above(0, 1))
    limit: int | None = option(None, help="at most")


def test_values_are_checked_by_type_and_range():
    assert given_options(Sample, {"count": 4, "share": 1, "limit": None}) == {
        "count": 4,
        "share": 1.0,
        "limit": None,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "count must be at least 1, not 0"),
        ({"count": 11}, "count must be at most 10, not 11"),
        ({"count": 2.0}, "count must be a whole number, not 2"),
        ({"count": True}, "count must be a whole number, not True"),
        ({"share": 0}, "share must be above 0 and at most 1, not 0"),
        ({"share": float("nan")}, "share must be a finite number, not nan"),
        ({"share": "0.5"}, "share must be a finite number, not '0.5'"),
        ({"cuont": 1}, "unknown option 'cuont': did you mean 'count'?"),
    ],
)
def test_a_wrong_value_is_answered_in_one_line(given, message):
    with pytest.raises(UserError) as error:
        given_options(Sample, given)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_very_long_value_is_cut_in_the_answer():
    with pytest.raises(UserError) as error:
        given_options(Sample, {"count": "9" * 5000})
    assert len(str(error.value)) < 200


def test_text_is_read_as_the_type_that_the_hint_names():
    assert convert("3", int, "n", text=True) == 3
    assert convert("none", int | None, "n", text=True) is None
    with pytest.raises(UserError, match=r"n must be a whole number, not '3\.5'"):
        convert("3.5", int, "n", text=True)


def test_options_keep_the_order_and_the_default_of_their_fields():
    assert [(name, each.default) for name, each in options(Sample).items()] == [
        ("count", 3),
        ("share", 0.5),
        ("limit", None),
    ]


# One entry in one file, in a copy of the package; the program below finds it everywhere.
ENTRY = """    eval_size: int = option("""
ADDED = """    dampening: float = option(
        0.25, help="of a test", check=between(0, 1), label="damp", group=TRAINING
    )
"""
PROGRAM = """
import dataclasses, inspect, io, json, sys
from contextlib import redirect_stdout, redirect_stderr
from pathlib import Path
import torch, twofold
from twofold.cli import main
from twofold.options import options

assert Path(twofold.__file__).is_relative_to(sys.argv[1]), twofold.__file__

def told(*words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as done:
            code = done.code
    return code, out.getvalue() + err.getvalue()

x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
y = torch.arange(60) % 2
mine = twofold.Benchmark.from_tensors("mine", [(x, y, x, y), (x + 1, y, x + 1, y)])
runs = [
    twofold.run(mine, "er", dampening=value, batch_size=5, iterations=3, out="runs")
    for value in (0.25, 0.5)
]
Path("study.toml").write_text(
    '[[grid]]\\nbenchmark = "rotated-mnist"\\nmethod = "er"\\ndampening = [0.1, 0.2]\\n'
)
from matplotlib.text import Text
from twofold.compare.groups import groups
er = ("run", "rotated-mnist", "er")
figure = twofold.Runs(runs).plot()
found = {
    "dataclass": "dampening" in {f.name for f in dataclasses.fields(twofold.Config)},
    "keyword": inspect.signature(twofold.run).parameters["dampening"].default == 0.25,
    "flag of run": "--dampening" in told("run", "--help")[1],
    "flag of study run": "--dampening" in told("study", "run", "--help")[1],
    "its check": "dampening must be at most 1, not 7" in told(*er, "--dampening", "7")[1],
    "study file": '"runs": 2' in told("study", "run", "study.toml", "--dry-run", "--json")[1],
    "filter": told("runs", "list", "--dampening", "0.5", "--json")[1].count('"identity"') == 1,
    "wrong filter": "0.75" in told("runs", "list", "--dampening", "0.75")[1],
    "label in the table of runs": "damp" in told("runs", "list")[1],
    "column of frame": set(twofold.Store("runs").frame()["dampening"]) == {0.25, 0.5},
    "identity": runs[0].config.identity() != runs[1].config.identity(),
    "label in a figure": "0.5" in " ".join(t.get_text() for t in figure.findobj(Text)),
    "groups": len(groups(twofold.Store("runs").runs())) == 2,
    "command": "--dampening 0.5" in twofold.configure(*er[1:], dampening=0.5).command(),
}
print(json.dumps(found))
"""


def test_adding_an_option_is_one_entry(tmp_path):
    package = tmp_path / "package"
    shutil.copytree(SOURCE, package / "twofold")
    settings = package / "twofold" / "settings.py"
    text = settings.read_text()
    assert text.count(ENTRY) == 1
    settings.write_text(text.replace(ENTRY, ADDED + ENTRY))
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, package],
        cwd=tmp_path,
        env={"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    assert [place for place, present in result.items() if not present] == []
