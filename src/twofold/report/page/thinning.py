"""Thinning: fewer points of a curve that still include every minimum that the page shows.

A curve has one segment per task that was being learned, and each segment is thinned separately. So
the lowest, the highest, the first and the last point of any range of whole segments are points of
the thinned curve. MIN of task k uses all segments after k, and a gap uses one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DENSE = 60  # evaluations kept after a task switch, for zooming in on it

Rows = NDArray[np.intp]
Values = NDArray[np.floating[Any]]


def thin(learned: NDArray[Any], values: Values, buckets: int, dense: int = DENSE) -> Rows:
    """Return the rows of a curve to keep, in order. All of them have a value.

    learned: the task that was being learned at each row.
    values: the values of the curve, NaN where it was not evaluated.
    buckets: the number of parts of the curve (at least one per segment), each of which keeps its
    lowest and its highest point. With twice as many as pixels, no visible detail is lost.
    dense: the number of first values of each segment that are kept as well.
    """
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return rows
    segments = np.split(rows, np.flatnonzero(np.diff(learned[rows])) + 1)
    kept = [
        _thin(segment, values, max(1, round(buckets * len(segment) / len(rows))), dense)
        for segment in segments
    ]
    return np.concatenate(kept)


def _thin(rows: Rows, values: Values, buckets: int, dense: int) -> Rows:
    """Return the first and last rows of one segment, and the extremes of each bucket."""
    width = -(-len(rows) // buckets)
    # The last bucket is filled up with its last point, which changes neither extreme.
    filled = np.minimum(np.arange(-(-len(rows) // width) * width), len(rows) - 1)
    table = rows[filled].reshape(-1, width)
    starts = np.arange(len(table)) * width
    extremes = [starts + find(values[table], axis=1) for find in (np.argmin, np.argmax)]
    places = np.concatenate([np.arange(min(max(dense, 1), len(rows))), *extremes, [len(rows) - 1]])
    kept: Rows = rows[np.unique(np.minimum(places, len(rows) - 1))]
    return kept
