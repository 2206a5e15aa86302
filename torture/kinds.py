"""The kinds of torture. Each disturbs a store once, and says how the store has borne it."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture import shims, toy
from torture.clusters import ray_head, ray_node
from torture.hostile import HOSTILE, seal
from torture.outcome import Outcome, bad
from twofold.cli import main
from twofold.errors import UserError
from twofold.experiments import checkpoints
from twofold.experiments.checksums import FILES
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

COMMANDS = (
    *(["runs"], ["runs", "show"], ["runs", "verify"]),
    *(["table"], ["table", "main"], ["verdicts"], ["departures"]),
)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 10**30, float("inf"), float("nan"), "", "\x1b[2J", "x" * 5000),
    *([], {}, [[1]], {"a": [{}]}, "=1+1", "--plugin=x", "../../x"),
)


Kind = Callable[[random.Random, Path], Outcome]
expected: dict[str, dict[str, bytes]] = {}  # the curves of undisturbed runs by identity


def _chosen(chance: random.Random) -> Config:
    config = toy.config(chance.choice(toy.METHODS))
    if config.identity() not in expected:
        expected[config.identity()] = toy.undisturbed(config)
    return config


def _finish(folder: Path, config: Config, outcome: Outcome) -> Outcome:
    """Give the same command again, undisturbed, and compare the curves."""
    code, message = shims.forked(lambda: toy.train(config, Store(folder)) and 0)
    if code != 0:
        return dataclasses.replace(outcome, lost=True, badly=bad(code, message, good=[0]))
    (run,) = [Run.load(place) for place in Store(folder).folders()]
    return dataclasses.replace(outcome, lost=toy.curves(run) != expected[config.identity()])


def crash(chance: random.Random, folder: Path) -> Outcome:
    """End before the n-th change of a file."""
    config, number = _chosen(chance), chance.randint(1, 150)

    def disturbed() -> None:
        shims.crash_at(folder, number)
        toy.train(config, Store(folder))

    shims.forked(disturbed)
    return _finish(folder, config, Outcome())


def power(chance: random.Random, folder: Path) -> Outcome:
    """End before the n-th change of a file, or just after a run; what was not synced is gone."""
    config, complete = _chosen(chance), chance.random() < 0.3
    number = chance.randint(1, 3 if complete else 150)

    def disturbed() -> None:
        shims.crash_at(folder, number, shims.forgetting(folder), complete)
        toy.train(config, Store(folder))

    shims.forked(disturbed)
    spoilt = _is_spoilt(folder, config)
    outcome = _finish(folder, config, Outcome())
    return dataclasses.replace(outcome, lost=outcome.lost or spoilt)


def _is_spoilt(folder: Path, config: Config) -> bool:
    """Tell whether a complete run or a checkpoint was not on the disk when it got its name."""
    store, refused = Store(folder), list[str]()
    for checkpoint in folder.glob(".work/*/checkpoint.pt"):
        checkpoints.read(checkpoint, run=config.identity(), refused=refused.append)
    return bool(refused or store.damaged(store.folders()))


def kill(chance: random.Random, folder: Path) -> Outcome:
    """Kill a process at any time, several times."""
    config = _chosen(chance)
    for _ in range(chance.randint(1, 3)):
        shims.forked(lambda: toy.train(config, Store(folder)) and 0, chance.uniform(0, 0.4))
    return _finish(folder, config, Outcome())


def together(chance: random.Random, folder: Path) -> Outcome:
    """Let two or three processes train the same run at once, and kill one of them."""
    config, count = _chosen(chance), chance.randint(2, 3)
    trained = folder.parent / "trained"

    def work() -> None:
        if toy.train(config, Store(folder)).state == "trained":
            with trained.open("a") as file:
                file.write("x")

    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            try:
                work()
            finally:
                os._exit(0)
        children.append(child)
    time.sleep(chance.uniform(0, 0.3))
    os.kill(children[0], signal.SIGKILL)
    for child in children:
        shims.awaited(child, 120)
    repeated = trained.exists() and len(trained.read_text()) > 1
    return _finish(folder, config, Outcome(twice=repeated))


def full_disk(chance: random.Random, folder: Path) -> Outcome:
    """Let the disk be full at a chosen size of a file."""
    config, size = _chosen(chance), chance.randint(0, 40_000)

    def disturbed() -> int:
        shims.small_disk(size)
        try:
            toy.train(config, Store(folder))
        except UserError:
            return 2
        return 0

    code, message = shims.forked(disturbed)
    return _finish(folder, config, Outcome(badly=bad(code, message, good=[0, 2])))


def clock(chance: random.Random, folder: Path) -> Outcome:
    """Let the clock jump by up to a year."""
    config, jump = _chosen(chance), chance.uniform(0, 3e7)

    def disturbed() -> None:
        shims.jumping_clock(jump)
        toy.train(config, Store(folder))

    code, message = shims.forked(disturbed)
    return _finish(folder, config, Outcome(badly=bad(code, message, good=[0])))


def damage(chance: random.Random, folder: Path) -> Outcome:
    """Change, cut or empty a file of a complete run, or of one that is on its way."""
    config = _chosen(chance)
    seconds = 120.0 if chance.random() < 0.5 else chance.uniform(0.1, 0.4)
    shims.forked(lambda: toy.train(config, Store(folder)) and 0, seconds)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if files:
        file = chance.choice(files)
        content = bytearray(file.read_bytes())
        if content and chance.random() < 0.5:
            content[chance.randrange(len(content))] ^= chance.randint(1, 255)
        else:
            content = content[: chance.randint(0, len(content))]
        file.write_bytes(content)
        if file.name == "store.json":  # the mark of the whole store: the answer is one line
            code, message = _answered(["runs"], folder)
            file.write_text('{"format": 1}\n')
            return _finish(folder, config, Outcome(badly=bad(code, message)))
    return _finish(folder, config, Outcome())


def hostile(chance: random.Random, folder: Path) -> Outcome:
    """Write nonsense with the right checksums, and let commands read it."""
    config = _chosen(chance)
    place = toy.train(config, Store(folder)).folder
    kept = Path(shutil.copytree(folder, folder.parent / "kept"))
    if chance.random() < 0.5:
        chance.choice([*HOSTILE.values()])(place)
    else:
        file = place / chance.choice(FILES[:2])
        content = json.loads(file.read_text())
        for _ in range(chance.randint(1, 3)):
            content[chance.choice([*content])] = chance.choice(ODD)
        file.write_text(json.dumps(content))
    seal(place)
    found = [bad(*_answered(words, folder)) for words in COMMANDS]
    shutil.rmtree(folder)
    kept.rename(folder)
    return _finish(folder, config, Outcome(badly=next(filter(None, found), "")))


def _answered(words: list[str], folder: Path) -> tuple[int, str]:
    return shims.forked(lambda: main([*words, "--runs", str(folder)]), 120)


KINDS: dict[str, Kind] = {
    kind.__name__.replace("_", " "): kind
    for kind in (
        *(crash, power, kill, together, full_disk, clock, damage, hostile),
        *(ray_head, ray_node),
    )
}
SELDOM = ("ray head", "ray node")  # starting a cluster takes longer than ten other attempts
