"""Names of points, written beside them where nothing else is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from twofold.drawing.style import DIM, SMALL, Style, inches

MARGIN = 3.5  # points from the middle of a marker that are kept free
HEIGHT = 1.1 * SMALL  # points of a name
NEAR = 5.0  # points from a marker to its name; from further away, a line leads to it
DISTANCES = (NEAR, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0)  # tried in this order
ANGLES = (0, 180, 30, -30, 150, 210, 60, -60, 120, 240, 90, 270)  # degrees, in this order
NEIGHBOURHOOD = 20.0  # points: what is nearer makes a place crowded
ALIGNMENTS = {0.0: "left", 0.5: "center", 1.0: "right"}  # by the share to the left of a place
LEADER: Style = {"arrowstyle": "-", "color": DIM, "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
HALO = withStroke(linewidth=1.5, foreground="white")  # keeps names legible over lines


def add_names(axes: Axes, places: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    """Write a name beside each point, those of the most crowded points first.

    The figure must have its size already. Names overlap as little as possible if nothing is free.
    """
    unit = axes.figure.dpi / 72  # pixels per point
    points = axes.transData.transform([*places]) / unit
    inside = Bbox(axes.get_window_extent().get_points() / unit)
    taken = [_box(x, y, 2 * MARGIN, 2 * MARGIN, 0.5) for x, y in points]
    for k in _crowded_first(points):
        width = inches(names[k], SMALL) * 72
        distance, angle = _free_offset(points[k], width, inside, taken, points)
        taken.append(_box_beside(points[k], width, distance, angle))
        dx, dy = _shift(distance, angle)
        axes.annotate(
            names[k],
            places[k],
            (dx, dy),
            textcoords="offset points",
            fontsize=SMALL,
            ha=ALIGNMENTS[_aligned(angle)],
            va="center",
            path_effects=[HALO],
            arrowprops=None if distance == NEAR else LEADER | {"relpos": (_aligned(angle), 0.5)},
        )


def _crowded_first(points: np.ndarray) -> list[int]:
    """Return the positions of points, those with the most neighbours first."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    crowd = np.exp(-distances / NEIGHBOURHOOD).sum(1)
    return [int(k) for k in np.argsort(-crowd, kind="stable")]


def _free_offset(
    point: np.ndarray, width: float, inside: Bbox, taken: Sequence[Bbox], points: np.ndarray
) -> tuple[float, float]:
    """Return the nearest distance and angle that are free, or those with the fewest overlaps.

    Among these, the name should not be nearer to a different point.
    """

    def trouble(offset: tuple[float, float]) -> tuple[bool, int, int]:
        box = _box_beside(point, width, *offset)
        visible = all(inside.contains(*corner) for corner in box.corners())
        overlaps = sum(box.overlaps(other) for other in taken)
        distances = np.linalg.norm(points - point - _shift(*offset), axis=1)
        nearer = int((distances < offset[0] - 0.1).sum())
        return not visible, overlaps, nearer

    return min(((distance, angle) for distance in DISTANCES for angle in ANGLES), key=trouble)


def _shift(distance: float, angle: float) -> tuple[float, float]:
    return distance * math.cos(math.radians(angle)), distance * math.sin(math.radians(angle))


def _aligned(angle: float) -> float:
    """Return which share of a name is to the left of its place."""
    x, _ = _shift(1.0, angle)
    return 0.0 if x > 0.1 else 1.0 if x < -0.1 else 0.5


def _box_beside(point: np.ndarray, width: float, distance: float, angle: float) -> Bbox:
    dx, dy = _shift(distance, angle)
    return _box(point[0] + dx, point[1] + dy, width, HEIGHT, _aligned(angle))


def _box(x: float, y: float, width: float, height: float, aligned: float) -> Bbox:
    return Bbox.from_bounds(x - aligned * width, y - height / 2, width, height)
