"""What surviving costs: a run with store, checkpoints and progress, over one without.

Checkpoints are written every second here, thirty times as often as by default.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measuring import Row, in_turns, like

from twofold import Benchmark, Config, Store, configure
from twofold.experiments.engine import Status, sparsely
from twofold.experiments.execution import execute


def rows() -> list[Row]:
    return [_surviving(), _help()]


def _surviving() -> Row:
    benchmark = like("rotated-mnist")
    config = configure(benchmark, "er", iterations=60, batch_size=128)
    with tempfile.TemporaryDirectory() as folder:
        acts = {
            "plain": partial(execute, config, benchmark=benchmark),
            "surviving": partial(_make, config, benchmark, Path(folder)),
        }
        seconds = in_turns(acts, rounds=5)
    name = "run with store, checkpoints and progress / without, Rotated MNIST"
    return Row(name, seconds["surviving"] / seconds["plain"], "at most", 1.03)


def _make(config: Config, benchmark: Benchmark, folder: Path) -> None:
    store, told = Store(folder), list[Status]()
    store.prepare()
    with store.claim(config) as work:
        assert work is not None
        report = sparsely(told.append)
        store.save(execute(config, None, report, benchmark, work, checkpoint_every=1.0))
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
