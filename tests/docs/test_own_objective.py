"""The guide docs/your-own-objective.md: its file runs, and is ER-ACE."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark

import twofold
from twofold.discovery import import_file
from twofold.memories import ClassBalanced, Memory, Reservoir, Ring
from twofold.objectives import Objective
from twofold.terms import Addition

GUIDE = (Path(__file__).parents[2] / "docs" / "your-own-objective.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
SMALL = {"batch_size": 8, "iterations": 5, "lr": 0.02}


@pytest.fixture
def plugins(tmp_path: Path):
    files = []
    for place, code in enumerate(BLOCKS):
        files.append(tmp_path / f"mine{place}.py")
        files[-1].write_text(code)
    yield [str(file) for file in files]
    for kind, name in ((Objective, "my-ace"), (Memory, "newest"), (Addition, "small")):
        kind.known.pop(name, None)


def test_the_objective_of_the_guide_is_er_ace(plugins):
    memory = {"memory": "newest(20,current=true)", "plugins": plugins[:1]}
    mine, own = (
        twofold.run(class_benchmark(), method, **SMALL, **memory) for method in ("my-ace", "er-ace")
    )
    for name, column in own.columns.items():
        np.testing.assert_array_equal(column, mine.columns[name], err_msg=name)
    again = twofold.run(class_benchmark(), "my-ace(weight=0.5)+gem", **SMALL, **memory)
    assert again.config.method == "my-ace(weight=0.5)+gem"
    default = twofold.configure(class_benchmark(), "my-ace", plugins=plugins[:1])
    assert default.memory == "per-class-task(100,current=true)"


def test_the_term_of_the_guide_works(plugins):
    plain, small = (
        twofold.run(class_benchmark(), method, **SMALL, plugins=plugins[1:])
        for method in ("er", "er+small(0.01)")
    )
    assert small.columns["loss"][0] > plain.columns["loss"][0]


def test_a_plugin_that_is_not_part_of_a_run_is_no_part_of_its_identity(plugins):
    plain = twofold.configure(class_benchmark(), "er")
    given = twofold.configure(class_benchmark(), "er", plugins=plugins)
    assert given.identity() == plain.identity()
    for plugin in plugins:
        import_file(plugin)
    assert twofold.configure(class_benchmark(), "er+small", plugins=plugins).plugins == plugins[1:]


def test_the_memories_are_one_line_each():
    lines = re.findall(r"^\| `([a-z-]+\(.*?\))` \| `self\.(first\(.*\))` \|$", GUIDE, re.MULTILINE)
    assert len(lines) == 3
    labels = np.random.default_rng(0).integers(0, 150, 9000)
    made = [Reservoir(2000), ClassBalanced(2000), Ring(per_class=20)]
    for memory, (text, line) in zip(made, lines, strict=True):
        assert memory.text() == text
        memory.start(labels)
        random = np.random.default_rng(1)
        memory.priority, memory.arrival = random.random(9000), random.permutation(9000)
        rows = np.arange(9000)
        expected = eval(
            f"memory.{line.replace('self', 'memory')}", {"memory": memory, "rows": rows}
        )
        assert set(memory.keep(rows)) == set(expected)
