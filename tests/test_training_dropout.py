"""Networks that draw at random: repeated and resumed bitwise, and alone with their draws."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from twofold import Benchmark
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

METHODS = ["er", "er+gem", "er+agem", "er+sam", "er+lpr(every=2)", "joint", "der(augment=none)"]


def benchmark() -> Benchmark:
    random = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    tasks = []
    for _ in range(3):
        x = torch.randn(60, 8, generator=random)
        tasks.append((x, y, x[:30], y[:30]))

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 3), nn.Dropout(0.1))

    return Benchmark.from_tensors("dropout", tasks, model=model)


def training(method: str, seed: int = 3, **options) -> Training:
    settings = Settings(lr=0.05, batch_size=10, seed=seed, iterations=4, momentum=0.0, **options)
    return Training(benchmark(), *Method.parse(method).make(), settings)


def end(
    method: str, seed: int = 3, every: Callable[[], None] = lambda: None, **options
) -> torch.Tensor:
    trained = training(method, seed, **options)
    trained.run(every)
    return trained.net.values


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_what_is_dropped(method):
    torch.manual_seed(1)
    first = end(method)
    torch.manual_seed(2)
    assert torch.equal(end(method), first)
    assert not torch.equal(end(method, seed=4), first)


def test_neither_evaluation_nor_what_others_draw_changes_it():
    plain = end("er")
    assert torch.equal(end("er", eval_schedule="every:3"), plain)
    assert torch.equal(end("er", every=lambda: torch.rand(5)), plain)


def test_a_run_leaves_torchs_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    end("er+sam")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_resumed_bitwise(method):
    states, whole = [], training(method)
    whole.run(lambda: states.append(copy.deepcopy(whole.state())))
    for state in states[2], states[6]:
        resumed = training(method)
        resumed.restore(state)
        resumed.run()
        assert torch.equal(resumed.net.values, whole.net.values)
        assert np.array_equal(resumed.curves.columns()["loss"], whole.curves.columns()["loss"])


def dropped(net, log: list[torch.Tensor]) -> None:
    """Note which outputs the first dropout of the network leaves, pass by pass."""
    net.module[1].register_forward_hook(
        lambda module, inputs, outputs: log.append(outputs != 0) if module.training else None
    )


def test_every_iteration_drops_others_and_sams_second_pass_the_same():
    log: list[torch.Tensor] = []
    trained = training("er+sam")
    dropped(trained.net, log)
    trained.run()
    first, second = log[::2], log[1::2]
    assert len(first) == len(second) == 12
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(first[4:]))


def test_methods_with_one_seed_drop_the_same_in_the_first_task():
    first: dict[str, list[torch.Tensor]] = {"er": [], "joint+gem": []}
    for method, log in first.items():
        trained = training(method, tasks=1)
        dropped(trained.net, log)
        trained.run()
    assert all(torch.equal(a, b) for a, b in zip(*first.values(), strict=True))
