"""Print what A-GEM's routine costs, by the stored runs of the benchmark and by the paper."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from twofold.report.text import markdown_table

ROOT = Path(__file__).resolve().parent.parent
TIMING = ROOT / "src/twofold/papers/hess2024/reference/timing.csv"
ROW = "training step of er+agem / er, Split CIFAR-100, batch 10, task 10"
PASSES = re.compile(r"its passes alone: ([\d.]+)")
HEAD = ["relative to ER", "the passes of A-GEM, no projection", "ER+A-GEM"]


def paper_ratio() -> float:
    """Return the paper's seconds for ER+A-GEM over those for ER."""
    with TIMING.open() as lines:
        seconds = {row["method"]: float(row["seconds_mean"]) for row in csv.DictReader(lines)}
    return seconds["er+agem"] / seconds["er"]


def measured() -> dict[str, tuple[float, float]]:
    """Return both ratios by processor: that of the passes alone, and that of A-GEM."""
    found = {}
    for file in sorted((ROOT / "bench" / "results").glob("*.json")):
        result: dict[str, Any] = json.loads(file.read_text())
        (row,) = [row for row in result["rows"] if row["name"] == ROW]
        (passes,) = PASSES.findall(row["note"])
        processor = result["processor"].replace("(R)", "").partition(" Processor")[0]
        found[f"{processor}, {result['instructions']}"] = float(passes), float(row["value"])
    return found


def main() -> None:
    rows = [[name, *(f"{ratio:.2f}" for ratio in each)] for name, each in measured().items()]
    print(markdown_table([HEAD, *rows, ["the paper", "–", f"{paper_ratio():.2f}"]], left=1))
    print(f"\n- A row per stored run of `make bench`; {ROW.partition(', ')[2]}.")


if __name__ == "__main__":
    main()
