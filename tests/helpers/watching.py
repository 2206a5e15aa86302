"""Loops that `Watch` watches: images, a network, a loop, and a process of its own."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import twofold
from twofold.watch import Watch

TESTS_FOLDER = Path(__file__).parents[1]


NAMES: dict[str, Any] = {"benchmark": "mine", "method": "my idea", "seed": 0}


def images(task: int, count: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(task)
    x = torch.randn(count, 1, 6, 6, generator=generator)
    return x, (x[:, 0, 0, 0] > 0).long() + 2 * (x[:, 0, 1, 1] > 0).long()


TESTS = {"0": images(10), "80": images(11)}


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def train(net: nn.Module, watch: Any, steps: int = 8, tasks: int = 2) -> None:
    """A loop that draws from all generators, and has gradients when it calls `watch`."""
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for task in range(tasks):
        x, y = images(task)
        if watch is not None:
            watch.task(task)
        for _ in range(steps):
            rows = torch.randint(len(y), (10,))
            noise = random.random() * 0.1 + 0.1 * np.random.rand()
            optimizer.zero_grad()
            cross_entropy(net(x[rows] + noise), y[rows]).backward()
            optimizer.step()
            if watch is not None:
                watch(net)


def everything(net: nn.Module) -> list[Any]:
    """Return all that a call must leave unchanged, as values that can be compared."""
    tensors = [*net.state_dict().values(), *(p.grad for p in net.parameters())]
    return [
        *(None if t is None else t.detach().clone().numpy().tobytes() for t in tensors),
        [m.training for m in net.modules()],
        [p.requires_grad for p in net.parameters()],
        torch.get_rng_state().numpy().tobytes(),
        [
            part.tobytes() if isinstance(part, np.ndarray) else part
            for part in np.random.get_state()
        ],
        random.getstate(),
    ]


def watched(tests: Any = TESTS, **options: Any) -> Watch:
    return Watch(tests, **{**NAMES, **options})


def measured(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """The accuracy as anybody would write it."""
    copied = copy.deepcopy(net).eval()
    with torch.no_grad():
        return float((copied(x).argmax(1) == y).float().mean() * 100)


def axes_of(figure: Any) -> list[Any]:
    return [axes for part in figure.subfigs for axes in part.axes]


def python(*words: Any) -> subprocess.Popen[str]:
    """Start a process that can import this package and the helpers."""
    path = os.pathsep.join([str(Path(twofold.__file__).parents[1]), str(TESTS_FOLDER)])
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
