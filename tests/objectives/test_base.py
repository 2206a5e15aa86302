"""Objectives: what each one states about itself."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from helpers.benchmarks import class_benchmark

from twofold import configure
from twofold.objectives import Draw, Objective, Term
from twofold.objectives.base import cross_entropy

OBJECTIVES = sorted(Objective.known)
LABELS = {
    "bic": "BiC",
    "der": "DER",
    "derpp": "DER++",
    "er": "ER",
    "er-ace": "ER-ACE",
    "finetune": "Finetune",
    "joint": "Joint",
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_has_a_label_and_learning_rates(name):
    objective = Objective.find(name)
    assert objective.label == LABELS[name]
    assert set(objective.lr) == {"offline", "online"}
    assert all(rate > 0 for rate in objective.lr.values())


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_run_takes_the_learning_rate_of_its_objective(name, mode):
    config = configure(class_benchmark(), name, mode=mode)
    assert config.lr == Objective.find(name).lr[mode]
    assert configure(class_benchmark(), name, mode=mode, lr=0.3).lr == 0.3


def test_a_benchmark_may_have_tuned_learning_rates():
    """Offline and by objective; see `Recipe.tuned_lr`."""
    assert Objective.find("der").lr["offline"] == 0.01
    assert configure("split-cifar100", "der").lr == 0.1
    assert configure("split-mini-imagenet", "der").lr == 0.01
    assert configure("split-cifar100", "der", mode="online").lr == 0.01


def test_an_objective_of_your_own_may_state_its_learning_rates():
    @dataclasses.dataclass
    class Slow(Objective, name="slow-objective"):
        label = "Slow"
        lr = {"offline": 0.003, "online": 0.002}  # noqa: RUF012

        def passes(self, draw: Draw):
            return [[Term("new", 1.0, draw.new.x, cross_entropy(draw.new.y))]]

    assert configure("rotated-mnist", "slow-objective+clip").lr == 0.003
    assert configure("rotated-mnist", Slow(), mode="online").lr == 0.002


def test_scores_are_logits_unless_an_objective_corrects_them():
    logits = torch.randn(4, 3)
    assert Objective.find("er")().scores(logits) is logits
