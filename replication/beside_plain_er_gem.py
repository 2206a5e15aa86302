"""Print the AVG of ER+GEM on online Domain CIFAR-100 by plain_er_gem.py and by this package."""

from __future__ import annotations

import json
from pathlib import Path

from decisions import DOMAIN, Place
from scipy import stats

from twofold.compare.reference import printed
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import p_text, value_text

FILE = Path(__file__).with_suffix("").with_name("plain_er_gem.jsonl")

lines = map(json.loads, FILE.read_text().splitlines())
plain: dict[int, float] = {line["seed"]: line["avg"] for line in lines}
ours = Place("replication", DOMAIN, "online", "published").group("er+gem").by_seed("avg")
seeds = [seed for seed in plain if seed in ours]
both = [[runs[seed] for seed in seeds] for runs in (plain, ours)]
paper = printed(DOMAIN, "online", "er+gem", "avg", 0.01, 10)
assert paper is not None

rows = [[str(seed), *(f"{runs[seed]:.1f}" for runs in (plain, ours))] for seed in seeds]
rows.append(["mean", *(value_text(*mean_and_error(values)) for values in both)])
print(markdown_table([["seed", "`plain_er_gem.py`", "this package"], *rows], left=1))
print(f"\n- AVG of ER+GEM with the departures. The paper has {value_text(*paper)}.")
p = float(stats.ttest_ind(*both, equal_var=False).pvalue)
print(f"- p of the difference, from Welch's t test: {p_text(p)}.")
print("- The programs draw different numbers, so runs with one seed are no pairs.")
