"""NMC: the nearest class mean, computed from distances, example by example."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.training import training_of
from torch import nn

import twofold
from twofold import Benchmark, How
from twofold.errors import UserError
from twofold.routines.nmc import class_means


def run(norm: bool = True, **options):
    options = {"memory": "reservoir(40)", "tasks": 2, "iterations": 5} | options
    training = training_of("er+nmc", benchmark=class_benchmark(norm=norm), **options)
    return training, training.run()


def nearest(training) -> np.ndarray:
    """Predict the test images by the distance to the means of all stored examples."""
    net, benchmark = training.net.copy(), training.benchmark
    stored = benchmark.train.batch(np.concatenate(training.memory.parts))

    def phi(x: torch.Tensor) -> np.ndarray:
        features = net[:-1](x).numpy().astype(float)
        return features / np.linalg.norm(features, axis=1, keepdims=True)

    known, y = phi(stored.x), stored.y.numpy()
    means = {c: known[y == c].mean(0) for c in set(y.tolist())}
    means = {c: mean / np.linalg.norm(mean) for c, mean in means.items()}
    test = np.concatenate([task.test for task in training.tasks])
    batch = benchmark.test.batch(test)
    return np.array(
        [min(means, key=lambda c: np.linalg.norm(x - means[c])) for x in phi(batch.x)]
    ), batch.y.numpy()


@pytest.mark.parametrize("norm", [False, True])
def test_the_accuracies_are_those_of_the_nearest_mean(norm):
    training, result = run(norm)
    predicted, y = nearest(training)
    for task, accuracy in enumerate(result.task_ends[-1]):
        own = y // 3 == task
        assert accuracy == pytest.approx(100 * (predicted == y)[own].mean(), abs=1e-3)
    assert len(result.raw_task_ends) == 2  # the trained weights are evaluated as well


def test_a_long_feature_counts_as_much_as_a_short_one():
    features = torch.tensor([[10.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    means = class_means(features, torch.tensor([0, 0, 1]))
    torch.testing.assert_close(means[0], torch.full((2,), 0.5**0.5))
    torch.testing.assert_close(means[1], torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize("norm", [False, True])
def test_training_is_left_alone(norm):
    training, result = run(norm)
    plain = training_of(
        "er", benchmark=class_benchmark(norm=norm), tasks=2, iterations=5, memory="reservoir(40)"
    )
    expected = plain.run()
    assert torch.equal(training.net.values, plain.net.values)
    np.testing.assert_array_equal(result.curves["raw_accuracy_1"], expected.curves["accuracy_1"])


def test_a_class_that_was_never_stored_is_never_predicted():
    training, _ = run(tasks=1)
    with training.chain.evaluated(training.net), training.net.evaluating():
        logits = training.net(training.benchmark.test.batch(np.arange(90)).x)
    assert set(logits.argmax(1).tolist()) <= {0, 1, 2}


def test_it_needs_a_memory_of_the_current_task():
    with pytest.raises(UserError, match="nmc needs a memory that holds the current task"):
        twofold.configure("split-cifar100", "er+nmc")
    with pytest.raises(UserError, match="and joint stores a task at its end"):
        twofold.configure("split-cifar100", "joint+nmc", memory="ring(500)")
    twofold.configure("split-cifar100", "er+nmc", memory="ring(500)")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 9, bias=False)), "needs a bias"),
        (lambda: nn.Sequential(nn.Conv2d(3, 9, 8), nn.Flatten()), "ends in a linear layer"),
    ],
)
def test_a_network_without_a_linear_end_is_refused_before_training(model, why):
    given = class_benchmark()
    benchmark = Benchmark(
        given.name, given.scenario, given.train, given.test, given.tasks, model, 12
    )
    with pytest.raises(UserError, match=why):
        training_of("er+nmc", benchmark=benchmark, memory="reservoir(40)")


def test_two_ways_of_evaluation_and_ones_own_loop_are_refused():
    with pytest.raises(UserError, match="already sets the evaluated weights"):
        twofold.configure("split-cifar100", "er+nmc+ema", memory="ring(500)")
    model = nn.Linear(2, 2)
    with pytest.raises(UserError, match="nmc needs labelled examples"):
        How("nmc", torch.optim.SGD(model.parameters(), lr=0.1), model)
    with pytest.raises(UserError, match="nmc's examples must be above 0"):
        twofold.Method.parse("nmc(0)")
