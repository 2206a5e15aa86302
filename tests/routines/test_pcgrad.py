"""PCGrad: against the algorithm of its paper on the vectors themselves."""

from __future__ import annotations

import math

import numpy as np
import torch
from helpers.gradients import few_examples, random_gradients, seeds
from helpers.training import ITERATIONS, trained
from hypothesis import given
from hypothesis import strategies as st

from twofold.routines import Needs
from twofold.routines.base import Step
from twofold.routines.pcgrad import Pcgrad, weights


def algorithm_1(rows: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
    """The paper's, word by word, on the vectors themselves."""
    projected = rows.clone()
    for i in range(len(rows)):
        for j in random.permutation(len(rows)):
            if i != j and torch.dot(projected[i], rows[j]) < 0:
                share = torch.dot(projected[i], rows[j]) / rows[j].norm() ** 2
                projected[i] -= share * rows[j]
    return projected.sum(0)


def surgery(rows: torch.Tensor, seed: int = 0) -> tuple[torch.Tensor, Step]:
    step = Step(len(rows), 3, None, rows[0], references=rows[1:], seed=seed)
    return Pcgrad().direct(rows[0], step), step


@given(seed=seeds, count=st.integers(2, 8))
@few_examples
def test_pcgrad_is_the_papers_algorithm_over_the_number_of_tasks(seed, count):
    rows = random_gradients(seed, count, size=5)  # few dimensions: many conflicts
    direction, step = surgery(rows)
    torch.testing.assert_close(direction, algorithm_1(rows, step.random()) / count)


def test_pcgrad_by_hand():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    # g - <g, g_1>/2 g_1 = (1/2, 1/2);  g_1 - <g_1, g> g = (0, 1);  their mean.
    np.testing.assert_allclose(surgery(rows)[0], [0.25, 0.75], rtol=1e-12)


@given(seed=seeds, count=st.integers(2, 6))
@few_examples
def test_without_a_conflict_pcgrad_is_the_mean(seed, count):
    rows = random_gradients(seed, count).abs()
    torch.testing.assert_close(surgery(rows)[0], rows.mean(0))


@given(seed=seeds)
@few_examples
def test_two_gradients_no_longer_conflict_with_the_outcome(seed):
    rows = random_gradients(seed, 2, size=4)
    direction, _ = surgery(rows)
    assert (rows @ direction >= -1e-9 * rows.norm() * direction.norm()).all()


def test_the_order_is_drawn_and_the_draw_depends_on_the_place_alone():
    rows = random_gradients(5, 6, size=3)
    gram = (rows @ rows.T).numpy()
    orders = {tuple(weights(gram, np.random.default_rng(k)).round(6)) for k in range(20)}
    assert len(orders) > 1
    (first, step), (second, _), (other, _) = (surgery(rows, seed) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    elsewhere = Step(step.task, 4, None, rows[0], references=rows[1:], seed=1)
    assert not torch.equal(first, Pcgrad().direct(rows[0], elsewhere))


def test_pcgrad_with_what_is_not_finite_keeps_the_gradient_and_counts_it():
    rows = torch.tensor([[1.0, 2.0], [math.inf, 0.0]])
    direction, step = surgery(rows)
    assert direction is rows[0] or torch.equal(direction, rows[0])
    assert (step.log["projected"], step.log["unsolved"]) == (0.0, 1.0)


def test_the_first_task_is_left_alone():
    g = torch.ones(3)
    assert Pcgrad().direct(g, Step(1, 1, None, g)) is g
    assert Pcgrad().asks() == Needs.PER_TASK


def test_alone_it_is_that_of_its_paper():
    _, result = trained("pcgrad")
    assert result.curves["projected"][ITERATIONS:].any()
    assert not result.curves["projected"][:ITERATIONS].any()
    assert np.isnan(result.curves["loss_old"]).all()
