"""The average of weights: against torch, and what a run evaluates and records."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import ITERATIONS, Recorder, trained
from torch.optim.swa_utils import AveragedModel

import twofold
from twofold.errors import UserError
from twofold.routines import Routine
from twofold.routines.ema import Ema


class Torchs(Routine):
    """torch's own averaged model, fed after every step: weights and buffers."""

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def start(self, net):
        def average(averaged, now, count):
            weight = (1 - self.decay) / (1 - self.decay ** (int(count) + 1))
            return averaged + weight * (now - averaged)

        self.model = AveragedModel(copy.deepcopy(net.module), avg_fn=average, use_buffers=True)

    def after_step(self, step):
        self.model.update_parameters(step.net.module)


@pytest.mark.parametrize("make", [class_benchmark, domain_benchmark])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_what_is_evaluated_is_torchs_average(decay, norm, make):
    benchmark, torchs = make(norm=norm), Torchs(decay)
    training, result = trained(f"er+ema({decay})", torchs, benchmark=benchmark)
    (ema, _) = training.routines
    module = torchs.model.module.eval()
    with ema.evaluated(training.net):
        ours = copy.deepcopy(training.net.module.state_dict())
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(ours[name], value, rtol=1e-4, atol=1e-6)
    expected = []
    for task in benchmark.tasks:
        x, y, *_ = benchmark.test.batch(task.test)
        expected.append(100 * float((module(x).argmax(1) == y).float().mean()))
    assert result.task_ends[-1] == pytest.approx(expected)
    assert [result.curves[f"accuracy_{k}"][-1] for k in (1, 2, 3)] == pytest.approx(expected)


def test_training_is_unchanged_and_the_raw_weights_are_evaluated_as_well():
    plain, one = trained("er")
    averaged, other = trained("er+ema(0.8)")
    assert torch.equal(plain.net.values, averaged.net.values)
    for name, column in one.curves.items():
        same = other.curves[f"raw_{name}" if name.startswith("accuracy") else name]
        np.testing.assert_array_equal(column, same, err_msg=name)
    assert other.raw_task_ends == one.task_ends
    assert other.task_ends != one.task_ends
    assert one.raw_task_ends == []


def test_the_average_is_the_mean_of_the_weights_with_weights_that_decay():
    recorder = Recorder()
    training, _ = trained("er+ema(0.7)", recorder)
    (ema, _) = training.routines
    reached = torch.stack(recorder.weights[1:]).double()  # without the random weights of the start
    shares = 0.7 ** torch.arange(len(reached) - 1, -1, -1, dtype=torch.float64)
    mean = (shares @ reached) / shares.sum()
    with ema.evaluated(training.net):
        torch.testing.assert_close(training.net.values.double(), mean, rtol=1e-4, atol=1e-6)


def test_an_average_without_a_past_is_the_weights_themselves():
    _, one = trained("er")
    _, other = trained("er+ema(0)")
    for k in (1, 2, 3):
        np.testing.assert_array_equal(one.curves[f"accuracy_{k}"], other.curves[f"accuracy_{k}"])


def test_the_summary_of_a_run_has_both():
    options = {"batch_size": 8, "iterations": ITERATIONS, "lr": 0.05}
    run = twofold.run(domain_benchmark(), "er+ema(0.9)", **options)
    plain = twofold.run(domain_benchmark(), "er", **options)
    for name in ("min", "avg", "minimum_of_task", "accuracy_after_task"):
        assert run.summary[f"raw_{name}"] == plain.summary[name]
        assert f"raw_{name}" not in plain.summary
    assert run.min != plain.min
    assert run.accuracy.shape == (3 * ITERATIONS, 3)


def test_bias_correction_is_fitted_to_the_weights_that_are_evaluated():
    training, result = trained("bic+ema(0.9)", lr=0.05)
    objective, evaluator, (ema,) = training.objective, training.evaluator, training.routines
    with ema.evaluated(training.net):
        objective.before_evaluation()
        average, of_average = evaluator.full(3, objective.scores), objective._correction
    objective.before_evaluation()
    raw = evaluator.full(3, objective.scores)
    assert of_average != objective._correction
    assert result.task_ends[-1] == average.tolist()
    assert result.raw_task_ends[-1] == raw.tolist()


@pytest.mark.parametrize("decay", [1.0, -0.1])
def test_the_decay_is_a_share_below_1(decay):
    with pytest.raises(UserError, match="ema's decay must be at least 0 and below 1"):
        Ema(decay)
