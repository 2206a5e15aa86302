"""The cost of `Watch` beyond the evaluation itself: a call over the predictions that it makes."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from measuring import Row, in_turns
from torch import Tensor, nn

from twofold import Watch
from twofold.evaluation.predictors import exact
from twofold.models import View, mlp, reduced_resnet18

TASKS, SIZE = 3, 1000


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [
        _row("the MLP of Rotated MNIST", mlp(10), (1, 28, 28), 51),
        _row("the reduced ResNet-18", reduced_resnet18(100), (3, 32, 32), 2),
    ]


def _row(name: str, net: nn.Module, shape: tuple[int, ...], rounds: int) -> Row:
    """Take the difference on two images, where evaluation is short and its noise is small.

    It is processor time: other processes would add more than the difference.
    """
    y = torch.randint(10, (SIZE,))
    x = torch.randn(SIZE, *shape)
    watch = Watch({str(k): (x[:2], y[:2]) for k in range(TASKS)}, benchmark="bench", method="bench")
    for task in range(TASKS):
        watch.task(task)
        watch(net)
    loops: dict[str, Callable[[], object]] = {
        "watch": lambda: watch(net),
        "evaluation": _evaluation(net, x[:2], y[:2]),
    }
    seconds = in_turns(loops, 151, clock=time.process_time)
    whole = in_turns({"all": _evaluation(net, x, y)}, rounds, clock=time.process_time)["all"]
    ratio = 1 + (seconds["watch"] - seconds["evaluation"]) / whole
    return Row(f"watch(model) / its predictions alone, 3 tasks, {name}", ratio, "at most", 1.01)


def _evaluation(net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    predict = exact(View(net), x[:2])

    def evaluate() -> None:
        for _ in range(TASKS):
            _ = (predict(x, lambda logits: logits) == y).float().mean() * 100

    return evaluate
