"""How near training is to what the processor can do: its share of the matrix-multiply peak."""

from __future__ import annotations

import time

import torch
from limits import OPERATIONS, product, training_operations
from measuring import Row, Stepper, in_turns, like

# The network, the shape of its benchmark, the batch size, the steps per turn and the bound.
CASES = (
    ("MLP", "rotated-mnist", 10, 50, 0.12),
    ("MLP", "rotated-mnist", 128, 10, 0.5),
    ("reduced ResNet-18", "split-cifar100", 10, 3, 0.45),
    ("reduced ResNet-18", "split-cifar100", 128, 1, 0.6),
)


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [_share(*case) for case in CASES]


def _share(network: str, shape: str, batch_size: int, steps: int, target: float) -> Row:
    """Count ER's products alone: sampling, losses, batch norm and the update are none."""
    stepper = Stepper(like(shape), "er", batch_size, task=2)

    def train() -> None:
        for _ in range(steps):
            stepper.step()

    acts = {"peak": product(), "training": train}
    seconds = in_turns(acts, rounds=7, clock=time.process_time)
    most = OPERATIONS / seconds["peak"]
    work = steps * training_operations(stepper.training.benchmark, batch_size)
    name = f"{network} training on {2 * batch_size} images, share of that peak"
    note = f"{1000 * seconds['training'] / steps:.2f} ms per iteration"
    return Row(name, work / seconds["training"] / most, "at least", target, note=note)
