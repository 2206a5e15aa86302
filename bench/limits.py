"""What no program can beat here: matrix products alone, at the speed of a large one."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch
from measuring import in_turns
from torch import nn

from twofold import Benchmark
from twofold.models.precision import bf16_works

SIZE, TIMES = 1024, 5  # of the product that shows the peak
OPERATIONS = TIMES * 2 * SIZE**3


@functools.cache
def precisions() -> dict[str, torch.dtype]:
    """Return fp32, and bf16 where products are faster in it: elsewhere nobody evaluates in bf16."""
    if not bf16_works():
        return {"fp32": torch.float32}
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16}
    products = {name: product(dtype) for name, dtype in kinds.items()}
    seconds = in_turns(products, rounds=3, clock=time.process_time)
    return {name: dtype for name, dtype in kinds.items() if seconds[name] <= seconds["fp32"]}


def product(dtype: torch.dtype = torch.float32) -> Callable[[], None]:
    a, b = torch.randn(2, SIZE, SIZE).to(dtype)

    def multiply() -> None:
        for _ in range(TIMES):
            a @ b

    return multiply


def seconds_at_peak(
    benchmark: Benchmark,
    batch_size: int,
    task: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the seconds of an iteration of ER, one thread, for each precision of the evaluation.

    task: how many tasks are evaluated.
    """
    torch.set_num_threads(1)
    products = {name: product(dtype) for name, dtype in precisions().items()}
    times = in_turns(products, rounds=9, clock=clock)
    training = training_operations(benchmark, batch_size) * times["fp32"]
    evaluation = task * 1000 * sum(operations(benchmark))
    return {name: (training + evaluation * time) / OPERATIONS for name, time in times.items()}


def training_operations(benchmark: Benchmark, batch_size: int) -> float:
    """Multiplications and additions of an iteration of ER, in matrix products alone."""
    layers = operations(benchmark)
    # Forward, gradients of weights, gradients of inputs; of the images nobody needs the last.
    return 2 * batch_size * (3 * sum(layers) - layers[0])


def operations(benchmark: Benchmark) -> list[float]:
    """Multiplications and additions of each layer for one image, in matrix products alone."""
    done: list[float] = []

    def count(layer: nn.Module, inputs: object, output: torch.Tensor) -> None:
        done.append(2 * output[0].numel() * layer.weight[0].numel())

    module = benchmark.model()
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    with torch.no_grad():
        module(benchmark.test.batch(torch.arange(2)).x)
    return done
