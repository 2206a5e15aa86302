"""PCGrad (Yu et al., 2020, algorithm 1): each gradient loses its conflicts with the others.

Each of the rows g_0 = g and g_1, ..., g_{t-1}, one per past task, is projected onto the normal
plane of every other row that it conflicts with, in a random order:

    g_i^PC = g_i;   for j != i:   if <g_i^PC, g_j> < 0:   g_i^PC -= <g_i^PC, g_j> / ||g_j||^2 g_j

    gbar = (g_0^PC + ... + g_{t-1}^PC) / t

Yu et al. use the sum, since their loss is a sum over tasks; here the joint loss is a mean. With
`pcgrad` alone, g is the gradient of the new task's loss and the rows are the t tasks of Yu et al.
Without conflicts, gbar is then the gradient of full replay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from twofold.routines.base import Needs, Routine, Step

Array = NDArray[np.float64]


@dataclass
class Pcgrad(Routine, name="pcgrad"):
    """Gradient surgery on g and the past tasks' gradients."""

    label = "PCGrad"
    needs = Needs.PER_TASK

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.references is None:
            return g
        rows = torch.cat([g[None], step.references])
        gram = (rows @ rows.T).double().cpu().numpy()
        solved = bool(np.isfinite(gram).all())
        step.mark(projected=float(solved), unsolved=float(not solved))
        if not solved:
            return g
        mean = weights(gram, step.random()) / len(rows)
        return rows.T @ torch.from_numpy(mean).to(rows)


def weights(gram: Array, random: np.random.Generator) -> Array:
    """Return the weight of each row in the sum, computed from the rows' inner products."""
    total = np.zeros(len(gram))
    for i in range(len(gram)):
        w = np.zeros(len(gram))  # of g_i^PC
        w[i] = 1
        for j in random.permutation(len(gram)):
            product = gram[j] @ w
            if j != i and product < 0:
                w[j] -= product / gram[j, j]
        total += w
    return total
