"""What the benchmark measures must run; how fast it is, no test asks."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """Import the benchmark's modules as `python bench` does, and forget them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in set(sys.modules) - before:
        if (BENCH / f"{name}.py").exists():
            del sys.modules[name]


@pytest.mark.parametrize("method", ["er", "er+gem", "er+hold"])
def test_a_stepper_trains_and_evaluates(method):
    measuring = importlib.import_module("measuring")
    stepper = measuring.Stepper(measuring.like("rotated-mnist"), method, 10, task=2)
    before = stepper.training.net.values.clone()
    stepper.step()
    assert not torch.equal(before, stepper.training.net.values)
    assert stepper.training.seconds["evaluation"] == 0
    stepper.evaluate()
    assert stepper.training.seconds["evaluation"] > 0


def test_operations_are_those_of_the_products():
    limits, measuring = importlib.import_module("limits"), importlib.import_module("measuring")
    images = measuring.like("rotated-mnist")
    first, *others = 784 * 400, 400 * 400, 400 * 10
    assert limits.operations(images) == [2 * n for n in (first, *others)]
    # Three products per layer, except that images need no gradient.
    assert limits.training_operations(images, 10) == 20 * 2 * (2 * first + 3 * sum(others))


@pytest.mark.parametrize(("duration", "rounds"), [(0.1, 9), (3, 3), (60, 2)])
def test_a_comparison_takes_fewer_rounds_where_they_are_slow(monkeypatch, duration, rounds):
    """Rounds of three seconds exceed the limit of ten after the fourth, of which one warms up."""
    measuring = importlib.import_module("measuring")
    made = []
    monkeypatch.setattr(measuring.time, "monotonic", lambda: duration * len(made))
    measuring.in_turns({"act": lambda: made.append(1)}, rounds=9)
    assert len(made) == 1 + rounds
