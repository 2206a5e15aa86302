"""Sinks, which receive the curves of a run while it is trained. None of them can harm the run."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from twofold.curves import RECORDED, Columns, Curves
from twofold.experiments.config import Config
from twofold.experiments.options import Place
from twofold.experiments.runs import Run
from twofold.experiments.tensorboard import Board
from twofold.experiments.tracking import Tracker
from twofold.extras import need
from twofold.text import inert

SEND_EVERY = 5.0  # seconds between two deliveries of a run's curves

Row = tuple[int, dict[str, float]]  # an iteration, and its values by name


class Sink(Protocol):
    """A receiver of the curves of one run."""

    def write(self, rows: list[Row]) -> None: ...  # the iterations since the last call
    def close(self) -> None: ...


@dataclass(frozen=True)
class Live:
    """The sinks that the options ask for. Each is opened in the process that trains the run.

    board: the folder for TensorBoard.
    tracker: the package that tracks runs, with a project if one is given: `trackio:gaps`.
    """

    board: Path | None = None
    tracker: str | None = None

    @classmethod
    def asked(cls, place: Place) -> Live:
        """Return the sinks of these options. A missing package is a UserError."""
        if place.tensorboard is not None:
            need("tensorboard", "the option tensorboard")
        if place.live is not None:
            need(place.live.partition(":")[0], "the option live")
        board = place.tensorboard and Path(place.tensorboard).absolute()
        return cls(board or None, place.live)

    def without_folders(self) -> Live:
        """Return the sinks that need no folder of the command's machine."""
        return replace(self, board=None)

    def _openers(self, config: Config) -> dict[str, Callable[[], Sink]]:
        openers: dict[str, Callable[[], Sink]] = {}
        if (board := self.board) is not None:
            openers["tensorboard"] = lambda: Board(board / config.folder_name())
        if (tracker := self.tracker) is not None:
            openers[tracker] = lambda: Tracker(tracker, config)
        return openers

    @contextmanager
    def watching(self, config: Config, curves: Curves) -> Iterator[Callable[[], None]]:
        """Open the sinks for a run, and yield a function to call after every iteration.

        At the end, however it comes, the sinks get the rest of the curves and are closed.
        """
        openers = self._openers(config)
        if not openers:
            yield lambda: None
            return
        watch = _Watch(openers, curves)
        try:
            yield watch.send_if_due
        finally:
            watch.end()

    def show_stored(self, folder: Path) -> None:
        """Write the curves of a run that is complete in a store, for TensorBoard alone."""
        if self.board is None:
            return
        run = Run.load(folder)
        missing = [name for name in RECORDED if name not in run.columns]
        if missing:  # of a run that was exported
            print(f"{run.config.folder_name()} has no {', '.join(missing)}", file=sys.stderr)
        watch = _Watch(Live(self.board)._openers(run.config))
        watch.write(dict(run.columns))
        watch.end()


class _Watch:
    """The open sinks of one run. A sink that fails is left out from then on, with one line."""

    def __init__(self, openers: dict[str, Callable[[], Sink]], curves: Curves | None = None):
        self._curves, self._sent, self._last = curves, 0, -np.inf
        self._sinks: dict[str, Sink] = {}
        for name, opener in openers.items():
            with self._guarded(name):
                self._sinks[name] = opener()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        try:
            # Standard output belongs to the results, and a package greets every run anew.
            with redirect_stdout(io.StringIO()):
                yield
        except Exception as error:  # a package or a service of somebody else
            self._sinks.pop(name, None)
            why = inert(" ".join(f"{type(error).__name__}: {error}".split()))[:200]
            print(f"twofold: the run goes on without {name}: {why}", file=sys.stderr)

    def send_if_due(self) -> None:
        now = time.monotonic()
        if now - self._last >= SEND_EVERY:
            self._last = now
            self._send()

    def _send(self) -> None:
        if self._curves is not None and self._sinks and len(self._curves) > self._sent:
            columns = self._curves.columns()
            self.write({name: column[self._sent :] for name, column in columns.items()})
            self._sent = len(self._curves)

    def write(self, columns: Columns) -> None:
        rows = _rows(columns)
        for name, sink in list(self._sinks.items()):
            with self._guarded(name):
                sink.write(rows)

    def end(self) -> None:
        self._send()
        for name, sink in list(self._sinks.items()):
            with self._guarded(name):
                sink.close()


def _rows(columns: Columns) -> list[Row]:
    """Return the rows of curves, each with the values that it has, by the names of their charts."""
    values = {
        name.replace("accuracy_", "accuracy/task "): column.astype(float).tolist()
        for name, column in columns.items()
        if name not in ("iteration", "task")
    }
    return [
        (int(step), {tag: column[k] for tag, column in values.items() if column[k] == column[k]})
        for k, step in enumerate(columns["iteration"])
    ]
