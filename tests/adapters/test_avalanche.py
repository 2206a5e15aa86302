"""The plugin for Avalanche, with the real package and its own replay strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.guide import run_script
from torch import Tensor, nn

import twofold
from twofold import How, Watch

pytest.importorskip("avalanche", reason="of the adapters (make test-adapters)")
from avalanche.benchmarks import split_online_stream, tensors_benchmark
from avalanche.training import Replay
from avalanche.training.plugins import EvaluationPlugin

from twofold.adapters.avalanche import TwofoldPlugin, sets_of

X = torch.randn(80, 6, generator=torch.Generator().manual_seed(0))
PARTS = [(X.roll(2 * k, 1), (X[:, 0] > 0).long()) for k in range(2)]
BENCHMARK = tensors_benchmark(
    train_tensors=[(x[:48], y[:48]) for x, y in PARTS],
    test_tensors=[(x[48:], y[48:]) for x, y in PARTS],
    task_labels=[0, 0],
)


def watched() -> Watch:
    return Watch(sets_of(BENCHMARK.test_stream), benchmark="toy", method="gem")


def trained(watch: Watch | None, chain: str | None = None, stream: Any = None) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    how = How(chain, optimizer, model) if chain else None
    if how:
        how.references(lambda k: nn.functional.cross_entropy(model(PARTS[k][0]), PARTS[k][1]))
    strategy = Replay(
        model=model,
        optimizer=optimizer,
        criterion=nn.CrossEntropyLoss(),
        mem_size=20,
        train_mb_size=16,
        plugins=[TwofoldPlugin(watch, how)],
        evaluator=EvaluationPlugin(),
    )
    for experience in stream or BENCHMARK.train_stream:
        strategy.train(experience)
    return model


def weights(model: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in model.state_dict().values()])


def test_watching_changes_nothing_and_routines_do():
    watch = watched()
    without = weights(trained(None))
    assert torch.equal(weights(trained(watch)), without)
    assert watch.finish().columns["task"].tolist() == [1, 1, 1, 2, 2, 2]
    watch = watched()
    model = trained(watch, "gem(when=always)")
    assert not torch.equal(weights(model), without)
    run = watch.finish()
    assert run.columns["projected"].tolist() == [0, 0, 0, 1, 1, 1]
    assert np.isfinite(run.columns["loss"]).all()
    model.eval()
    right = [(model(x[48:]).argmax(1) == y[48:]).float().mean().item() * 100 for x, y in PARTS]
    assert run.accuracy[-1].tolist() == pytest.approx(right)


def test_the_parts_of_an_online_stream_are_one_task():
    watch = watched()
    stream = split_online_stream(BENCHMARK.train_stream, experience_size=16)
    trained(watch, "gem", stream)
    assert watch.finish().columns["task"].tolist() == [1, 1, 1, 2, 2, 2]


def test_the_guides_script_runs(tmp_path):
    assert run_script("Avalanche", tmp_path) >= 0
    (run,) = twofold.Store(tmp_path / "runs").runs()
    assert run.columns["projected"].any()
    assert len(run.accuracy) == 3 * 22
