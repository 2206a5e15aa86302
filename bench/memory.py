"""What a run needs beside its images: peak memory in a process of its own, and its growth."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measuring import Row

MOST = 600  # MB
GROWTH = 10  # MB, the noise of a process
LONG = {"mode": "offline", "eval_schedule": "every:100"}
SPARSE = {"eval_schedule": "every:500"}
WINDOW = 100  # iterations, whose least memory counts: single ones have temporary blocks as well
# Options of runs, on images of the benchmark's shape; the longest first, as they run side by side.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    # With two images each, because 2,000 iterations with 128 would take half an hour.
    "2,000 iterations of offline Split CIFAR-100": (
        "split-cifar100",
        {"mode": "offline", "batch_size": 2, "tasks": 1, **SPARSE},
    ),
    "a full-length offline Rotated MNIST run": ("rotated-mnist", {**LONG, "batch_size": 128}),
    # A few iterations per task reach the peak.
    "an online Split CIFAR-100 run": (
        "split-cifar100",
        {"mode": "online", "iterations": 2, "tasks": 4, "eval_schedule": "every:2"},
    ),
    # The peak is reached at once.
    "offline Split CIFAR-100 with 128 + 128 images": (
        "split-cifar100",
        {"mode": "offline", "batch_size": 128, "iterations": 4, "tasks": 2, **SPARSE},
    ),
}


def rows() -> list[Row]:
    with ThreadPoolExecutor(os.cpu_count()) as crew:  # memory does not depend on the clock
        return [row for rows in crew.map(_rows, RUNS) for row in rows]


def _rows(title: str) -> list[Row]:
    name, options = RUNS[title]
    command = [sys.executable, __file__, name, json.dumps(options)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    peak, growth = json.loads(process.stdout.splitlines()[-1])
    rows = [Row(f"peak memory of {title} above its images", peak, "at most", MOST, unit=" MB")]
    if growth is not None:
        name = f"growth per 1,000 iterations of {title}"
        rows.append(Row(name, growth, "at most", GROWTH, unit=" MB"))
    return rows


def _measured(name: str, options: dict[str, Any]) -> tuple[float, float | None]:
    """Return the peak beyond the images, and the growth from iteration 1,000 to 2,000 of a task."""
    import torch
    from measuring import like

    from twofold import Method
    from twofold.settings import Settings
    from twofold.training import Training

    torch.set_num_threads(1)
    images = _real_number() if name == "split-cifar100" else like(name)
    images = dataclasses.replace(images, offline_iterations=2000)
    given = {"batch_size": 10, "lr": 0.01, "seed": 0, "iterations": 2000, **options}
    training = Training(images, *Method.parse("er").make(), Settings(**given))
    sizes: dict[int, int] = {}

    def note() -> None:
        end = 1000 * math.ceil(training.n / 1000)
        if training.task == 1 and training.n > end - WINDOW:
            # Without files: the kernel removes and reads the libraries' pages as it likes.
            sizes[end] = min(_bytes("RssAnon"), sizes.get(end, sys.maxsize))

    training.run(note)
    peak = _bytes("VmHWM") - images.train.images.nbytes - images.test.images.nbytes
    growth = (sizes[2000] - sizes[1000]) / 1e6 if 2000 in sizes else None
    return peak / 1e6, growth


def _real_number() -> Any:
    """Return random images of the shape and number of Split CIFAR-100."""
    import numpy as np
    import torch

    from twofold import Benchmark
    from twofold.benchmarks.base import Pool, Task
    from twofold.models import reduced_resnet18

    whiten = (0.5,) * 3, (0.25,) * 3
    train, test = (
        Pool(
            torch.randint(256, (count, 32, 32, 3), dtype=torch.uint8),
            torch.arange(count) * 100 // count,
            whiten,
        )
        for count in (50_000, 10_000)
    )
    tasks = tuple(
        Task(
            np.arange(5000 * k, 5000 * (k + 1)),
            np.arange(1000 * k, 1000 * k + 100),  # more would only take longer
            tuple(range(10 * k, 10 * (k + 1))),
        )
        for k in range(10)
    )
    return Benchmark("like", "class", train, test, tasks, reduced_resnet18, 10)


def _bytes(kind: str) -> int:
    """`getrusage` would count what the parent had when it started this process, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{kind}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], json.loads(sys.argv[2]))))
