"""Online Split CIFAR-100, task by task: how long projected steps were, and what they led to."""

from __future__ import annotations

import numpy as np

from twofold import Run, Store
from twofold.report.departures import in_force
from twofold.report.text import EMPTY, markdown_table

TASKS = range(2, 11)


def lengthened(run: Run, task: int) -> str:
    """The mean ratio of the projected gradient's norm to the gradient's."""
    there = (run.curves["task"] == task) & (run.curves["projected"] > 0)
    return f"{run.curves['norm_ratio'][there].mean():.1f}" if there.any() else EMPTY


def rows(run: Run) -> list[list[str]]:
    departures = ", ".join(each.name for each in in_force(run.config)) or "none"
    ends = run.summary["accuracy_after_task"]
    accuracy = [f"{np.mean(ends[task - 1]):.1f}" for task in TASKS]
    what = [run.config.method.partition("(")[0], departures, str(run.config.seed)]
    found = [[*what, "accuracy", *accuracy]]
    if run.curves["projected"].any():
        found.append(["", "", "", "step", *(lengthened(run, task) for task in TASKS)])
    return found


runs = [r for r in Store("results/departures").runs() if r.config.benchmark == "split-cifar100"]
runs = [r for r in runs if r.config.method == "er" or r.config.method.startswith("er+gem")]
runs.sort(key=lambda run: (run.config.seed, run.config.method != "er", -run.avg))
head = ["method", "departures", "seed", "after task", *map(str, TASKS)]
print(markdown_table([head, *(row for run in runs for row in rows(run))], left=4))
print("\n- accuracy: the mean over the tasks so far, on their whole test sets.")
print("- step: how many times as long as the gradient the projected one was, the task's mean.")
