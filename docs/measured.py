"""Print what the stored runs show of one routine or objective, as a table.

python docs/measured.py gem     methods with this routine, beside the same objectives without it
python docs/measured.py joint   the objective alone, on every benchmark
"""

from __future__ import annotations

import sys

from twofold import Run, Store
from twofold.compare.groups import Group, groups
from twofold.objectives import Objective
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table
from twofold.text import mean_text

HEAD = ["benchmark", "mode", "method", "seeds", "MIN", "AVG"]


def stored(store: str) -> list[Group]:
    """Return the runs by the paper's text that were evaluated after every iteration."""
    return groups(run for run in Store(f"replication/runs/{store}").runs() if fits(run))


def fits(run: Run) -> bool:
    return run.config.profile == "paper" and run.config.eval_schedule == "every"


def parts(group: Group) -> list[str]:
    """Return the names of a method's components, the objective first."""
    return [name.partition(":")[0] for name, _ in group.config.components]


def of_objective(name: str) -> list[Group]:
    return [group for group in stored("replication") if parts(group) == [name]]


def of_routine(name: str) -> list[Group]:
    every = stored("trajectories")
    found = [group for group in every if name in parts(group)]
    beside = [parts(group)[:1] for group in found]
    return [group for group in every if parts(group) in beside] + found


def row(group: Group) -> list[str]:
    config = group.config
    values = [mean_text(group.values(metric)) for metric in ("min", "avg")]
    return [title_of(config.benchmark), config.mode, config.method, str(len(group.runs)), *values]


name = sys.argv[1]
found = of_objective(name) if name in Objective.known else of_routine(name)
if found:
    print(markdown_table([HEAD, *map(row, found)], left=3))
    print("\n- By the paper's text, in percent, mean ± standard error over seeds.")
else:
    routine = "torchjd:UPGrad" if name == "torchjd" else name  # a family of routines has members
    alone = name in Objective.known
    what = f"split-cifar100 {name}" if alone else f"rotated-mnist er 'er+{routine}'"
    print(f"twofold run {what} --seeds 5    # not among the stored runs")
