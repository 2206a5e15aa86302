"""GEM (Lopez-Paz and Ranzato, 2017): one constraint per past task.

Equations (13)-(17) of Hess et al. (2024), appendix D. The projected gradient is the solution of

    minimise_gbar  1/2 ||g - gbar||^2    subject to   <gbar, g_k> >= 0  for all k < t,

found through its dual in the t-1 variables v, with G = (g_1, ..., g_{t-1}) as rows:

    minimise_v  1/2 v' G G' v + g' G' v    subject to   v >= 0,        gbar = G' v* + g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # which imports its parts when they are first used
import torch
from numpy.typing import NDArray
from torch import Tensor

from twofold.component import require, require_at_most
from twofold.routines.base import Needs, Routine, Step

Array = NDArray[np.float64]


@dataclass
class Gem(Routine, name="gem"):
    """The projection of GEM.

    gamma: how much the reference gradients are favoured beyond the constraints; 0.5 is the value
        of the paper and the original code, and 0 is the pure projection.
    when: `violated` projects only if some <g, g_k> < 0 (the original code, the main experiments);
        `always` solves the QP at every iteration (the paper's gamma study).
    rule: how gamma enters. `bound`: v >= gamma in the dual (the original code); `added`: v* + gamma
        (the text of the original paper); `none`: not at all.
    references: `independent` rows g_k (the paper); `cumulative` rows g_1 + ... + g_k, as the
        authors' code computes them by not zeroing gradients between tasks (D2).
    ridge: added to the diagonal of GG' so that it is positive definite.
    """

    gamma: float = 0.5
    when: Literal["violated", "always"] = "violated"
    rule: Literal["bound", "added", "none"] = "bound"
    references: Literal["independent", "cumulative"] = "independent"
    ridge: float = 1e-3

    label = "GEM"
    needs = Needs.PER_TASK

    def __post_init__(self) -> None:
        require(self.gamma >= 0, f"gem's gamma must be at least 0, not {self.gamma}")
        require(self.ridge > 0, f"gem's ridge must be above 0, not {self.ridge}")
        require_at_most(self, "gamma", "ridge")

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.references is None:
            return g
        G = step.references
        if self.references == "cumulative":
            G = G.cumsum(0)
        dots = G @ g
        if self.when == "violated" and not bool((dots < 0).any()):
            # NaN is not below 0, so non-finite gradients end here as well and are counted.
            step.mark(unsolved=float(not bool(torch.isfinite(dots).all())))
            return g
        gram = _numbers(G @ G.T)
        v = self.weights(gram, _numbers(dots))
        if v is None and np.isfinite(gram).all():
            D = G.double()  # in fp32, GG' of nearly parallel rows can be indefinite
            v = self.weights(_numbers(D @ D.T), _numbers(dots))
        step.mark(projected=float(v is not None), unsolved=float(v is None))
        if v is None:
            return g
        return torch.addmv(g, G.T, torch.from_numpy(v).to(G))

    def weights(self, gram: Array, dots: Array) -> Array | None:
        """Return v*, by the chosen rule, from GG' and Gg; None if no solution was found."""
        bound = self.gamma if self.rule == "bound" else 0.0
        v = solve_dual(gram + self.ridge * np.eye(len(gram)), dots, bound)
        return v + self.gamma if v is not None and self.rule == "added" else v


def _numbers(values: Tensor) -> Array:
    return values.double().cpu().numpy()


def solve_dual(P: Array, q: Array, bound: float) -> Array | None:
    """Return argmin_v 1/2 v'Pv + q'v subject to v >= bound, for a positive definite P.

    With P = LL' and v = u + bound, this is the non-negative least-squares problem
    min_{u >= 0} 1/2 ||L'u + L^-1 (q + P bound)||^2, which scipy solves exactly.
    """
    try:
        L = scipy.linalg.cholesky(P, lower=True)
        target = scipy.linalg.solve_triangular(L, q + P.sum(axis=1) * bound, lower=True)
        u, _ = scipy.optimize.nnls(L.T, -target)
    except (np.linalg.LinAlgError, ValueError, RuntimeError):  # e.g. an indefinite P
        return None
    return np.asarray(u + bound)
