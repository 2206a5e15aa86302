"""Herding (Welling, 2009; iCaRL, Rebuffi et al., 2017): examples whose mean is that of their class.

Of a class with features phi(x), normalised to length 1, and their mean mu, the k-th choice is

    argmin_x  || mu - (phi(x) + sum_{j<k} phi(x_j)) / k ||

At the end of a task its classes are put into this order, and later tasks shorten the lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from twofold.benchmarks.base import Rows
from twofold.component import require
from twofold.memories.balanced import Balanced


@dataclass
class Herding(Balanced, name="herding"):
    """Examples whose mean feature is close to that of their class, chosen at a task's end.

    size: examples in all (2000 without a quota); a class with too few leaves its places to the
        others.
    per_class: examples of each class, instead of a size.
    """

    current: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not self.current,
            "herding chooses at the end of a task, so it can't hold the current one: leave "
            "current out",
        )

    def start(self, *given: object, **named: object) -> None:
        super().start(*given, **named)  # type: ignore[arg-type]
        self._value = np.full(len(self.labels), -np.inf)  # 0 for the first choice, then -1, -2, ...

    def rank(self, rows: Rows) -> NDArray[Any]:
        assert self.features is not None
        new = rows[np.isinf(self._value[rows])]
        most = self.per_class or _places_each(self.labels[rows], self.size or 0)
        for c in np.unique(self.labels[new]):
            own = new[self.labels[new] == c]
            chosen = own[herded(self.features(own), min(most, len(own)))]
            self._value[chosen] = -np.arange(len(chosen))
        return self._value


def _places_each(labels: Rows, size: int) -> int:
    """Return how many places the largest class has if all classes share them evenly."""
    counts = np.unique(labels, return_counts=True)[1]
    places = size // len(counts)
    while places < counts.max() and np.minimum(counts, places).sum() < size:
        places += 1
    return int(places)


def herded(features: Tensor, count: int) -> Rows:
    """Return the places of the examples that herding chooses, in its order."""
    phi = torch.nn.functional.normalize(features.double().cpu(), dim=1)
    mean, total, chosen = phi.mean(0), torch.zeros_like(phi[0]), []
    left = torch.ones(len(phi), dtype=torch.bool)
    for k in range(1, count + 1):
        # NaN features, of a network that diverged, choose the first example that is left.
        distance = ((mean - (total + phi) / k).norm(dim=1)).nan_to_num(1e300, 1e300, 1e300)
        place = int(distance.masked_fill(~left, torch.inf).argmin())
        left[place] = False
        total = total + phi[place]
        chosen.append(place)
    return np.array(chosen, np.int64)
