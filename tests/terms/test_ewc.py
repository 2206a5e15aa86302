"""EWC: the Fisher information of a softmax regression, which is known, and the penalty."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.training import training_of
from torch import nn
from torch.nn import functional as F

from twofold import Benchmark
from twofold.errors import UserError
from twofold.method import Method
from twofold.terms import Ewc
from twofold.training import initialised


def regression() -> Benchmark:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(400, 3, generator=random), torch.arange(400) % 4
    return Benchmark.from_tensors("linear", [(x, y, x, y)], model=lambda: nn.Linear(3, 4))


def test_the_fisher_information_of_a_softmax_regression():
    """E[x_i^2 p_c (1 - p_c)], in closed form; here y is drawn, so it is met within chance."""
    benchmark = regression()
    net = initialised(benchmark, 0, torch.device("cpu"))
    term = Ewc(examples=400)
    term.start(benchmark, net, seed=0)
    x = benchmark.train.batch(np.arange(400)).x
    p = F.softmax(net(x).detach(), 1)
    expected = torch.einsum("nc,ni->ci", p * (1 - p), x**2) / 400
    fisher = term.fisher(1)
    torch.testing.assert_close(fisher[:12].view(4, 3), expected, rtol=0.25, atol=0.01)
    torch.testing.assert_close(fisher[12:], (p * (1 - p)).mean(0), rtol=0.25, atol=0.01)
    assert torch.equal(term.fisher(1), fisher)  # a draw depends on its place only
    assert net.module.training


def test_the_penalty_is_a_sum_over_past_tasks_and_its_gradient_is_its_own():
    benchmark = class_benchmark()
    net = initialised(benchmark, 0, torch.device("cpu"))
    term = Ewc(strength=7.0, examples=5)
    term.start(benchmark, net, seed=0)
    assert term.pull(net.values) is None
    random, ends = torch.Generator().manual_seed(0), []
    for task in (1, 2):
        net.values.add_(0.1 * torch.randn(len(net.values), generator=random))
        fisher = term.fisher(task)
        term.end_task(task)
        ends.append((fisher, net.values.clone()))
    w = (net.values + 0.1 * torch.randn(len(net.values), generator=random)).requires_grad_()
    expected = sum(3.5 * (fisher * (w - end) ** 2).sum() for fisher, end in ends)
    expected.backward()
    value, gradient = term.pull(w.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(gradient, w.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [False, True])
def test_strong_ewc_holds_the_weights_that_matter(norm):
    def moved(method: str) -> float:
        training = training_of(method, benchmark=class_benchmark(norm=norm), lr=0.001, tasks=2)
        kept: list[torch.Tensor] = []
        end = training._end_task
        training._end_task = lambda *given: (end(*given), kept.append(training.net.values.clone()))
        training.run()
        fisher = Ewc(examples=20)
        fisher.start(training.benchmark, training.net, 0)
        with training.net.using(kept[0]):
            weights = fisher.fisher(1)
        return float((weights * (kept[1] - kept[0]) ** 2).sum())

    assert moved("ewc(1000)") < 0.7 * moved("finetune")


def test_wrong_options_are_refused():
    for text, why in (("ewc(0)", "strength must be above 0"), ("ewc(1,0)", "examples must be")):
        with pytest.raises(UserError, match=why):
            Method.parse(text)
