"""How near evaluation is to what the processor can do: its share of the matrix-multiply peak.

Chunk sizes are fixed. Two rows compare them with other sizes on this processor.
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial

import torch
from limits import OPERATIONS, operations, product
from measuring import Row, Stepper, in_turns, like


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [
        _share("MLP evaluation, share of the fp32 matrix-multiply peak", "rotated-mnist", 3, 0.85),
        _share("reduced ResNet-18 evaluation, share of that peak", "split-cifar100", 1, 0.80),
        _chunks("MLP", "rotated-mnist", (250, 500, 1000)),
        _chunks("reduced ResNet-18", "split-cifar100", (25, 50, 100, 200)),
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


def _chunks(network: str, shape: str, sizes: tuple[int, ...]) -> Row:
    """Compare the seconds of the chunk size that evaluation takes with the least of several."""
    stepper = Stepper(like(shape), "er", 10, 1)
    evaluator = stepper.training.evaluator
    images, predictor = evaluator._part(0, torch.arange(max(sizes))).x, evaluator._exact
    acts = {
        str(size): partial(dataclasses.replace(predictor, chunk=size), images, _identity)
        for size in sizes
    }
    seconds = in_turns(acts, rounds=9, clock=time.process_time)
    fixed, best = str(predictor.chunk), min(seconds, key=seconds.__getitem__)
    name = f"{network} evaluation in chunks of {fixed} / in the best of {', '.join(acts)}"
    return Row(name, seconds[fixed] / seconds[best], "at most", 1.1, note=f"best: {best}")


def _identity(logits: torch.Tensor) -> torch.Tensor:
    return logits
