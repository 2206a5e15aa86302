"""The mean over a few seeds and its standard error, for numbers and for whole curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.floating[Any]]

FEWEST = 3  # seeds for an error or a test: with fewer, any spread is compatible with them


def means_and_errors(table: Values) -> tuple[Values, Values | None]:
    """Return means over the rows and their standard errors; no errors for fewer than `FEWEST`.

    A standard error is the deviation with n-1, over the root of n.
    """
    count = len(table)
    means: Values = table.mean(axis=0)
    return means, table.std(axis=0, ddof=1) / np.sqrt(count) if count >= FEWEST else None


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """Return the mean of at least one value, and its standard error if there are `FEWEST`."""
    mean, error = means_and_errors(np.array(list(values), float))
    return float(mean), None if error is None else float(error)
