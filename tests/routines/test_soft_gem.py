"""Soft GEM: against an optimiser, A-GEM, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch
from helpers.gradients import cosine, few_examples, random_gradients, seeds
from helpers.training import ITERATIONS, trained
from hypothesis import given
from hypothesis import strategies as st

from twofold.errors import UserError
from twofold.routines import Needs
from twofold.routines.agem import Agem
from twofold.routines.base import Step
from twofold.routines.soft_gem import SoftGem


def softly(g, old, eps) -> tuple[torch.Tensor, dict]:
    step = Step(2, 1, None, g, old)
    return SoftGem(eps).direct(g, step), step.log


@given(seed=seeds, eps=st.floats(0, 1))
@few_examples
def test_soft_gem_is_the_closest_gradient_that_meets_the_constraint(seed, eps):
    g, old = random_gradients(seed, 2, size=6)
    direction, log = softly(g, old, eps)
    bound = eps * float(g.norm() * old.norm())
    result = scipy.optimize.minimize(
        lambda x: 0.5 * np.sum((x - g.numpy()) ** 2),
        g.numpy() + 0.1,
        jac=lambda x: x - g.numpy(),
        constraints={
            "type": "ineq",
            "fun": lambda x: old.numpy() @ x - bound,
            "jac": lambda x: old.numpy(),
        },
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(direction, result.x, atol=1e-5)
    assert float(torch.dot(direction, old)) >= bound - 1e-9
    assert bool(log["projected"]) == (cosine(g, old) < eps)


@given(seed=seeds)
@few_examples
def test_soft_gem_without_softness_is_agem(seed):
    g, old = random_gradients(seed, 2)
    direction, log = softly(g, old, 0.0)
    step = Step(2, 1, None, g, old)
    torch.testing.assert_close(direction, Agem().direct(g, step), rtol=1e-12, atol=1e-14)
    assert bool(log["projected"]) == bool(step.log["projected"])


@given(seed=seeds, scale=st.floats(1e-3, 1e3), other=st.floats(1e-3, 1e3))
@few_examples
def test_soft_gem_means_the_same_at_every_scale(seed, scale, other):
    g, old = random_gradients(seed, 2)
    direction, _ = softly(g, old, 0.3)
    scaled, _ = softly(scale * g, other * old, 0.3)
    torch.testing.assert_close(scaled, scale * direction, rtol=1e-9, atol=1e-9)


def test_soft_gem_by_hand():
    g, old = torch.tensor([3.0, 4.0]), torch.tensor([-2.0, 0.0])
    direction, _ = softly(g, old, 0.5)  # <gbar, old> = 0.5 * 5 * 2, along old
    np.testing.assert_allclose(direction, [-2.5, 4.0], rtol=1e-6)


@pytest.mark.parametrize("eps", [-0.1, 1.1])
def test_soft_gems_eps_is_a_cosine(eps):
    with pytest.raises(UserError, match=r"soft-gem's eps must be in 0\.\.1"):
        SoftGem(eps)


def test_the_first_task_is_left_alone():
    g = torch.ones(3)
    assert SoftGem().direct(g, Step(1, 1, None, g)) is g
    assert SoftGem().asks() == Needs.OLD


def test_alone_it_follows_the_loss_on_the_new_task():
    _, result = trained("soft-gem")
    assert result.curves["projected"][ITERATIONS:].any()
    assert not result.curves["projected"][:ITERATIONS].any()
    assert np.isnan(result.curves["loss_old"]).all()
