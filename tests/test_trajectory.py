"""Routines that shape the trajectory: clip, rescale, warmup, momentum-reset, ema."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim.swa_utils import AveragedModel

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.routines import Routine
from twofold.routines.base import Step
from twofold.routines.clip import Clip
from twofold.routines.ema import Ema
from twofold.routines.momentum_reset import MomentumReset
from twofold.routines.rescale import Rescale
from twofold.routines.warmup import Warmup
from twofold.settings import Settings
from twofold.training import Training

B, ITERATIONS = 8, 6
vectors = st.tuples(st.integers(0, 2**31), st.floats(1e-6, 1e6))


def vector(seed: int, scale: float, size: int = 40) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return scale * torch.randn(size, generator=random, dtype=torch.float64)


def train(method: str, *more: Routine, benchmark=None, **options):
    objective, routines = Method.parse(method).make()
    options = {"lr": 0.02, "iterations": ITERATIONS} | options
    settings = Settings(batch_size=B, seed=0, **options)
    training = Training(benchmark or class_benchmark(), objective, [*routines, *more], settings)
    return training, training.run()


class Diary(Routine):
    """The direction and the weights of every iteration; no name, so in no registry."""

    def start(self, net):
        self.directions, self.weights = [], [net.values.clone()]

    def direct(self, g, step):
        self.directions.append(g.clone())
        return g

    def after_step(self, step):
        self.weights.append(step.net.values.clone())


# --- clip


@given(seed_and_scale=vectors, limit=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_clip_is_torchs(seed_and_scale, limit):
    g = vector(*seed_and_scale)
    parameter = torch.nn.Parameter(torch.zeros_like(g))
    parameter.grad = g.clone()
    torch.nn.utils.clip_grad_norm_([parameter], limit)  # adds 1e-6 to the norm
    clipped = Clip(limit).direct(g, Step(1, 1, None, g))
    torch.testing.assert_close(clipped, parameter.grad, rtol=2e-6 / min(1.0, limit), atol=0)
    assert clipped.norm() <= limit * (1 + 1e-12)
    if g.norm() <= limit:
        assert torch.equal(clipped, g)


def test_clip_limits_what_the_routine_before_it_made():
    before = torch.tensor([3.0, 4.0])
    step = Step(2, 1, None, g=torch.tensor([0.3, 0.4]))
    np.testing.assert_allclose(Clip(2.5).direct(before, step), [1.5, 2.0], rtol=1e-6)


@pytest.mark.parametrize("method", ["er+clip(0.1)", "er+gem+clip(0.1)", "joint+agem+clip(0.1)"])
def test_no_direction_that_is_followed_is_longer_than_the_limit(method):
    diary = Diary()
    _, result = train(method, diary)
    norms = np.array([float(direction.norm()) for direction in diary.directions])
    assert norms.max() <= 0.1 * (1 + 1e-5)
    assert (norms > 0.0999).any()
    assert not result.curves["projected"][:ITERATIONS].any()  # shorter is no other direction


def test_a_zero_gradient_stays_zero():
    g = torch.zeros(3)
    assert torch.equal(Clip().direct(g, Step(1, 1, None, g)), g)


# --- rescale


@given(seed_and_scale=vectors, other=vectors)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rescale_gives_the_direction_the_norm_of_the_gradient(seed_and_scale, other):
    g, direction = vector(*seed_and_scale), vector(*other)
    rescaled = Rescale().direct(direction, Step(2, 1, None, g))
    torch.testing.assert_close(rescaled.norm(), g.norm(), rtol=1e-12, atol=0)
    torch.testing.assert_close(rescaled / g.norm(), direction / direction.norm())


def test_a_gradient_that_was_not_changed_is_not_touched():
    g = torch.randn(5)
    assert Rescale().direct(g, Step(2, 1, None, g)) is g


def test_no_direction_at_all_stays_so():
    step = Step(2, 1, None, torch.ones(3))
    assert torch.equal(Rescale().direct(torch.zeros(3), step), torch.zeros(3))


def test_gamma_changes_the_direction_and_not_the_length():
    ends = []
    for gamma in (0.0, 20.0):
        diary = Diary()
        _, result = train(f"er+gem(gamma={gamma},when=always)+rescale", diary)
        np.testing.assert_allclose(result.curves["norm_ratio"], 1, rtol=1e-5)
        assert result.curves["projected"][ITERATIONS:].all()
        ends.append(diary.directions[ITERATIONS])
    one, other = ends
    assert float(torch.nn.functional.cosine_similarity(one, other, dim=0)) < 0.999
    torch.testing.assert_close(one.norm(), other.norm(), rtol=1e-5, atol=0)


# --- warmup


def rates(routine: Warmup, task: int, count: int) -> list[float]:
    return [routine.step_size(0.5, Step(task, n, None, None)) for n in range(1, count + 1)]


def test_warmup_by_hand():
    assert rates(Warmup(4), task=2, count=6) == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    quarter = 0.5 * (1 - math.sqrt(0.5)) / 2
    expected = [quarter, 0.25, 0.5 - quarter, 0.5, 0.5, 0.5]
    assert rates(Warmup(4, "cosine"), task=3, count=6) == pytest.approx(expected, rel=1e-12)
    assert rates(Warmup(4), task=1, count=6) == 6 * [0.5]


@given(iterations=st.integers(1, 1000), shape=st.sampled_from(["linear", "cosine"]))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_step_size_only_grows_and_ends_full(iterations, shape):
    sizes = rates(Warmup(iterations, shape), task=2, count=iterations + 1)
    assert sizes[0] > 0
    assert all(a <= b for a, b in itertools.pairwise(sizes))
    assert sizes[iterations - 1 :] == [0.5, 0.5]


def test_the_weights_move_by_the_step_size_times_the_velocity():
    diary = Diary()
    train("er+warmup(4)", diary, momentum=0.0)
    moved = [float((b - a).norm()) for a, b in zip(diary.weights, diary.weights[1:], strict=False)]
    ratios = [m / float(d.norm()) for m, d in zip(moved, diary.directions, strict=True)]
    ramp = [0.005, 0.01, 0.015, 0.02, 0.02, 0.02]
    assert ratios == pytest.approx([*(ITERATIONS * [0.02]), *ramp, *ramp], rel=1e-3)


# --- momentum-reset


def test_the_first_step_of_a_later_task_follows_its_own_gradient_alone():
    diary = Diary()
    train("er+momentum-reset", diary)
    for start in range(0, 3 * ITERATIONS, ITERATIONS):
        velocity = torch.zeros_like(diary.directions[0])
        for n in range(start, start + ITERATIONS):
            velocity = 0.9 * velocity + diary.directions[n]
            moved = diary.weights[n + 1] - diary.weights[n]
            torch.testing.assert_close(moved, -0.02 * velocity, rtol=1e-3, atol=1e-6)


def test_the_older_setting_is_the_routine():
    options = {"batch_size": B, "iterations": ITERATIONS}
    by_setting = twofold.run(class_benchmark(), "er", reset_momentum=True, **options)
    by_routine = twofold.run(class_benchmark(), "er+momentum-reset", **options)
    for name, column in by_setting.columns.items():
        np.testing.assert_array_equal(column, by_routine.columns[name], err_msg=name)
    plain = twofold.run(class_benchmark(), "er", **options)
    assert (plain.columns["loss"] != by_routine.columns["loss"]).any()
    with pytest.raises(UserError, match="momentum-reset is there twice"):
        twofold.configure("rotated-mnist", "er+momentum-reset", reset_momentum=True)


def test_without_momentum_there_is_nothing_to_reset():
    with pytest.raises(UserError, match="there is no momentum"):
        twofold.configure("rotated-mnist", "er+momentum-reset", momentum=0.0)
    assert MomentumReset().momentum(0.9, Step(1, 1, None, None)) == 0.9


# --- ema


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
def test_what_is_judged_is_torchs_average(decay, norm, make):
    benchmark, torchs = make(norm=norm), Torchs(decay)
    training, result = train(f"er+ema({decay})", torchs, benchmark=benchmark)
    (ema, _) = training.routines
    module = torchs.model.module.eval()
    with ema.evaluated(training.net):
        ours = copy.deepcopy(training.net.module.state_dict())
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(ours[name], value, rtol=1e-4, atol=1e-6)
    expected = []
    for task in benchmark.tasks:
        x, y, _ = benchmark.test.batch(task.test)
        expected.append(100 * float((module(x).argmax(1) == y).float().mean()))
    assert result.task_ends[-1] == pytest.approx(expected)
    assert [result.curves[f"accuracy_{k}"][-1] for k in (1, 2, 3)] == pytest.approx(expected)


def test_training_goes_on_as_without_and_the_raw_weights_are_judged_as_well():
    plain, one = train("er")
    averaged, other = train("er+ema(0.8)")
    assert torch.equal(plain.net.values, averaged.net.values)
    for name, column in one.curves.items():
        same = other.curves[f"raw_{name}" if name.startswith("accuracy") else name]
        np.testing.assert_array_equal(column, same, err_msg=name)
    assert other.raw_task_ends == one.task_ends
    assert other.task_ends != one.task_ends
    assert one.raw_task_ends == []


def test_the_average_is_the_mean_of_the_weights_with_weights_that_decay():
    diary = Diary()
    training, _ = train("er+ema(0.7)", diary)
    (ema, _) = training.routines
    reached = torch.stack(diary.weights[1:]).double()  # without the random weights of the start
    shares = 0.7 ** torch.arange(len(reached) - 1, -1, -1, dtype=torch.float64)
    mean = (shares @ reached) / shares.sum()
    with ema.evaluated(training.net):
        torch.testing.assert_close(training.net.values.double(), mean, rtol=1e-4, atol=1e-6)


def test_an_average_without_a_past_is_the_weights_themselves():
    _, one = train("er")
    _, other = train("er+ema(0)")
    for k in (1, 2, 3):
        np.testing.assert_array_equal(one.curves[f"accuracy_{k}"], other.curves[f"accuracy_{k}"])


def test_a_run_says_both_in_its_summary():
    options = {"batch_size": B, "iterations": ITERATIONS, "lr": 0.05}
    run = twofold.run(domain_benchmark(), "er+ema(0.9)", **options)
    plain = twofold.run(domain_benchmark(), "er", **options)
    for name in ("min", "avg", "minimum_of_task", "accuracy_after_task"):
        assert run.summary[f"raw_{name}"] == plain.summary[name]
        assert f"raw_{name}" not in plain.summary
    assert run.min != plain.min
    assert run.accuracy.shape == (3 * ITERATIONS, 3)


def test_bias_correction_is_fitted_to_the_weights_that_are_judged():
    training, result = train("bic+ema(0.9)", lr=0.05)
    objective, evaluator, (ema,) = training.objective, training.evaluator, training.routines
    with ema.evaluated(training.net):
        objective.before_evaluation()
        average, of_average = evaluator.full(3, objective.scores), objective._correction
    objective.before_evaluation()
    raw = evaluator.full(3, objective.scores)
    assert of_average != objective._correction
    assert result.task_ends[-1] == average.tolist()
    assert result.raw_task_ends[-1] == raw.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clip(0), "clip's limit must be above 0"),
        (lambda: Clip(-1.0), "clip's limit must be above 0"),
        (lambda: Warmup(0), "warmup's iterations must be above 0"),
        (lambda: Ema(1.0), "ema's decay must be at least 0 and below 1"),
        (lambda: Ema(-0.1), "ema's decay must be at least 0 and below 1"),
    ],
    ids=["clip 0", "clip -1", "warmup 0", "ema 1", "ema -0.1"],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()
