"""Thinning: fewer points of a curve that still include every minimum that the page shows.

A curve falls into segments, one for each task that was being learned. Thinning works within each,
so that whatever range of whole segments one looks at (MIN of task k: all after k; a gap: one), its
lowest point, its highest, its first and its last are points of the thinned curve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DENSE = 60  # evaluations kept after a task switch, where readers zoom in

Rows = NDArray[np.intp]
Values = NDArray[np.floating[Any]]


def thin(learned: NDArray[Any], values: Values, buckets: int, dense: int = DENSE) -> Rows:
    """Return the rows of a curve to keep, in order; all have a value.

    learned: the task that was being learned at each row.
    values: NaN where the curve was not evaluated.
    buckets: the number of parts that the curve is cut into (at least one per segment), each of
    which keeps its lowest and its highest point.
    dense: the number of first values that are kept of each segment.
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
    """Keep the first and last rows of one segment, and the extremes of each bucket."""
    width = -(-len(rows) // buckets)
    # The last bucket is filled up with its last point: that changes neither extreme.
    filled = np.minimum(np.arange(-(-len(rows) // width) * width), len(rows) - 1)
    table = rows[filled].reshape(-1, width)
    starts = np.arange(len(table)) * width
    extremes = [starts + find(values[table], axis=1) for find in (np.argmin, np.argmax)]
    places = np.concatenate([np.arange(min(max(dense, 1), len(rows))), *extremes, [len(rows) - 1]])
    kept: Rows = rows[np.unique(np.minimum(places, len(rows) - 1))]
    return kept
