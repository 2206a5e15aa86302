"""GEM's projection against its optimality conditions, two other solvers, and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import quadprog
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.errors import UserError
from twofold.routines.agem import Agem
from twofold.routines.base import Step
from twofold.routines.gem import Gem, solve_dual

RIDGE = 1e-3
GAMMAS = (0.0, 0.05, 0.5, 1.0)
TINY = 1e-9  # a ridge that leaves the projection as good as exact


def problem(seed: int, constraints: int, dimensions: int = 30, scale: float = 1.0):
    """A gradient and reference gradients that pull together and against each other."""
    random = np.random.default_rng(seed)
    G = scale * random.normal(size=(constraints, dimensions))
    return scale * random.normal(size=dimensions), G


def step(G, g=None) -> Step:
    return Step(task=len(G) + 1, iteration=1, net=None, gradient=g, references=torch.as_tensor(G))


def project(g, G, **options) -> np.ndarray:
    direction = Gem(**options).direct(torch.as_tensor(g), step(G))
    return direction.numpy()


def by_quadprog(P: np.ndarray, q: np.ndarray, bound: float) -> np.ndarray:
    n = len(q)
    return quadprog.solve_qp(P, -q, np.eye(n), np.full(n, bound))[0]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    constraints=st.integers(1, 19),
    dimensions=st.integers(1, 40),  # fewer than constraints: GG' is singular, the ridge repairs it
    log_scale=st.floats(-3, 2),
    gamma=st.sampled_from(GAMMAS),
)
def test_weights_satisfy_the_optimality_conditions(seed, constraints, dimensions, log_scale, gamma):
    g, G = problem(seed, constraints, dimensions, 10**log_scale)
    v = Gem(gamma=gamma).weights(G @ G.T, G @ g)
    P = G @ G.T + RIDGE * np.eye(constraints)
    slope = P @ v + G @ g
    size = np.abs(P).sum(1) @ np.abs(v) + np.abs(G @ g).sum()  # what rounding is relative to
    assert (v >= gamma).all()
    assert (slope >= -1e-9 * size).all()
    assert np.abs((v - gamma) * slope).max() <= 1e-9 * size * max(1, v.max())


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("constraints", [1, 2, 4, 9, 19])
def test_weights_are_quadprogs(constraints, gamma):
    for seed in range(10):
        g, G = problem(seed, constraints)
        v = Gem(gamma=gamma).weights(G @ G.T, G @ g)
        expected = by_quadprog(G @ G.T + RIDGE * np.eye(constraints), G @ g, gamma)
        np.testing.assert_allclose(v, expected, rtol=1e-8, atol=1e-9)


def test_gradients_that_explode_are_projected_where_quadprog_gives_up():
    """All scaled alike, a problem stays the same except for the ridge."""
    given_up = 0
    for seed in range(20):
        g, G = problem(seed, 3)
        expected = solve_dual(G @ G.T, G @ g, 0.5)
        g, G = 1e4 * g, 1e4 * G
        np.testing.assert_allclose(Gem().weights(G @ G.T, G @ g), expected, rtol=1e-6)
        try:
            by_quadprog(G @ G.T + RIDGE * np.eye(3), G @ g, 0.5)
        except ValueError:
            given_up += 1
    assert given_up > 10  # as replication/appendix.md states


def test_the_solver_minimises_the_dual_it_is_given():
    P, q = np.array([[2.0, -0.5], [-0.5, 1.0]]), np.array([-1.0, 0.3])
    v = solve_dual(P, q, 0.25)
    grid = np.stack(np.meshgrid(np.linspace(0.25, 2, 400), np.linspace(0.25, 2, 400)), -1)
    values = 0.5 * np.einsum("...i,ij,...j", grid, P, grid) + grid @ q
    assert 0.5 * v @ P @ v + q @ v <= values.min() + 1e-12
    np.testing.assert_allclose(v, grid.reshape(-1, 2)[values.argmin()], atol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_rules_say_how_gamma_enters(seed):
    g, G = problem(seed, constraints=4)
    g -= G[:2].sum(0)  # against some tasks, so that the pure projection has weights to add to
    gram, dots = G @ G.T, G @ g
    pure = by_quadprog(gram + RIDGE * np.eye(4), dots, 0.0)
    bound = by_quadprog(gram + RIDGE * np.eye(4), dots, 0.7)
    weights = {rule: Gem(gamma=0.7, rule=rule).weights(gram, dots) for rule in ("bound", "added")}
    np.testing.assert_allclose(weights["bound"], bound, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weights["added"], pure + 0.7, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(Gem(0.7, rule="none").weights(gram, dots), pure, atol=1e-9)
    assert not np.allclose(bound, pure + 0.7)  # the rules do differ


def test_without_a_violation_the_gradient_is_left_untouched():
    G = torch.eye(3)[:2]
    g = torch.tensor([1.0, 0.0, -5.0])  # a product of exactly 0 violates nothing
    context = step(G)
    assert Gem().direct(g, context) is g
    assert torch.equal(g, torch.tensor([1.0, 0.0, -5.0]))
    assert not context.log.get("projected", 0.0)
    assert not context.log["unsolved"]


def test_always_solves_where_nothing_is_violated():
    # Orthonormal references, all satisfied: the bound is the solution, so gbar = g + gamma G'1.
    G = torch.eye(3, dtype=torch.float64)[:2]
    g = torch.tensor([1.0, 2.0, -5.0], dtype=torch.float64)
    context = step(G)
    direction = Gem(gamma=0.5, when="always").direct(g, context)
    np.testing.assert_allclose(direction, [1.5, 2.5, -5.0], rtol=1e-12)
    assert context.log["projected"] == 1.0
    assert torch.equal(g, torch.tensor([1.0, 2.0, -5.0], dtype=torch.float64))


def test_one_violation_brings_in_satisfied_tasks_with_gamma():
    G = torch.eye(3, dtype=torch.float64)[:2]
    g = torch.tensor([-2.0, 2.0, 1.0], dtype=torch.float64)
    direction = project(g, G, gamma=0.5, ridge=TINY)
    np.testing.assert_allclose(direction, [0.0, 2.5, 1.0], atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_pure_projection_is_the_closest_gradient_that_agrees_with_every_task(seed):
    g, G = problem(seed, constraints=3, dimensions=5)
    direction = project(g, G, gamma=0.0, ridge=TINY)
    assert (G @ direction >= -1e-6).all()
    other = scipy.optimize.minimize(
        lambda x: 0.5 * np.sum((x - g) ** 2),
        np.zeros(5),
        jac=lambda x: x - g,
        constraints={"type": "ineq", "fun": lambda x: G @ x, "jac": lambda x: G},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert other.success
    np.testing.assert_allclose(direction, other.x, atol=1e-5)


def test_projecting_twice_changes_nothing_more():
    g, G = problem(3, constraints=6, dimensions=50)
    once = project(g, G, gamma=0.0, ridge=TINY)
    np.testing.assert_allclose(project(once, G, gamma=0.0, ridge=TINY), once, atol=1e-7)


def test_a_networks_worth_of_single_precision_is_enough():
    random = torch.Generator().manual_seed(0)
    G = torch.randn(19, 20_000, generator=random)
    g = -G.sum(0) + torch.randn(20_000, generator=random)
    direction = Gem(gamma=0.0).direct(g, step(G))
    assert direction.dtype == torch.float32
    cosines = (G @ direction) / (G.norm(dim=1) * direction.norm())
    assert cosines.min() > -1e-4
    assert ((G @ g) < 0).all()


def test_cumulative_references_are_running_sums():
    g, G = problem(1, constraints=4)
    kept = G.copy()
    sums = np.array([G[: k + 1].sum(0) for k in range(4)])
    cumulative = project(g, G, references="cumulative", when="always")
    np.testing.assert_allclose(cumulative, project(g, sums, when="always"), rtol=1e-12)
    assert not np.allclose(cumulative, project(g, G, when="always"))
    assert (kept == G).all()


def test_cumulative_references_decide_whether_to_project():
    # <g, g_1> and <g, g_1 + g_2> are positive although <g, g_2> is negative.
    G = torch.tensor([[3.0, 0.0], [-1.0, 0.0]])
    g = torch.tensor([1.0, 1.0])
    assert Gem(references="cumulative").direct(g, step(G)) is g
    assert not torch.equal(Gem().direct(g, step(G)), g)


@pytest.mark.parametrize("seed", range(6))
def test_one_constraint_is_agem_up_to_the_ridge(seed):
    g, G = problem(seed, constraints=1)
    g = -np.sign(G[0] @ g) * g  # against the reference
    gem = project(g, G, gamma=0.0)
    v = -(G[0] @ g) / (G[0] @ G[0] + RIDGE)
    np.testing.assert_allclose(gem, g + v * G[0], rtol=1e-10)
    agem = Agem().direct(torch.as_tensor(g), Step(2, 1, None, None, torch.as_tensor(G[0])))
    np.testing.assert_allclose(project(g, G, gamma=0.0, ridge=1e-12), agem, atol=1e-9)
    assert not np.allclose(g, agem)


WRONG = {
    "gradient": ([[1.0, 0.0], [0.0, 1.0]], [np.nan, -1.0]),
    "infinite gradient": ([[1.0, 0.0], [0.0, 1.0]], [-np.inf, -1.0]),
    "reference": ([[np.nan, 0.0], [0.0, 1.0]], [1.0, -1.0]),
    "only reference": ([[np.nan, 0.0]], [1.0, -1.0]),
    "infinite reference": ([[np.inf, 0.0], [0.0, 1.0]], [-1.0, -1.0]),
    "positive infinity": ([[np.inf, 0.0]], [1.0, 1.0]),
    "square that overflows": ([[1e30, 0.0], [0.0, 1.0]], [-1.0, -1.0]),
}


@pytest.mark.parametrize(("when", "what"), [*itertools.product(["violated", "always"], WRONG)])
def test_what_is_not_finite_keeps_the_gradient_and_is_counted(when, what):
    G, g = (torch.tensor(values, dtype=torch.float32) for values in WRONG[what])
    context = step(G)
    assert Gem(when=when).direct(g, context) is g
    assert context.log["unsolved"] == 1.0
    assert not context.log.get("projected", 0.0)


def test_a_solver_without_an_answer_keeps_the_gradient_and_is_counted(monkeypatch):
    def give_up(*_):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(scipy.optimize, "nnls", give_up)
    g, context = torch.tensor([-1.0, 0.0]), step(torch.eye(2))
    assert Gem().direct(g, context) is g
    assert (context.log["unsolved"], context.log["projected"]) == (1.0, 0.0)


def test_nearly_parallel_references_are_still_projected():
    """In single precision their GG' is indefinite; it is computed again in double."""
    random = np.random.default_rng(0)
    base = 100 * random.normal(size=100_000) / np.sqrt(100_000)
    rows = np.cumsum([base + 0.01 * random.normal(size=base.size) / 30 for _ in range(9)], 0)
    G, g = (torch.tensor(values, dtype=torch.float32) for values in (rows, -base))
    single = (G @ G.T).double().numpy() + RIDGE * np.eye(9)
    assert np.linalg.eigvalsh(single)[0] < 0
    context = step(G)
    direction = Gem().direct(g, context)
    assert (context.log["projected"], context.log["unsolved"]) == (1.0, 0.0)
    v = solve_dual(rows @ rows.T + RIDGE * np.eye(9), rows @ -base, 0.5)
    np.testing.assert_allclose(direction, -base + v @ rows, rtol=1e-3, atol=1e-3)


def test_an_indefinite_problem_has_no_solution():
    assert solve_dual(-np.eye(2), np.ones(2), 0.0) is None


def test_vanishing_references_leave_the_gradient_as_it_is():
    g, G = problem(0, constraints=3, scale=1.0)
    direction = project(g, 1e-20 * G, gamma=0.5, when="always")
    np.testing.assert_allclose(direction, g, rtol=1e-12)


def test_the_first_task_has_no_constraints():
    g = torch.ones(3)
    assert Gem(when="always").direct(g, Step(1, 1, None, g)) is g


@pytest.mark.parametrize("options", [{"gamma": -0.1}, {"ridge": 0.0}, {"ridge": -1.0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UserError, match=next(iter(options))):
        Gem(**options)
