"""Aggregators of TorchJD as routines: the same vectors, names, options, and what is refused."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.routines import Routine
from twofold.routines.base import Step
from twofold.routines.gem import Gem
from twofold.routines.pcgrad import Pcgrad

aggregation = pytest.importorskip(
    "torchjd.aggregation", reason="with TorchJD (pip install torchjd)"
)

seeds = st.integers(0, 2**31)
quick = settings(max_examples=30, deadline=None, derandomize=True)


def rows_of(seed: int, count: int, size: int = 20) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, size, generator=random, dtype=torch.float64)


def followed(method: str, rows: torch.Tensor, seed: int = 0) -> tuple[torch.Tensor, Step]:
    _, (routine,) = Method.parse(f"er+{method}").make()
    step = Step(len(rows), 1, None, rows[0], references=rows[1:], seed=seed)
    return routine.direct(rows[0], step), step


@given(seed=seeds, count=st.integers(2, 6))
@quick
def test_dual_proj_is_gem_without_gamma(seed, count):
    """Two solvers of one problem: theirs normalises and adds its own small ridge."""
    rows = rows_of(seed, count)
    rows[0] -= 0.5 * rows[1:].sum(0)  # conflicts
    ours = Gem(gamma=0.0, when="always", ridge=1e-9).direct(
        rows[0], Step(count, 1, None, rows[0], references=rows[1:])
    )
    theirs, _ = followed("torchjd:DualProj(preference=gradient)", rows)
    assert (theirs - ours).norm() <= 5e-3 * ours.norm()
    assert not torch.allclose(ours, rows[0])


@given(seed=seeds)
@quick
def test_pcgrad_of_two_gradients_is_twice_ours(seed):
    rows = rows_of(seed, 2, size=4)
    ours = Pcgrad().direct(rows[0], Step(2, 1, None, rows[0], references=rows[1:]))
    theirs, _ = followed("torchjd:PCGrad", rows)
    torch.testing.assert_close(theirs, 2 * ours)


@pytest.mark.parametrize(
    ("method", "aggregator"),
    [
        ("torchjd:UPGrad", aggregation.UPGrad()),
        ("torchjd:MGDA", aggregation.MGDA()),
        ("torchjd:MGDA(max_iters=3)", aggregation.MGDA(max_iters=3)),
        ("torchjd:IMTLG", aggregation.IMTLG()),
        ("torchjd:AlignedMTL(scale_mode=median)", aggregation.AlignedMTL(scale_mode="median")),
        ("torchjd:ConFIG", aggregation.ConFIG()),
        ("torchjd:Mean", aggregation.Mean()),
        ("torchjd:TrimmedMean(1)", aggregation.TrimmedMean(1)),
    ],
)
def test_the_rows_are_the_gradient_and_those_of_past_tasks(method, aggregator):
    rows = rows_of(7, 4)
    direction, step = followed(method, rows)
    torch.testing.assert_close(direction, aggregator(rows))
    assert (step.log["projected"], step.log["unsolved"]) == (1.0, 0.0)


def into_the_dual_cone(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The nearest vector to x without a conflict: x + J'w, with the w >= 0 that makes it shortest.

    By Moreau's theorem, x is the sum of this vector and of the nearest one in the cone of -J.
    """
    weights, _ = nnls(rows.T, -x)
    return x + rows.T @ weights


@given(seed=seeds, count=st.integers(2, 6))
@quick
def test_upgrad_is_the_mean_of_the_rows_projected_onto_the_dual_cone(seed, count):
    """By a different solver; theirs normalises and adds its own small ridge."""
    rows = rows_of(seed, count)
    rows[0] -= rows[1:].sum(0)  # conflicts
    J = rows.numpy()
    expected = np.mean([into_the_dual_cone(row, J) for row in J], axis=0)
    assert np.abs(expected - J.mean(0)).max() > 1e-3
    direction, _ = followed("torchjd:UPGrad", rows)
    assert np.linalg.norm(direction.numpy() - expected) <= 2e-2 * np.linalg.norm(expected)


@given(seed=seeds, count=st.integers(2, 6))
@quick
def test_upgrad_conflicts_with_no_task(seed, count):
    rows = rows_of(seed, count)
    direction, _ = followed("torchjd:UPGrad", rows)
    assert (rows @ direction >= -1e-2 * rows.norm(dim=1) * direction.norm()).all()


@pytest.mark.parametrize("name", ["PCGrad", "GradDrop", "Random"])
def test_draws_depend_on_the_step_alone_and_touch_nobody_elses(name):
    rows = rows_of(5, 5, size=3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, _ = followed(f"torchjd:{name}", rows)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    second, _ = followed(f"torchjd:{name}", rows)
    assert torch.equal(first, second)
    others = [followed(f"torchjd:{name}", rows, seed)[0] for seed in range(1, 8)]
    assert any(not torch.equal(first, other) for other in others)


@pytest.mark.parametrize(
    "method",
    [
        "er+torchjd:UPGrad",
        "torchjd:MGDA",
        "joint+torchjd:DualProj(preference=gradient)+clip",
        "er+torchjd:Krum(n_byzantine=1)",
        "er+torchjd:MGDA(epsilon=0.1,max_iters=5)+rescale+ema",
    ],
)
def test_a_name_is_written_as_it_is_read(method):
    assert Method.parse(method).text() == method
    config = twofold.configure("rotated-mnist", method)
    assert config.method == method
    second = twofold.configure("rotated-mnist", config.method)
    assert second.identity() == config.identity()
    assert [p.explicit() for p in config.make_components()[1]] == [
        options for _, options in config.components[1:]
    ]
    assert ":" not in config.folder_name()


@pytest.mark.parametrize("method", ["er+torchjd:UPGrad", "torchjd:MGDA", "er+torchjd:PCGrad+ema"])
def test_a_run_with_one(method):
    runs = [twofold.run(class_benchmark(), method, batch_size=8, iterations=4) for _ in range(2)]
    assert runs[0].columns["projected"][4:].all()
    assert not runs[0].columns["projected"][:4].any()
    assert np.array_equal(runs[0].columns["loss"], runs[1].columns["loss"])


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("er+torchjd:UPGrda", "unknown aggregator of TorchJD 'UPGrda': did you mean 'UPGrad'?"),
        ("er+torchjd", "unknown aggregator of TorchJD ''"),
        ("er+torchjd:Aggregator", "unknown aggregator of TorchJD 'Aggregator'"),
        ("er+torchjd:Constant", "unknown aggregator of TorchJD 'Constant'"),
        ("er+torchjd:Krum", "torchjd:Krum needs its option n_byzantine: torchjd:Krum("),
        ("er+torchjd:Krum(-1)", "torchjd:Krum can't be made: "),
        ("er+torchjd:MGDA(max_iter=3)", "unknown option of torchjd:MGDA 'max_iter'"),
        ("er+torchjd:MGDA(max_iters=few)", "torchjd:MGDA's max_iters must be a whole number"),
        ("er+torchjd:GradVac", "torchjd:GradVac keeps a state of its own"),
        ("er+torchjd:NashMTL(2)", "torchjd:NashMTL keeps a state of its own"),
    ],
)
def test_what_is_refused_and_with_which_words(method, message):
    with pytest.raises(UserError) as caught:
        twofold.configure("rotated-mnist", method)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is not None, reason="without cvxpy (pip uninstall cvxpy)"
)
def test_an_aggregator_names_the_package_that_it_needs():
    with pytest.raises(UserError, match=r"^torchjd:CAGrad can't be made: .*torchjd\[cagrad\]"):
        Method.parse("er+torchjd:CAGrad(c=0.5)")


def test_without_torchjd_the_error_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchjd", None)
    Routine.families["torchjd"].cache_clear()
    with pytest.raises(UserError, match=r"^a routine of TorchJD needs torchjd: .*\[torchjd\]'$"):
        Method.parse("er+torchjd:UPGrad")


def test_what_is_not_finite_keeps_the_gradient_and_is_counted():
    rows = rows_of(0, 3)
    rows[1, 0] = float("nan")
    direction, step = followed("torchjd:UPGrad", rows)
    assert torch.equal(direction, rows[0])
    assert (step.log["projected"], step.log["unsolved"]) == (0.0, 1.0)


def test_the_first_task_is_left_alone():
    _, (routine,) = Method.parse("er+torchjd:UPGrad").make()
    g = torch.ones(3)
    assert routine.direct(g, Step(1, 1, None, g)) is g
