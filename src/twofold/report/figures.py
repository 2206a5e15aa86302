"""The paper's figure of stability gaps: the accuracy on a task while later ones are learned."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from twofold.errors import UserError, unknown
from twofold.experiments.config import Config
from twofold.experiments.runs import Run

Array = NDArray[np.floating[Any]]
Style = dict[str, Any]

ZOOM = 50  # iterations after a switch
NARROWEST = 0.65  # inches for a zoom
MOST_BINS = 300  # more points than these in the lowest panel would be a smear
NARROWERS = ("lr", "batch_size", "iterations")  # settings that `twofold figure` can choose by
HARMLESS = ("seed", "device", "plugins", "components")  # the method and profile say the components

# Okabe and Ito's colours, which the colour-blind can tell apart; their yellow is too pale here.
COLOURS = {"sgd": "#000000", "agem": "#D55E00", "gem": "#0072B2"}
SPARE = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PALE = "#A0A0A0"

STYLE: Any = {  # Any: matplotlib spells out the known names, a different set each version
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
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
    "svg.hashsalt": "twofold",
    "pdf.fonttype": 42,  # TrueType, which journals ask for
}
FORMATS: dict[str, dict[str, Any]] = {  # no dates: equal figures give equal files
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


@dataclass(frozen=True)
class Curve:
    """Mean and standard error over seeds, at the iterations that were evaluated."""

    x: Array  # iterations of the whole run, from 1
    mean: Array
    error: Array  # zero for a single run

    def between(self, first: int, last: int) -> Curve:
        kept = (first <= self.x) & (self.x <= last)
        return Curve(self.x[kept], self.mean[kept], self.error[kept])


@dataclass(frozen=True)
class Group:
    """One method's runs, which differ in nothing but their seed."""

    what: str
    how: str
    runs: list[Run]

    def accuracy(self, task: int) -> Curve:
        """Of a task, which is evaluated from its start on."""
        table = np.stack([run.accuracy[:, task - 1] for run in self.runs]).astype(float)
        evaluated = ~np.isnan(table).any(axis=0)
        values, count = table[:, evaluated], len(self.runs)
        mean = values.mean(axis=0)
        error = values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros_like(mean)
        return Curve(np.flatnonzero(evaluated) + 1.0, mean, error)

    def projected(self) -> Array:
        """The share of the runs whose gradient was projected, at every iteration."""
        flags = np.stack([run.curves["projected"] for run in self.runs]).astype(float)
        share: Array = flags.mean(axis=0)
        return share


@dataclass(frozen=True)
class Timeline:
    """When tasks begin and end, in iterations done; from the start of the task that is shown."""

    task: int
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, runs: Sequence[Run], task: int) -> Timeline:
        learned = [run.curves["task"] for run in runs]
        if any(not np.array_equal(learned[0], other) for other in learned):
            raise UserError("the runs differ in length: choose with --iterations or --methods")
        counts = np.bincount(learned[0].astype(int))[1:]
        if not 1 <= task <= len(counts):
            raise UserError(f"task must be from 1 to {len(counts)}, not {task}")
        ends = [int(end) for end in counts.cumsum()]
        return cls(task, [0, *ends][task - 1 : -1], ends[task - 1 :])

    @property
    def switches(self) -> list[int]:
        return self.starts[1:]

    @property
    def bin_width(self) -> int:
        iterations = self.ends[-1] - self.starts[0]
        widths = (1, 5, 20, 50, 100, 200, 500)
        return next((width for width in widths if iterations <= MOST_BINS * width), 1000)

    def bins(self) -> list[int]:
        """Edges of bins, none of which reaches over a task switch."""
        tasks = zip(self.starts, self.ends, strict=True)
        edges = [edge for start, end in tasks for edge in range(start, end, self.bin_width)]
        return [*edges, self.ends[-1]]


@dataclass(frozen=True)
class Column:
    """The panels of one objective, from top to bottom."""

    frame: Axes | None  # invisible, around the zooms, if there are any
    zooms: list[Axes]  # one a task switch
    whole: Axes
    share: Axes


def gap_figure(runs: Sequence[Run], task: int = 1) -> Figure:
    """Accuracy on `task` from its start on: a column of panels an objective, a colour a routine.

    On top the first 50 iterations after each task switch, from the last evaluation before it (0);
    in the middle the whole curve; below the share of runs whose gradient was projected. Lines are
    means over seeds, bands standard errors. The accuracy axes are all alike and fit what comes
    after the first switch: a task's first climb, from chance, may begin below them.
    """
    groups = _groups(runs)
    timeline = Timeline.of(runs, task)
    styles = _styles({group.how for group in groups})
    whats = sorted({group.what for group in groups})
    limits = _limits([group.accuracy(task) for group in groups], timeline)
    with mpl.rc_context(STYLE):
        figure, parts, columns = _layout(len(whats), timeline)
        for part, what, column in zip(parts, whats, columns, strict=True):
            part.suptitle(what, fontsize=8, fontweight="bold")
            _prepare(column, timeline, limits)
            for place, group in enumerate(group for group in groups if group.what == what):
                _draw(column, group, timeline, styles[group.how], place)
            part.align_ylabels()
        _add_legend(figure, styles)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """As PNG, SVG or PDF, as the name says."""
    check_format(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            figure.savefig(path, metadata=FORMATS[path.suffix.lower()])
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}") from None


def check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"a figure's name must end in .png, .svg or .pdf, not {path.name!r}")


def select_runs(
    runs: Sequence[Run],
    benchmark: str,
    mode: str = "offline",
    profile: str = "paper",
    methods: Sequence[str] | None = None,
    **narrowers: float | None,
) -> list[Run]:
    """The runs of a benchmark, mode and profile; only of some methods and settings, if given."""
    place = (benchmark, mode, profile)
    found = [run for run in runs if _place(run) == place]
    if not found:
        there = sorted({", ".join(_place(run)) for run in runs})
        listed = f"there are {'; '.join(there)}" if there else "there are no runs at all"
        raise UserError(f"no runs of {', '.join(place)}: {listed}")
    known = {run.config.method for run in found}
    for method in methods or ():
        if method not in known:
            raise unknown("method", method, known)
    found = [run for run in found if run.config.method in (methods or known)]
    for name, wanted in narrowers.items():
        values = {_setting(run, name) for run in found}
        if wanted is not None and wanted not in values:
            raise UserError(f"no runs with {_words(name)} {wanted}: there are {_listed(values)}")
        found = [run for run in found if wanted in (None, _setting(run, name))]
    return found


def _place(run: Run) -> tuple[str, str, str]:
    return run.config.benchmark, run.config.mode, run.config.profile


def _setting(run: Run, name: str) -> Any:
    if name == "iterations":  # of a task; the configuration only knows a limit
        return int((run.curves["task"] == 1).sum())
    return getattr(run.config, name)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(values, key=lambda value: (value is None, value))))


def _groups(runs: Sequence[Run]) -> list[Group]:
    """The runs by method: the plain objective first, then by name."""
    if not runs:
        raise UserError("a figure needs at least one run")
    _check_alike(runs, ("benchmark", "mode"), "the runs")
    methods: dict[str, list[Run]] = {}
    for run in runs:
        methods.setdefault(run.config.method, []).append(run)
    for method, own in methods.items():
        names = [field.name for field in dataclasses.fields(Config)]
        _check_alike(own, [name for name in names if name not in HARMLESS], f"{method}'s runs")
    groups = [Group(*_what_and_how(own[0].config), own) for own in methods.values()]
    return sorted(groups, key=lambda group: _plain_first(group.how))


def _check_alike(runs: Sequence[Run], names: Iterable[str], whose: str) -> None:
    for name in names:
        values = {_setting(run, name) for run in runs}
        if len(values) > 1:
            option = f"choose one with --{name.replace('_', '-')}"
            way = option if name in NARROWERS else "put them in folders of their own"
            raise UserError(f"{whose} differ in {_words(name)} ({_listed(values)}): {way}")


def _what_and_how(config: Config) -> tuple[str, str]:
    """The objective and the routines, as the method's text has them."""
    objective = config.components[0][0]
    match = re.fullmatch(rf"({re.escape(objective)}(?:\(.*?\))?)(?:\+(.*))?", config.method)
    if match is None:  # gem is finetune+gem
        return objective, config.method
    return match[1], match[2] or "sgd"


def _plain_first(how: str) -> tuple[bool, str]:
    return how != "sgd", how


def _styles(hows: Iterable[str]) -> dict[str, Style]:
    """The looks of each routine; where the spare colours run out, they come again with dashes."""
    spare = cycle([(colour, line) for line in ("-", "--", ":") for colour in SPARE])
    styles = {}
    for how in sorted(hows, key=_plain_first):
        colour, line = (COLOURS[how], "-") if how in COLOURS else next(spare)
        styles[how] = {"color": colour, "linestyle": line}
    return styles


def _limits(curves: Iterable[Curve], timeline: Timeline) -> tuple[float, float]:
    """Of the accuracy axes: what comes after the first switch, and some room."""
    shown = [curve.between([*timeline.switches, 0][0], timeline.ends[-1]) for curve in curves]
    low = min(float((curve.mean - curve.error).min()) for curve in shown)
    high = max(float((curve.mean + curve.error).max()) for curve in shown)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _layout(count: int, timeline: Timeline) -> tuple[Figure, list[SubFigure], list[Column]]:
    """One objective fits a paper's single column, two or three its double column."""
    width = 3.5 if count == 1 else max(7.0, 7 / 3 * count)
    zooms = len(timeline.switches)
    rows = math.ceil(zooms / int(width / count / NARROWEST))
    heights = [1.0] * rows + [1.35, 0.8]
    engine = ConstrainedLayoutEngine(h_pad=0.035, w_pad=0.03)
    figure = Figure((width, 1.1 * sum(heights) + 0.65), dpi=200, layout=engine)
    parts = [*figure.subfigures(1, count, squeeze=False).flat]
    return figure, parts, [_column(part, zooms, heights) for part in parts]


def _add_legend(figure: Figure, styles: dict[str, Style]) -> None:
    """Above everything, in as many rows as the names ask for."""
    lines = [Line2D([], [], label=how, linewidth=1.5, **style) for how, style in styles.items()]
    inches = 0.55 + 0.075 * max(map(len, styles))  # of the longest: a line, and so much a letter
    columns = min(len(lines), max(1, int(figure.get_figwidth() / inches)))
    figure.legend(handles=lines, loc="outside upper center", ncols=columns)
    rows = math.ceil(len(lines) / columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * rows)


def _column(part: SubFigure, zooms: int, heights: list[float]) -> Column:
    rows = len(heights) - 2
    each = math.ceil(zooms / rows) if rows else 1
    grid = part.add_gridspec(len(heights), each, height_ratios=heights)
    places = [grid[divmod(k, each)] for k in range(zooms)]
    whole = part.add_subplot(grid[rows, :], label="whole")
    share = part.add_subplot(grid[rows + 1, :], label="share", sharex=whole)
    axes = [part.add_subplot(place, label="zoom") for place in places]
    frame = part.add_subplot(grid[:rows, :], label="frame") if rows else None
    return Column(frame, axes, whole, share)


def _frame(axes: Axes, accuracy: str) -> None:
    """One label for all zooms: of axes around them, of which nothing else is seen."""
    axes.set(frame_on=False, zorder=-1, xlabel="iterations after the switch", ylabel=accuracy)
    axes.tick_params(color="none", labelcolor="none")


def _prepare(column: Column, timeline: Timeline, limits: tuple[float, float]) -> None:
    """Axes, labels and dashed lines at the task switches."""
    accuracy = f"task {timeline.task} accuracy (%)"
    if column.frame:
        _frame(column.frame, accuracy)
    for task, axes in enumerate(column.zooms, timeline.task + 1):
        axes.set(xlim=(-2, ZOOM + 1), ylim=limits, title=f"task {task}", xticks=(0, ZOOM))
        axes.set_xticks([ZOOM / 2], minor=True)
        axes.label_outer(remove_inner_ticks=False)
        axes.tick_params(labelbottom=True)
        _mark(axes, [0])
    column.whole.set(ylim=limits, ylabel=accuracy)
    column.whole.tick_params(labelbottom=False)
    _name_tasks(column.whole, timeline)
    _mark(column.whole, timeline.switches)
    _mark(column.share, timeline.switches)
    width = timeline.bin_width
    column.share.set(
        xlim=(timeline.starts[0], timeline.ends[-1]),
        ylim=(-0.04, 1.04),
        yticks=(0, 0.5, 1),
        xlabel="iteration",
        ylabel="share projected" + (f"\n({width}-iteration bins)" if width > 1 else ""),
    )


def _name_tasks(axes: Axes, timeline: Timeline) -> None:
    """Above each task's part of the curve; with many tasks only the number fits."""
    for k, (start, end) in enumerate(zip(timeline.starts, timeline.ends, strict=True)):
        name = f"{timeline.task + k}"
        axes.text(
            (start + end) / 2,
            1.01,
            name if k and len(timeline.ends) > 4 else f"task {name}",
            transform=axes.get_xaxis_transform(),
            horizontalalignment="center",
        )


def _mark(axes: Axes, switches: list[int]) -> None:
    for switch in switches:
        axes.axvline(switch, color=PALE, linestyle="--", linewidth=0.6, zorder=0)


def _draw(column: Column, group: Group, timeline: Timeline, style: Style, place: int) -> None:
    curve = group.accuracy(timeline.task)
    _draw_curve(column.whole, curve, 0, style | {"linewidth": 0.6})
    # Routines agree until one projects. A thinner line does not hide those that were drawn before.
    near_style = style | {"linewidth": max(1.2 - 0.25 * place, 0.7)}
    for axes, (switch, end) in zip(column.zooms, pairwise(timeline.ends), strict=True):
        near = curve.between(switch, min(switch + ZOOM, end))
        sparse = {"marker": "o", "markersize": 2} if len(near.x) < ZOOM / 4 else {}
        _draw_curve(axes, near, switch, near_style | sparse)
    bins = timeline.bins()
    share = np.add.reduceat(group.projected(), bins[:-1]) / np.diff(bins)
    column.share.stairs(share, bins, baseline=None, linewidth=0.8, **style)


def _draw_curve(axes: Axes, curve: Curve, origin: int, style: Style) -> None:
    x = curve.x - origin
    axes.plot(x, curve.mean, **style)
    if curve.error.any():  # there is no band with a single run
        low, high = curve.mean - curve.error, curve.mean + curve.error
        axes.fill_between(x, low, high, color=style["color"], alpha=0.25, linewidth=0)
