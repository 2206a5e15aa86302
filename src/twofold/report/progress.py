"""Progress of runs on stderr: lines that move in a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from twofold.compare.groups import Group
from twofold.experiments.config import Config
from twofold.experiments.engine import Status
from twofold.experiments.runs import Run
from twofold.report.terminal import results

LINE_EVERY = 30.0  # seconds between two plain lines about one run


class Display:
    """A watcher that shows all runs in one line, and each running run in one of its own.

    It keeps the summaries of those that finish, and the reasons of those that fail.

    json: print each summary on stdout, a line a run.
    also: called with the folder of each run that finishes.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        console: Console,
        json: bool = False,
        also: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self._configs = configs
        self._names = [escape(name) for name in _names(configs)]
        self._console, self._json, self._also = console, json, also
        self._lines = not console.is_terminal
        self._bars: dict[int, TaskID] = {}
        self._spoken: dict[int, float] = {}
        self._busy: set[int] = set()
        self.summaries: list[dict[str, Any]] = []
        self.failures: dict[int, str] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[where]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=self._lines,
            redirect_stdout=False,  # it is the results', also where it is not a terminal
            redirect_stderr=False,
        )
        self._all = self._progress.add_task("all runs", total=len(configs), where="")

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
        self._spoken[index] = time.monotonic()
        self._bars[index] = self._progress.add_task(self._names[index], total=None, where="")
        self._count()

    def progressed(self, index: int, status: Status) -> None:
        where = (
            f"task {status.task}, {status.iteration}/{status.iterations}, {status.accuracy:.1f}%"
        )
        self._progress.update(
            self._bars[index], completed=status.iteration, total=status.iterations, where=where
        )
        if self._lines and time.monotonic() - self._spoken[index] >= LINE_EVERY:
            self._spoken[index] = time.monotonic()
            self._say(index, where)

    def finished(self, index: int, summary: dict[str, Any], folder: Path, there: bool) -> None:
        self.summaries.append(summary)
        self._ended(index)
        if self._json:
            print(json.dumps({**summary, "folder": str(folder)}), flush=True)
        self._also(folder)
        result = result_text(Run(self._configs[index], summary, {}))
        self._say(index, result + ("  (was there already)" if there else ""))

    def busy(self, index: int) -> None:
        self._progress.remove_task(self._bars.pop(index))
        if index not in self._busy:
            self._busy.add(index)
            self._say(index, "another process is at it")

    def retried(self, index: int, why: str) -> None:
        self._progress.remove_task(self._bars.pop(index))
        self._say(index, f"{why}; trying once more")

    def failed(self, index: int, why: str, log: Path) -> None:
        self.failures[index] = why
        self._ended(index)
        self._say(index, f"failed: {why} (log: {log})")

    def _ended(self, index: int) -> None:
        if index in self._bars:  # one that was there already never started
            self._progress.remove_task(self._bars.pop(index))
        self._progress.advance(self._all)
        self._count()

    def _count(self) -> None:
        where = f"{len(self.summaries)} done, {len(self._bars)} running"
        if self.failures:
            where += f", {len(self.failures)} failed"
        self._progress.update(self._all, where=where)

    def _say(self, index: int, what: str) -> None:
        self._console.print(f"{self._names[index]}: {escape(what)}", soft_wrap=True)


def _names(configs: Sequence[Config]) -> list[str]:
    """Method and seed, and whatever else tells the runs apart."""
    settings = ("benchmark", "mode", "profile", "lr", "batch_size")
    varying = [name for name in settings if len({getattr(c, name) for c in configs}) > 1]
    labels = {"lr": "lr ", "batch_size": "batch "}

    def name(config: Config) -> str:
        words = [f"{labels.get(key, '')}{getattr(config, key)}" for key in varying]
        return " ".join([*words, config.method, f"seed {config.seed}"])

    return [name(config) for config in configs]


def result_text(run: Run) -> str:
    """`MIN 83.1  AVG 93.6`, with a sign where MIN is a bound, and a word where a run diverged."""
    diverged = "  diverged" if run.summary["diverged"] else ""
    low, average = results(Group((run,)))
    return f"MIN {low}  AVG {average}{diverged}"
