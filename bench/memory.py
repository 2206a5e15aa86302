"""What a run needs beside its data: peak memory of an online Split CIFAR-100 run in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from measuring import Row


def rows() -> list[Row]:
    """The data have the real number of images; a few iterations a task reach the peak."""
    process = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True)
    megabytes = json.loads(process.stdout.splitlines()[-1])
    name = "peak memory of an online Split CIFAR-100 run above its images"
    return [Row(name, megabytes, "at most", 600, unit=" MB")]


def _peak() -> float:
    import numpy as np
    import torch

    from twofold import Benchmark, run
    from twofold.benchmarks.base import Pool, Task
    from twofold.models import reduced_resnet18

    torch.set_num_threads(1)
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
            np.arange(1000 * k, 1000 * (k + 1)),
            tuple(range(10 * k, 10 * (k + 1))),
        )
        for k in range(10)
    )
    benchmark = Benchmark("like", "class", train, test, tasks, reduced_resnet18, 10)
    short = {
        "iterations": 2,
        "tasks": 4,
        "eval_schedule": "every:2",
    }  # more of the same needs no more
    run(benchmark, "er", mode="online", batch_size=10, lr=0.01, **short)
    return (_highest() - train.images.nbytes - test.images.nbytes) / 1e6


def _highest() -> int:
    """Bytes. `getrusage` would count what the parent had when it started this process, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_peak()))
