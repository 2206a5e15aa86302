"""Panels: zooms after task switches, the whole curve, and the share of projected gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from twofold.drawing.curves import Array, Curve, Timeline
from twofold.drawing.style import (
    DOUBLE,
    LARGE,
    PALE,
    SINGLE,
    STYLE,
    Style,
    add_legend,
    add_note,
    empty_figure,
)
from twofold.errors import UserError

ZOOM = 50  # iterations after a switch, at most, unless a number is given
NARROWEST = 0.65  # inches for a zoom


@dataclass(frozen=True)
class Series:
    """A method as it is drawn."""

    curve: Curve  # the accuracy on the task that is shown
    label: str  # in the legend
    style: Style
    share: Array | None = None  # of runs whose gradient was projected, at every iteration
    quantity: str = "accuracy (%)"
    dense: int = ZOOM  # how far after a switch no evaluation was left out


@dataclass(frozen=True)
class Stack:
    """Panels one above the other: zooms, the whole curve (always), the share of projections."""

    timeline: Timeline
    limits: tuple[float, float]  # of the accuracy
    width: float  # in inches
    reach: int  # of zooms, in iterations after a switch
    zoomed: bool = True
    share: bool = True

    @property
    def zooms(self) -> int:
        return len(self.timeline.switches) if self.zoomed else 0

    @property
    def heights(self) -> list[float]:
        """The height of each row in inches: zooms, the whole curve, the share of projections."""
        rows = math.ceil(self.zooms / int(self.width / NARROWEST))
        return [1.1] * rows + [1.5] + [0.9] * self.share

    @property
    def height(self) -> float:
        """The height with the texts around the panels."""
        return sum(self.heights) + 0.35 + 0.3 * (self.zooms > 0)

    def draw(self, part: Figure | SubFigure, series: Sequence[Series]) -> None:
        rows = len(self.heights) - 1 - self.share  # of zooms
        each = math.ceil(self.zooms / rows) if rows else 1
        grid = part.add_gridspec(len(self.heights), each, height_ratios=self.heights)
        whole = lowest = part.add_subplot(grid[rows, :], label="whole")
        self._draw_whole(whole, series)
        if self.share:
            lowest = part.add_subplot(grid[rows + 1, :], label="share", sharex=whole)
            whole.tick_params(labelbottom=False)
            self._draw_share(lowest, series)
        lowest.set_xlabel("iteration")
        zooms = [part.add_subplot(grid[divmod(k, each)], label="zoom") for k in range(self.zooms)]
        self._draw_zooms(zooms, series)
        if zooms:
            _add_frame(part.add_subplot(grid[:rows, :], label="frame"), self._quantity(series))
        part.align_ylabels()

    def _quantity(self, series: Sequence[Series]) -> str:
        quantities = {one.quantity for one in series}
        return f"{self.timeline.subject} {' or '.join(sorted(quantities))}"

    def _draw_whole(self, axes: Axes, series: Sequence[Series]) -> None:
        timeline = self.timeline
        span = timeline.starts[0], timeline.ends[-1]
        axes.set(xlim=span, ylim=self.limits, ylabel=self._quantity(series))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        _name_tasks(axes, timeline)
        _mark(axes, timeline.switches)
        for one in series:
            _draw_curve(axes, one.curve, 0, one.style | {"linewidth": 0.6}, len(series))

    def _draw_zooms(self, zooms: Sequence[Axes], series: Sequence[Series]) -> None:
        later, reach = self.timeline.first + 1, self.reach
        span = (-0.04 * reach, 1.02 * reach)
        for task, axes in enumerate(zooms, later):
            switch, end = self.timeline.ends[task - later : task - later + 2]
            axes.set(xlim=span, ylim=self.limits, title=f"task {task}", xticks=(0, reach))
            axes.set_xticks([reach / 2], minor=True)
            axes.label_outer(remove_inner_ticks=False)
            axes.tick_params(labelbottom=True)
            _mark(axes, [0])
            for place, one in enumerate(series):
                section = one.curve.between(switch, min(switch + reach, end))
                # Methods often agree: a thinner line does not hide those drawn before it.
                style = one.style | {"linewidth": max(1.2 - 0.25 * place, 0.7)}
                sparse = {"marker": "o", "markersize": 2} if len(section.x) < ZOOM / 4 else {}
                _draw_curve(axes, section, switch, style | sparse, len(series))

    def _draw_share(self, axes: Axes, series: Sequence[Series]) -> None:
        width, bins = self.timeline.bin_width, self.timeline.bins()
        label = "share projected" + (f"\n({width}-iteration bins)" if width > 1 else "")
        axes.set(ylim=(-0.04, 1.04), yticks=(0, 0.5, 1), ylabel=label)
        _mark(axes, self.timeline.switches)
        for one in series:
            if one.share is not None:
                share = np.add.reduceat(one.share, bins[:-1]) / np.diff(bins)
                axes.stairs(share, bins, baseline=None, linewidth=0.8, **one.style)


def stacks_figure(
    stacks: Mapping[str, Sequence[Series]],
    timeline: Timeline,
    notes: Sequence[str] = (),
    zoomed: bool = True,
    share: bool = True,
    zoom: int | None = None,
) -> Figure:
    """Draw stacks of panels side by side, with their titles; one stack fits a single column.

    notes: sentences below the figure.
    zoom: iterations after a switch that zooms show.
    """
    all_series = [one for series in stacks.values() for one in series]
    count = len(stacks)
    width = SINGLE if count == 1 else max(DOUBLE, DOUBLE / 3 * count)
    stack = Stack(
        timeline,
        accuracy_limits(all_series, timeline),
        width / count,
        zoom_reach(all_series, timeline, zoom),
        zoomed=zoomed,
        share=share,
    )
    with mpl.rc_context(STYLE):
        figure = empty_figure(width, stack.height)
        parts = figure.subfigures(1, count, squeeze=False).flat
        for part, (title, series) in zip(parts, stacks.items(), strict=True):
            if title:
                part.suptitle(title, fontsize=LARGE, fontweight="bold")
            stack.draw(part, series)
        explain(figure, all_series, notes)
    return figure


def explain(figure: Figure, series: Sequence[Series], notes: Sequence[str]) -> None:
    """Add a legend above and notes below. Lines that look alike share an entry."""
    names: dict[tuple[str, ...], list[str]] = {}
    for one in series:
        names.setdefault((one.style["color"], one.style["linestyle"]), []).append(one.label)
    looks = {look: {"color": look[0], "linestyle": look[1]} for look in names}
    add_legend(figure, {", ".join(dict.fromkeys(names[look])): looks[look] for look in names})
    if notes:
        add_note(figure, notes)


def accuracy_limits(series: Iterable[Series], timeline: Timeline) -> tuple[float, float]:
    """Return the limits of the accuracy axes, which fit the curves after the first switch."""
    first, last = [*timeline.switches, 0][0], timeline.ends[-1]
    shown = [one.curve.between(first, last) for one in series]
    low = min(float((curve.mean - curve.error).min()) for curve in shown)
    high = max(float((curve.mean + curve.error).max()) for curve in shown)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def zoom_reach(series: Iterable[Series], timeline: Timeline, zoom: int | None = None) -> int:
    """Return the reach of zooms: no further than tasks are long.

    zoom: the number of iterations; by default 50, or fewer if evaluation was dense for fewer.
    """
    if zoom is not None and (not isinstance(zoom, int) or zoom < 1):
        raise UserError(f"zoom must be a whole number of iterations from 1 on, not {zoom}")
    tasks = zip(timeline.starts, timeline.ends, strict=True)
    longest = max(end - start for start, end in tasks)
    return min(longest, zoom or min(ZOOM, max(one.dense for one in series)))


def _add_frame(axes: Axes, quantity: str) -> None:
    """Label all zooms at once, by axes around them of which nothing else is visible."""
    axes.set(frame_on=False, zorder=-1, xlabel="iterations after the switch", ylabel=quantity)
    axes.tick_params(color="none", labelcolor="none")


def _name_tasks(axes: Axes, timeline: Timeline) -> None:
    """Name tasks above their parts of the curve; with many tasks only the numbers fit."""
    crowded = len(timeline.ends) > 4
    above = axes.get_xaxis_transform()
    for k, (start, end) in enumerate(zip(timeline.starts, timeline.ends, strict=True)):
        number = timeline.first + k
        name = f"{number}" if crowded else f"task {number}"
        axes.text((start + end) / 2, 1.01, name, transform=above, ha="center")
    if crowded:
        axes.text(timeline.starts[0], 1.01, "task ", transform=above, ha="right")


def _mark(axes: Axes, switches: list[int]) -> None:
    for switch in switches:
        axes.axvline(switch, color=PALE, linestyle="--", linewidth=0.6, zorder=0)


def _draw_curve(axes: Axes, curve: Curve, origin: int, style: Style, curves: int) -> None:
    x = curve.x - origin
    axes.plot(x, curve.mean, **style)
    if curve.error.any():  # fewer than three runs have no band
        low, high = curve.mean - curve.error, curve.mean + curve.error
        alpha = 0.25 if curves <= 3 else 0.12  # many bands on top of each other are a wall
        axes.fill_between(x, low, high, color=style["color"], alpha=alpha, linewidth=0)
