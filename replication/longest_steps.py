"""Print how far projections lengthened the steps of ER+GEM on CIFAR-100, one row per run."""

from __future__ import annotations

from twofold import Run, Store
from twofold.compare.departures import in_force
from twofold.papers.hess2024.profiles import DEPARTURES
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table

HEAD = ["benchmark", "mode", "method", "departures", "seed", "projected", "longest step", "AVG"]


def row(run: Run) -> list[str]:
    config = run.config
    departures = ", ".join(in_force(config)) or "none"
    projected, ratio = run.columns["projected"].sum(), run.columns["norm_ratio"].max()
    place = [title_of(config.benchmark), config.mode, config.method, departures, str(config.seed)]
    remark = f" ({config.tasks} tasks)" if config.tasks else ""
    return [*place, f"{projected:.0f}", f"{ratio:.1f}", f"{run.avg:.1f}{remark}"]


def place(run: Run) -> tuple[str, str, float]:
    """Return the sorting key: the longest step comes first."""
    return run.config.benchmark, run.config.mode, -run.columns["norm_ratio"].max()


runs = [
    run
    for store in ("departures", "gamma", "checks")
    for run in Store(f"replication/runs/{store}").runs()
    if run.config.method.startswith("er+gem") and "cifar" in run.config.benchmark
]
print(markdown_table([HEAD, *map(row, sorted(runs, key=place))], left=4))
print("\n- projected: iterations in which the gradient was projected.")
print("- longest step: the largest norm of a projected gradient, relative to the gradient.")
for each in DEPARTURES:
    if any(each.name in in_force(run.config) for run in runs):
        print(f"- {each.name}: {each.words}.")
