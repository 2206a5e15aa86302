"""MEGA: against a search over the angle, and the losses that it is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.gradients import cosine, few_examples, random_gradients, seeds
from helpers.training import ITERATIONS, trained
from hypothesis import given
from hypothesis import strategies as st

from twofold.method import Method
from twofold.routines import Needs
from twofold.routines.base import Step
from twofold.routines.mega import Mega
from twofold.settings import Settings
from twofold.training import Training


def mixed(g, old, loss, old_loss, scheme) -> tuple[torch.Tensor, dict]:
    losses = {"total": torch.tensor(loss, dtype=g.dtype)}
    step = Step(2, 1, None, g, old, None, torch.tensor(old_loss, dtype=g.dtype), losses)
    return Mega(scheme).direct(g, step), step.log


some_loss = st.floats(1e-3, 10)


@given(seed=seeds, loss=some_loss, old_loss=some_loss)
@few_examples
def test_mega_2_maximises_what_the_paper_does(seed, loss, old_loss):
    """Against a search over the angle, which is what the authors' code does."""
    g, old = random_gradients(seed, 2, size=3)
    direction, _ = mixed(g, old, loss, old_loss, "II")
    torch.testing.assert_close(direction.norm(), g.norm(), rtol=1e-9, atol=0)
    angle = math.acos(cosine(g, old))
    thetas = np.linspace(0, math.pi / 2, 20_001)
    values = loss * np.cos(thetas) + old_loss * np.cos(angle - thetas)
    theta = math.acos(min(1.0, cosine(g, direction)))
    assert theta == pytest.approx(thetas[values.argmax()], abs=2e-4)
    # ... and it lies between the two gradients, not beyond either.
    assert math.acos(min(1.0, cosine(old, direction))) == pytest.approx(angle - theta, abs=1e-5)


@given(seed=seeds, loss=some_loss, old_loss=some_loss)
@few_examples
def test_mega_1_adds_the_reference_by_the_ratio_of_losses(seed, loss, old_loss):
    g, old = random_gradients(seed, 2)
    direction, _ = mixed(g, old, loss, old_loss, "I")
    torch.testing.assert_close(direction, g + old_loss / loss * old)


def test_mega_at_the_ends():
    g, old = random_gradients(0, 2)
    torch.testing.assert_close(mixed(g, old, 1.0, 0.0, "II")[0], g)  # nothing to remember
    torch.testing.assert_close(mixed(g, old, 0.0, 1.0, "I")[0], old)  # nothing to learn
    agreeing = g + 0.1 * old
    turned, _ = mixed(g, agreeing, 0.0, 1.0, "II")
    torch.testing.assert_close(turned, agreeing * g.norm() / agreeing.norm())
    torch.testing.assert_close(mixed(g, 2 * g, 1.0, 3.0, "II")[0], g)  # one direction only
    torch.testing.assert_close(mixed(g, -g, 1.0, 0.5, "II")[0], g)


@pytest.mark.parametrize("scheme", ["I", "II"])
def test_mega_with_what_is_not_finite_keeps_the_gradient_and_counts_it(scheme):
    g = torch.tensor([1.0, 2.0])
    direction, log = mixed(g, torch.tensor([math.nan, 1.0]), 1.0, 1.0, scheme)
    assert torch.equal(direction, g)
    assert (bool(log["projected"]), bool(log["unsolved"])) == (False, True)


@pytest.mark.parametrize("objective", ["finetune", "er", "der", "joint"])
def test_mega_gets_the_loss_that_its_reference_is_the_gradient_of(objective):
    """It is in the curves only if the objective has it."""
    records = []

    class Watching(Mega):
        def direct(self, g, step):
            if step.old is not None:
                records.append((step.old_loss.clone(), step.losses.get("old")))
            return super().direct(g, step)

    component, _ = Method.parse(objective).make()
    settings = Settings(lr=0.02, batch_size=8, seed=0, iterations=3)
    result = Training(class_benchmark(), component, [Watching()], settings).run()
    assert len(records) == 6
    assert all(float(loss) > 0 for loss, _ in records)
    assert np.isnan(result.curves["loss_old"]).all() == (objective == "finetune")
    if objective != "finetune":
        assert all(torch.equal(loss, recorded) for loss, recorded in records)


@pytest.mark.parametrize("scheme", ["I", "II"])
def test_the_first_task_is_left_alone(scheme):
    g = torch.ones(3)
    assert Mega(scheme).direct(g, Step(1, 1, None, g)) is g
    assert Mega(scheme).asks() == Needs.OLD


@pytest.mark.parametrize("method", ["mega", "mega(I)"])
def test_alone_it_is_that_of_its_paper(method):
    _, result = trained(method)
    assert result.curves["projected"][ITERATIONS:].any()
    assert not result.curves["projected"][:ITERATIONS].any()
    assert np.isnan(result.curves["loss_old"]).all()
