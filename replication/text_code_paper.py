"""Print AVG by the paper's text, with the authors' code, and as printed, one row per method."""

from __future__ import annotations

from twofold import Run, Store
from twofold.compare.reference import printed
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import EMPTY, value_text

HEAD = ["benchmark", "mode", "method", "by the text", "with the code", "paper"]
BENCHMARKS = ("rotated-mnist", "domain-cifar100", "split-cifar100")
MODES = ("offline", "online")
METHODS = ("er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem", "bic", "bic+agem")
SEEDS = 5  # of the paper; a different number is shown


def avg(runs: list[Run]) -> str:
    if not runs:
        return EMPTY
    remark = f" (n={len(runs)})" if len(runs) != SEEDS else ""
    return value_text(*mean_and_error([run.avg for run in runs])) + remark


stored = Store("replication/runs/replication").runs()
rows = []
for benchmark in BENCHMARKS:
    for mode in MODES:
        for method in METHODS:
            here = [
                run
                for run in stored
                if (run.config.benchmark, run.config.mode, run.config.method)
                == (benchmark, mode, method)
            ]
            if here:
                both = [
                    [run for run in here if run.config.profile == profile]
                    for profile in ("paper", "published")
                ]
                config = here[0].config
                paper = printed(benchmark, mode, method, "avg", config.lr, config.batch_size)
                reference = EMPTY if paper is None else value_text(*paper)
                rows.append([title_of(benchmark), mode, method, *map(avg, both), reference])
print(markdown_table([HEAD, *rows], left=3))
print(f"\n- AVG in percent, mean ± standard error over {SEEDS} seeds unless n is given.")
