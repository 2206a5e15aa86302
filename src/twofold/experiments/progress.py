"""Progress of runs: moving lines in a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from twofold.experiments.config import Config, setting_words, varying
from twofold.experiments.execution import Finished
from twofold.experiments.summary import result_text
from twofold.results import Progress as TrainingProgress
from twofold.text import inert, spoken

LINE_EVERY = 30.0  # seconds between two plain lines about one run
DRAW_EVERY = 0.2  # seconds between two drawings in a notebook
SETTLED = 3.0  # seconds of training after which the time left is told
WIDTH = 110  # characters of a line in a notebook


class Display:
    """A watcher that shows all runs in one line, and each running run in a line of its own.

    It keeps the folders of runs that finish, and the reasons of those that fail.

    costs: of the runs relative to each other, by which the time left is divided.
    json: print each summary on stdout, a line per run.
    also: called with the folder of each run that finishes without having been watched by sinks.
    """

    def __init__(
        self,
        configs: Sequence[Config],
        console: Console,
        costs: Sequence[float] | None = None,
        json: bool = False,
        also: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self._configs = configs
        self._costs = costs or [1.0] * len(configs)
        self._names = [escape(name) for name in run_names(configs)]
        self._console, self._json, self._also = console, json, also
        self._lines = not (console.is_terminal or console.is_jupyter)
        self._cell = NotebookCell() if console.is_jupyter and not console.quiet else None
        self._bars: dict[int, TaskID] = {}
        self._spoken: dict[int, float] = {}
        self._busy: set[int] = set()
        self._shares: dict[int, float] = {}  # of each run that has been trained so far
        self._done, self._there = 0, 0.0
        self._since: float | None = None  # the time of the first sign of training
        self._before = 0.0  # the cost of what was trained until then, or by an earlier command
        self.folders: dict[int, Path] = {}
        self.failures: dict[int, str] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[where]}"),
            _TimeLeft(compact=True),
            console=console,
            disable=self._lines or self._cell is not None,
            redirect_stdout=False,  # it belongs to the results, also where it is not a terminal
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
        self._show(at_once=True)

    def started(self, index: int) -> None:
        self._spoken[index] = time.monotonic()
        self._bars[index] = self._progress.add_task(self._names[index], total=None, where="")
        self._count(at_once=True)

    def progressed(self, index: int, progress: TrainingProgress) -> None:
        done, total = progress.iteration, progress.iterations
        self._advanced(index, done / total)
        state = f"task {progress.task}, {done}/{total}, {progress.accuracy:.1f}%"
        self._progress.update(self._bars[index], completed=done, total=total, where=state)
        self._count()
        if self._lines and time.monotonic() - self._spoken[index] >= LINE_EVERY:
            self._spoken[index] = time.monotonic()
            self._say(index, state)

    def finished(self, index: int, finished: Finished) -> None:
        self.folders[index] = finished.folder
        if self._json:
            print(json.dumps({**finished.summary, "folder": str(finished.folder)}), flush=True)
        if not finished.watched:
            self._also(finished.folder)
        if finished.state == "there":
            self._there += self._costs[index]
        else:
            self._advanced(index, 1.0)
        remark = "  (was there already)" if finished.state == "there" else ""
        if finished.restarted:
            remark = f"  (trained from the start: {finished.restarted})"
            if self._console.quiet:
                print(f"{self._names[index]}:{remark}", file=sys.stderr)
        self.trained(index, finished.summary, remark)

    def trained(self, index: int, summary: Mapping[str, Any], remark: str = "") -> None:
        """Show the result of a run that is complete, in a store or in memory."""
        self._done += 1
        self._ended(index)
        place = f"  ({self._place()})" if self._lines and len(self._configs) > 1 else ""
        self._say(index, result_text(self._configs[index], summary) + remark + place)

    def busy(self, index: int) -> None:
        self._progress.remove_task(self._bars.pop(index))
        if index not in self._busy:
            self._busy.add(index)
            self._say(index, "a different process is training it")

    def retried(self, index: int, why: str) -> None:
        self._progress.remove_task(self._bars.pop(index))
        self._say(index, f"{why}; trying once more")

    def failed(self, index: int, why: str, log: Path) -> None:
        self.failures[index] = why
        self._ended(index)
        self._say(index, f"failed: {why} (log: {log})")

    def printed(self, index: int, line: str) -> None:
        """Show a line that the user's own code has printed in the process of a run."""
        if self._console.quiet:
            print(f"{self._names[index]}: {inert(line)}", file=sys.stderr)
        else:
            self._say(index, inert(line))

    def _advanced(self, index: int, share: float) -> None:
        """Note which share of a run has been trained."""
        first = self._since is None
        if self._since is None:
            self._since = time.monotonic()  # what workers need to start does not come again
        if first or (index not in self._shares and share < 1):  # it may continue a checkpoint
            self._before += share * self._costs[index]
        self._shares[index] = share

    def _ended(self, index: int) -> None:
        if index in self._bars:  # a run that was there already never started
            self._progress.remove_task(self._bars.pop(index))
        self._shares[index] = 1.0
        self._progress.advance(self._all)
        self._count(at_once=True)

    def _count(self, at_once: bool = False) -> None:
        state = f"{self._place()}, {len(self._bars)} running"
        if self.failures:
            state += f", {len(self.failures)} failed"
        self._progress.update(self._all, where=state)
        self._show(at_once)

    def _place(self) -> str:
        """Return `3 of 10 done, about 5 min left`."""
        left = self.seconds_left()
        time_left = "" if left is None else f", about {spoken(left)} left"
        return f"{self._done} of {len(self._configs)} done{time_left}"

    def seconds_left(self) -> float | None:
        """Return the seconds until all runs are done, if the rest goes on as the runs so far.

        None if too little has been done to tell.
        """
        if self._since is None:
            return None
        passed = time.monotonic() - self._since
        trained = sum(self._costs[k] * share for k, share in self._shares.items()) - self._there
        rest, own = sum(self._costs) - self._there - trained, trained - self._before
        return passed * rest / own if passed > SETTLED and own > 0 and rest > 0 else None

    def _show(self, at_once: bool = False) -> None:
        """Draw the lines anew in a notebook; a terminal redraws them by itself."""
        if self._cell is not None:
            self._cell.show(self._progress.get_renderable(), at_once)

    def _say(self, index: int, what: str) -> None:
        self._console.print(f"{self._names[index]}: {escape(what)}", soft_wrap=True)


class _TimeLeft(TimeRemainingColumn):
    """The time that a run still takes; the line of all runs states it in words."""

    def render(self, task: Task) -> Text:
        return Text("") if task.id == 0 else super().render(task)


class NotebookCell:
    """The place below a notebook's cell where progress is drawn; it needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle: Any = display(HTML(""), display_id=True)
        self._last = 0.0

    def show(self, lines: RenderableType, at_once: bool = False) -> None:
        """Draw these lines in place of the last ones, at most every DRAW_EVERY seconds."""
        if at_once or time.monotonic() - self._last >= DRAW_EVERY:
            self._last = time.monotonic()
            page = Console(file=io.StringIO(), record=True, width=WIDTH, force_jupyter=False)
            page.print(lines)
            text = page.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
            self._handle.update(self._html(text))


def run_names(configs: Sequence[Config]) -> list[str]:
    """Return method and seed of each run, after the options that tell the runs apart."""
    differing = varying(configs, apart=("method", "seed"))

    return [
        " ".join([*setting_words(config, differing), config.method, f"seed {config.seed}"])
        for config in configs
    ]
