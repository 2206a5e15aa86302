"""Task-free streams: training sees one stream, and only the evaluation knows its tasks."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import trained, training_of
from torch.nn import functional as F

from twofold.errors import UserError
from twofold.routines import Routine, Step
from twofold.streams import stream

SIZE, B, N, LR = 20, 8, 6, 0.02


def plain_loop(benchmark, network, seed=0):
    """Return the weights of ER with a reservoir, written in plain PyTorch without any task.

    Of the package it only uses the random numbers, at the places where a run draws them.
    """
    velocity = {p: torch.zeros_like(p) for p in network.parameters()}
    x, y = benchmark.train.images, benchmark.train.labels
    priority, kept, seen = {}, [], set()
    for segment, task in enumerate(benchmark.tasks, 1):
        numbers = stream(seed, "memory", segment).random(len(task.train))
        priority |= dict(zip(task.train.tolist(), numbers.tolist(), strict=True))
        order = stream(seed, "batches", segment, 0).permutation(task.train)
        for n in range(1, N + 1):
            new = order[(n - 1) * B : n * B]
            loss = F.cross_entropy(network(x[new]), y[new])
            if kept:
                random = stream(seed, "replay", segment, n)
                places = (
                    range(len(kept))
                    if len(kept) <= B
                    else random.choice(len(kept), B, replace=False, shuffle=False)
                )
                old = [kept[place] for place in places]
                loss = 0.5 * loss + 0.5 * F.cross_entropy(network(x[old]), y[old])
            gradients = torch.autograd.grad(loss, list(velocity))
            for (p, v), g in zip(velocity.items(), gradients, strict=True):
                p.data -= LR * v.mul_(0.9).add_(g)
            kept += [row for row in new.tolist() if row not in seen]
            seen |= set(new.tolist())
            best = set(sorted(kept, key=lambda row: -priority[row])[:SIZE])
            kept = [row for row in kept if row in best]
    return torch.cat([p.detach().flatten() for p in network.parameters()]), kept


def test_er_with_a_reservoir_is_a_plain_loop_over_the_stream():
    benchmark = domain_benchmark()
    training = training_of("er", benchmark=benchmark, task_free=True, memory=f"reservoir({SIZE})")
    network = copy.deepcopy(training.net.module)
    training.run()
    expected, kept = plain_loop(benchmark, network)
    weights = torch.cat([p.detach().flatten() for p in training.net.module.parameters()])
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-6)
    assert sorted(training.memory.draw(SIZE, np.random.default_rng(0))) == sorted(kept)
    assert len(training.memory.parts) == 1


class Told(Routine):
    """Records what a routine is told; has no name, so no entry."""

    def start(self, net) -> None:
        self.steps: list[tuple[int, int, int]] = []

    def direct(self, g: torch.Tensor, step: Step) -> torch.Tensor:
        self.steps.append((step.task, step.iteration, step.iterations))
        return g


def test_routines_are_told_one_stream():
    told = Told()
    _, result = trained("er", told, task_free=True, memory="reservoir(20)")
    assert told.steps == [(1, 1, 18), *((2, n, 18) for n in range(2, 19))]
    assert np.bincount(result.curves["task"].astype(int)).tolist() == [0, 6, 6, 6]
    assert np.isfinite(result.curves["loss_old"][1:]).all()  # replay from the second iteration on
    assert [len(row) for row in result.task_ends] == [1, 2, 3]


def test_a_method_without_a_memory_trains_as_with_boundaries():
    (free, one), (bound, other) = (trained("finetune", task_free=each) for each in (True, False))
    assert torch.equal(free.net.values, bound.net.values)
    assert one.task_ends == other.task_ends


def test_classes_seen_so_far_come_from_the_stream():
    training = training_of("er-ace", task_free=True, memory="reservoir(30)")
    seen, passes = [], training.objective.passes

    def noted(draw):
        seen.append(training.objective.classes_until(draw.task).tolist())
        return passes(draw)

    training.objective.passes = noted
    assert training.run().finite
    assert seen[0] == sorted(set(seen[0]) & {0, 1, 2})
    assert seen[5] == [0, 1, 2]
    assert seen[-1] == list(range(9))


@pytest.mark.parametrize(
    "method",
    ["er+agem", "er-ace+nmc", "der(augment=none)+mega", "er+soft-gem+ema", "er+sam+step"],
)
def test_methods_without_boundaries(method):
    _, result = trained(method, task_free=True, memory="reservoir(30)", iterations=4)
    assert result.finite


@pytest.mark.parametrize("routine", ["hold", "lpr(every=100)"])
def test_layers_are_known_from_the_second_iteration_on(routine):
    """They are renewed at intervals, and the stream's first iteration has an empty memory."""
    training, _ = trained(f"er+{routine}", task_free=True, memory="reservoir(30)", iterations=2)
    known = vars(training.routines[0])
    assert known.get("_leading") or known.get("_maps")


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("er+gem", "gem has a reference for each past task"),
        ("er+warmup", "warmup acts at task switches"),
        ("er+momentum-reset", "momentum-reset acts at task switches"),
        ("joint", "joint replays each past task"),
        ("bic(augment=none)", "bic acts at the start or the end of a task"),
        ("er+ewc", "ewc acts at the start or the end of a task"),
        ("er+distil", "distil acts at the start or the end of a task"),
    ],
)
def test_what_needs_boundaries_is_refused(method, line):
    with pytest.raises(UserError) as caught:
        training_of(method, task_free=True, memory="reservoir(30)")
    assert str(caught.value) == f"{line}, and a task-free stream has no tasks"


def test_a_routine_of_ones_own_that_acts_at_switches_is_refused():
    @dataclass
    class Waits(Routine):
        name = "waits"

        def start_task(self, task: int) -> None:
            self.task = task

    with pytest.raises(UserError, match="waits acts at the start or the end of a task"):
        training_of("er", Waits(), task_free=True, memory="reservoir(30)")


@pytest.mark.parametrize(
    "memory", ["", "per-class(100)", "herding(20)", "reservoir(20,current=false)"]
)
def test_a_memory_of_past_tasks_is_refused(memory):
    with pytest.raises(UserError, match=r"such as reservoir\(2000\), not"):
        training_of("er", task_free=True, memory=memory, benchmark=class_benchmark())
