"""Runs that a stranger has written: nonsense in every file, under checksums that fit.

Tests read each of them, `make torture` chooses among them, and docs/hostile.py lists the answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twofold.experiments.files import digest
from twofold.experiments.runs import Run

Change = Callable[[Path], None]  # of the folder of a run


def seal(folder: Path) -> None:
    """Write checksums that fit, as whoever wrote the rest can do."""
    names = ("config.json", "summary.json", "curves.parquet")
    sums = {name: digest(folder / name) for name in names if (folder / name).is_file()}
    (folder / "checksums.json").write_text(json.dumps(sums))


def change(name: str, **entries: Any) -> Change:
    def changed(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, **entries}))

    return changed


def text(name: str, content: str | bytes) -> Change:
    def written(folder: Path) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return written


def curves(**columns: Any) -> Change:
    """Replace columns of the curves by functions of the number of rows; None drops one."""

    def written(folder: Path) -> None:
        there: dict[str, Any] = dict(Run.load(folder).columns)
        count = len(there["task"])
        for name, column in columns.items():
            there[name] = column if column is None else column(count)
        kept = {name: column for name, column in there.items() if column is not None}
        pq.write_table(pa.table(kept), folder / "curves.parquet")

    return written


def rows(count: int) -> Change:
    def written(folder: Path) -> None:
        there = Run.load(folder).columns
        empty = {name: np.resize(column, count) for name, column in there.items()}
        pq.write_table(pa.table(empty), folder / "curves.parquet")

    return written


HOSTILE: dict[str, Change] = {
    "nested JSON": text("config.json", "[" * 100_000),
    "a nested summary": text("summary.json", '{"a":' * 5000 + "1" + "}" * 5000),
    "moderately nested": change("summary.json", more=json.loads("[" * 90 + "]" * 90)),
    "a list for a summary": text("summary.json", "[1, 2]"),
    "an empty summary": text("summary.json", ""),
    "an empty object": text("summary.json", "{}"),
    "not UTF-8": text("summary.json", b'{"min": "\xff\xfe"}'),
    "text for a learning rate": change("config.json", lr="fast"),
    "an infinite learning rate": change("config.json", lr=float("inf")),
    "a number for a method": change("config.json", method=3),
    "a method of other components": change("config.json", method="er+agem"),
    "an unknown option": change("config.json", colour="red"),
    "components of another shape": change("config.json", components=[["er"]]),
    "components that are text": change("config.json", components="er"),
    "no components": change("config.json", components=[]),
    "a huge option": change("config.json", components=[["er", {"a": 10**4000}]]),
    "a schedule of many digits": change("config.json", eval_schedule="every:" + "9" * 5000),
    "a negative batch": change("config.json", batch_size=-1),
    "plugins that are a number": change("config.json", plugins=7),
    "a flag for a benchmark": change("config.json", benchmark="--plugin=/tmp/evil.py"),
    "escapes in a name": change("config.json", benchmark="\x1b]0;owned\x07"),
    "an infinite MIN": change("summary.json", min=float("inf")),
    "a MIN of many digits": change("summary.json", min=10**3000),
    "too many digits": text("summary.json", '{"min": ' + "1" * 100_000 + "}"),
    "text for AVG": change("summary.json", avg="high"),
    "text for diverged": change("summary.json", diverged="no"),
    "negative seconds": change("summary.json", seconds={"training": -1}),
    "an audit of text": change("summary.json", audit={"images": "all"}),
    "examples without tests": change("summary.json", examples={"train": 625}),
    "ragged accuracies": change("summary.json", accuracy_after_task=[[1.0], [2.0]]),
    "no tasks": change("summary.json", accuracy_after_task=[]),
    "a number for quantities": change("summary.json", quantities=3),
    "too few quantities": change("summary.json", quantities=["reward"]),
    "raw accuracies without curves": change(
        "summary.json", raw_accuracy_after_task=[[1.0], [1.0, 2.0]]
    ),
    "raw accuracies of one task": change("summary.json", raw_accuracy_after_task=[[1.0]]),
    "escapes in a processor": change("summary.json", made_with={"processor": "\x1b[31mred"}),
    "no accuracies": curves(accuracy_1=None, accuracy_2=None),
    "accuracies of text": curves(accuracy_1=lambda n: np.array(["a"] * n)),
    "infinite accuracies": curves(accuracy_1=lambda n: np.full(n, np.inf)),
    "no rows": rows(0),
    "too many rows": rows(4000),
    "task -1": curves(task=lambda n: np.full(n, -1)),
    "task 2^31": curves(task=lambda n: np.array([1] * (n - 1) + [2**31])),
    "no tasks in curves": curves(task=None),
    "tasks backwards": curves(task=lambda n: np.arange(n, 0, -1) * 2 // (n + 1) + 1),
    "nested columns": curves(accuracy_1=lambda n: pa.array([[k] for k in range(n)])),
    "no Parquet": text("curves.parquet", b"PAR1" + bytes(100) + b"PAR1"),
}
