"""Print which runs the stores hold, and how they were evaluated, one row per group of runs."""

from __future__ import annotations

from collections import defaultdict

from twofold import Run, Store
from twofold.report.studytables import title_of
from twofold.report.text import markdown_table

HEAD = ["store", "benchmark", "mode", "profile", "evaluated", "images", "tasks", "methods", "runs"]
STORES = ("replication", "departures", "gamma", "checks", "trajectories")


def group(run: Run) -> list[str]:
    config = run.config
    return [
        title_of(config.benchmark),
        config.mode,
        config.profile,
        config.eval_schedule,
        str(config.eval_size),
        str(config.tasks or "all"),
    ]


def order(row: list[str]) -> list[str]:
    return row[1:]


rows = []
for store in STORES:
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in Store(f"replication/runs/{store}").runs():
        groups[tuple(group(run))].append(run)
    for where, runs in sorted(groups.items()):
        methods = {run.config.method for run in runs}
        rows.append([store, *where, str(len(methods)), str(len(runs))])
print(markdown_table([HEAD, *rows], left=6))
print("\n- evaluated: `every` is after every iteration; `dense:10:500` is after each of a task's")
print("  first 10 iterations, then every 500 iterations and at the end of each task.")
print("- images: test images per task for these evaluations; AVG is always on the whole test sets.")
