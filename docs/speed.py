"""Print the rows of the benchmark, a column per stored result in bench/results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from twofold.report.text import markdown_table
from twofold.text import EMPTY

RESULTS = Path(__file__).resolve().parent.parent / "bench" / "results"

Measured = dict[str, Any]  # a row, as `python bench --json` writes it


def value_text(row: Measured) -> str:
    text = f"{row['value']:.{0 if row['unit'] else 2}f}{row['unit']}".replace("-", "−")
    return text if row["reached"] else f"{text}, missed"


def cells(name: str, columns: list[dict[str, Measured]]) -> list[str]:
    """Return a row of the table: its name, a value per result, and its goal or goals."""
    found = [rows[name] for rows in columns if name in rows]
    values = [value_text(rows[name]) if name in rows else EMPTY for rows in columns]
    goals = " or ".join(dict.fromkeys(f"{row['target']:g}{row['unit']}" for row in found))
    return [name, *values, f"{found[0]['bound']} {goals}"]


def head(result: Measured) -> str:
    """Return the processor in short, without trademarks and clock, and its instructions."""
    short = re.sub(r"\(R\)| Processor| @.*", "", result["processor"])
    return f"{short}, {result['instructions']}"


results = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))]
columns = [{row["name"]: row for row in result["rows"]} for result in results]
names = list(dict.fromkeys(name for rows in columns for name in rows))
heads = [head(result) for result in results]
print(markdown_table([["row", *heads, "goal"], *(cells(name, columns) for name in names)], left=1))
print()
for title, result in zip(heads, results, strict=True):
    reached = sum(row["reached"] for row in result["rows"])
    count = len(result["rows"])
    print(f"- {title}: {count} rows in {result['seconds']} s; {reached} reach their goal.")
