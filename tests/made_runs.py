"""Runs made up of given accuracies, whole enough for tables, verdicts and the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold import Run, configure
from twofold.evaluation.metrics import minimum_accuracies


def made_run(method: str, accuracies: Any, seed: int = 142, **options: Any) -> Run:
    """`accuracies`: a list a task, all as long as the run; NaN before the task begins."""
    return run_of(configure("rotated-mnist", method, seed=seed, **options), accuracies)


def run_of(config: Any, accuracies: Any) -> Run:
    """Tasks of equal length; what a model has at a task's end is its final accuracy on it."""
    table = np.array(accuracies, np.float32).T
    length, tasks = table.shape
    task = (np.arange(length) * tasks // length + 1).astype(np.int16)
    curves = {"iteration": np.arange(1, length + 1, dtype=np.int32), "task": task}
    curves |= {f"accuracy_{k + 1}": table[:, k] for k in range(tasks)}
    curves["projected"] = np.zeros(length, np.float32)
    ends = [table[task == k + 1][-1, : k + 1].tolist() for k in range(tasks)]
    minima = minimum_accuracies(task, table)
    shown = ("benchmark", "mode", "method", "seed", "lr", "batch_size", "profile")
    try:
        command = config.command()
    except ValueError:  # of a method that is not known here
        command = None
    summary = {
        "identity": config.identity(),
        **{name: getattr(config, name) for name in shown},
        "min": float(minima.mean()) if len(minima) else None,
        "avg": float(np.mean(ends[-1])),
        "minimum_of_task": minima.tolist(),
        "accuracy_after_task": ends,
        "diverged": False,
        "iterations": length,
        "projected": 0.0,
        "seconds": {"training": 1.0, "evaluation": 1.0},
        "command": command,
    }
    return Run(config, summary, curves)


def gap_accuracies(length: int, tasks: int, seed: int) -> np.ndarray:
    """Curves as runs have them: a climb, noise, a dip after each switch; thousandths."""
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
