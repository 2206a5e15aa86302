"""The execution of a configuration: in memory, or in a store that many processes share."""

from __future__ import annotations

import functools
import gc
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import torch
from torch import Tensor

from twofold.benchmarks import Benchmark, Recipe
from twofold.discovery import import_file
from twofold.errors import UserError
from twofold.experiments import checkpoints, weights
from twofold.experiments.config import Config, own_benchmarks
from twofold.experiments.digests import check_unchanged
from twofold.experiments.files import own_folder
from twofold.experiments.live import Live
from twofold.experiments.runs import Run
from twofold.experiments.start import Start
from twofold.experiments.store import Store, Work, writing
from twofold.experiments.summary import own_sizes, summarise
from twofold.results import Progress
from twofold.training import Training

OnProgress = Callable[[Progress], None]
State = dict[str, Tensor]  # of a network
P = ParamSpec("P")
R = TypeVar("R")

CHECKPOINT_EVERY = 30.0  # seconds
NOBODY = Live()
BUSY_PAUSE = 1.0  # seconds before asking again for a run that a different process has claimed


def nothing(progress: Progress) -> None:
    """Ignore progress."""


def collecting(train: Callable[P, R]) -> Callable[P, R]:
    """Free what a training leaves behind as soon as it ends.

    Networks and their hooks refer to each other, so that a worker would hold the images and
    networks of several runs until Python's collector happens to come by.
    """

    @functools.wraps(train)
    def trained(*args: P.args, **options: P.kwargs) -> R:
        try:
            return train(*args, **options)
        finally:
            gc.collect()

    return trained


@collecting
def execute(
    config: Config,
    data: Path | None = None,
    on_progress: OnProgress = nothing,
    work: Work | None = None,
    checkpoint_every: float = CHECKPOINT_EVERY,
    live: Live = NOBODY,
) -> Run:
    """Train the run that a configuration describes, on one thread.

    work: the place of its checkpoints. If there is one, the run continues from it.
    checkpoint_every: seconds between two checkpoints.
    live: the sinks that receive its curves meanwhile.
    """
    keeper = WeightKeeper(config, work)
    with one_thread():
        benchmark = _benchmark(config, data)
        training = Training(
            benchmark,
            *config.make_components(),
            config,
            on_progress,
            keeper.keep if config.keep_weights != "none" else None,
            Start(config.start_from, config.start_digest).weights(),
        )
        steps: list[Callable[[], None]] = []  # after every iteration
        if work is not None:
            check_state(training)
            _restore(training, config, work, keeper)
            run = config.identity()
            steps.append(_checkpointer(training, work.checkpoint, checkpoint_every, run))
        with live.watching(config, training.curves) as send:
            result = training.run(_in_turn([*steps, send]))
    summary = summarise(config, result) | own_sizes(config, benchmark)
    return Run(config, summary, result.curves, states=keeper.kept())


def _in_turn(steps: list[Callable[[], None]]) -> Callable[[], None]:
    def take() -> None:
        for step in steps:
            step()

    return take


def _restore(training: Training, config: Config, work: Work, keeper: WeightKeeper) -> None:
    """Continue from the checkpoint of this run, if there is one that can be used."""
    state = checkpoints.read(work.checkpoint, config.device, config.identity(), work.refuse)
    if state is not None and not training.fits(state):
        work.refuse("its checkpoint belongs to a different network")
    elif state is not None and not keeper.has_before(state["task"]):
        work.refuse("weights that it kept are missing")
    elif state is not None:
        training.restore(state)
    if work.refused:  # weights of tasks that are trained again
        shutil.rmtree(work.folder / weights.FOLDER, ignore_errors=True)


def _benchmark(config: Config, data: Path | None) -> Benchmark:
    if config.own:
        return own_benchmarks.find(config)
    recipe = Recipe.find(config.benchmark)
    return recipe.build(config.seed, data, config.whitening, config.device)


class WeightKeeper:
    """The weights kept at the ends of tasks, in memory or beside the checkpoint of a run.

    Weights beside the checkpoint are still there when an interrupted run continues.
    """

    def __init__(self, config: Config, work: Work | None) -> None:
        self._kind, self._every = config.keep_weights, config.keep_weights == "switches"
        self._folder = work.folder / weights.FOLDER if work is not None else None
        self._kept: dict[str, State] = {}

    def keep(self, task: int, evaluated: State, trained: State | None) -> None:
        """Keep the weights after a task, or those of the last task so far as `end`."""
        name = weights.of_task(task) if self._every else weights.END
        self._put(name, evaluated)
        if trained is not None:
            self._put(name + weights.TRAINED, trained)

    def _put(self, name: str, state: State) -> None:
        if self._folder is None:
            self._kept[name] = state
            return
        with writing(self._folder.parent):
            own_folder(self._folder)
            weights.write(self._folder / f"{name}.safetensors", state)

    def has_before(self, task: int) -> bool:
        """Tell whether the weights after all tasks before this one are there, if they are kept."""
        names = [weights.of_task(k) for k in range(1, task)] if self._every else []
        return all(name in self._files() for name in names)

    def kept(self) -> dict[str, State]:
        """Return all weights that a run keeps, by name."""
        if self._folder is not None:
            self._kept = {
                name: weights.read(file, follow=False) for name, file in self._files().items()
            }
        return self._kept

    def _files(self) -> dict[str, Path]:
        """The files beside the checkpoint; an earlier attempt may have kept different weights."""
        if self._folder is None or self._kind == "none":
            return {}
        pattern = "task-*.safetensors" if self._every else f"{weights.END}*.safetensors"
        return {file.stem: file for file in sorted(self._folder.glob(pattern))}


def check_state(training: Training) -> None:
    """Raise UserError for a component with an attribute that no checkpoint can hold."""
    objective = training.objective
    for part in (objective, *objective.terms, *training.routines, training.memory):
        for name, value in part.state().items():
            kind = checkpoints.misfit(value)
            if kind is not None:
                raise UserError(
                    f"{part.kind} {part.name!r} keeps {kind} in its attribute {name!r}, which no "
                    "checkpoint can hold: keep tensors, arrays or plain data, or override `state` "
                    "and `restore`"
                )


def _checkpointer(training: Training, path: Path, every: float, run: str) -> Callable[[], None]:
    """Return a function that writes a checkpoint when it is time."""
    last = time.monotonic()

    def keep() -> None:
        nonlocal last
        if training.net.keeps_state:  # no checkpoint holds it
            path.unlink(missing_ok=True)
            return
        due = time.monotonic() - last >= every
        if due or training.n == 1:  # the first iteration of a task may have added attributes
            check_state(training)
        if due:
            with writing(path.parent):
                checkpoints.write(path, training.state(), run)
            last = time.monotonic()

    return keep


@dataclass(frozen=True)
class Finished:
    """A complete run, which was trained now or was there before."""

    state: Literal["trained", "there"]
    summary: dict[str, Any]
    folder: Path
    restarted: str = ""  # why it was trained anew although it had a checkpoint
    watched: bool = False  # whether it was trained where all sinks could receive its curves


@dataclass(frozen=True)
class Busy:
    """A run that a different process has claimed."""


def run_in_store(
    config: Config,
    store: Store,
    data: Path | None,
    on_progress: OnProgress = nothing,
    checkpoint_every: float = CHECKPOINT_EVERY,
    live: Live = NOBODY,
) -> Finished | Busy:
    """Train a run unless it is complete or claimed. All engines call this function."""
    for plugin in config.plugins:
        import_file(plugin)
    check_unchanged(config)
    with store.claim(config) as work:
        if work is None:
            return Busy()
        folder = store.find(config)
        if folder is not None:
            work.clear()
            return Finished("there", Run.load(folder).summary, folder)
        trained = execute(config, data, on_progress, work, checkpoint_every, live)
        folder = store.save(trained)
        work.clear()
    return Finished("trained", Run.load(folder).summary, folder, work.refused, watched=True)


def run_when_free(
    config: Config,
    store: Store,
    data: Path | None,
    on_progress: OnProgress = nothing,
    checkpoint_every: float = CHECKPOINT_EVERY,
    live: Live = NOBODY,
) -> Finished:
    """Train a run unless it is complete; wait while a different process trains it."""
    while True:
        answer = run_in_store(config, store, data, on_progress, checkpoint_every, live)
        if isinstance(answer, Finished):
            return answer
        time.sleep(BUSY_PAUSE)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread, since sums over several would let results depend on the number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
