"""Evaluation of any model: it leaves no trace, and agrees with a plain evaluation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from helpers.precision import needs_bf16
from helpers.watching import TESTS, everything, images, measured, network, train, watched
from torch import nn
from torch.nn.functional import cross_entropy

import twofold
from twofold.evaluation.outside import Contents
from twofold.evaluation.predictors import Confirmed, Plain


@pytest.mark.parametrize("tests", [TESTS, {"0": TESTS["0"], "80": lambda model: random.random()}])
@pytest.mark.parametrize("schedule", ["every", "dense:3:2"])
def test_a_loop_is_bitwise_the_same_with_and_without_it(tests, schedule, tmp_path):
    ends = []
    for watch in (None, watched(tests, schedule=schedule, size=20, out=tmp_path)):
        net = network()
        train(net, watch)
        if watch is not None:
            watch.finish()
        ends.append(everything(net))
    assert ends[0] == ends[1]


def test_a_call_leaves_modes_gradients_buffers_and_random_states_as_they_are():
    class Restless(nn.Module):
        """Draws in evaluation, too, and counts its calls in a buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.inner(x) + 1e-6 * torch.rand(4)

        def train(self, mode: bool = True) -> nn.Module:
            raise AssertionError("it may do anything, such as merging weights")

    def sharpness(model: nn.Module) -> float:
        with torch.enable_grad():
            loss = cross_entropy(model.inner(TESTS["0"][0]), TESTS["0"][1])
            loss.backward()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        np.random.rand()
        random.random()
        return float(model.inner[0].weight.grad.norm())

    net = Restless()
    net.inner[1].eval()  # a frozen batch norm
    net.inner[0].weight.requires_grad_(False)
    net.inner[5].weight.grad = torch.ones_like(net.inner[5].weight)
    watch = watched({"0": TESTS["0"], "sharpness": sharpness})
    watch.task(0)
    watch(net)
    watch.task(1)
    net.inner[0].weight.requires_grad_(True)
    before = everything(net)
    gradient = net.inner[5].weight.grad
    watch(net)
    assert everything(net) == before
    assert net.inner[5].weight.grad is gradient
    assert watch.finish().accuracy[-1, 1] > 0


def test_accuracies_are_those_of_a_plain_evaluation():
    """On a network whose batch norm is folded: the copy is used, and agrees."""
    net, results = network(), []
    watch = watched(schedule="every", size=1000)

    class Both:
        def task(self, task: int) -> None:
            watch.task(task)

        def __call__(self, model: nn.Module) -> None:
            watch(model)
            learned = len(results) // 8 + 1
            both = [measured(model, *TESTS[name]) for name in TESTS]
            results.append(both[:learned] + [np.nan] * (2 - learned))

    train(net, Both())
    predict = watch._evaluator._known["evaluated"].predict
    assert isinstance(predict, Confirmed)
    assert predict.agrees
    run = watch.finish()
    assert np.array_equal(run.accuracy, np.array(results, np.float32), equal_nan=True)
    assert run.summary["accuracy_after_task"][-1] == pytest.approx(results[-1])


def test_a_compiled_model_is_evaluated_by_its_original_module():
    calls = []

    def backend(graph: Any, inputs: Any) -> Any:
        calls.append(graph)
        return graph.forward

    plain, net = network(), network()
    compiled = torch.compile(net, backend=backend)
    in_place = network()
    in_place.compile(backend=backend)
    runs = []
    for model in (plain, compiled, in_place):
        watch = watched()
        watch.task(0)
        watch(model)
        runs.append(watch.finish())
    assert not calls
    assert runs[0].avg == runs[1].avg == runs[2].avg


@needs_bf16
def test_under_autocast_the_model_is_evaluated_in_its_precision_and_trains_the_same():
    ends = []
    for watch in (None, watched()):
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        x, y = TESTS["0"]
        if watch is not None:
            watch.task(0)
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(3):
                if watch is not None:
                    watch(net)  # before the weights are cast: no cast of it may stay
                optimizer.zero_grad()
                cross_entropy(net(x), y).backward()
                optimizer.step()
        ends.append([value.numpy().tobytes() for value in net.state_dict().values()])
    assert ends[0] == ends[1]
    assert watch is not None
    with torch.autocast("cpu", torch.bfloat16):
        evaluator, contents = watch._evaluator, Contents.of(net)
        predict = evaluator._predictor("evaluated", net, contents, evaluator._sets)
        assert isinstance(predict, Plain)


def test_a_model_that_changes_its_head_is_evaluated_with_that_head():
    """Its weights do not show it: the folded copy has to be compared with the model."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = network()[:5]
            self.heads = nn.ModuleList([nn.Linear(64, 4) for _ in range(2)])
            self.head = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.heads[self.head](self.body(x))

    net = Heads()
    watch = watched({"0": images(10, 300)})
    watch.task(0)
    results = []
    for head in (0, 1, 0):
        net.head = head
        watch(net)
        results.append(measured(net, *images(10, 300)))
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(results)


def test_a_model_that_is_a_new_object_each_time_is_evaluated_as_it_is():
    watch = watched()
    watch.task(0)
    nets = [network(seed) for seed in range(7)]
    for net in nets:
        watch(net)
    assert isinstance(watch._evaluator._known["evaluated"].predict, Plain)
    expected = [measured(net, *TESTS["0"]) for net in nets]
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(expected)


def test_hooks_are_called_once_per_evaluation_as_in_a_plain_loop():
    net, calls = network(), []
    net[0].register_forward_hook(lambda *args: calls.append(1))
    watch = watched()
    watch.task(0)
    watch(net)
    assert len(calls) == 1


def test_a_device_without_memory_gets_fewer_examples_at_once():
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(36, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) > 300:
                raise torch.OutOfMemoryError("out of memory")
            return self.layer(x.flatten(1))

    net, watch = Small(), watched({"0": images(10, 1000)})
    watch.task(0)
    watch(net)
    x, y = images(10, 1000)
    with torch.no_grad():
        expected = float((net.layer(x.flatten(1)).argmax(1) == y).float().mean() * 100)
    assert watch.finish().avg == pytest.approx(expected)


def test_a_model_that_changes_its_size_is_refused_and_a_function_takes_it():
    net = network()
    watch = watched()
    watch.task(0)
    watch(net)
    net[5] = nn.Linear(64, 8)
    with pytest.raises(twofold.UserError, match=r"'5.weight' was of shape \[4, 64\] and is \[8"):
        watch(net)
    function = watched({"0": lambda model: measured(model, *TESTS["0"])})
    function.task(0)
    for outputs in (4, 8):
        net[5] = nn.Linear(64, outputs)
        function(net)
    assert len(function.finish().accuracy) == 2


def test_a_layer_that_is_replaced_by_one_of_its_size_is_the_one_that_counts():
    net, results = network(), []
    watch = watched({"0": images(10, 300)})
    watch.task(0)
    for seed in range(3):
        net[0] = network(seed)[0]
        watch(net)
        results.append(measured(net, *images(10, 300)))
    assert watch.finish().accuracy[:, 0].tolist() == pytest.approx(results)
