"""The contents of the page as plain data: all numbers are computed here, the page lays them out."""

from __future__ import annotations

import dataclasses
import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twofold.compare.groups import Group, groups
from twofold.compare.hypotheses import hypotheses
from twofold.compare.verdicts import findings
from twofold.drawing.curves import Task
from twofold.drawing.style import looks
from twofold.evaluation.measures import MEASURES
from twofold.evaluation.trajectory import TOLERANCE, Gap
from twofold.experiments import profiles
from twofold.experiments.naming import colour_name
from twofold.experiments.plotting import accuracies, accuracy_curve
from twofold.experiments.runs import Run
from twofold.report.page.thinning import DENSE, thin
from twofold.report.tables import render, study_table, tables
from twofold.report.verdicts import decision
from twofold.statistics import FEWEST, mean_and_error
from twofold.text import EMPTY

Plain = dict[str, Any]  # what JSON can hold
Known = dict[tuple[Any, ...], Plain]  # groups that were described before

PICKED = ("benchmark", "mode", "profile", "lr", "batch_size")  # the page's filters
# Neither filters nor differences: the method names its components, the curves show their lengths.
UNSHOWN = ("seed", "components", "settings", "iterations", "tasks")
BUCKETS = 300  # of a curve: with two points each, there are as many as pixels
POINTS = 2_000_000  # of all single runs, and again of all means: 50 MB
NOTHING_TO_COMPARE = (
    "A verdict needs runs with a routine, and runs of plain SGD on the same objective with the "
    "same seeds."
)
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}  # as Plotly calls them


class Fineness(NamedTuple):
    """The fineness of a thinned curve: the arguments of `thin`."""

    buckets: int
    dense: int


def page_contents(
    runs: Iterable[Run], name: str, begun: int = 0, known: Known | None = None
) -> Plain:
    """Return all that the page shows of runs.

    name: the store's, as its user wrote it.
    begun: the number of runs that are not complete yet.
    known: groups that need not be described again; afterwards it holds those described now.
    """
    known = {} if known is None else known
    numbers_before = dict(known)
    known.clear()
    parts = [part for group in groups(runs) for part in _by_length(group)]
    of_runs = _share(sum(len(group.runs) * _curves(group) for group in parts))
    of_means = _share(sum(map(_curves, parts)))
    styles = looks(colour_name(group.config) for group in parts)
    described = []
    for group in parts:
        fine = _fineness(of_runs, _tasks(group)), _fineness(of_means, _tasks(group))
        key = (fine, group.config.profile, *(run.summary["identity"] for run in group.runs))
        known[key] = numbers_before.get(key) or _described(group, *fine)
        for run in group.runs:
            _ = run.raw_measures  # for the verdicts: the curves are not read again
            run.forget()  # those of a large study need much memory
        style = styles[colour_name(group.config)]
        style_of_line = {"colour": style["color"], "dash": DASHES[style["linestyle"]]}
        described.append({**known[key], "look": style_of_line})
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
        "groups": described,
        "verdicts": _verdicts(parts),
        "tables": _tables(parts),
    }


def _verdicts(found: Sequence[Group]) -> Plain:
    all_found = findings(found)
    reached = [
        {
            **dataclasses.asdict(verdict),
            "lr": verdict.lr or EMPTY,
            "batch_size": verdict.batch_size or EMPTY,
            "decision": decision(verdict),
        }
        for verdict in all_found.verdicts
    ]
    limits = all_found.limits if reached else [NOTHING_TO_COMPARE]
    return {
        "claims": {name: hypothesis.words for name, hypothesis in hypotheses().items()},
        "reached": reached,
        "notes": [*all_found.unpaired, *limits],
    }


def _tables(found: Sequence[Group]) -> list[Plain]:
    """Return the papers' tables that the runs have a number for, as HTML."""
    used = {group.config.profile: None for group in found}
    known = [profile for profile in used if profile in profiles.names()]
    filled = [study_table(name, found, profile) for profile in known for name in tables()]
    return [
        {
            "name": table.name,
            "title": table.title,
            "profile": table.profile,
            "html": render(table, "html"),
        }
        for table in filled
        if any(number.value is not None for number in table.numbers())
    ]


def _by_length(group: Group) -> list[Group]:
    """Split a group by length: tensors of a user's own may have changed under one name."""
    lengths: dict[int, list[Run]] = {}
    for run in group.runs:
        lengths.setdefault(run.summary["iterations"], []).append(run)
    return [Group(tuple(runs)) for runs in lengths.values()]


def _tasks(group: Group) -> int:
    return len(group.runs[0].summary["accuracy_after_task"])


def _curves(group: Group) -> int:
    """Return the number of curves of a run: one per task, and their mean."""
    return _tasks(group) + 1


def _share(curves: int) -> int:
    """Return the points per curve. It falls in steps: few added runs make others coarser."""
    return POINTS >> max(curves - 1, 0).bit_length()


def _fineness(share: int, tasks: int) -> Fineness:
    """Give most points to the zooms. On average a curve has half as many segments as tasks."""
    return Fineness(min(BUCKETS, share // 6), min(DENSE, 2 * share // 3 // ((tasks + 1) // 2)))


def _described(group: Group, of_runs: Fineness, of_mean: Fineness) -> Plain:
    """Describe a group: its settings, its curves with this fineness, gaps and measures."""
    runs, tasks = group.runs, _tasks(group)
    learned = np.asarray(runs[0].columns["task"])
    ends = np.bincount(learned)[1:].cumsum().tolist()
    quantities = [runs[0].quantity(task) for task in range(1, tasks + 1)]
    alike = len({*quantities}) == 1  # other quantities have no mean
    single = [_run(run, learned, of_runs, alike) for run in runs]
    config = {**group.config.decisive(), "profile": group.config.profile, **group.config.settings}
    config |= {name: config[name] or EMPTY for name in ("lr", "batch_size")}
    return {
        "settings": {**{name: config[name] for name in PICKED}, "iterations": ends[0]},
        "further": {k: config[k] for k in config if k not in (*PICKED, *UNSHOWN)}
        | {"tasks": tasks},
        "method": group.config.method,
        "objective": group.objective,
        "routine": group.routines,
        "complete": group.complete,
        "knowsMin": group.knows_min,
        "command": group.command(),
        "ends": ends,
        "quantities": quantities,
        "mean": [_mean_curve(group, task, learned, of_mean) for task in range(1, tasks + 1)],
        "average": _mean_curve(group, "mean", learned, of_mean) if alike else None,
        "gaps": _mean_gaps([run["gaps"] for run in single]),
        "measures": {key: _mean([run["measures"][key] for run in single]) for key in MEASURES},
        "runs": single,
    }


def _run(run: Run, learned: NDArray[Any], fineness: Fineness, averaged: bool) -> Plain:
    def curve(values: NDArray[Any], fineness: Fineness = fineness) -> Plain:
        places = thin(learned, values, *fineness)
        return {"x": packed(places + 1), "y": packed(values[places])}

    coarser = fineness._replace(buckets=fineness.buckets // 3 + 1)  # rarely looked at, run by run
    return {
        "seed": run.config.seed,
        "command": run.config.command(),
        "curves": [curve(values) for values in run.accuracy.T],
        "average": curve(accuracies(run, "mean"), coarser) if averaged else None,
        "gaps": [_gap(gap) for gap in run.gaps],
        "measures": run.measures,
    }


def _gap(gap: Gap) -> Plain:
    return {
        name: getattr(gap, name) for name in ("switch", "task", "depth", "lowest_at", "recovery")
    }


def _mean_curve(group: Group, task: Task, learned: NDArray[Any], fineness: Fineness) -> Plain:
    curve = accuracy_curve(group.runs, task)
    iterations = curve.x.astype(int)
    rows = thin(learned[iterations - 1], curve.mean, *fineness)
    mean = {"x": packed(iterations[rows]), "y": packed(curve.mean[rows])}
    return mean if len(group.runs) < FEWEST else {**mean, "error": packed(curve.error[rows])}


def _mean_gaps(by_run: Sequence[list[Plain]]) -> list[Plain]:
    """Average over seeds, which have the same switches and tasks; recovery where there was one."""
    return [
        {
            "switch": same_gaps[0]["switch"],
            "task": same_gaps[0]["task"],
            **{
                name: _mean([gap[name] for gap in same_gaps])
                for name in ("depth", "lowest_at", "recovery")
            },
        }
        for same_gaps in zip(*by_run, strict=True)
    ]


def _mean(values: Iterable[float | None]) -> Plain | None:
    """Return the mean, its standard error and the number of values; None without values."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    mean, error = mean_and_error(numbers)
    return {"mean": mean, "error": error, "count": len(numbers)}


def packed(values: NDArray[Any]) -> str:
    """Encode numbers as base64 of four little-endian bytes each: accuracies exactly as recorded."""
    whole = np.issubdtype(values.dtype, np.integer)
    return b64encode(values.astype("<i4" if whole else "<f4").tobytes()).decode()
