"""Chains of routines: each gets what the one before returned, and leaves it as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, dense_benchmark

import twofold
from twofold import Needs, Routine, UserError

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


@pytest.fixture
def shrunk() -> None:
    """Routines that halve the gradient, computed from its factors where they are given."""

    class Shrunk(Routine, name="shrunk"):
        def direct(self, g: Any, step: Any) -> Any:
            step.log["factors"] = 0.0
            return 0.5 * g

        def direct_products(self, products: Any, step: Any) -> Any:
            step.log["factors"] = 1.0
            products.multiply()
            return 0.5 * step.net.gradient

    class Changed(Shrunk, name="shrunk-otherwise"):
        def direct(self, g: Any, step: Any) -> Any:
            return super().direct(0.5 * g, step)

    class Curious(Routine, name="curious"):
        def after_step(self, step: Any) -> None:
            step.log["length"] = step.norm(step.g)

    class Elsewhere(Curious, name="curious-elsewhere"):
        needs = Needs.ELSEWHERE


FACTORS = ["er+shrunk", "er+ema+shrunk+cosine", "er+shrunk+clip", "er+shrunk+gem", "joint+shrunk"]
WHOLE = [
    *("er+clip+shrunk", "er+shrunk+agem", "er+shrunk+curious-elsewhere", "er+shrunk-otherwise"),
    *("der+shrunk", "er+decay+shrunk"),
]


@pytest.mark.parametrize("method", [*FACTORS, *WHOLE])
@pytest.mark.usefixtures("shrunk")
def test_the_first_routine_that_changes_g_may_take_its_factors(method: str) -> None:
    run = twofold.run(dense_benchmark(), method, **SHORT)
    later = run.columns["task"] > 1  # in the first task, `der` is a cross-entropy
    assert (run.columns["factors"][later] == (method in FACTORS)).all()


@pytest.mark.usefixtures("shrunk")
def test_the_subclass_of_such_a_routine_follows_its_own_rule() -> None:
    options: dict[str, Any] = {**SHORT, "momentum": 0.0, "lr": 0.1, "iterations": 1, "tasks": 1}
    runs = [
        twofold.run(dense_benchmark(), method, keep_weights="end", **options)
        for method in ("er+shrunk-otherwise", "er+shrunk")
    ]
    assert runs[0].columns["norm_ratio"] == pytest.approx([0.25])
    assert runs[1].columns["norm_ratio"] == pytest.approx([0.5])


@pytest.mark.usefixtures("shrunk")
def test_whoever_asks_for_g_gets_it() -> None:
    curves = [
        twofold.run(dense_benchmark(), method, **SHORT).columns
        for method in ("er+curious", "er+shrunk+curious")
    ]
    assert curves[0]["length"][0] == curves[1]["length"][0]  # before the weights differ
    assert (curves[1]["length"] > 0).all()


@pytest.mark.usefixtures("shrunk")
def test_the_ratio_is_known_in_every_tenth_iteration_or_if_a_routine_asks_for_g() -> None:
    options = {**SHORT, "iterations": 12}
    ratio = twofold.run(dense_benchmark(), "er+shrunk", **options).columns["norm_ratio"]
    known = np.arange(24) % 12 % 10 == 0
    assert ratio[known] == pytest.approx(0.5)
    assert np.isnan(ratio[~known]).all()
    ratio = twofold.run(dense_benchmark(), "er+shrunk+rescale", **options).columns["norm_ratio"]
    assert ratio == pytest.approx(1)
