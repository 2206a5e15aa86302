"""Names of points, written beside them where nothing else is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from twofold.drawing.curves import Array
from twofold.drawing.style import DIM, SMALL, Style, inches

MARGIN = 3.5  # points from the middle of a marker that are kept free
HEIGHT, GAP = 1.25 * SMALL, 1.0  # points of a name, and between it and a line
NEAR, FAR = 5.0, 9.0  # points from a marker to its name; from further away, a line leads to it
BEYOND = 15.0  # points at most to the right or left, where a line would look like a bar of errors
DISTANCES = (NEAR, 7.0, FAR, 12.0, BEYOND, 18.0, 22.0, 27.0, 33.0, 40.0, 50.0)
SIDEWAYS, SLANTED, UPRIGHT = (0, 180), (30, -30, 150, 210, 60, -60, 120, 240), (90, 270)  # degrees
FARTHEST = dict.fromkeys(SIDEWAYS, BEYOND) | dict.fromkeys(UPRIGHT, FAR)  # by angle
OFFSETS = [  # tried in this order
    (distance, angle)
    for distance in DISTANCES
    for angle in (*SIDEWAYS, *SLANTED, *UPRIGHT)
    if distance <= FARTHEST.get(angle, math.inf)
]
ROUNDS = 3  # after the first, a name makes room for those that were put later
NEIGHBOURHOOD = 20.0  # points: what is nearer makes a place crowded
ALIGNMENTS = {0.0: "left", 0.5: "center", 1.0: "right"}  # by the share to the left of a place
LEADER: Style = {"arrowstyle": "-", "color": DIM, "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
HALO = withStroke(linewidth=1.5, foreground="white")  # keeps names legible over lines


Place = tuple[float, float]
Offset = tuple[float, float]  # distance and angle


def add_names(
    axes: Axes,
    places: Sequence[Place],
    names: Sequence[str],
    lines: Sequence[Sequence[Place]] = (),
) -> None:
    """Write a name beside each point, those of the most crowded points first.

    The figure must have its size already. Names overlap as little as possible if nothing is free.

    lines: what names should not cover either, such as bars of errors.
    """
    unit = axes.figure.dpi / 72  # pixels per point
    panel = _Panel(
        Bbox(axes.get_window_extent().get_points() / unit),
        axes.transData.transform([*places]) / unit,
        [Path(axes.transData.transform([*line]) / unit) for line in lines],
    )
    widths = [inches(name, SMALL) * 72 for name in names]
    order = _crowded_first(panel.points)
    for k in order * ROUNDS:
        panel.put(k, widths[k])
    for k in order:
        distance, angle = panel.offsets[k]
        axes.annotate(
            names[k],
            places[k],
            _shift(distance, angle),
            textcoords="offset points",
            fontsize=SMALL,
            ha=ALIGNMENTS[_aligned(angle)],
            va="center",
            path_effects=[HALO],
            arrowprops=LEADER | {"relpos": (_aligned(angle), 0.5)}
            if _leads(distance, angle)
            else None,
        )


class _Panel:
    """What a panel shows, in points: names stand where they cover as little as possible."""

    def __init__(self, inside: Bbox, points: Array, lines: Sequence[Path]) -> None:
        self.points = points
        self.offsets: dict[int, Offset] = {}  # of the names that were put beside points
        self._inside, self._lines = inside, lines
        self._markers = [_box(x, y, 2 * MARGIN, 2 * MARGIN, 0.5) for x, y in points]
        self._widths: dict[int, float] = {}

    def put(self, k: int, width: float) -> None:
        """Put a name of this width beside a point, or put it elsewhere, given all other names."""
        self.offsets.pop(k, None)
        self._widths[k] = width
        beside = {n: (self.points[n], offset) for n, offset in self.offsets.items()}
        boxes = [_box_beside(at, self._widths[n], *offset) for n, (at, offset) in beside.items()]
        leaders = [_leader(at, *offset) for at, offset in beside.values() if _leads(*offset)]
        around = [*self._markers, *boxes], [*self._lines, *leaders]
        self.offsets[k] = min(
            OFFSETS, key=lambda each: self._trouble(self.points[k], width, each, *around)
        )

    def _trouble(
        self,
        point: Array,
        width: float,
        offset: Offset,
        boxes: Sequence[Bbox],
        lines: Sequence[Path],
    ) -> tuple[bool, int, int, int]:
        """Return what is wrong with a place, the worst first; among equals, the nearest is taken.

        A name without a line that is nearer to a different point would seem to belong to it.
        """
        box, leads = _box_beside(point, width, *offset), _leads(*offset)
        outside = not all(self._inside.contains(*corner) for corner in box.corners())
        overlaps = sum(box.overlaps(other) for other in boxes)
        covered = sum(_meet(line, box.padded(GAP)) for line in lines)
        distances = np.linalg.norm(self.points - point - _shift(*offset), axis=1)
        nearer = int((distances < offset[0] - 0.1).sum())
        if not leads:
            return outside, overlaps, covered + nearer, 0
        leader = _leader(point, *offset)
        covered += sum(_meet(leader, other) for other in boxes)
        crossed = sum(leader.intersects_path(line, filled=False) for line in lines)
        return outside, overlaps, covered, nearer + crossed


def _crowded_first(points: Array) -> list[int]:
    """Return the positions of points, those with the most neighbours first."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    crowd = np.exp(-distances / NEIGHBOURHOOD).sum(1)
    return [int(k) for k in np.argsort(-crowd, kind="stable")]


def _leads(distance: float, angle: float) -> bool:
    """Return whether a line leads from the point to its name."""
    return distance > FAR and angle in SLANTED


def _leader(point: Array, distance: float, angle: float) -> Path:
    return Path([point + _shift(NEAR, angle), point + _shift(distance, angle)])


def _meet(line: Path, box: Bbox) -> bool:
    return bool(line.intersects_bbox(box, filled=False))


def _shift(distance: float, angle: float) -> tuple[float, float]:
    return distance * math.cos(math.radians(angle)), distance * math.sin(math.radians(angle))


def _aligned(angle: float) -> float:
    """Return which share of a name is to the left of its place."""
    x, _ = _shift(1.0, angle)
    return 0.0 if x > 0.1 else 1.0 if x < -0.1 else 0.5


def _box_beside(point: Array, width: float, distance: float, angle: float) -> Bbox:
    dx, dy = _shift(distance, angle)
    return _box(point[0] + dx, point[1] + dy, width, HEIGHT, _aligned(angle))


def _box(x: float, y: float, width: float, height: float, aligned: float) -> Bbox:
    return Bbox.from_bounds(x - aligned * width, y - height / 2, width, height)
