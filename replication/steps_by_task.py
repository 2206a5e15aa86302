"""Print the length of projected steps and the accuracy after each task, on CIFAR-100."""

from __future__ import annotations

import numpy as np

from twofold import Run, Store
from twofold.compare.departures import in_force
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table
from twofold.text import EMPTY

SHOWN = (("split-cifar100", "online"), ("domain-cifar100", "offline"))


def lengthened(run: Run, task: int) -> str:
    """Return the mean norm of projected gradients, relative to the gradients."""
    rows = (run.columns["task"] == task) & (run.columns["projected"] > 0)
    return f"{run.columns['norm_ratio'][rows].mean():.1f}" if rows.any() else EMPTY


def rows(run: Run) -> list[list[str]]:
    departures = ", ".join(in_force(run.config)) or "none"
    ends = run.summary["accuracy_after_task"][1:]
    names = [run.config.method, departures, str(run.config.seed)]
    lines = [[*names, "accuracy", *(f"{np.mean(end):.1f}" for end in ends)]]
    if run.columns["projected"].any():
        steps = (lengthened(run, task) for task in range(2, len(ends) + 2))
        lines.append(["", "", "", "step", *steps])
    return lines


def order(run: Run) -> tuple[int, bool, int]:
    """Return the sorting key: ER before ER+GEM, and the text before departures."""
    return run.config.seed, run.config.method != "er", len(in_force(run.config))


for shown in SHOWN:
    runs = [
        run
        for store in ("departures", "gamma")
        for run in Store(f"replication/runs/{store}").runs()
        if (run.config.benchmark, run.config.mode) == shown
        and run.config.method.partition("(")[0] in ("er", "er+gem")
    ]
    runs.sort(key=order)
    body = [row for run in runs for row in rows(run)]
    tasks = (str(task) for task in range(2, max(map(len, body)) - 2))
    head = ["method", "departures", "seed", "after task", *tasks]
    print(f"**{title_of(shown[0])}, {shown[1]}**\n")
    print(markdown_table([head, *body], left=4), end="\n\n")
print("- accuracy: the mean over the tasks so far, on their whole test sets.")
print("- step: the norm of projected gradients, relative to the gradients, mean over the task.")
