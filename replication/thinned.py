"""Print what MIN would be if the offline runs on Rotated MNIST had been evaluated less often.

They were evaluated after every iteration, so a thinner schedule can be applied to their curves.
"""

from __future__ import annotations

import numpy as np

from twofold import Run, Store, measures
from twofold.evaluation.schedule import Schedule
from twofold.report.text import markdown_table

MAIN = ["er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem"]
ZERO = ["er", "er+gem(gamma=0.0,when=always)"]
LARGER = [*(f"er+gem(gamma={gamma},when=always)" for gamma in ("0.05", "0.1", "0.8", "1.0"))]
LARGER += ["er+gem(when=always)", "heavier-er(gamma=0.5)", "heavier-er"]  # γ is 0.5 by default
CLOSING = ["er", "er+gem", "er+hold", "er+hold(gain=1.0)", "er+lpr", "joint", "joint+hold"]
CASES = {  # the store, the methods, and schedules
    "main": ("replication", MAIN, ["dense:50:100", "dense:10:100", "every:100"]),
    "gamma, γ = 0": ("gamma", ZERO, ["dense:50:100"]),
    "gamma, larger γ": ("gamma", LARGER, ["dense:100:10", "dense:50:100"]),
    "sota": ("replication", ["der", "der+agem"], ["dense:100:10", "dense:50:100"]),
    "closing": ("trajectories", CLOSING, ["dense:200:5", "dense:100:10"]),
}
HEAD = ["study", "schedule", "evaluations per task", "runs with the same MIN", "largest difference"]


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


def row(study: str, text: str, runs: list[Run]) -> list[str]:
    schedule = Schedule.parse(text)
    differences = np.array([thinned_min(run, schedule) - (run.min or 0) for run in runs])
    longest = max(int(np.unique(run.columns["task"], return_counts=True)[1].max()) for run in runs)
    same = f"{np.sum(np.abs(differences) < 1e-3)} of {len(runs)}"
    return [study, f"`{text}`", str(schedule.count(longest)), same, f"{differences.max():.1f}"]


def complete(store: str, methods: list[str]) -> list[Run]:
    """Return the runs by the text that were evaluated after every iteration."""
    return [
        run
        for run in Store(f"replication/runs/{store}").runs()
        if (run.config.benchmark, run.config.profile) == ("rotated-mnist", "paper")
        and run.config.method in methods
        and run.config.schedule.complete
    ]


rows = [
    row(study, text, complete(store, methods))
    for study, (store, methods, schedules) in CASES.items()
    for text in schedules
]
print(markdown_table([HEAD, *rows], left=2))
print("\n- largest difference: points by which the MIN of a thinner schedule is too high at most.")
