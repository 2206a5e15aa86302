"""The look of figures, and the files they become."""

from __future__ import annotations

import dataclasses
import io
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from helpers.figures import (
    legend,
    note,
    panels,
    two_tasks,
)
from matplotlib.colors import to_hex
from PIL import Image

from twofold import UserError
from twofold.drawing.style import SMALL, even_lines, inches, wrapped
from twofold.report.figures import gap_figure, save_figure


@pytest.mark.parametrize("methods", [["er", "er+gem"], ["er", "joint"]])
@pytest.mark.parametrize("title", ["Offline Rotated MNIST", "Rotated MNIST\noffline"])
def test_a_title_has_room_above_the_legend(methods, title):
    figure = gap_figure([two_tasks(method, [50, 60, 70, 80]) for method in methods])
    before = figure.get_figheight()
    figure.suptitle("another")
    text = figure.suptitle(title)
    figure.draw_without_rendering()
    shown = [axes.get_tightbbox() for part in figure.subfigs for axes in part.axes]
    upper = [text.get_window_extent(), figure.legends[0].get_window_extent()]
    assert upper[0].y1 <= figure.bbox.y1
    assert upper[0].y0 >= upper[1].y1
    assert upper[1].y0 >= max(box.y1 for box in shown)
    inches = upper[0].height / figure.dpi
    assert inches < figure.get_figheight() - before < inches + 0.1  # what is below keeps its size


def test_a_notebook_shows_the_picture():
    """IPython asks for it, and shows a line of text if there is none."""
    figure = gap_figure([two_tasks("er", [50, 60, 70, 80])])
    with Image.open(io.BytesIO(figure._repr_png_())) as picture:
        assert picture.format == "PNG"
        assert picture.size == pytest.approx(figure.get_size_inches() * figure.dpi, abs=1)


def test_long_names_wrap_and_no_two_curves_look_alike():
    """Sixteen methods, one of whose names alone is wider than the figure."""
    longest = "gem(gamma=0.25,when=always,rule=added,references=cumulative,ridge=0.01)+agem"
    hows = ["gem", "agem", longest, *(f"gem(gamma={k})" for k in range(1, 13))]
    runs = [
        two_tasks(method, [50, 60, 70, 80]) for method in ("er", *(f"er+{how}" for how in hows))
    ]
    figure = gap_figure(runs)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in panels(figure, "zoom"))
    names = {name.replace("\n", ""): name for name in legend(figure)}
    assert "\n" in names[f"er+{longest}"]
    shown = set(legend(figure).values())
    (whole,) = panels(figure, "whole")
    assert len(shown) == 16
    assert shown <= {(to_hex(line.get_color()), line.get_linestyle()) for line in whole.lines}


def test_names_are_taken_as_they_are(tmp_path):
    """A dollar starts no formula."""
    run = two_tasks("er", [50, 60, 70, 80])
    config = dataclasses.replace(run.config, benchmark="my $x^ \\frac{$ <b>&", method="er+$a_{$")
    figure = gap_figure([dataclasses.replace(run, config=config)])
    save_figure(figure, tmp_path / "figure.svg")
    check_svg((tmp_path / "figure.svg").read_bytes())
    assert note(figure).startswith("my $x^ \\frac{$ <b>&, offline")
    assert list(legend(figure)) == ["er+$a_{$"]


def check_png(content: bytes):
    picture = Image.open(io.BytesIO(content))
    picture.load()
    assert picture.size[0] == 700  # 3.5 inches of 200 dots


def check_svg(content: bytes):
    root = ElementTree.fromstring(content)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width") == "252pt"  # 3.5 inches of 72 points


def check_pdf(content: bytes):
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    assert b"/MediaBox [ 0 0 252 " in content
    assert b"/Type3" not in content  # TrueType fonts, which journals ask for


@pytest.mark.parametrize(
    ("suffix", "check"), [(".png", check_png), (".svg", check_svg), (".pdf", check_pdf)]
)
def test_files_are_valid_and_equal_figures_give_equal_files(tmp_path, suffix, check):
    contents = []
    for name in ("one", "two"):
        path = tmp_path / name / f"figure{suffix}"
        save_figure(gap_figure([two_tasks("er", [50, 60, 70, 80])]), path)
        contents.append(path.read_bytes())
    check(contents[0])
    assert contents[0] == contents[1]
    assert b"Date" not in contents[0]


def test_matplotlib_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would now fail
    before = mpl.rcParams.copy()
    save_figure(gap_figure([two_tasks("er", [50, 60, 70, 80])]), tmp_path / "figure.png")
    assert mpl.rcParams.copy() == before


def test_a_figure_that_cannot_be_written_is_an_error_in_one_line(tmp_path):
    figure = gap_figure([two_tasks("er", [50, 60, 70, 80])])
    with pytest.raises(UserError, match=r"must end in \.png, \.svg or \.pdf, not 'figure.jpg'"):
        save_figure(figure, tmp_path / "figure.jpg")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't write .*: "):
        save_figure(figure, tmp_path / "file" / "figure.png")


@pytest.mark.parametrize("room", [1.5, 2.5, 3, 4, 6])
def test_lines_of_a_note_are_as_few_as_fit_and_about_equally_long(room):
    text = "domain-cifar100, offline, lr 0.1, batch size 128: mean ± standard error over 3 seeds"
    lines = even_lines(text, room)
    assert " ".join(lines) == text
    assert len(lines) == len(wrapped(text, room, SMALL, " ").split("\n"))
    widths = [inches(line, SMALL) for line in lines]
    assert max(widths) <= room
    assert min(widths) > 0.5 * max(widths)
