"""A network and Joint's passes on small class-incremental benchmarks, with and without norm."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from helpers.benchmarks import class_benchmark
from twofold.benchmarks import Batch
from twofold.models import FlatModel
from twofold.objectives import Draw, Term
from twofold.objectives.joint import Joint
from twofold.training import initialised

BENCHMARKS = {norm: class_benchmark(norm=norm) for norm in (False, True)}


with_and_without_norm = pytest.mark.parametrize("norm", [False, True], ids=["plain", "norm"])


def network(norm: bool) -> tuple[FlatModel, nn.Module]:
    """A network that has seen some images, and an ordinary module that equals it."""
    benchmark = BENCHMARKS[norm]
    net = initialised(benchmark, 0, torch.device("cpu"))
    for k in range(5):
        net(benchmark.train.batch(np.arange(20 * k, 20 * k + 20)).x)
    plain = benchmark.model()
    plain.load_state_dict(net.module.state_dict())
    return net, plain


def batch(norm: bool, task: int, count: int) -> Batch:
    return BENCHMARKS[norm].train.batch(BENCHMARKS[norm].tasks[task - 1].train[:count])


def joint_passes(norm: bool, net: FlatModel) -> tuple[list[Batch], list[list[Term]]]:
    """Joint's passes in task 3 with 8 examples of each task, and those examples."""
    objective = Joint()
    objective.start(BENCHMARKS[norm], net, seed=0)
    batches = [batch(norm, task, 8) for task in (1, 2, 3)]
    return batches, objective.passes(Draw(3, 1, batches[2], Batch.joined(batches[:2])))
