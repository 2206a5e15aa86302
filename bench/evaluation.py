"""How near evaluation is to what the processor can do: its share of the matrix-multiply peak."""

from __future__ import annotations

import torch
from measuring import Row, Stepper, in_turns, like
from torch import nn

from twofold.benchmarks.base import Pool

SIZE, TIMES = 1024, 5  # of the product that shows the peak


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [
        _share("MLP evaluation, share of the fp32 matrix-multiply peak", "rotated-mnist", 3, 0.85),
        _share("reduced ResNet-18 evaluation, share of that peak", "split-cifar100", 1, 0.80),
    ]


def _share(name: str, shape: str, task: int, target: float) -> Row:
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)

    def peak() -> None:
        for _ in range(TIMES):
            a @ b

    stepper = Stepper(like(shape), "er", 10, task)
    stepper.step()
    seconds = in_turns({"peak": peak, "evaluation": stepper.evaluate}, rounds=9)
    most = TIMES * 2 * SIZE**3 / seconds["peak"]
    images = task * 1000
    work = images * _operations(stepper.training.net.module, stepper.training.benchmark.test)
    note = f"{most / 1e9:.0f} GFLOP/s is the peak"
    return Row(name, work / seconds["evaluation"] / most, "at least", target, note=note)


def _operations(module: nn.Module, pool: Pool) -> float:
    """Multiplications and additions for one image, in matrix products alone."""
    done = 0.0

    def count(layer: nn.Module, inputs: object, output: torch.Tensor) -> None:
        nonlocal done
        done += 2 * output.numel() * layer.weight[0].numel()

    layers = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        module(pool.batch(torch.arange(2)).x)
    for hook in hooks:
        hook.remove()
    return done / 2
