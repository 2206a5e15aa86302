"""Names beside points: legible, inside of the panel, and each at its own point."""

from __future__ import annotations

import itertools
import random

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from twofold.drawing.names import NEAR, add_names
from twofold.drawing.style import STYLE, empty_figure


def named(
    places: list, names: list[str], lines: list = ()
) -> tuple[list[Annotation], list[Bbox], Bbox]:
    """Draw points with names; return the names, their boxes and the panel's."""
    with mpl.rc_context(STYLE):
        figure = empty_figure(7, 3)
        axes = figure.subplots()
        axes.plot(*zip(*places, strict=True), "o")
        figure.draw_without_rendering()
        add_names(axes, places, names, lines)
        figure.draw_without_rendering()
    texts = [child for child in axes.get_children() if isinstance(child, Annotation)]
    return texts, [Text.get_window_extent(text) for text in texts], axes.get_window_extent()


@pytest.mark.parametrize("seed", range(5))
def test_names_in_a_crowd_overlap_neither_each_other_nor_the_edge(seed: int):
    draw = random.Random(seed)
    near = [(draw.gauss(0, 0.05), draw.gauss(0, 0.1)) for _ in range(8)]
    places = [*near, (1, 1), (-1, -1), (1, -1)]
    texts, boxes, panel = named(places, [f"method(number={k})" for k in range(len(places))])
    assert sorted(text.xy for text in texts) == sorted(places)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    for box in boxes:
        assert all(panel.contains(*corner) for corner in box.corners())


def test_a_name_alone_is_beside_its_point_without_a_line():
    (first, second), _, _ = named([(0, 0), (1, 1)], ["a name", "the name at the right edge"])
    assert (first.get_position(), first.arrow_patch) == ((NEAR, 0), None)
    assert second.get_position()[0] < 0, "to the right there is no room"


def test_a_name_that_is_moved_away_has_a_line():
    texts, _, _ = named([(0, 0)] * 12, [f"the same place {k}" for k in range(12)])
    assert any(text.arrow_patch is not None for text in texts)


def test_neighbours_do_not_exchange_their_names():
    """The longer name does not fit on the right, and on the left the wrong point is nearer."""
    places = [(-1, -1), (0.87, 0), (0.9, 0), (1, 1)]
    texts, _, _ = named(places, ["a", "short", "the longer name", "b"])
    for text in texts:
        to_pixels = text.axes.transData.transform
        anchor = to_pixels(text.xy) + np.multiply(text.get_position(), text.figure.dpi / 72)
        points = to_pixels(places)
        nearest = places[int(np.linalg.norm(points - anchor, axis=1).argmin())]
        assert nearest == text.xy, text.get_text()


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_cover_lines(seed: int):
    """Bars of standard errors through each point, and a line from point to point."""
    draw = random.Random(seed)
    places = [(draw.random(), draw.random()) for _ in range(12)]
    bars = [[(x - 0.03, y), (x + 0.03, y)] for x, y in places]
    bars += [[(x, y - 0.08), (x, y + 0.08)] for x, y in places]
    lines = [*bars, [(x, y) for x in (0.2, 0.5, 0.8) for y in (0.0, 1.0)]]
    texts, boxes, _ = named(places, [f"method {k}" for k in range(len(places))], lines)
    to_pixels = texts[0].axes.transData.transform
    covered = [line for line in lines for box in boxes if crosses(to_pixels(line), box)]
    assert covered == []


def crosses(line: np.ndarray, box: Bbox) -> bool:
    return bool(Path(line).intersects_bbox(box, filled=False))


@pytest.mark.parametrize("seed", range(5))
def test_names_make_room_for_the_lines_of_others(seed: int):
    """The line that leads from a point to its name crosses no other name."""
    draw = random.Random(seed)
    places = [(draw.gauss(0, 0.04), draw.gauss(0, 0.04)) for _ in range(9)] + [(1, 1), (-1, -1)]
    texts, boxes, _ = named(places, [f"method {k}" for k in range(len(places))])
    for text, other in itertools.permutations(range(len(texts)), 2):
        arrow = texts[text].arrow_patch
        if arrow is not None:
            line = arrow.get_transform().transform_path(arrow.get_path())
            assert not line.intersects_bbox(boxes[other], filled=False)
