"""What surviving costs: a run with store, checkpoints and progress, over one without.

    make bench            (or: python bench/overhead.py [--json FILE])

The same short run on images like Rotated MNIST's is made both ways in turn; the ratio is that of
medians. Checkpoints are written every second here, thirty times as often as by default.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from steps import rotated_mnist_like

from twofold.experiments.config import configure
from twofold.experiments.engine import Status, sparsely
from twofold.experiments.execution import execute
from twofold.experiments.store import Store

ROUNDS = 5
CHECKPOINT_EVERY = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    benchmark = rotated_mnist_like()
    config = configure(benchmark, "er", iterations=100, batch_size=128)
    told: list[Status] = []

    def plain() -> None:
        execute(config, benchmark=benchmark)

    def surviving(folder: Path) -> None:
        store = Store(folder)
        store.prepare()
        with store.claim(config) as work:
            assert work is not None
            report = sparsely(told.append)
            run = execute(
                config,
                report=report,
                benchmark=benchmark,
                work=work,
                checkpoint_every=CHECKPOINT_EVERY,
            )
            store.save(run)
            work.clear()

    with tempfile.TemporaryDirectory() as folder:
        seconds: dict[str, list[float]] = {"plain": [], "surviving": []}
        for _ in range(ROUNDS + 1):
            for name, make in (("plain", plain), ("surviving", partial(surviving, Path(folder)))):
                start = time.perf_counter()
                make()
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    ratio = medians["surviving"] / medians["plain"]
    name = "run with store, checkpoints and progress / without, rotated-mnist"
    print(f"{name:66} {ratio:.3f}")
    if args.json:
        args.json.write_text(json.dumps({name: round(ratio, 4)}, indent=2) + "\n")


if __name__ == "__main__":
    main()
