"""How near evaluation is to what the processor can do: its share of the matrix-multiply peak."""

from __future__ import annotations

import time

import torch
from limits import OPERATIONS, operations, product
from measuring import Row, Stepper, in_turns, like


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [
        _share("MLP evaluation, share of the fp32 matrix-multiply peak", "rotated-mnist", 3, 0.85),
        _share("reduced ResNet-18 evaluation, share of that peak", "split-cifar100", 1, 0.80),
    ]


def _share(name: str, shape: str, task: int, target: float) -> Row:
    stepper = Stepper(like(shape), "er", 10, task)
    stepper.step()
    acts = {"peak": product(), "evaluation": stepper.evaluate}
    seconds = in_turns(acts, rounds=9, clock=time.process_time)
    most = OPERATIONS / seconds["peak"]
    work = task * 1000 * sum(operations(stepper.training.benchmark))
    note = f"{most / 1e9:.0f} GFLOP/s is the peak"
    return Row(name, work / seconds["evaluation"] / most, "at least", target, note=note)
