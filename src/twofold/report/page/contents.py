"""What the page shows, as plain data: all numbers are made here, the page only lays them out."""

from __future__ import annotations

import copy
import dataclasses
import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twofold.evaluation.measures import MEASURES, TOLERANCE, Gap, gaps, measures
from twofold.experiments.runs import Run
from twofold.report.cells import Cell, cells, mean_and_error
from twofold.report.figures.curves import accuracy_curve
from twofold.report.figures.style import looks
from twofold.report.layouts import TABLES
from twofold.report.studytables import study_table
from twofold.report.thinning import DENSE, thin
from twofold.report.verdicts import CLAIMS, LIMITS, unpaired, verdicts

Plain = dict[str, Any]  # what JSON can say
Known = dict[tuple[Any, ...], Plain]  # cells that were described before

PICKED = ("benchmark", "mode", "profile", "lr", "batch_size")  # one chooses what to see by these
# Neither picked by nor told apart by: the method says its components, the curves their lengths.
UNSAID = ("seed", "device", "method", "components", "plugins", "iterations", "tasks")
BUCKETS = 300  # of a curve: with two points in each there are as many as pixels
POINTS = 2_000_000  # of all single runs, and again of all means: 50 MB. Beyond, curves are coarser
NOTHING_TO_COMPARE = (
    "A verdict takes runs with a routine, and runs of plain SGD on the same objective with the "
    "same seeds."
)
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}  # as Plotly calls them


class Fineness(NamedTuple):
    """How a curve is thinned: the arguments of `thin`."""

    buckets: int
    dense: int


def page_contents(
    runs: Iterable[Run], name: str, begun: int = 0, known: Known | None = None
) -> Plain:
    """All that the page shows of runs.

    name: of the store, as its user wrote it.
    begun: how many more runs are not complete.
    known: what need not be described again; afterwards it holds what is described now.
    """
    known = {} if known is None else known
    before = dict(known)
    known.clear()
    found = [part for cell in cells(runs) for part in _by_length(cell)]
    of_runs = _share(sum(len(cell.runs) * _tasks(cell) for cell in found))
    of_means = _share(sum(map(_tasks, found)))
    hows = sorted({cell.routines for cell in found}, key=lambda how: (how != "sgd", how))
    styles = looks(hows)
    described = []
    for cell in found:
        fine = _fineness(of_runs, _tasks(cell)), _fineness(of_means, _tasks(cell))
        key = (fine, cell.config.profile, *(run.summary["identity"] for run in cell.runs))
        known[key] = before.get(key) or _described(cell, *fine)
        style = styles[cell.routines]
        look = {"colour": style["color"], "dash": DASHES[style["linestyle"]]}
        described.append({**known[key], "look": look})
    return {
        "store": name,
        "version": version("twofold"),
        "begun": begun,
        "commands": {
            "runs": shlex.join(["twofold", "runs", "--runs", name]),
            "report": shlex.join(["twofold", "report", name]),
        },
        "picked": [*PICKED, "iterations"],
        "measures": {
            key: {part: getattr(one, part) for part in ("title", "unit", "explanation", "thinned")}
            for key, one in MEASURES.items()
        },
        "tolerance": TOLERANCE,
        "cells": described,
        "verdicts": _verdicts(found),
        "tables": _tables(found),
    }


def _verdicts(found: Sequence[Cell]) -> Plain:
    reached = [dataclasses.asdict(verdict) for verdict in verdicts(found)]
    return {
        "claims": {hypothesis: claim.words for hypothesis, claim in CLAIMS.items()},
        "reached": reached,
        "notes": [*unpaired(found), *(LIMITS if reached else [NOTHING_TO_COMPARE])],
    }


def _tables(found: Sequence[Cell]) -> list[Plain]:
    """The paper's tables that the runs have a number for, as HTML."""
    profiles = dict.fromkeys(cell.config.profile for cell in found)
    made = [study_table(name, found, profile) for profile in profiles for name in TABLES]
    return [
        {
            "name": table.name,
            "title": table.title,
            "profile": table.profile,
            "html": table.render("html"),
        }
        for table in made
        if any(number.value is not None for number in table.numbers())
    ]


def _by_length(cell: Cell) -> list[Cell]:
    """Tensors of a user's own may have changed under one name: such runs have no mean."""
    lengths: dict[int, list[Run]] = {}
    for run in cell.runs:
        lengths.setdefault(run.summary["iterations"], []).append(run)
    return [Cell(tuple(runs)) for runs in lengths.values()]


def _tasks(cell: Cell) -> int:
    return len(cell.runs[0].summary["accuracy_after_task"])


def _share(curves: int) -> int:
    """The points of each. In steps: not every run that is added makes the others coarser."""
    return POINTS >> max(curves - 1, 0).bit_length()


def _fineness(share: int, tasks: int) -> Fineness:
    """Most points go where one zooms in. On average a curve has half as many segments as tasks."""
    return Fineness(min(BUCKETS, share // 6), min(DENSE, 2 * share // 3 // ((tasks + 1) // 2)))


def _described(cell: Cell, of_runs: Fineness, of_mean: Fineness) -> Plain:
    """A cell: its settings, its curves as fine as said, gaps and measures."""
    # Copies, whose curves are read now and forgotten: those of a large study need much memory.
    runs = [dataclasses.replace(run, columns=copy.copy(run.columns)) for run in cell.runs]
    cell, tasks = Cell(tuple(runs)), _tasks(cell)
    learned = np.asarray(runs[0].columns["task"])
    ends = np.bincount(learned)[1:].cumsum().tolist()
    single = [_run(run, learned, of_runs) for run in runs]
    config = dataclasses.asdict(cell.config)
    return {
        "settings": {**{name: config[name] for name in PICKED}, "iterations": ends[0]},
        "further": {k: config[k] for k in config if k not in (*PICKED, *UNSAID)} | {"tasks": tasks},
        "method": cell.config.method,
        "objective": cell.objective,
        "routine": cell.routines,
        "complete": cell.complete,
        "command": cell.command(),
        "ends": ends,
        "mean": [_mean_curve(cell, task, learned, of_mean) for task in range(1, tasks + 1)],
        "gaps": _mean_gaps([run["gaps"] for run in single]),
        "measures": {key: _mean([run["measures"][key] for run in single]) for key in MEASURES},
        "runs": single,
    }


def _run(run: Run, learned: NDArray[Any], fineness: Fineness) -> Plain:
    rows = [thin(learned, curve, *fineness) for curve in run.accuracy.T]
    columns = zip(rows, run.accuracy.T, strict=True)
    return {
        "seed": run.config.seed,
        "command": run.summary.get("command"),
        "curves": [{"x": packed(own + 1), "y": packed(curve[own])} for own, curve in columns],
        "gaps": [_gap(gap) for gap in gaps(learned, run.accuracy)],
        "measures": measures(learned, run.accuracy, run.summary["accuracy_after_task"]),
    }


def _gap(gap: Gap) -> Plain:
    return {
        name: getattr(gap, name) for name in ("switch", "task", "depth", "lowest_at", "recovery")
    }


def _mean_curve(cell: Cell, task: int, learned: NDArray[Any], fineness: Fineness) -> Plain:
    curve = accuracy_curve(cell, task)
    iterations = curve.x.astype(int)
    rows = thin(learned[iterations - 1], curve.mean, *fineness)
    mean = {"x": packed(iterations[rows]), "y": packed(curve.mean[rows])}
    return mean if len(cell.runs) == 1 else {**mean, "error": packed(curve.error[rows])}


def _mean_gaps(by_run: Sequence[list[Plain]]) -> list[Plain]:
    """Over seeds, which have the same switches and tasks. Only who recovered has a time for it."""
    return [
        {
            "switch": alike[0]["switch"],
            "task": alike[0]["task"],
            **{
                name: _mean([gap[name] for gap in alike])
                for name in ("depth", "lowest_at", "recovery")
            },
        }
        for alike in zip(*by_run, strict=True)
    ]


def _mean(values: Iterable[float | None]) -> Plain | None:
    """Mean, standard error and how many they are of; None of none."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    mean, error = mean_and_error(numbers)
    return {"mean": mean, "error": error, "count": len(numbers)}


def packed(values: NDArray[Any]) -> str:
    """As base64 of little-endian numbers of four bytes: accuracies exactly as recorded."""
    whole = np.issubdtype(values.dtype, np.integer)
    return b64encode(values.astype("<i4" if whole else "<f4").tobytes()).decode()
