"""Runs with given results or curves, whole enough for tables, verdicts, figures and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twofold.compare.groups import Group, groups
from twofold.errors import UserError
from twofold.evaluation.metrics import minimum_accuracies
from twofold.experiments.config import Config, configure, usual_seeds
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.experiments.summary import NAMING


def example_run(config: Config, accuracies: Any = None, **entries: Any) -> Run:
    """A run of this configuration.

    accuracies: a list per task, all as long as the run, with NaN before the task begins. Tasks have
        equal length, and the accuracy at the end of a task is the one on its whole test set.
    entries: of the summary, instead of what follows from the curves.
    """
    columns: dict[str, Any] = {"task": np.ones(1)}
    result: dict[str, Any] = {}
    if accuracies is not None:
        table = np.array(accuracies, np.float32).T
        length, tasks = table.shape
        task = (np.arange(length) * tasks // length + 1).astype(np.int16)
        columns = {"iteration": np.arange(1, length + 1, dtype=np.int32), "task": task}
        columns |= {f"accuracy_{k + 1}": table[:, k] for k in range(tasks)}
        columns["projected"] = np.zeros(length, np.float32)
        ends = [table[task == k + 1][-1, : k + 1].tolist() for k in range(tasks)]
        minima = minimum_accuracies(task, table)
        result = {
            "min": float(minima.mean()) if len(minima) else None,
            "avg": float(np.mean(ends[-1])),
            "minimum_of_task": minima.tolist(),
            "accuracy_after_task": ends,
            "iterations": length,
        }
    summary = {
        "identity": config.identity(),
        **{name: getattr(config, name) for name in NAMING},
        **result,
        "diverged": False,
        "projected": 0.0,
        "seconds": {"training": 1.0, "evaluation": 1.0},
        "command": _command(config),
        **entries,
    }
    return Run(config, summary, columns)


def _command(config: Config) -> str | None:
    try:
        return config.command()
    except UserError:  # of a method that is not known here
        return None


def curve_run(
    method: str,
    accuracies: Any,
    seed: int = 142,
    projected: Sequence[float] | None = None,
    **options: Any,
) -> Run:
    """A run with these curves; the options are those of `configure`."""
    run = example_run(configure("rotated-mnist", method, seed=seed, **options), accuracies)
    if projected is not None:
        run.columns["projected"][:] = projected  # type: ignore[index]
    return run


def scored_run(
    method: str = "er",
    low: float | None = 80.0,
    avg: float = 90.0,
    *,
    benchmark: str = "rotated-mnist",
    seed: int = 142,
    diverged: bool = False,
    seconds: float = 10.0,
    processor: str = "a processor",
    **options: Any,
) -> Run:
    """A run with this MIN and AVG, and no curves; the options are those of `configure`."""
    return example_run(
        configure(benchmark, method, seed=seed, **options),
        min=low,
        avg=avg,
        diverged=diverged,
        seconds={"training": seconds, "evaluation": 1.0},
        made_with={"processor": processor},
    )


def seeded(
    method: str, lows: Sequence[float], avgs: Sequence[float] | None = None, **options: Any
) -> list[Run]:
    """A run for each value, with the usual seeds in turn; AVG is ten above MIN if not given."""
    finals = avgs if avgs is not None else [low + 10 for low in lows]
    seeds = usual_seeds(len(lows))
    return [
        scored_run(method, low, avg, seed=seed, **options)
        for low, avg, seed in zip(lows, finals, seeds, strict=True)
    ]


def grouped(*runs: Sequence[Run]) -> list[Group]:
    return groups(run for own in runs for run in own)


def gap_accuracies(length: int, tasks: int, seed: int) -> np.ndarray:
    """Curves as runs have them: a climb, noise, a dip after each switch; in thousandths."""
    random = np.random.default_rng(seed)
    n = np.arange(length)
    each = length // tasks
    table = np.full((tasks, length), np.nan)
    for k in range(tasks):
        after = n[k * each :] - k * each
        curve = 96 - 80 * np.exp(-after / (0.02 * each)) + random.normal(0, 0.6, len(after))
        for switch in range(1, tasks - k):
            since = after - switch * each
            depth = random.uniform(8, 20)
            curve -= np.where(since >= 0, depth * since / 7 * np.exp(1 - np.abs(since) / 7), 0)
        table[k, k * each :] = np.clip(np.round(curve, 1), 0, 100)
    return table


def saved(folder: Path, *runs: Sequence[Run]) -> Path:
    """The folder of a store with these runs."""
    store = Store(folder)
    store.prepare()
    for run in (run for own in runs for run in own):
        store.save(run)
    return folder
