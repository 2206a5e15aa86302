"""The options of a run and of the work on runs, described once. They import no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from twofold.choices import Kept, Whitening
from twofold.options import above, between, option
from twofold.settings import LARGEST, TRAINING, Settings

WORK = "where and how to work"

TRACKERS = ("trackio", "wandb")  # packages with one interface

EngineName = Literal["local", "ray", "inline"]


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """The options of a run, except for its benchmark and its method."""

    profile: str = option(
        "paper",
        help="paper (the text; default), or a profile of departures such as published",
        role="name",
        group=TRAINING,
    )
    whitening: Whitening = option(
        "train",
        help="with statistics of the training set (train; default) or published constants",
        group=TRAINING,
    )
    start_from: Any = option(
        "",
        help="a run's folder or a safetensors file whose weights to start from",
        role="place",
        metavar="PATH",
        group=TRAINING,
    )
    keep_weights: Kept = option(
        "none",
        help="keep trained weights: none (default), end, or switches (after every task)",
        role="place",
        group=TRAINING,
    )
    device: str = option("cpu", help="cpu (default), cuda, ...", role="place", group=TRAINING)
    plugins: list[str] = option(
        [],
        help="your own components",
        role="place",
        metavar="FILE.py",
        flag="--plugin",
        group=TRAINING,
    )


@dataclass(frozen=True, kw_only=True)
class What:
    """The options without a default."""

    benchmark: str = option("", help="such as rotated-mnist", group=TRAINING, axis=True)
    method: str = option(
        "", help="such as er+gem(gamma=0.5)", role="name", group=TRAINING, axis=True
    )


@dataclass(frozen=True, kw_only=True)
class Request(Options, What):
    """All options of a run."""


def _tracker(text: str) -> str | None:
    package, colon, project = text.partition(":")
    if package in TRACKERS and bool(colon) == bool(project.strip()):
        return None
    return f"{' or '.join(TRACKERS)}, with a project if you like, such as {TRACKERS[0]}:gaps"


@dataclass(frozen=True, kw_only=True)
class Place:
    """The folders of data and runs, and what shows progress."""

    data: Path | str | None = option(
        None, help="folder with the dataset", metavar="DIR", group=WORK
    )
    out: Path | str | None = option(None, help="the run store (runs)", metavar="DIR", group=WORK)
    checkpoint_every: float = option(
        30.0,
        help="seconds between two checkpoints of a run (default: 30)",
        check=between(0, LARGEST),
        metavar="SECONDS",
        group=WORK,
    )
    tensorboard: Path | str | None = option(
        None,
        help="also write the curves there, while runs are trained",
        role="place",
        metavar="DIR",
        group=WORK,
    )
    live: str | None = option(
        None,
        help="send the curves of running runs to trackio or wandb; trackio:NAME sets the project",
        check=_tracker,
        role="place",
        metavar="PACKAGE",
        group=WORK,
    )
    progress: bool | None = option(
        None, help="show progress (default: in a terminal and in a notebook)", flag=None
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options, Place):
    """The keywords of `run`."""


def _shard(text: str) -> str | None:
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return None
    return "a part and the number of parts, from 1/N to N/N, such as 3/10"


@dataclass(frozen=True, kw_only=True)
class Work(Place):
    """The keywords of `run_all`, which trains many runs."""

    workers: int | None = option(
        None, help="processes (default: one per core)", check=between(1, 100_000), group=WORK
    )
    within: str | None = option(
        None,
        help="run a plan that fits into this time, such as 12h; --dry-run shows it",
        metavar="TIME",
        group=WORK,
    )
    shard: str | None = option(
        None,
        help="train only part I of N, on machines that share nothing, such as 3/10; "
        "`twofold runs merge` combines their stores",
        check=_shard,
        metavar="I/N",
        group=WORK,
    )
    per_gpu: int | None = option(
        None, help="this many runs at once on each GPU", check=between(1, 10_000), group=WORK
    )
    engine: EngineName = option(
        "local",
        help="local (default: processes here), ray (many machines) or inline (this process)",
        group=WORK,
    )
    address: str | None = option(
        None,
        help="of a running Ray cluster (default: start one here)",
        metavar="ADDRESS",
        group=WORK,
    )
    gpus_per_run: float | None = option(
        None, help="with Ray, such as 0.25", check=above(0, 1), metavar="FRACTION", group=WORK
    )
    json: bool = option(
        False, help="print one JSON object per finished run, on one line", group=WORK
    )
