"""Numbers of components: one that single precision cannot hold is refused in one line."""

from __future__ import annotations

import typing

import pytest
import torch
from helpers.commandline import one_line

import twofold as package
from twofold import Benchmark, UserError
from twofold.component import LARGEST, Component
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.terms import Addition

TOO_LARGE = {float: 1e39, int: 10**400, int | None: 10**400}


def numbers() -> list[tuple[type[Component], str, typing.Any]]:
    """Every number that the package's objectives, terms and routines take, and one too large."""
    found = []
    for kind in (Objective, Addition, Routine):
        for cls in kind.known.values():
            hints = typing.get_type_hints(cls)
            for name in cls.options() if cls.__module__.startswith("twofold.") else ():
                if hints[name] in TOO_LARGE:
                    found.append((cls, name, TOO_LARGE[hints[name]]))
    return found


def test_all_of_them_are_found():
    named = {f"{cls.name}.{option}" for cls, option, _ in numbers()}
    assert {"clip.limit", "hold.gain", "sam.rho", "gem.gamma", "distil.temperature"} <= named


@pytest.mark.parametrize(
    ("cls", "option", "value"), numbers(), ids=lambda each: getattr(each, "name", str(each)[:12])
)
def test_a_number_that_is_too_large_is_refused_in_one_line(cls, option, value):
    with pytest.raises(UserError) as caught:
        cls(**{option: value})
    assert str(caught.value).startswith(f"{cls.name}'s {option} must be ")
    assert len(str(caught.value)) < 150
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["er+clip(1e39)", "er+hold(gain=1e39)", "er+sam(1e39)"])
def test_the_command_line_says_the_same(method, twofold, tmp_path):
    line = one_line(twofold("run", "rotated-mnist", method, "--out", tmp_path / "runs").err)
    assert line.endswith("must be at most 1,000,000,000, not 1e+39")


@pytest.mark.parametrize("method", ["er+clip({})", "er+sam({})", "er+hold(gain={})", "er+gem({})"])
def test_the_largest_number_ends_in_no_error(method):
    x, y = torch.randn(30, 8), torch.arange(30) % 3
    benchmark = Benchmark.from_tensors("mine", [(x, y, x, y), (x + 1, y, x, y)])
    run = package.run(benchmark, method.format(LARGEST), batch_size=8, iterations=3)
    assert run.summary["diverged"] in (True, False)
