"""`exact-min`: the minima of a full evaluation, from a part of the images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.training import run_and_resume, trained, training_of
from torch import nn

from twofold import Benchmark, configure, run
from twofold.errors import UserError
from twofold.evaluation.continual import Evaluator
from twofold.experiments.foreign import describe
from twofold.experiments.summary import lowest_table
from twofold.models import FlatModel

METHODS = ["finetune", "er", "er+gem", "er+ema(0.5)", "bic", "joint+ema(0.9)"]


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "norm"])
@pytest.mark.parametrize("method", METHODS)
def test_the_minima_are_those_of_a_full_evaluation(method, norm):
    benchmark = class_benchmark(norm=norm)
    small: dict[str, Any] = {"memory_per_class": 10, "batch_size": 8}
    whole, part = (
        run(benchmark, method, eval_schedule=schedule, **small)
        for schedule in ("every", "exact-min:5")
    )
    assert (part.min, part.avg) == (whole.min, whole.avg)
    for own, full in ((part.measures, whole.measures), (part.raw_measures, whole.raw_measures)):
        if full is not None:
            known = ("min", "residual", "wc_acc")
            assert [own[key] for key in known] == [full[key] for key in known]
    evaluated = np.isfinite(part.accuracy).any(axis=1)
    assert np.flatnonzero(evaluated[:12]).tolist() == [4, 9, 11]  # after 5, 10 and 12
    np.testing.assert_array_equal(part.accuracy[evaluated], whole.accuracy[evaluated])


def test_the_minima_so_far_are_recorded_at_every_iteration():
    whole, part = (
        trained("er+ema(0.5)", iterations=12, eval_schedule=schedule)[1].curves
        for schedule in ("every", "exact-min:5")
    )
    for kind in ("accuracy", "raw_accuracy"):
        lowest, accuracy = lowest_table(part, kind), lowest_table(whole, kind)
        for k in (1, 2):
            later = whole["task"] > k
            running = np.minimum.accumulate(accuracy[later, k - 1])
            np.testing.assert_array_equal(lowest[later, k - 1], running)


def test_a_run_goes_on_bitwise(tmp_path):
    untouched, resumed = (
        training_of("er+ema(0.5)", iterations=12, eval_schedule="exact-min") for _ in range(2)
    )
    results = run_and_resume(untouched, resumed, tmp_path / "checkpoint.pt", (3, 4))
    first, second = (result.curves for result in results)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@pytest.fixture
def three_of_four() -> Evaluator:
    """An evaluator of 40 images, of which every fourth is predicted wrongly."""
    x = torch.eye(2).repeat(20, 1)  # the network returns its input
    y = x.argmax(1)
    y[::4] = 1 - y[::4]
    benchmark = Benchmark.from_tensors("mine", 2 * [(x, y, x, y)], model=lambda: nn.Linear(2, 2))
    net = FlatModel(benchmark.model(), torch.device("cpu"))
    with torch.no_grad():
        net.module.weight.copy_(torch.eye(2))
        net.module.bias.zero_()
    return Evaluator(benchmark, net, size=40, seed=0)


def test_images_are_counted_only_until_it_is_clear(three_of_four: Evaluator) -> None:
    evaluator = three_of_four

    def images_for(lowest: float) -> tuple[float, int]:
        before = evaluator.checks.images
        result = evaluator.lowest(torch.tensor([lowest]), lambda logits: logits)
        return float(result), evaluator.checks.images - before

    assert images_for(math.inf) == (75, 40)
    assert images_for(100) == (75, 40)
    assert images_for(75) == (75, 30)  # the right ones come first by now
    assert images_for(20) == (20, 8)
    assert images_for(0) == (0, 0)
    assert (evaluator.checks.images, evaluator.checks.whole) == (40 + 40 + 30 + 8, 5 * 40)


def test_a_users_loop_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"^exact-min is for twofold's own training: write dense"):
        describe("mine", "idea", 0, own="", schedule="exact-min")


@pytest.mark.parametrize("text", ["exact-min:0", "exact-min:-1", "exact-min:", "exactmin"])
def test_wrong_schedules(text):
    with pytest.raises(UserError, match="eval schedule must be every, every:10, dense"):
        configure("rotated-mnist", "er", eval_schedule=text)
