"""Print how much too high MIN is on Rotated MNIST if the model is evaluated less often.

Offline runs were evaluated after every iteration, so a thinner schedule can be applied to their
curves. Online runs were trained twice, once with `exact-min`. Of new runs, it is shown where their
minima lie.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

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
MNIST = "rotated-mnist"
HEAD = ["study", "schedule", "evaluations per task", "runs with the same MIN", "largest difference"]

HEAD_OF_MINIMA = ["mode", "what", "schedule", "new runs", "latest minimum", "beyond"]


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


def thinned(study: str, text: str, runs: list[Run]) -> list[str]:
    """Return the row of a schedule that is applied to runs evaluated after every iteration."""
    schedule = Schedule.parse(text)
    return row(study, text, runs, [thinned_min(run, schedule) - minimum(run) for run in runs])


def repeated(study: str, text: str) -> list[str]:
    """Return the row of a schedule with runs that were trained again with `exact-min`."""
    exact = {key(run): run for run in online("checks") if run.config.schedule.knows_min}
    thin = [run for run in online("confirmation") if key(run) in exact]
    assert all(run.config.eval_schedule == text for run in thin)
    return row(study, text, thin, [minimum(run) - minimum(exact[key(run)]) for run in thin])


def row(study: str, text: str, runs: list[Run], differences: list[float]) -> list[str]:
    longest = max(int(np.unique(run.columns["task"], return_counts=True)[1].max()) for run in runs)
    same = f"{sum(abs(each) < 1e-3 for each in differences)} of {len(runs)}"
    count = Schedule.parse(text).count(longest)
    return [study, f"`{text}`", str(count), same, f"{max(differences):.1f}"]


def minimum(run: Run) -> float:
    assert run.min is not None  # there are several tasks
    return run.min


def online(store: str) -> list[Run]:
    runs = Store(f"replication/runs/{store}").runs()
    return [run for run in runs if (run.config.benchmark, run.config.mode) == (MNIST, "online")]


def key(run: Run) -> tuple[str, int]:
    return run.config.method, run.config.seed


def complete(store: str, methods: list[str]) -> list[Run]:
    """Return the runs by the text that were evaluated after every iteration."""
    return [
        run
        for run in Store(f"replication/runs/{store}").runs()
        if (run.config.benchmark, run.config.profile) == (MNIST, "paper")
        and run.config.method in methods
        and run.config.schedule.complete
    ]


def latest_minimum(run: Run) -> int:
    """Return how many iterations after a switch an old task was lowest, at the latest."""
    task = np.asarray(run.columns["task"])
    iteration = np.concatenate(
        [np.arange(1, n + 1) for n in np.unique(task, return_counts=True)[1]]
    )
    old = [np.where(task > i + 1, curve, np.inf) for i, curve in enumerate(run.accuracy.T)]
    return max(int(iteration[np.nanargmin(curve)]) for curve in old[:-1])


def minima(key: tuple[str, str, str], runs: list[Run]) -> list[str]:
    """Return the row of new runs: the latest minimum, and how many lie beyond the dense part."""
    mode, objective, text = key
    latest = [latest_minimum(run) for run in runs]
    beyond = sum(each > Schedule.parse(text).dense for each in latest)
    return [mode, objective, f"`{text}`", str(len(runs)), f"{max(latest):,}", str(beyond)]


def new_runs() -> dict[tuple[str, str, str], list[Run]]:
    """Return the new runs whose MIN is a bound, by mode, objective and schedule."""
    found: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for store in sorted(Path("replication/runs").glob("confirmation*")):
        for run in Store(store).runs():
            config = run.config
            if not config.schedule.knows_min:
                key = config.mode, config.components[0][0], config.eval_schedule
                found[key].append(run)
    return found


rows = [
    thinned(study, text, complete(store, methods))
    for study, (store, methods, schedules) in CASES.items()
    for text in schedules
]
rows.append(repeated("main, online", "dense:300:20"))
print(markdown_table([HEAD, *rows], left=2))
print(
    "\n- largest difference: points by which the MIN of a thinner schedule is too high at most.\n"
)
print(
    markdown_table([HEAD_OF_MINIMA, *map(minima, *zip(*new_runs().items(), strict=True))], left=3)
)
print(
    "\n- latest minimum: iterations after a switch; beyond: runs with one after the first part of"
)
print("  the schedule, which evaluates every iteration.")
