"""Bad input to hold and LPR: one line each, from the command line and from Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.commandline import one_line
from torch import nn

import twofold as package
from twofold import Benchmark, UserError
from twofold.method import Method
from twofold.routines.hold import Hold
from twofold.routines.lpr import Lpr

FINITE = "must be a finite number"
STRENGTHS = [
    ("hold", "omega", "-1", "must be at least 0, not -1"),
    ("hold", "damping", "-0.5", "must be at least 0, not -0.5"),
    ("hold", "gain", "-2", "must be above 0, not -2"),
    ("lpr", "omega", "-1", "must be above 0, not -1"),
    ("lpr", "omega", "1e8", "must be at most 100,000, not 1e+08"),
    *(("hold", "omega", bad, FINITE) for bad in ("nan", "inf", "-inf", "much")),
    *(("hold", "damping", bad, FINITE) for bad in ("nan", "inf", "much")),
    *(("lpr", "omega", bad, FINITE) for bad in ("nan", "inf", "-inf", "much")),
]
CLASSES = {"hold": Hold, "lpr": Lpr}


@pytest.mark.parametrize(("routine", "option", "value", "message"), STRENGTHS)
def test_a_bad_strength_is_answered_in_one_line(routine, option, value, message, twofold):
    line = one_line(twofold("run", "rotated-mnist", f"er+{routine}({option}={value})").err)
    assert f"{routine}'s {option} {message}" in line
    try:
        number = float(value)
    except ValueError:
        number = value
    with pytest.raises(UserError) as error:
        CLASSES[routine](**{option: number})
    assert f"{routine}'s {option} {message}" in str(error.value)


@pytest.mark.parametrize("routine", CLASSES)
@pytest.mark.parametrize("value", [None, True, [1.0], 1j, np.nan, "16"])
def test_what_is_no_number_is_refused_in_python(routine, value):
    with pytest.raises(UserError, match=f"{routine}'s omega must be a finite number, not"):
        CLASSES[routine](omega=value)


@pytest.mark.parametrize("routine", CLASSES)
def test_the_largest_strength_still_gives_a_direction(routine):
    largest = {"hold": 10**9, "lpr": 10**5}[routine]
    (made,) = Method.parse(f"er+{routine}(omega={largest})").make()[1]
    assert made.omega == largest
    x, y = torch.randn(30, 8), torch.arange(30) % 3
    benchmark = Benchmark.from_tensors("mine", [(x, y, x, y), (x + 1, y, x, y)])
    run = package.run(benchmark, f"er+{routine}(omega={largest})", batch_size=8, iterations=5)
    assert not run.summary["diverged"]


PLUGIN = """
import torch
from torch import nn
from twofold import Benchmark, Recipe

class Normed(Recipe, name="layer-normed"):
    title, about = "Normed", "2 tasks: nothing but zeros; a network with layer norm"
    dataset, scenario, tasks, offline_iterations = None, "domain", 2, 5

    @classmethod
    def build(cls, seed, folder=None, whitening="train", device="cpu"):
        x, y = torch.zeros(20, 8), torch.arange(20) % 3
        model = lambda: nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 3))
        parts = [(x, y, x, y)] * 2
        return Benchmark.from_tensors(cls.name, parts, model=model, offline_iterations=5)
"""


def normed() -> Benchmark:
    x, y = torch.randn(20, 8), torch.arange(20) % 3
    return Benchmark.from_tensors(
        "normed",
        [(x, y, x, y)] * 2,
        model=lambda: nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 3)),
    )


UNKNOWN = (
    "hold knows linear layers, 2D convolutions with one group and batch norm; the network's "
    "'1.weight' belongs to a different layer"
)


def test_hold_names_a_layer_that_it_does_not_know(tmp_path, twofold):
    with pytest.raises(UserError) as error:
        package.run(normed(), "er+hold", batch_size=8, iterations=2)
    assert str(error.value) == UNKNOWN
    plugin = tmp_path / "normed.py"
    plugin.write_text(PLUGIN)
    words = ("--plugin", plugin, "--out", tmp_path / "runs", "--batch-size", "8", "--workers", "1")
    outcome = twofold("run", "layer-normed", "er+hold", *words, "--engine", "inline")
    assert outcome.code != 0
    (line,) = [line for line in outcome.err.splitlines() if "LayerNorm" in line or "hold" in line]
    assert UNKNOWN in line


def test_lpr_leaves_such_a_layer_as_it_is():
    assert not package.run(normed(), "er+lpr", batch_size=8, iterations=2).summary["diverged"]


@pytest.mark.parametrize("routine", CLASSES)
def test_a_memory_without_examples_is_answered_in_one_line(routine, twofold):
    words = ("run", "rotated-mnist", f"er+{routine}", "--memory-per-class", "0")
    assert "with memory per class 0 the memory stays empty" in one_line(twofold(*words).err)
