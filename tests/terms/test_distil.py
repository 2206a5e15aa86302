"""Distillation: a plain loop that keeps a copy of the network at each task's end."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.terms import is_a_plain_loop

import twofold
from twofold.errors import UserError

T = 2.0


class Teacher:
    """The divergence to a copy of the model as it was when the task began, class by class."""

    def __init__(self) -> None:
        self.task, self.copy = 1, None

    def begin(self, model, task: int) -> None:
        if task > self.task:
            self.task, self.copy = task, copy.deepcopy(model).eval()

    def __call__(self, model, x, seen, task: int) -> torch.Tensor:
        if self.copy is None:
            return torch.zeros(())
        old = range(3 * (task - 1))  # the classes of past tasks
        with torch.no_grad():
            z = self.copy(x)
        rows = []
        for ours, theirs in zip(seen.logits, z, strict=True):
            p = torch.stack([(theirs[c] / T).exp() for c in old])
            q = torch.stack([(ours[c] / T).exp() for c in old])
            p, q = p / p.sum(), q / q.sum()
            rows.append((p * (p / q).log()).sum())
        return T**2 * 0.5 * torch.stack(rows).mean()


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("method", ["er+distil(0.5)", "distil(0.5)"])
def test_a_run_is_a_plain_loop(method, norm):
    teacher = Teacher()
    is_a_plain_loop(method, norm, teacher, teacher.begin)


def test_with_bic_it_is_refused():
    with pytest.raises(UserError, match="bic distils the network before the task already"):
        twofold.configure("split-cifar100", "bic+distil")


@pytest.mark.parametrize("text", ["distil(0)", "distil(1,0)"])
def test_wrong_options_are_refused(text):
    with pytest.raises(UserError, match="must be above 0"):
        twofold.Method.parse(text)
