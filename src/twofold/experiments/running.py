"""`run` and `run_all`: what Python and the command line both call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from twofold import datasets
from twofold.benchmarks import Benchmark, Recipe
from twofold.component import Component
from twofold.errors import UserError
from twofold.experiments.config import Config, configure
from twofold.experiments.digests import unknown_reasons, with_data
from twofold.experiments.engine import Engine, InlineEngine, sparsely
from twofold.experiments.estimate import relative_costs
from twofold.experiments.execution import NOBODY, execute, run_when_free
from twofold.experiments.live import Live
from twofold.experiments.local import LocalEngine
from twofold.experiments.options import Place, RunOptions, Work
from twofold.experiments.plans import fit
from twofold.experiments.progress import Display
from twofold.experiments.reader import check_config
from twofold.experiments.runs import Run
from twofold.experiments.several import Runs
from twofold.experiments.shards import part_of
from twofold.experiments.store import Store
from twofold.experiments.studies import Study, load
from twofold.extras import need
from twofold.method import Method
from twofold.options import given_options, keywords_of, options
from twofold.results import Progress

STORE = Path("runs")  # where runs go unless `out` says otherwise


@keywords_of(RunOptions).after_two
def run(benchmark: str | Benchmark, method: str | Method | Component, **given: Any) -> Run:
    """Train a method on a benchmark and evaluate it after every iteration.

    With `out`, the run is found in that store, claimed, continued from its checkpoint or skipped,
    as the command does. Without it, the run is trained in memory.

    Args:
        benchmark: A name such as `rotated-mnist`, or a `Benchmark` of your own tensors.
        method: Text such as `er+gem(gamma=0.5)`, or a value such as `Er() + Gem(gamma=0.5)`.
        given: The options of a run, which `twofold run --help` explains; `data`, the folder with
            the dataset; `out`, a run store; `progress`, whether to show progress (by default in
            a terminal and in a notebook); `tensorboard`, a folder, and `live`, `trackio` or
            `wandb`, which receive the curves while the run is trained.
    """
    checked = given_options(RunOptions, given)
    place = Place(**{name: checked.pop(name) for name in options(Place) if name in checked})
    config = with_data(configure(benchmark, method, **checked), as_path(place.data))
    check_config(config)
    live = Live.asked(place)
    _remark([config])
    with _display([config], place, live) as display:
        display.started(0)

        def tell(progress: Progress) -> None:
            display.progressed(0, progress)

        if place.out is None:
            trained = execute(config, as_path(place.data), sparsely(tell), live=live)
            display.trained(0, trained.summary)
            return trained
        store = Store(place.out)
        store.prepare()
        every = place.checkpoint_every
        finished = run_when_free(config, store, as_path(place.data), sparsely(tell), every, live)
        display.finished(0, finished)
    return Run.load(finished.folder)


@keywords_of(Work).after_one
def run_all(runs: str | Study | Config | Iterable[Config | Study], **given: Any) -> Runs:
    """Train all runs of a list or a study; those in the store already are not trained again.

    Args:
        runs: Configurations (from `configure`), studies, or the name or file of a study.
        given: `out`, the run store (`runs`); `workers`, how many processes; `engine`, one of
            `local`, `ray` and `inline` (this process alone); and the other options that
            `twofold run --help` lists under "where and how to work".

    Returns:
        The complete runs in the order of the list. `Runs.failures` names those that failed.
    """
    work = Work(**given_options(Work, given))
    live = Live.asked(work)
    store, data = Store(work.out or STORE), as_path(work.data)
    configs = listed(runs, data)
    if work.shard is not None:
        configs = part_of(configs, work.shard, data, work.within)
    if work.within is not None:
        workers = work.workers or os.cpu_count() or 1
        configs = fit(configs, work.within, workers, store, data)[-1].configs
    for name in dict.fromkeys(map(_dataset, configs)):
        if name is not None:
            datasets.load(name, data)  # once, before the workers do
    engine = engine_of(work, configs, live)
    _remark(configs)
    store.prepare()
    costs = None if any(map(_is_of_unknown_size, configs)) else relative_costs(configs, data)
    with _display(configs, work, live, costs, work.json) as display:
        engine.run(configs, store, data, display)
    complete = [Run.load(folder) for _, folder in sorted(display.folders.items())]
    failures = {configs[index].folder_name(): why for index, why in display.failures.items()}
    return Runs(complete, failures)


def listed(
    runs: str | Study | Config | Iterable[Config | Study], data: Path | None
) -> list[Config]:
    """Return the configurations of a list, a study or a study's name; each once.

    data: the folder with the data, whose digest is part of a run's identity if they are a user's.
    """
    if isinstance(runs, str):
        runs = load(runs)
    if isinstance(runs, Config | Study) or not isinstance(runs, Iterable):
        runs = [runs]
    configs: dict[str, Config] = {}
    for each in runs:
        if not isinstance(each, Config | Study):
            raise UserError(f"runs are configurations or studies, not {each!r}"[:100])
        members = each.configs() if isinstance(each, Study) else [each]
        complete = (with_data(config, data) for config in members)
        configs |= {config.identity(): config for config in complete}
    for config in configs.values():
        check_config(config)
    return list(configs.values())


def _remark(configs: Iterable[Config]) -> None:
    """Say which runs cannot be found again, once for each reason."""
    reasons = {(each.method, why): None for each in configs for why in unknown_reasons(each)}
    for method, why in reasons:
        print(f"twofold: {method} is trained anew every time: {why}", file=sys.stderr)


def as_path(place: Path | str | None) -> Path | None:
    return None if place is None else Path(place)


def _dataset(config: Config) -> str | None:
    """Return the dataset that a run reads; None for one that brings its own."""
    return None if config.own else Recipe.find(config.benchmark).dataset


def _is_of_unknown_size(config: Config) -> bool:
    """Tell whether the cost of a run is known only after its data have been read."""
    return bool(config.own) or Recipe.find(config.benchmark).published_sizes is None


def _display(
    configs: Sequence[Config],
    place: Place,
    live: Live,
    costs: Sequence[float] | None = None,
    json: bool = False,
) -> Display:
    console = Console(stderr=True, highlight=False)
    watched = console.is_terminal or console.is_jupyter
    console.quiet = not (watched if place.progress is None else place.progress)
    return Display(configs, console, costs, json, live.show_stored)


def engine_of(work: Work, configs: Sequence[Config], live: Live = NOBODY) -> Engine:
    """Return the engine that the options ask for."""
    if work.engine == "ray":
        return _ray_engine(work, live)
    if work.address is not None or work.gpus_per_run is not None:
        raise UserError("address and gpus per run belong to the engine ray")
    in_memory = any(config.own or config.start_from.startswith("memory:") for config in configs)
    if work.engine == "inline" or in_memory:  # no worker could see what is in memory here
        return InlineEngine(work.checkpoint_every, live)
    workers = work.workers or os.cpu_count() or 1
    return LocalEngine(workers, _gpus(work), work.checkpoint_every, live)


def _gpus(work: Work) -> list[str]:
    if work.per_gpu is None:
        return []
    if not torch.cuda.is_available():
        raise UserError("per gpu needs a GPU, and there is none here")
    return [f"cuda:{k}" for k in range(torch.cuda.device_count())] * work.per_gpu


def _ray_engine(work: Work, live: Live) -> Engine:
    if work.per_gpu is not None:
        raise UserError("per gpu belongs to the engine local: set gpus per run, such as 0.25")
    need("ray", "the engine ray")
    from twofold.experiments.ray_engine import RayEngine

    gpus = work.gpus_per_run or 0.0
    return RayEngine(work.address, work.workers, gpus, work.checkpoint_every, live)
