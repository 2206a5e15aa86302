"""Making runs: here and now, or claimed from a store, with checkpoints to go on from."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from twofold.benchmarks import Benchmark, Recipe
from twofold.discovery import import_file
from twofold.errors import unknown
from twofold.experiments import checkpoints
from twofold.experiments.config import Config, configure
from twofold.experiments.runs import Run, summarise
from twofold.experiments.store import Store, Work, writing
from twofold.training import Progress, Training

Report = Callable[[Progress], None]
OPTIONS = list(inspect.signature(configure).parameters)[2:]  # without the benchmark and method


def run(
    benchmark: str | Benchmark,
    method: str,
    *,
    data: Path | str | None = None,
    out: Path | str | None = None,
    report: Report = lambda progress: None,
    **options: Any,
) -> Run:
    """Train `method` on `benchmark` and judge it as the options say; see `configure` for them.

    data: the folder that holds the dataset, if it is in none of the usual places.
    out: a run store to save the run in; it is returned in any case.
    """
    for name in options:
        if name not in OPTIONS:
            raise unknown("option", name, (*OPTIONS, "data", "out", "report"))
    config = configure(benchmark, method, **options)
    store = None if out is None else Store(out)
    if store is not None:
        store.prepare()
    own = benchmark if isinstance(benchmark, Benchmark) else None
    finished = execute(config, Path(data) if data else None, report, own)
    if store is not None:
        store.save(finished)
    return finished


def execute(
    config: Config,
    data: Path | None = None,
    report: Report = lambda progress: None,
    benchmark: Benchmark | None = None,
    work: Work | None = None,
    checkpoint_every: float = 30.0,
) -> Run:
    """Make the run that a configuration describes, on one thread.

    work: where its checkpoints are. If there is one, the run goes on from it.
    checkpoint_every: seconds between two checkpoints.
    """
    with one_thread():
        if benchmark is None:
            recipe = Recipe.find(config.benchmark)
            benchmark = recipe.build(config.seed, data, config.whitening, config.device)
        training = Training(benchmark, *config.make_components(), config.settings(), report)
        if work is None:
            result = training.run()
        else:
            state = checkpoints.read(work.checkpoint, config.device)
            if state is not None:
                training.restore(state)
            result = training.run(_keeper(training, work.checkpoint, checkpoint_every))
    return Run(config, summarise(config, result), result.curves)


def _keeper(training: Training, path: Path, every: float) -> Callable[[], None]:
    """Called after every iteration, writes a checkpoint when it is time."""
    last = time.monotonic()

    def keep() -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            with writing(path.parent):
                checkpoints.write(path, training.state())
            last = time.monotonic()

    return keep


@dataclass(frozen=True)
class Outcome:
    """How an attempt at a run ended. `busy`: another process has claimed it."""

    state: str  # "made", "there" (it was complete already) or "busy"
    summary: dict[str, Any] | None = None
    folder: Path | None = None


def make_in_store(
    config: Config,
    store: Store,
    data: Path | None,
    report: Report,
    checkpoint_every: float = 30.0,
) -> Outcome:
    """Make a run unless it is complete or somebody else is at it: all engines do it so."""
    for plugin in config.plugins:
        import_file(plugin)
    with store.claim(config) as work:
        if work is None:
            return Outcome("busy")
        state, folder = "there", store.find(config)
        if folder is None:
            made = execute(config, data, report, work=work, checkpoint_every=checkpoint_every)
            state, folder = "made", store.save(made)
        work.clear()
    return Outcome(state, Run.load(folder).summary, folder)


@contextmanager
def one_thread() -> Iterator[None]:
    """Results must not depend on how many cores happen to be free, and sums over threads would."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
