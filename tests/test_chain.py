"""Chains of routines: each gets what the one before returned, and leaves it as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.benchmarks import class_benchmark

import twofold
from twofold import Routine, UserError

SHORT: dict[str, Any] = {"batch_size": 10, "iterations": 2, "tasks": 2}


def test_a_routine_that_changes_g_in_place_is_refused() -> None:
    class Early(Routine, name="early-in-place"):
        def direct(self, g: Any, step: Any) -> Any:
            return g.mul_(0.5)

    class Hidden(Routine, name="hidden-in-place"):
        """From task 2 on, unnoticed by torch, and with a result of its own."""

        def direct(self, g: Any, step: Any) -> Any:
            if step.task > 1:
                g.numpy()[0] += 1
            return g.clone()

    for name in (Early.name, Hidden.name):
        with pytest.raises(UserError, match=f"routine '{name}' changes the gradient .* in place"):
            twofold.run(class_benchmark(), f"er+clip+{name}", **SHORT)


def test_a_gradient_that_is_not_finite_counts_as_unchanged() -> None:
    class Nan(Routine, name="nan-first"):
        def direct(self, g: Any, step: Any) -> Any:
            return g * torch.nan

    assert twofold.run(class_benchmark(), "er+nan-first+sgd+clip", **SHORT).summary["diverged"]
