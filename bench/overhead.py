"""The cost of surviving: a run with store, checkpoints and progress, over one without.

Checkpoints are written every second here, thirty times as often as by default.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measuring import Row, in_turns, like

from twofold import Config, Store, configure
from twofold.experiments.engine import sparsely
from twofold.experiments.execution import execute
from twofold.results import Progress


def rows() -> list[Row]:
    return [_surviving(), _help()]


def _surviving() -> Row:
    benchmark = like("rotated-mnist")
    config = configure(benchmark, "er", iterations=40, batch_size=128)
    with tempfile.TemporaryDirectory() as folder:
        acts = {
            "plain": partial(execute, config),
            "surviving": partial(_train, config, Path(folder)),
        }
        seconds = in_turns(acts, rounds=3)
    name = "run with store, checkpoints and progress / without, Rotated MNIST"
    return Row(name, seconds["surviving"] / seconds["plain"], "at most", 1.03)


def _train(config: Config, folder: Path) -> None:
    store, reports = Store(folder), list[Progress]()
    store.prepare()
    with store.claim(config) as work:
        assert work is not None
        trained = execute(config, None, sparsely(reports.append), work, checkpoint_every=1.0)
        store.save(trained)
        work.clear()


def _help() -> Row:
    """A bare Python takes as long as it takes; half a second is some twenty of them."""

    def run(*words: str) -> None:
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    acts = {"bare": partial(run, "-c", ""), "help": partial(run, "-m", "twofold", "--help")}
    seconds = in_turns(acts, rounds=9)
    note = f"{seconds['help']:.2f} s"
    name = "twofold --help / a Python that does nothing"
    return Row(name, seconds["help"] / seconds["bare"], "at most", 15, note=note)
