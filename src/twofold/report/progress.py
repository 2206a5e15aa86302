"""Progress of runs on stderr: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from twofold.experiments.config import Config
from twofold.experiments.workers import Status

LINE_EVERY = 30.0  # seconds between two plain lines about one run


class ProgressDisplay:
    """A watcher that shows each running run: task, iteration, accuracy so far."""

    def __init__(self, configs: Sequence[Config], console: Console) -> None:
        self._names = [escape(f"{c.method} seed {c.seed}") for c in configs]
        self._console = console
        self._lines = not console.is_terminal
        self._bars: dict[int, TaskID] = {}
        self._last: dict[int, float] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[where]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=self._lines,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, index: int) -> None:
        self._last[index] = time.monotonic()
        self._bars[index] = self._progress.add_task(self._names[index], total=None, where="")

    def progressed(self, index: int, status: Status) -> None:
        where = (
            f"task {status.task}, {status.iteration}/{status.iterations}, {status.accuracy:.1f}%"
        )
        self._progress.update(
            self._bars[index], completed=status.iteration, total=status.iterations, where=where
        )
        if self._lines and time.monotonic() - self._last[index] >= LINE_EVERY:
            self._last[index] = time.monotonic()
            self._console.print(f"{self._names[index]}: {where}")

    def finished(self, index: int, summary: dict[str, Any], folder: Path) -> None:
        self._progress.remove_task(self._bars[index])
        self._console.print(f"{self._names[index]}: {result_text(summary)}")


def result_text(summary: dict[str, Any]) -> str:
    """`MIN 83.1  AVG 93.6`, with a word where a run diverged."""
    low = "-" if summary["min"] is None else f"{summary['min']:.1f}"
    return f"MIN {low}  AVG {summary['avg']:.1f}" + ("  diverged" if summary["diverged"] else "")
