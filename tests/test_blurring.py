"""Blurred boundaries: the share of the neighbouring task, and which examples are seen."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import trained, training_of

from twofold.blurring import Blur, exchanged
from twofold.errors import UserError
from twofold.training import Training


def drawn(benchmark, method="finetune", **options) -> tuple[list[np.ndarray], list[int]]:
    """Train, and return the rows of every batch with the task that was trained."""
    training = training_of(method, benchmark=benchmark, **options)
    batches = drawn_by(training)
    return batches, training.curves.columns()["task"].astype(int).tolist()


def drawn_by(training: Training) -> list[np.ndarray]:
    batches, passes = [], training.objective.passes

    def noted(draw):
        batches.append(draw.new.rows.numpy().copy())
        return passes(draw)

    training.objective.passes = noted
    training.run()
    return batches


def test_the_share_of_the_neighbour_is_linear_in_the_distance_from_the_switch():
    """Against a simulation of the definition: places are exchanged one by one."""
    b, lengths, share = 200, [400, 300], 0.4
    first, second = np.zeros((400, b), int), np.ones((300, b), int)
    counts = np.zeros(700)
    seeds = 15
    for seed in range(seeds):
        blur = Blur(share, lengths, seed)
        stream = [
            blur.mixed(task, n, lambda task, n: (first if task == 1 else second)[n - 1]).mean()
            for task, length in enumerate(lengths, 1)
            for n in range(1, length + 1)
        ]
        counts += stream
    w = 60  # 0.4 / 2 of 300 iterations
    expected = np.r_[np.zeros(340), np.zeros(w), np.ones(w), np.ones(240)]
    ramp = 0.5 * (np.arange(w) + 0.5) / w  # from 0 to 1/2
    expected[340:400], expected[400:460] = ramp, 1 - ramp[::-1]
    mean = counts / seeds
    assert np.array_equal(mean[:340], expected[:340])
    assert np.array_equal(mean[460:], expected[460:])
    assert abs(mean - expected).max() < 5 * 0.5 / np.sqrt(b * seeds)
    assert abs((mean - expected).mean()) < 1e-3


def test_both_sides_of_an_exchange_name_each_other():
    blur = Blur(0.9, [7, 12, 5], seed=0)
    assert blur.widths == [3, 2]
    found = 0
    for task, length in enumerate([7, 12, 5], 1):
        for n in range(1, length + 1):
            partner = blur.partner(task, n)
            if partner is not None:
                other, m, distance = partner
                assert abs(other - task) == 1
                assert blur.partner(other, m) == (task, n, distance)
                found += 1
    assert found == 2 * sum(blur.widths)


def test_chances_become_exchanges_where_they_are_below_p():
    chances = np.linspace(0, 1, 1000, endpoint=False)
    shares = [exchanged(chances, d, 4).mean() for d in (1, 2, 3, 4)]
    assert shares == pytest.approx([0.4375, 0.3125, 0.1875, 0.0625], abs=2e-3)


def test_online_each_example_is_seen_once_with_blur():
    benchmark = class_benchmark(examples=64)
    online = {"mode": "online", "iterations": None}
    plain, _ = drawn(benchmark, **online)
    blurred, learned = drawn(benchmark, blur=0.5, **online)
    assert sorted(np.concatenate(blurred)) == list(range(3 * 64))
    assert all(len(batch) == 8 for batch in blurred)
    mixed = [
        not np.isin(rows, benchmark.tasks[t - 1].train).all()
        for rows, t in zip(blurred, learned, strict=True)
    ]
    assert any(mixed)
    assert not mixed[0]
    assert not mixed[-1]
    for before, after, is_mixed in zip(plain, blurred, mixed, strict=True):
        assert is_mixed or np.array_equal(before, after)  # elsewhere the stream is as it was


def test_offline_the_same_examples_are_seen_as_often_as_without_blur():
    benchmark = domain_benchmark()
    plain, _ = drawn(benchmark, iterations=12)
    blurred, _ = drawn(benchmark, iterations=12, blur=0.6)
    assert sorted(np.concatenate(plain)) == sorted(np.concatenate(blurred))
    assert any(not np.array_equal(a, b) for a, b in zip(plain, blurred, strict=True))


def test_bic_never_trains_on_its_validation_examples_with_blur():
    training = training_of("bic(augment=none)", blur=0.5, memory_per_class=10, tasks=2)
    batches = drawn_by(training)
    held_out = np.concatenate(training.objective._validation)
    assert len(held_out)
    assert not np.isin(np.concatenate(batches), held_out).any()


@pytest.mark.parametrize("method", ["er(classes=seen)", "er-ace", "derpp(augment=none)", "er+gem"])
@pytest.mark.parametrize("memory", ["reservoir(30)", "ring(30)"])
def test_losses_stay_finite_where_classes_come_before_their_task(method, memory):
    training, result = trained(method, blur=0.6, memory=memory)
    assert result.finite
    seen = training.objective.classes_until(1).tolist()
    assert seen == list(range(9))


@pytest.mark.parametrize("memory", ["reservoir(40,current=false)", "herding(40)"])
def test_a_memory_that_chooses_at_the_end_stores_what_a_task_showed(memory):
    training, _ = trained("er", blur=0.6, memory=memory, iterations=None, mode="online")
    rows = np.concatenate(training.memory.parts)
    assert len(set(rows)) == len(rows) == 40
    for number, part in enumerate(training.memory.parts, 1):
        assert (training.memory.task_of[part] == number).all()
    owners = np.concatenate([np.full(60, k) for k in (1, 2, 3)])
    assert any((owners[part] != k).any() for k, part in enumerate(training.memory.parts, 1))


@pytest.mark.parametrize(
    ("blur", "tasks", "line"),
    [
        (
            0.01,
            None,
            "half of that share of 6 iterations rounds to none",
        ),
        (0.5, 1, "there is one task only"),
    ],
)
def test_a_blur_that_changes_nothing_is_refused(blur, tasks, line):
    with pytest.raises(UserError) as caught:
        training_of("er", blur=blur, tasks=tasks)
    assert str(caught.value) == f"blur {blur} changes nothing: {line}"


def test_methods_see_the_same_blurred_batches():
    first, _ = drawn(domain_benchmark(), "er", blur=0.5)
    for method in ("finetune", "er+gem"):
        for one, other in zip(first, drawn(domain_benchmark(), method, blur=0.5)[0], strict=True):
            assert np.array_equal(one, other)
