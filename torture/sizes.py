"""`python -m torture.sizes`: time and memory of commands on large stores.

A store of 10,000 runs (copies of tiny runs under new seeds), and one with 10,000 junk folders.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from torture.clusters import PLUGIN
from twofold.discovery import import_file
from twofold.experiments.config import configure
from twofold.experiments.execution import execute
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.text import markdown_table

METHODS = ("er", "er+gem", "er+agem", "er+ema")
COMMANDS = ("report", "runs")


def fill(folder: Path, count: int) -> Store:
    """Save copies of one run per method, each under a seed of its own."""
    store = Store(folder)
    store.prepare()
    import_file(PLUGIN)
    for k, method in enumerate(METHODS):
        wanted = configure("blobs", method, batch_size=10, eval_size=30, plugins=[PLUGIN])
        made = execute(wanted)
        for seed in range(k, count, len(METHODS)):
            store.save(_reseeded(made, seed))
    return store


def _reseeded(run: Run, seed: int) -> Run:
    config = dataclasses.replace(run.config, seed=seed)
    named = {"identity": config.identity(), "seed": seed, "command": config.command()}
    return Run(config, {**run.summary, **named}, run.columns)


def litter(folder: Path, count: int) -> None:
    """Add folders that are no runs: empty ones, and ones with files under the right names."""
    for k in range(count):
        place = folder / f"junk-{k:010x}"
        place.mkdir()
        if k % 2:
            for name in ("config.json", "summary.json", "checksums.json"):
                (place / name).write_text("{}")
            (place / "curves.parquet").write_bytes(b"PAR1")


def measured(words: str, store: Path) -> list[str]:
    """Return the time, the processor's time, the peak memory and the exit code of a command."""
    more = ["-o", str(store.parent / "report.html")] if words == "report" else []
    command = [sys.executable, "-m", "twofold", *words.split(), "--runs", str(store), *more]
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)  # it was waited for here
    seconds, megabytes = time.monotonic() - start, used.ru_maxrss / 1024
    busy = used.ru_utime + used.ru_stime
    return [f"{seconds:.1f}", f"{busy:.1f}", f"{megabytes:.0f}", str(child.returncode)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="torture.sizes", description="Measure large stores.")
    parser.add_argument("--count", type=int, default=10_000)
    count: int = parser.parse_args().count
    torch.set_num_threads(1)
    lines = [["store", "command", "seconds", "of them busy", "MB", "exit code"]]
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        large, littered = Path(folder) / "large", Path(folder) / "littered"
        fill(large, count)
        fill(littered, 4)
        litter(littered, count)
        named = {f"{count:,} runs": large, f"4 runs, {count:,} junk folders": littered}
        for name, store in named.items():
            for words in COMMANDS:
                lines.append([name, f"`twofold {words}`", *measured(words, store)])
    print(markdown_table(lines, left=2))


if __name__ == "__main__":
    main()
