"""Odd networks and tensors from Python: each is trained, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import twofold
from twofold import Benchmark, UserError


def part(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.arange(count) % 3
    return torch.randn(count, 6) + y[:, None], y


X, Y = part(24)
TEST = part(12)


def trained(tasks: Any = None, model: Any = lambda: nn.Linear(6, 3)) -> twofold.Run:
    tasks = [(X, Y, *TEST)] * 2 if tasks is None else tasks
    benchmark = Benchmark.from_tensors("odd", tasks, model=model, offline_iterations=2)
    return twofold.run(benchmark, "er", batch_size=8, eval_size=8, memory_per_class=2)


class Then(nn.Module):
    """A layer, and then a function of its output."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(6, 3), function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self.layer(x))


def fail(*_: object) -> None:
    raise KeyError("mine")


NETWORKS: dict[str, tuple[Any, str]] = {
    "no parameters": (nn.Flatten, "no parameters to train"),
    "frozen": (lambda: nn.Linear(6, 3).requires_grad_(False), "no parameters to train"),
    "a tuple": (lambda: Then(lambda z: (z, z)), "a tensor of logits, not tuple"),
    "nothing": (lambda: Then(lambda z: None), "a tensor of logits, not NoneType"),
    "an array": (lambda: Then(lambda z: z.detach().numpy()), "not ndarray"),
    "a vector": (lambda: Then(lambda z: z[:, 0]), r"returns \[2\] for 2 inputs"),
    "three dimensions": (lambda: Then(lambda z: z[..., None]), r"returns \[2, 3, 1\]"),
    "fewer rows": (lambda: Then(lambda z: z[:1]), r"returns \[1, 3\] for 2 inputs"),
    "whole numbers": (lambda: Then(lambda z: z.long()), "no gradient"),
    "detached": (lambda: Then(lambda z: z.detach()), "no gradient"),
    "different inputs": (lambda: nn.Linear(7, 3), r"fails on inputs of shape \[2, 6\]"),
    "an error": (lambda: Then(fail), "KeyError: 'mine'"),
    "an error as it is built": (fail, "can't be built: KeyError"),
    "not built yet": (lambda: nn.LazyLinear(3), "has no size yet"),
    "no memory": (lambda: nn.Linear(6, 3, device="meta"), "on the meta device"),
    "complex": (lambda: nn.Linear(6, 3, dtype=torch.complex64), "complex64"),
    "a number": (lambda: 5, "must return a torch.nn.Module, not int"),
    "a module": (nn.Linear(6, 3), "a function that returns a new network"),
    "text": ("linear", "a function that returns a new network"),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_that_cannot_be_trained_is_refused_in_one_line(kind: str) -> None:
    model, why = NETWORKS[kind]
    with pytest.raises(UserError, match=why) as caught:
        trained(model=model)
    assert "\n" not in str(caught.value)


def task(x: Any = X, y: Any = Y) -> list[tuple[Any, ...]]:
    return [(x, y, *TEST)] * 2


TENSORS: dict[str, tuple[Any, str]] = {
    "single numbers": (task(torch.tensor(1.0)), "a row per example"),
    "sparse": (task(X.to_sparse()), "not a sparse one"),
    "no memory": (task(X.to("meta")), "not a meta one"),
    "nothing": (task(None), "not None"),
    "text": (task("x"), "not 'x'"),
    "objects": (task(np.array([object()] * 24)), "a tensor of numbers"),
    "ragged": (task([[1], [1, 2]]), "a tensor of numbers"),
    "a number for tasks": (5, "needs a list of tasks, not 5"),
    "a number for a task": ([5], "a task has four tensors"),
    "one-dimensional inputs": (task(X[:, 0]), "inputs are of shape"),
    "enormous labels": (task(y=np.full(len(X), 2**64 - 1, np.uint64)), "whole numbers from 0 on"),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_make_no_sense_are_refused_in_one_line(kind: str) -> None:
    tasks, why = TENSORS[kind]
    with pytest.raises(UserError, match=why) as caught:
        trained(tasks)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("x", [X.numpy(), X.tolist(), X.double(), X.clone().requires_grad_()])
def test_any_form_of_the_same_numbers_gives_the_same_run(x: Any) -> None:
    assert np.array_equal(trained(task(x)).accuracy, trained().accuracy, equal_nan=True)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_labels_may_be_unsigned(kind: Any) -> None:
    """torch compares the longer ones with nothing."""
    labels = torch.as_tensor(Y).numpy().astype(kind)
    assert np.array_equal(trained(task(y=labels)).accuracy, trained().accuracy, equal_nan=True)
