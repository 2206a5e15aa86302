"""soft-gem, mega and pcgrad: against optimisers, searches and explicit loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import torch
from helpers.benchmarks import class_benchmark
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.routines import Needs
from twofold.routines.agem import Agem
from twofold.routines.base import Step
from twofold.routines.mega import Mega
from twofold.routines.pcgrad import Pcgrad, weights
from twofold.routines.soft_gem import SoftGem
from twofold.settings import Settings
from twofold.training import Training

seeds = st.integers(0, 2**31)
quick = settings(max_examples=50, deadline=None, derandomize=True)


def gradients(seed: int, count: int, size: int = 30) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, size, generator=random, dtype=torch.float64)


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.dot(a, b) / (a.norm() * b.norm()))


# --- soft-gem


def softly(g, old, eps) -> tuple[torch.Tensor, dict]:
    step = Step(2, 1, None, g, old)
    return SoftGem(eps).direct(g, step), step.log


@given(seed=seeds, eps=st.floats(0, 1))
@quick
def test_soft_gem_is_the_closest_gradient_that_meets_the_constraint(seed, eps):
    g, old = gradients(seed, 2, size=6)
    direction, log = softly(g, old, eps)
    bound = eps * float(g.norm() * old.norm())
    found = scipy.optimize.minimize(
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
    np.testing.assert_allclose(direction, found.x, atol=1e-5)
    assert float(torch.dot(direction, old)) >= bound - 1e-9
    assert bool(log["projected"]) == (cosine(g, old) < eps)


@given(seed=seeds)
@quick
def test_soft_gem_without_softness_is_agem(seed):
    g, old = gradients(seed, 2)
    direction, log = softly(g, old, 0.0)
    step = Step(2, 1, None, g, old)
    torch.testing.assert_close(direction, Agem().direct(g, step), rtol=1e-12, atol=1e-14)
    assert bool(log["projected"]) == bool(step.log["projected"])


@given(seed=seeds, scale=st.floats(1e-3, 1e3), other=st.floats(1e-3, 1e3))
@quick
def test_soft_gem_means_the_same_at_every_scale(seed, scale, other):
    g, old = gradients(seed, 2)
    direction, _ = softly(g, old, 0.3)
    scaled, _ = softly(scale * g, other * old, 0.3)
    torch.testing.assert_close(scaled, scale * direction, rtol=1e-9, atol=1e-9)


def test_soft_gem_by_hand():
    g, old = torch.tensor([3.0, 4.0]), torch.tensor([-2.0, 0.0])
    direction, _ = softly(g, old, 0.5)  # <gbar, old> = 0.5 * 5 * 2, along old
    np.testing.assert_allclose(direction, [-2.5, 4.0], rtol=1e-6)


# --- mega


def mixed(g, old, loss, old_loss, scheme) -> tuple[torch.Tensor, dict]:
    losses = {"total": torch.tensor(loss, dtype=g.dtype)}
    step = Step(2, 1, None, g, old, None, torch.tensor(old_loss, dtype=g.dtype), losses)
    return Mega(scheme).direct(g, step), step.log


some_loss = st.floats(1e-3, 10)


@given(seed=seeds, loss=some_loss, old_loss=some_loss)
@quick
def test_mega_2_maximises_what_the_paper_does(seed, loss, old_loss):
    """Against a search over the angle, which is what the authors' code does."""
    g, old = gradients(seed, 2, size=3)
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
@quick
def test_mega_1_adds_the_reference_by_the_ratio_of_losses(seed, loss, old_loss):
    g, old = gradients(seed, 2)
    direction, _ = mixed(g, old, loss, old_loss, "I")
    torch.testing.assert_close(direction, g + old_loss / loss * old)


def test_mega_at_the_ends():
    g, old = gradients(0, 2)
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
    """And it is in the curves only where the objective has it."""
    seen = []

    class Watching(Mega):
        def direct(self, g, step):
            if step.old is not None:
                seen.append((step.old_loss.clone(), step.losses.get("old")))
            return super().direct(g, step)

    made, _ = Method.parse(objective).make()
    settings = Settings(lr=0.02, batch_size=8, seed=0, iterations=3)
    result = Training(class_benchmark(), made, [Watching()], settings).run()
    assert len(seen) == 6
    assert all(float(loss) > 0 for loss, _ in seen)
    assert np.isnan(result.curves["loss_old"]).all() == (objective == "finetune")
    if objective != "finetune":
        assert all(torch.equal(loss, recorded) for loss, recorded in seen)


# --- pcgrad


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
@quick
def test_pcgrad_is_the_papers_algorithm_over_the_number_of_tasks(seed, count):
    rows = gradients(seed, count, size=5)  # few dimensions: many conflicts
    direction, step = surgery(rows)
    torch.testing.assert_close(direction, algorithm_1(rows, step.random()) / count)


def test_pcgrad_by_hand():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    # g - <g, g_1>/2 g_1 = (1/2, 1/2);  g_1 - <g_1, g> g = (0, 1);  their mean.
    np.testing.assert_allclose(surgery(rows)[0], [0.25, 0.75], rtol=1e-12)


@given(seed=seeds, count=st.integers(2, 6))
@quick
def test_without_a_conflict_pcgrad_is_the_mean(seed, count):
    rows = gradients(seed, count).abs()
    torch.testing.assert_close(surgery(rows)[0], rows.mean(0))


@given(seed=seeds)
@quick
def test_two_gradients_no_longer_conflict_with_the_outcome(seed):
    rows = gradients(seed, 2, size=4)
    direction, _ = surgery(rows)
    assert (rows @ direction >= -1e-9 * rows.norm() * direction.norm()).all()


def test_the_order_is_drawn_and_the_draw_depends_on_the_place_alone():
    rows = gradients(5, 6, size=3)
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


# --- all of them


@pytest.mark.parametrize("routine", [SoftGem(), Mega(), Mega("I"), Pcgrad()], ids=str)
def test_the_first_task_is_left_alone(routine):
    g = torch.ones(3)
    assert routine.direct(g, Step(1, 1, None, g)) is g


def test_what_they_ask_of_an_iteration():
    assert (SoftGem().asks(), Mega().asks(), Pcgrad().asks()) == (
        Needs.OLD,
        Needs.OLD,
        Needs.PER_TASK,
    )


@pytest.mark.parametrize("eps", [-0.1, 1.1])
def test_soft_gems_eps_is_a_cosine(eps):
    with pytest.raises(UserError, match=r"soft-gem's eps must be in 0\.\.1"):
        SoftGem(eps)


def test_with_the_new_tasks_loss_alone_they_are_the_papers():
    for name in ("mega", "mega(I)", "soft-gem", "pcgrad"):
        run = twofold.run(class_benchmark(), name, batch_size=8, iterations=4)
        assert run.config.components[0][0] == "finetune"
        assert run.columns["projected"][4:].any()
        assert not run.columns["projected"][:4].any()
