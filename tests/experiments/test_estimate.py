"""How long runs will take: the work that is counted, its speed, and words for it."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.publishers import write_small_mini
from torch import nn

from twofold import Benchmark, Method, Recipe, datasets
from twofold.benchmarks.base import Pool
from twofold.experiments import estimate
from twofold.experiments.config import configure
from twofold.experiments.estimate import Estimator, Load, Sizes, Speed
from twofold.settings import Settings
from twofold.training import Training


def works(method: str, task: int, batch_norm: bool) -> tuple[float, ...]:
    """Passes, images in them and images without gradients of an iteration, batch size 10."""
    result = estimate.iteration(*Method.parse(method).make(), task, 10, batch_norm)
    return result.passes, result.images, result.evaluated


@pytest.mark.parametrize(
    ("method", "plain", "batch_norm"),
    [
        ("finetune", (1, 10, 0), None),
        ("gem", (3, 30, 0), None),  # new; a reference for each of two past tasks
        ("agem", (2, 20, 0), None),  # new; a replay batch for the reference
        ("er", (1, 20, 0), None),
        ("er+gem", (3, 40, 0), None),
        ("er+agem", (2, 20, 0), (1 + 2 / 3, 20 * (1 + 2 / 3), 0)),  # backward twice
        ("er+agem(reference=frozen)", (2, 30, 0), None),
        ("der", (1, 20, 0), None),
        ("der+agem", (2, 20, 0), (1 + 2 / 3, 20 * (1 + 2 / 3), 0)),
        ("bic", (1, 20, 20), None),  # the previous model sees both batches
        ("joint", (1, 30, 0), (3, 30, 0)),  # with batch norm in three passes
        ("joint+gem", (3, 50, 0), (5, 50, 0)),
        ("joint+agem", (2, 30, 0), (3 + 2, 30 + 20, 0)),
        ("joint+agem(reference=frozen)", (3, 50, 0), (5, 50, 0)),
        ("er+clip+warmup+momentum-reset+ema", (1, 20, 0), None),  # ema: in evaluation alone
        ("er+mega", (2, 20, 0), (1 + 2 / 3, 20 * (1 + 2 / 3), 0)),
        ("er+pcgrad", (3, 40, 0), None),
        ("er+sam", (2, 40, 0), None),  # everything again, at other weights
        ("joint+sam", (2, 60, 0), (6, 60, 0)),
        ("er+lpr(every=4,examples=100)", (1, 20, 25), None),  # the memory, at intervals
    ],
)
def test_the_work_of_an_iteration_in_the_third_task(
    method: str, plain: tuple[float, ...], batch_norm: tuple[float, ...] | None
) -> None:
    assert works(method, 3, False) == pytest.approx(plain)
    assert works(method, 3, True) == pytest.approx(batch_norm or plain)
    evaluated = 10 if method == "bic" else 0
    assert works(method, 1, True)[:2] == ((2, 20) if "sam" in method else (1, 10))
    assert works(method, 1, True)[2] in (0, evaluated)


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        *("finetune", "gem", "agem", "er", "er+gem", "joint", "joint+gem", "bic"),
        "er+sam",
        "joint+sam",
    ],
)
def test_the_images_are_those_that_training_forwards(method: str, batch_norm: bool) -> None:
    settings = Settings(mode="online", lr=0.01, batch_size=10, seed=1)
    benchmark = class_benchmark(norm=batch_norm)
    training = Training(benchmark, *Method.parse(method).make(), settings)
    for task in (1, 2):
        chosen, _ = training._start_task(task)
        training._end_task(task, chosen)
    _, rows = training._start_task(3)
    records: list[int] = []
    training.net.module.register_forward_hook(lambda net, x, out: records.append(len(x[0])))
    training._iterate(3, 1, rows)
    passes, images, _ = works(method, 3, batch_norm)
    assert (len(records), sum(records)) == (passes, images)


SMALL = Sizes(train=105, test=40, classes=5, image=(1, 4, 4))


@pytest.mark.parametrize(
    ("method", "options", "wanted"),
    [
        # 7 iterations per task; 3 evaluations (after 3, 6 and 7) of 20 images, and 40 at the end
        ("er", {}, Load(7 * 3, 7 * (10 + 20 + 20), (1 + 2 + 3) * (3 * 20 + 40))),
        ("er", {"tasks": 2}, Load(7 * 2, 7 * (10 + 20), (1 + 2) * (3 * 20 + 40))),
        ("finetune", {"eval_schedule": "every:1"}, Load(21, 210, 6 * (7 * 20 + 40))),
        # one pass over 105 images is 10 batches, unless 7 are the most
        ("finetune", {"mode": "online"}, Load(21, 210, 6 * (3 * 20 + 40))),
        ("finetune", {"mode": "online", "iterations": None}, Load(30, 300, 6 * (4 * 20 + 40))),
        ("finetune", {"mode": "online", "batch_size": 50}, Load(6, 300, 6 * (1 * 20 + 40))),
        ("finetune", {"eval_size": 1000}, Load(21, 210, 6 * (3 * 40 + 40))),
        # the average is evaluated, and the weights that are trained
        ("finetune+ema", {}, Load(21, 210, 2 * 6 * (3 * 20 + 40))),
    ],
)
def test_the_work_of_a_run(method: str, options: dict[str, Any], wanted: Load) -> None:
    default = {"batch_size": 10, "iterations": 7, "eval_schedule": "every:3", "eval_size": 20}
    config = configure("rotated-mnist", method, **{**default, **options})
    assert estimate.load_of(config, SMALL, batch_norm=False) == wanted


def test_the_work_of_bic() -> None:
    """From the second task on, a tenth of the memory is evaluated, too, to fit its bias."""
    config = configure("split-cifar100", "bic", batch_size=10, iterations=1, tasks=2, eval_size=20)
    held_out = 2 * SMALL.classes * 10
    images = Load(2, 10 + 20, 20 + (20 + 40) + (2 * 20 + held_out + 2 * 40))
    assert estimate.load_of(config, SMALL, batch_norm=True) == images


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("benchmark", "parts"), [("rotated-mnist", 1), ("domain-cifar100", 5), ("split-cifar100", 10)]
)
def test_the_published_sizes_are_the_datasets(benchmark: str, parts: int, need: Any) -> None:
    """A user may have only a part of Mini-ImageNet, which nobody may hand out."""
    name = Recipe.find(benchmark).dataset
    data = datasets.load(name, need(name))
    sizes = Recipe.find(benchmark).published_sizes
    assert sizes is not None
    (*size, channels) = data.train.images.shape[1:]
    assert (sizes.train * parts, sizes.test * parts) == (
        len(data.train.labels),
        len(data.test.labels),
    )
    assert sizes.image == (channels, *size)


def linear(width: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(49, width))


def test_a_larger_network_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock itself is tried: on networks so different that a busy machine shows it, too."""
    monkeypatch.setattr(estimate, "TIMED", 0.02)
    small, large = (
        estimate.calibrate(functools.partial(linear, width), (1, 7, 7), "fp32", tokens=False)
        for width in (2, 2000)
    )
    assert 0 < small.evaluated < large.evaluated
    assert large.image > 0


def test_an_iteration_is_timed_with_reading_its_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock moves only while images are read, which no pass of the network does."""
    now = 0.0
    read = Pool.batch

    def slow(pool: Pool, rows: Any) -> Any:
        nonlocal now
        now += 0.25
        return read(pool, rows)

    monkeypatch.setattr(Pool, "batch", slow)
    monkeypatch.setattr(estimate.time, "thread_time", lambda: now)
    model = functools.partial(linear, 2)
    assert estimate.iteration_seconds(model, (1, 7, 7), batch_size=16) == 0.25


def test_seconds_are_work_at_a_speed(fixed_speed: None) -> None:
    config = configure("rotated-mnist", "er", iterations=10)
    assert Estimator().seconds(config) == 30
    assert Speed(1.0, 0.1, 0.01).seconds(Load(2, 30, 400)) == pytest.approx(2 + 3 + 4)


def test_a_command_has_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs share workers, but none of them begins before the imports are done."""
    monkeypatch.setattr(estimate, "start_seconds", lambda: 5.0)
    assert estimate.command_seconds([], 2) == 0
    assert estimate.command_seconds([4.0, 6.0, 2.0], 2) == 5 + 6
    assert estimate.command_seconds([4.0, 20.0], 2) == 5 + 20


def test_a_start_is_timed_in_a_new_process() -> None:
    """It imports torch, which no machine does in a tenth of a second."""
    assert 0.1 < estimate.start_seconds.__wrapped__() < 300


def test_a_part_of_mini_imagenet_takes_a_part_of_the_time(
    tmp_path: Path, cache_folder: str, fixed_speed: None
) -> None:
    """A task has 25 training images here, instead of the published 2,500."""
    config = configure("split-mini-imagenet", "finetune", mode="online", batch_size=5)
    assert Estimator(tmp_path).seconds(config) == 20 * 500
    write_small_mini(tmp_path)
    assert Estimator(tmp_path).seconds(config) == 20 * 5


def test_a_users_benchmark_names_its_network(fixed_speed: None) -> None:
    """A recipe that builds its benchmark itself need not say it once more."""

    class Own(Recipe, name="own"):
        scenario, tasks, offline_iterations = "class", 3, 12

        @classmethod
        def build(cls, *_: Any) -> Benchmark:
            return class_benchmark()

    assert Estimator().seconds(configure("own", "er", iterations=2)) == 6


def test_a_slow_precision_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(net: Any, image: Any, dtype: torch.dtype, tokens: bool) -> float:
        return 1e-3 if dtype == torch.float32 else 4.1e-3

    monkeypatch.setattr(estimate, "evaluation_seconds", seconds)
    monkeypatch.setattr(estimate, "bf16_works", lambda: True)
    asked = [
        configure("rotated-mnist", method, eval_precision=precision)
        for method, precision in (("er", "bf16"), ("er+gem", "bf16"), ("er", "auto"))
    ]
    assert estimate.slow_precision(asked, None) == [
        "bf16 is 4.1 times slower than fp32 on this processor for rotated-mnist; "
        "--eval-precision auto takes the faster one"
    ]
    assert estimate.slow_precision(asked[2:], None) == []


@pytest.mark.parametrize("faster", ["fp32", "bf16"])
def test_auto_takes_as_long_as_the_faster_precision_though_times_vary(
    monkeypatch: pytest.MonkeyPatch, faster: str
) -> None:
    measured = itertools.count()

    def noisy(net: Any, image: Any, precision: str, tokens: bool) -> Speed:
        return Speed(0, 0, (1 if precision == faster else 4) + 0.1 * next(measured))

    monkeypatch.setattr(estimate, "calibrate", noisy)
    estimator = Estimator()
    auto, fp32, bf16 = (
        estimator.seconds(configure("rotated-mnist", "er", iterations=1, eval_precision=precision))
        for precision in ("auto", "fp32", "bf16")
    )
    assert auto == min(fp32, bf16)


def test_where_bf16_does_not_work_estimates_are_of_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(net: Any, image: Any, dtype: torch.dtype, tokens: bool) -> float:
        assert dtype == torch.float32
        return 1e-3

    monkeypatch.setattr(estimate, "evaluation_seconds", seconds)
    monkeypatch.setattr(estimate, "bf16_works", lambda: False)
    monkeypatch.setattr(estimate, "TIMED", 0.001)
    for precision in ("fp32", "bf16"):
        speed = estimate.calibrate(functools.partial(linear, 2), (1, 7, 7), precision, tokens=False)
        assert speed.evaluated == 1e-3
    asked = [
        configure(benchmark, "er", eval_precision=precision)
        for benchmark in ("rotated-mnist", "split-cifar100")
        for precision in ("bf16", "auto")
    ]
    assert estimate.slow_precision(asked, None) == [
        "bf16 does not work on this processor, so evaluation takes fp32; "
        "the predictions are the same"
    ]
    assert estimate.slow_precision([asked[1]], None) == []
