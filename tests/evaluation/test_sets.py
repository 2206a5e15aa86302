"""Test sets of all kinds: tensors, datasets, loaders, and those that are refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from helpers.watching import TESTS, images, measured, network, watched
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

import twofold


def test_some_examples_are_drawn_by_the_seed_and_all_count_at_the_end():
    net = network()
    runs = []
    for seed in (0, 0, 1):
        watch = watched({"0": images(10, 400)}, size=50, seed=seed)
        watch.task(0)
        watch(net)
        runs.append(watch.finish())
    assert runs[0].avg == runs[2].avg == pytest.approx(measured(net, *images(10, 400)))
    assert runs[0].accuracy[0, 0] == runs[1].accuracy[0, 0]


class Images(Dataset):
    def __len__(self) -> int:
        return 60

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        x, y = TESTS["0"]
        return x[row], int(y[row])


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter([Images()[row] for row in range(60)])


@pytest.mark.parametrize(
    "test",
    [
        TESTS["0"],
        TensorDataset(*TESTS["0"]),
        Images(),
        DataLoader(Images(), batch_size=7, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(*TESTS["0"]), batch_size=7),
        DataLoader(Stream(), batch_size=7),
    ],
)
def test_test_sets_of_all_kinds_are_the_same(test):
    net = network()
    watch = watched({"0": test}, size=25)
    watch.task(0)
    watch(net)
    run = watch.finish()
    expected = watched({"0": TESTS["0"]}, size=25)
    expected.task(0)
    expected(net)
    assert np.array_equal(run.accuracy, expected.finish().accuracy)
    assert run.avg == pytest.approx(measured(net, *TESTS["0"]))


def test_a_loaders_sampler_counts():
    x, y = TESTS["0"]
    rows = [3, 5, 8, 13, 21]
    loader = DataLoader(Images(), sampler=SubsetRandomSampler(rows))
    net, watch = network(), watched({"0": loader})
    watch.task(0)
    watch(net)
    assert watch.finish().avg == pytest.approx(measured(net, x[rows], y[rows]))


@pytest.mark.parametrize(
    ("tests", "line"),
    [
        ({"0": images(0), "80": (torch.randn(5, 36), torch.zeros(5).long())}, "of shape [36]"),
        ({"0": (torch.randn(5, 2), torch.zeros(4).long())}, "has 5 inputs and 4 labels"),
        ({"0": (torch.randn(5, 2), torch.zeros(5))}, "labels must be one whole number"),
        ({"0": (torch.randn(0, 2), torch.zeros(0).long())}, "has no examples"),
        ({"0": TensorDataset(torch.zeros(3))}, "an input and a label"),
        ({"0": 3}, "must be two tensors, a Dataset, a DataLoader or a function"),
        ({}, "test sets are a mapping by name"),
        ({0: images(0), "0": images(1)}, "two test sets have the name '0'"),
    ],
)
def test_a_wrong_test_set_is_refused(tests, line):
    with pytest.raises(twofold.UserError, match=re.escape(line)) as raised:
        watched(tests)
    assert "\n" not in str(raised.value)


class Scores(dict[str, torch.Tensor]):
    """What models of some libraries return."""


class Named(nn.Linear):
    def __init__(self) -> None:
        super().__init__(3, 2)

    def forward(self, x: torch.Tensor) -> Scores:  # type: ignore[override]
        return Scores(logits=super().forward(x))


def test_a_test_set_that_does_not_fit_the_model_is_refused():
    watch = watched({"0": (torch.randn(9, 3), torch.zeros(9).long())})
    watch.task(0)
    with pytest.raises(twofold.UserError, match=r"test set '0', with inputs of shape \[9, 3\]"):
        watch(nn.Linear(5, 2))
    with pytest.raises(twofold.UserError, match="a row of scores per example"):
        watch(nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))))
    with pytest.raises(twofold.UserError, match="a row of scores per example, not a Scores: for"):
        watch(Named())
    with pytest.raises(twofold.UserError, match=r"needs a torch.nn.Module, not str"):
        watch("a model")
