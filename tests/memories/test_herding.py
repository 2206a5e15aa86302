"""Herding: the choice of iCaRL, written out with numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark

from twofold.memories.herding import herded
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training


def chosen(features: np.ndarray, count: int) -> list[int]:
    """Choose as algorithm 4 of iCaRL: the exemplar that brings the mean closest, one by one."""
    phi = features / np.linalg.norm(features, axis=1, keepdims=True)
    found: list[int] = []
    for _ in range(count):
        best = min(
            (k for k in range(len(phi)) if k not in found),
            key=lambda k: np.linalg.norm(phi.mean(0) - phi[[*found, k]].mean(0)),
        )
        found.append(best)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_icarl(seed):
    features = np.random.default_rng(seed).normal(size=(30, 6)) + 1
    assert herded(torch.from_numpy(features), 12).tolist() == chosen(features, 12)


def test_features_that_are_not_finite_choose_anything_once():
    assert sorted(herded(torch.full((4, 3), torch.nan), 4)) == [0, 1, 2, 3]


def test_a_run_stores_what_herding_chooses_from_the_features_at_the_tasks_end():
    settings = Settings(memory="herding(12)", lr=0.02, batch_size=8, seed=0, iterations=8, tasks=2)
    training = Training(class_benchmark(), *Method.parse("er").make(), settings)
    expected: dict[int, list[int]] = {}
    end = training._end_task

    def noted(task, rows):
        labels = training.memory.labels
        seen = training.memory.seen(task, training.tasks[task - 1].train)
        for c in training.tasks[task - 1].classes:
            own = seen[labels[seen] == c]
            with training.net.evaluating():
                x = training.benchmark.train.batch(own).x
                phi = training.net.module[:-1](x)
            expected[c] = own[chosen(phi.numpy().astype(float), 4)].tolist()
        end(task, rows)

    training._end_task = noted
    training.run()
    stored = np.concatenate(training.memory.parts)
    labels = training.memory.labels[stored]
    for c, rows in expected.items():
        assert set(stored[labels == c]) == set(rows[:2])  # 12 places for six classes
