"""Print the gap depth of the evaluated and of the trained weights, for methods with `ema`."""

from __future__ import annotations

from collections import defaultdict

from twofold import Run, Store
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import value_text

HEAD = ["method", "seeds", "evaluated weights", "trained weights"]

groups: dict[str, list[Run]] = defaultdict(list)
for run in Store("replication/runs/trajectories").runs():
    if run.config.benchmark == "rotated-mnist" and run.raw_measures is not None:
        groups[run.config.method].append(run)

rows = []
for method, runs in sorted(groups.items()):
    evaluated = [run.measures["gap_depth"] for run in runs]
    trained = [run.raw_measures["gap_depth"] for run in runs]
    values = [value_text(*mean_and_error(depths)) for depths in (evaluated, trained)]
    rows.append([method, str(len(runs)), *values])
print(markdown_table([HEAD, *rows], left=1))
print("\n- Gap depth in points on offline Rotated MNIST, mean ± standard error over seeds.")
