"""Print the MIN of ER's methods beside the paper's, and their difference in standard errors."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from twofold import Run, Store
from twofold.compare.groups import groups
from twofold.compare.reference import printed
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import signed, value_text

SEEDS = 5  # of the paper
HEAD = ["method", "LR", "seeds", "here", "paper", "difference", "se", "typical se"]


def ours(store: str) -> list[Run]:
    """Return a store's runs of ER's methods on offline Rotated MNIST."""
    runs = Store(f"replication/runs/{store}").runs()
    runs = [r for r in runs if (r.config.benchmark, r.config.mode) == ("rotated-mnist", "offline")]
    return [run for run in runs if run.config.components[0][0] == "er"]


def spread(table: np.ndarray) -> tuple[float, float]:
    """Return the variance that runs of a seed share, and that of a single run.

    table: one row per method, one column per seed.
    """
    rows, columns = table.shape
    table = table - table.mean(1, keepdims=True)
    shared = table.mean(0)
    residual = ((table - shared) ** 2).sum() / ((rows - 1) * (columns - 1))
    return float(shared.var(ddof=1) - residual / rows), float(residual)


def luck(run: Run) -> float:
    """Return how much easier the evaluated images are than the whole test sets, in points."""
    whole = run.summary["accuracy_after_task"][-1]
    evaluated = [
        np.asarray(run.columns[f"accuracy_{task}"])[-1] for task in range(1, len(whole) + 1)
    ]
    return float(np.mean(evaluated) - np.mean(whole))


def setting(run: Run) -> tuple[str, float]:
    return run.config.method, run.config.lr


stores = ("replication", "departures", "gamma")
runs = {run.summary["identity"]: run for store in stores for run in ours(store)}
alike = [cell for cell in groups(runs.values()) if len(cell.runs) == SEEDS]
shared, own = spread(np.array([cell.values("min") for cell in alike]))
lucky = float(np.mean([luck(run) for run in runs.values()]))
typical = np.sqrt((shared + own) / SEEDS)

published = [r for r in (*ours("replication"), *ours("checks")) if r.config.profile == "published"]
lines = []
for (method, lr), group in groupby(sorted(published, key=setting), key=setting):
    paper = printed("rotated-mnist", "offline", method, "min", lr, 128)
    mean, error = mean_and_error(values := [run.min for run in group])
    assert paper is not None
    assert error is not None
    apart = mean - paper.mean
    own_errors = apart / np.hypot(error, paper.error)
    typical_errors = apart / (typical * np.hypot(1, np.sqrt(SEEDS / len(values))))
    numbers = [value_text(mean, error), value_text(*paper), signed(apart)]
    counts = [f"{abs(count):.1f}" for count in (own_errors, typical_errors)]
    lines.append([method, f"{lr:g}", f"{len(values)}", *numbers, *counts])
print(markdown_table([HEAD, *lines], left=1))
print(f"""
- se: the difference in standard errors of both means together.
- typical se: the same, with standard errors from the spread of all ER's methods with the paper's \
seeds ({len(alike)}). Runs of a seed share a variance of {shared:.1f}, and a single run adds \
{own:.1f}, so a mean over five seeds has a standard error of {typical:.1f}.
- At the end of a run, the accuracy on the evaluated images differs from that on the whole test \
sets by {signed(lucky, 2)} points on average.""")
