"""Print how many predictions in bf16 were compared with fp32, and how many differed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from twofold import Run, Store
from twofold.report.tables.model import title_of
from twofold.report.text import markdown_table

HEAD = ["benchmark", "runs", "predictions compared", "different"]

runs = {
    run.summary["identity"]: run
    for store in sorted(Path("replication/runs").iterdir())
    for run in Store(store).runs()
    if "audit" in run.summary
}
groups: dict[str, list[Run]] = defaultdict(list)
for run in runs.values():
    groups[title_of(run.config.benchmark)].append(run)

rows = []
for benchmark, found in sorted(groups.items()):
    totals = [sum(run.summary["audit"][key] for run in found) for key in ("images", "differences")]
    rows.append([benchmark, str(len(found)), *(f"{total:,}" for total in totals)])
print(markdown_table([HEAD, *rows], left=1))
