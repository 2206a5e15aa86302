"""The look of figures, and the files that they are saved in."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from twofold.errors import UserError
from twofold.plainfiles import write_output

Style = dict[str, Any]

SINGLE, DOUBLE = 3.5, 7.0  # inches: a column of a paper, and its whole width
PAD = 0.035  # inches above and below texts outside of panels
HANDLE = 0.45  # inches of a legend's line and the space around it

# Okabe and Ito's colours, which the colour-blind can tell apart; their yellow is too pale here.
BLACK, VERMILLION, BLUE, GREEN = "#000000", "#D55E00", "#0072B2", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
# Of Tol's and further ones, darker or duller than those above.
WINE, VIOLET, OLIVE = "#882255", "#6A51A3", "#8C8C1F"
PALE, DIM = "#A0A0A0", "#666666"

# Names whose colour is fixed. All others share the spare colours.
FIXED = {
    **{"er": BLACK, "agem": VERMILLION, "gem": BLUE, "joint": WINE, "finetune": DIM},
    **{"hold": ORANGE, "hold+momentum-warmup": GREEN},
}
SPARE = (PURPLE, SKY, VIOLET, OLIVE)
LINES = ("-", "--", ":", "-.")

WITHIN = r"\-_(=/:"  # where a word may be broken, as in a regular expression
SMALL, MEDIUM, LARGE = 6, 7, 8  # points
STYLE: Any = {  # Any: matplotlib spells out the known names, a different set each version
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": MEDIUM,
    "axes.titlesize": MEDIUM,
    "axes.labelsize": MEDIUM,
    "xtick.labelsize": MEDIUM,
    "ytick.labelsize": MEDIUM,
    "legend.fontsize": LARGE,
    "legend.frameon": False,
    "lines.linewidth": 0.8,
    "axes.linewidth": 0.5,
    "axes.edgecolor": PALE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlepad": 3,
    "axes.labelpad": 2.5,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "text.parse_math": False,  # a $ in a name is a $
    "svg.hashsalt": "twofold",
    "pdf.fonttype": 42,  # TrueType, which journals ask for
}
FORMATS: dict[str, dict[str, Any]] = {  # no dates: equal figures give equal files
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def looks(names: Iterable[str], among: Iterable[str] = ()) -> dict[str, Style]:
    """Return a colour and a line style per name, different for each as far as there are any.

    A name's letters decide which colour it prefers. If names prefer the same one, the first of
    them in the alphabet gets it, and the others the next that is free. So a name keeps its look
    whatever else is shown, as long as `names` and `among` together are the same.

    among: all other names that may be shown elsewhere, such as those of the whole store.
    """
    names = list(names)
    chosen: dict[str, tuple[str, str]] = {}
    for name in sorted({*names, *among} - FIXED.keys()):
        preferred = _preferences(name)
        free = (look for look in preferred if look not in chosen.values())
        chosen[name] = next(free, preferred[0])
    chosen |= {name: (colour, LINES[0]) for name, colour in FIXED.items()}
    return {name: {"color": chosen[name][0], "linestyle": chosen[name][1]} for name in names}


def _preferences(name: str) -> list[tuple[str, str]]:
    """Return all spare looks, the preferred one first, those with dashes last."""
    first = zlib.crc32(name.encode()) % len(SPARE)
    return [(colour, line) for line in LINES for colour in SPARE[first:] + SPARE[:first]]


def told_apart(styles: Iterable[Style]) -> list[Style]:
    """Return the styles of lines in one panel: lines of one colour differ in their dashes."""
    taken: list[tuple[str, str]] = []
    for style in styles:
        colour, own = style["color"], style["linestyle"]
        lines = (line for line in (own, *LINES) if (colour, line) not in taken)
        taken.append((colour, next(lines, own)))
    return [{"color": colour, "linestyle": line} for colour, line in taken]


class TitledFigure(Figure):
    """A figure in which a title has room: matplotlib's own lies over a legend outside of axes."""

    _room = 0.0  # inches of the title, with what is free around it

    def suptitle(self, t: str, **kwargs: Any) -> Text:
        """Add a title above the legend. The figure grows, so that the panels keep their size."""
        title = super().suptitle(t, **{"y": 1.0, "verticalalignment": "top"} | kwargs)
        room = title.get_window_extent().height / self.dpi + 2 * PAD
        _grow(self, room - self._room)
        for legend in self.legends:
            legend.borderaxespad += (room - self._room) * 72 / LARGE  # which is in font sizes
        engine = self.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine):
            engine.set(rect=(0, 0, 1, 1 - room / self.get_figheight()))
        if "y" not in kwargs:
            title.set_y(1 - PAD / self.get_figheight())
        self._room = room
        return title

    def _repr_png_(self) -> bytes:
        """Return the picture that notebooks show; they draw pyplot's figures only by themselves."""
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def empty_figure(width: float, height: float) -> Figure:
    """Return a figure of this size in inches; a legend and notes make it higher."""
    engine = ConstrainedLayoutEngine(h_pad=PAD, w_pad=0.03)
    return TitledFigure((width, height), dpi=200, layout=engine)


def add_legend(figure: Figure, styles: dict[str, Style]) -> None:
    """Add a legend above everything, in as few rows as the names allow."""
    room = figure.get_figwidth() - 0.1
    names = [wrapped(name, room - HANDLE) for name in styles]
    rows, columns = _grid(names, room)
    entries = zip(names, styles.values(), strict=True)
    figure.legend(
        handles=[Line2D([], [], label=name, linewidth=1.5, **style) for name, style in entries],
        loc="outside upper center",
        ncols=columns,
        handlelength=2.2,  # of a font size: enough for a pattern of dashes
        handletextpad=0.6,
        columnspacing=1.2,
        borderpad=0.2,
    )
    highest = max(name.count("\n") + 1 for name in names)
    _grow(figure, 0.17 * rows * highest)


def _grid(names: Sequence[str], room: float) -> tuple[int, int]:
    """Return the rows and columns of a legend, which is filled column by column."""
    widths = [HANDLE + max(map(inches, name.split("\n"))) for name in names]
    for rows in range(1, len(names)):
        columns = math.ceil(len(names) / rows)
        if sum(max(column) for column in np.array_split(widths, columns)) <= room:
            return rows, columns
    return len(names), 1


def add_note(figure: Figure, sentences: Sequence[str]) -> None:
    """Add notes below everything, in small letters."""
    room = figure.get_figwidth() - 0.4
    lines = [line for sentence in sentences for line in even_lines(sentence, room)]
    figure.supxlabel("\n".join(lines), fontsize=SMALL, color=DIM, linespacing=1.3)
    _grow(figure, 0.11 * len(lines))


def _grow(figure: Figure, more: float) -> None:
    figure.set_figheight(figure.get_figheight() + more)


def inches(text: str, size: float = LARGE) -> float:
    """Return the width of a line of text."""
    font = FontProperties(family=STYLE["font.family"], size=size)
    points, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(points) / 72


def wrapped(text: str, room: float, size: float = LARGE, ends: str = "+, ") -> str:
    """Break a text into lines of at most `room` inches, each ending with one of `ends`.

    What is wider than a line is broken within words, and within parts of words if need be.
    """
    lines = [""]
    for piece in _pieces(text, room, size, [ends, WITHIN, ""]):
        if lines[-1] and inches((lines[-1] + piece).rstrip(), size) > room:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def even_lines(text: str, room: float) -> list[str]:
    """Return as few lines of small letters as fit, about equally long: no word stands alone."""
    lines = narrower = wrapped(text, room, SMALL, " ").split("\n")
    while len(narrower) == len(lines) > 1:
        lines, room = narrower, room - 0.2
        narrower = wrapped(text, room, SMALL, " ").split("\n")
    return lines


def _pieces(text: str, room: float, size: float, levels: Sequence[str]) -> Iterator[str]:
    """Yield pieces of a text that end with a character of the first level, or of later ones."""
    ends, *deeper = levels
    for piece in re.findall(rf"[^{ends}]*[{ends}]|[^{ends}]+$", text) if ends else text:
        if deeper and inches(piece.rstrip(), size) > room:
            yield from _pieces(piece, room, size, deeper)
        else:
            yield piece


def save_figure(figure: Figure, path: Path) -> None:
    """Save as PNG, SVG or PDF, depending on the file's name."""
    check_format(path)
    try:
        picture, kind = io.BytesIO(), path.suffix.lower()
        with mpl.rc_context(STYLE):
            figure.savefig(picture, format=kind[1:], metadata=FORMATS[kind])
        write_output(path, picture.getvalue())
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}") from None


def check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"a figure's name must end in .png, .svg or .pdf, not {path.name!r}")
