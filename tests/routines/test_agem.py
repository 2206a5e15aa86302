"""A-GEM's projection: the closed form, what it guarantees, and references that are no use."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.routines import Needs
from twofold.routines.agem import Agem
from twofold.routines.base import Step


def pair(seed: int, sign: float, dimensions: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    """A gradient and a reference whose product has this sign."""
    random = torch.Generator().manual_seed(seed)
    g, old = torch.randn(2, dimensions, generator=random, dtype=torch.float64)
    return (g if torch.dot(g, old) * sign > 0 else -g), old


def project(g: torch.Tensor, old: torch.Tensor | None) -> tuple[torch.Tensor, dict]:
    step = Step(task=2, iteration=1, net=None, gradient=g, old=old)
    return Agem().direct(g, step), step.log


seeds = given(seed=st.integers(0, 2**31))


@seeds
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_violation_is_projected_by_the_closed_form(seed):
    g, old = pair(seed, sign=-1)
    before = g.clone()
    direction, log = project(g, old)
    a, b = g.numpy(), old.numpy()
    np.testing.assert_allclose(direction, a - (a @ b) / (b @ b) * b, rtol=1e-12, atol=1e-14)
    assert bool(log["projected"])
    assert not bool(log["unsolved"])
    assert torch.equal(g, before)


@seeds
@settings(max_examples=50, deadline=None, derandomize=True)
def test_the_projection_is_orthogonal_to_the_reference(seed):
    g, old = pair(seed, sign=-1)
    direction, _ = project(g, old)
    assert abs(torch.dot(direction, old)) <= 1e-12 * g.norm() * old.norm()


@seeds
@settings(max_examples=30, deadline=None, derandomize=True)
def test_no_gradient_that_agrees_with_the_reference_is_closer(seed):
    g, old = pair(seed, sign=-1, dimensions=4)
    direction, _ = project(g, old)
    others = g + 3 * torch.randn(500, 4, generator=torch.Generator().manual_seed(seed)).double()
    agreeing = others[others @ old >= 0]
    assert len(agreeing)
    assert (agreeing - g).norm(dim=1).min() >= (direction - g).norm() - 1e-12


@seeds
@settings(max_examples=30, deadline=None, derandomize=True)
def test_agreement_changes_nothing(seed):
    g, old = pair(seed, sign=1)
    direction, log = project(g, old)
    assert torch.equal(direction, g)
    assert not bool(log["projected"])
    assert not bool(log["unsolved"])


def test_a_right_angle_is_no_violation():
    g, old = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])
    direction, log = project(g, old)
    assert torch.equal(direction, g)
    assert not bool(log["projected"])


def test_the_first_task_has_no_reference():
    g = torch.ones(3)
    direction, log = project(g, None)
    assert direction is g
    assert log == {}


def test_a_zero_reference_projects_nothing():
    g = torch.tensor([1.0, -2.0])
    direction, log = project(g, torch.zeros(2))
    assert torch.equal(direction, g)
    assert not bool(log["projected"])
    assert not bool(log["unsolved"])


@pytest.mark.parametrize(
    "old",
    [[np.nan, 1.0], [np.nan, np.nan], [np.inf, 1.0], [-np.inf, 1.0], [np.inf, -np.inf]],
    ids=str,
)
def test_a_reference_that_is_not_finite_keeps_the_gradient_and_is_counted(old):
    g = torch.tensor([1.0, -2.0])
    direction, log = project(g, torch.tensor(old))
    assert bool(log["unsolved"])
    assert not bool(log["projected"])
    assert torch.equal(direction, g)


def test_a_reference_too_large_to_square_keeps_the_gradient_and_is_counted():
    g = torch.tensor([1.0, -2.0])
    direction, log = project(g, torch.tensor([-1e30, 1e30]))
    assert torch.equal(direction, g)
    assert bool(log["unsolved"])
    assert not bool(log["projected"])


def test_what_it_asks_of_an_iteration():
    assert Agem().asks() == Needs.OLD
    assert Agem(reference="frozen").asks() == Needs.FROZEN_OLD
