"""Print which runs the stores hold, and how they were evaluated, one row per group of runs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from twofold import Run, Store
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table

HEAD = ["benchmark", "mode", "profile", "evaluated", "images", "tasks", "methods", "runs"]


def group(run: Run) -> tuple[str, ...]:
    config = run.config
    how = (config.eval_schedule, str(config.eval_size), str(config.tasks or "all"))
    return (title_of(config.benchmark), config.mode, config.profile, *how)


runs = {
    run.summary["identity"]: run
    for store in sorted(Path("replication/runs").iterdir())
    for run in Store(store).runs()
    if not run.config.validation  # such runs chose settings and are not reported
}
groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
for run in runs.values():
    groups[group(run)].append(run)
rows = [
    [*where, str(len({run.config.method for run in found})), str(len(found))]
    for where, found in sorted(groups.items())
]
print(markdown_table([HEAD, *rows], left=4))
print("\n- evaluated: `every` is after every iteration; `dense:10:500` is after each of a task's")
print("  first 10 iterations, then every 500 iterations and at the end of each task; `exact-min`")
print("  leaves out evaluations that cannot change MIN.")
print("- images: test images per task for these evaluations; AVG is always on the whole test sets.")
print(f"- runs: {len(runs)} in all.")
