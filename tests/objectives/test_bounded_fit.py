"""The fit of BiC's two numbers ends, whatever the logits and the version of scipy."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from scipy.optimize import _trustregion_exact

from twofold import bounded
from twofold.objectives.bic import fit_bias


@pytest.fixture
def older_scipy(monkeypatch):
    """scipy as it was before 1.17: the search for a step has no limit of its own."""
    subproblem = _trustregion_exact.IterativeSubproblem
    monkeypatch.setattr(subproblem, "MAXITER_DEFAULT", np.inf, raising=False)
    monkeypatch.setattr(bounded.scipy, "__version__", "1.11.4")


def late(*_: object) -> None:
    raise TimeoutError("the fit does not end")


def problem(seed: int, scale: float):
    random = np.random.default_rng(seed)
    logits = random.normal(size=(20, 5)) * scale
    return logits, random.integers(0, 5, 20), np.arange(3), np.arange(3, 5)


@pytest.mark.parametrize(("scale", "seed"), [(1e8, 12), (1e8, 20), (1e10, 20), (1e10, 22)])
def test_the_fit_ends_with_an_older_scipy(older_scipy, scale, seed):
    default = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    try:
        assert np.isfinite(fit_bias(*problem(seed, scale))).all()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, default)


def test_both_ways_find_the_same(monkeypatch):
    expected = [fit_bias(*problem(seed, 3.0)) for seed in range(20)]
    monkeypatch.setattr(bounded.scipy, "__version__", "1.11.4")
    result = [fit_bias(*problem(seed, 3.0)) for seed in range(20)]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-9)
