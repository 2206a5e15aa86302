"""Memories, objectives and terms on two class-incremental streams, each example seen once.

    python examples/memories.py --fashion FOLDER --data FOLDER --seeds 2

Fashion-MNIST is split into five tasks of two classes. Its four files are read from `--fashion`;
Debian's package dataset-fashion-mnist installs them in /usr/share/datasets/fashion-mnist. Online
Split CIFAR-100 is read from `--data`. Runs are kept in `--out`, and are continued there.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch

import twofold

SIZE = 500  # examples in memory
HEADER = {"images": 16, "labels": 8}  # bytes before the data of a file


def read(folder: Path, part: str, what: str) -> torch.Tensor:
    """Read one file of Fashion-MNIST."""
    dimensions = {"images": 3, "labels": 1}[what]
    text = gzip.decompress((folder / f"{part}-{what}-idx{dimensions}-ubyte.gz").read_bytes())
    values = np.frombuffer(text, np.uint8, offset=HEADER[what]).copy()
    return torch.from_numpy(values).view(-1, *([28, 28, 1] if what == "images" else []))


def fashion(folder: Path) -> twofold.Benchmark:
    """Return Fashion-MNIST in five tasks of two classes."""
    parts = {part: [read(folder, part, what) for what in HEADER] for part in ("train", "t10k")}
    tasks: list[Any] = []
    for first in range(0, 10, 2):
        task: list[torch.Tensor] = []
        for images, labels in parts.values():
            own = (labels == first) | (labels == first + 1)
            task += [images[own], labels[own].long()]
        tasks.append(tuple(task))
    return twofold.Benchmark.from_tensors("split-fashion-mnist", tasks)


RESERVOIR = f"reservoir({SIZE})"
RUNS = [  # a method, and its memory
    ("finetune", ""),
    ("er", RESERVOIR),
    ("er", f"class-balanced({SIZE})"),
    ("er", f"ring({SIZE})"),
    ("er", f"herding({SIZE})"),
    ("er", f"reservoir({SIZE},current=false)"),
    ("er", f"reservoir({SIZE},replay=64)"),
    ("er(classes=seen)", RESERVOIR),
    ("er-ace", RESERVOIR),
    ("er-ace", f"class-balanced({SIZE})"),
    ("derpp(augment=none)", RESERVOIR),
    ("er+decay(1e-5)", RESERVOIR),
    ("er+ewc(100)", RESERVOIR),
    ("er+distil", RESERVOIR),
    ("er+nmc", RESERVOIR),
    ("er-ace+nmc", RESERVOIR),
    ("er-ace+gem", RESERVOIR),
]


def table(benchmark: Any, options: dict[str, Any], seeds: int, out: Path) -> str:
    """Train all runs, and return a table of their means over seeds."""
    lines = ["| method | memory | MIN | AVG |", "| --- | --- | --- | --- |"]
    for method, memory in RUNS:
        runs = [
            twofold.run(benchmark, method, memory=memory, seed=142 + 10 * k, out=out, **options)
            for k in range(seeds)
        ]
        low, average = (np.mean([getattr(run, name) for run in runs]) for name in ("min", "avg"))
        shown = f"`{memory}`" if memory else ""
        lines.append(f"| `{method}` | {shown} | {low:.1f} | {average:.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fashion", type=Path, help="folder with the files of Fashion-MNIST")
    parser.add_argument("--data", type=Path, help="folder with CIFAR-100")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="the run store (runs)")
    parser.add_argument("--seeds", type=int, default=1, help="seeds per run (1)")
    parser.add_argument("--iterations", type=int, default=200, help="at most this many per task")
    parser.add_argument("--lr", type=float, help="learning rate (default: each objective's own)")
    parser.add_argument("--tasks", type=int, default=5, help="of Split CIFAR-100 (5)")
    given = parser.parse_args()
    options = {"mode": "online", "eval_schedule": "every:20", "eval_size": 200}
    options |= {"iterations": given.iterations, "progress": False}
    options |= {"lr": given.lr} if given.lr else {}
    if given.fashion:
        print("\nFashion-MNIST, split by class")
        print("\n" + table(fashion(given.fashion), options, given.seeds, given.out))
    if given.data:
        print("\nOnline Split CIFAR-100")
        small = {**options, "tasks": given.tasks, "data": given.data}
        print("\n" + table("split-cifar100", small, given.seeds, given.out))


if __name__ == "__main__":
    main()
