"""Print what MIN would be if the runs of the main table had been evaluated less often.

The offline runs on Rotated MNIST were evaluated after every iteration, so a thinner schedule can be
applied to their curves.
"""

from __future__ import annotations

import numpy as np

from twofold import Run, Store, measures
from twofold.evaluation.schedule import Schedule
from twofold.report.text import markdown_table

SCHEDULES = ["dense:50:100", "dense:10:100", "every:100"]
METHODS = ["er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem"]
HEAD = ["schedule", "evaluations per task", "runs with the same MIN", "largest difference"]


def thinned_min(run: Run, schedule: Schedule) -> float:
    """Return MIN over the iterations that the schedule evaluates."""
    task = np.asarray(run.columns["task"])
    due = [
        schedule.due(n) or n == length
        for length in np.unique(task, return_counts=True)[1]
        for n in range(1, length + 1)
    ]
    minimum = measures(task, np.where(np.array(due)[:, None], run.accuracy, np.nan))["min"]
    assert minimum is not None  # there are several tasks
    return minimum


def row(text: str, runs: list[Run]) -> list[str]:
    schedule = Schedule.parse(text)
    differences = np.array([thinned_min(run, schedule) - (run.min or 0) for run in runs])
    longest = max(int(np.unique(run.columns["task"], return_counts=True)[1].max()) for run in runs)
    same = f"{np.sum(np.abs(differences) < 1e-3)} of {len(runs)}"
    return [f"`{text}`", str(schedule.count(longest)), same, f"{differences.max():.1f}"]


runs = [
    run
    for run in Store("replication/runs/replication").runs()
    if (run.config.benchmark, run.config.profile) == ("rotated-mnist", "paper")
    and run.config.method in METHODS
    and run.config.schedule.complete
]
print(markdown_table([HEAD, *(row(text, runs) for text in SCHEDULES)], left=1))
print("\n- largest difference: points by which the MIN of a thinner schedule is too high at most.")
