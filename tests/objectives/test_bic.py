"""BiC: its loss written out, what is held out, and the bias correction."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.objectives import CLASSES, drawn, noisy_benchmark, trained, two_logits, value
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from twofold import configure
from twofold.errors import UserError
from twofold.objectives import Draw, Objective
from twofold.objectives.bic import Bic, correct, fit_bias
from twofold.objectives.er import Er
from twofold.settings import Settings
from twofold.training import Training


class WatchedBic(Bic):
    """Notes what is trained on and held out, and the network at the end of each task."""

    def start(self, *args):
        super().start(*args)
        self.seen: list[np.ndarray] = []
        self.validating: list[np.ndarray] = []
        self.ends: list[nn.Module] = []

    def passes(self, draw):
        self.seen += [batch.rows.numpy() for batch in (draw.new, draw.old) if batch is not None]
        return super().passes(draw)

    def end_task(self, task, chosen):
        self.ends.append(self.net.copy())
        stored = super().end_task(task, chosen)
        self.validating.append(np.setdiff1d(np.concatenate(chosen), stored))
        return stored


def columns(task: int) -> np.ndarray:
    """The outputs for a task's classes."""
    return np.arange(CLASSES * (task - 1), CLASSES * task)


def bias_loss(w, logits: np.ndarray, y: np.ndarray, old: np.ndarray, new: np.ndarray) -> float:
    """L_b with q_k = o_k for old classes, alpha o_k + beta for new ones."""
    q = torch.from_numpy(logits.astype(float))
    q[:, new] = w[0] * q[:, new] + w[1]
    seen = np.concatenate([old, new])
    place = {int(c): k for k, c in enumerate(seen)}
    targets = torch.tensor([place[int(c)] for c in y])
    return float(F.cross_entropy(q[:, seen], targets))


def by_simplex(problem) -> np.ndarray:
    """alpha and beta by a method that knows no derivatives."""
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 5000}
    return scipy.optimize.minimize(
        bias_loss, [1.0, 0.0], problem, method="Nelder-Mead", options=options
    ).x


def fitted(bic: WatchedBic, module: nn.Module, task: int) -> np.ndarray:
    """alpha and beta for a task by another optimiser, from the examples that were held out."""
    batch = bic.benchmark.train.batch(np.concatenate(bic.validating[:task]))
    with torch.no_grad():
        logits = module(batch.x).numpy()
    old = np.concatenate([columns(k) for k in range(1, task)])
    return by_simplex((logits, batch.y.numpy(), old, columns(task)))


@pytest.mark.parametrize(("quota", "kept"), [(10, 9), (20, 18), (2, 1), (15, 13)])
def test_bic_splits_each_class_nine_to_one(quota, kept):
    bic = WatchedBic()
    training, _ = trained(bic, tasks=1, memory_per_class=quota)
    labels = training.benchmark.train.labels.numpy()
    (stored,), (held_out,) = training.memory.parts, bic.validating
    assert np.bincount(labels[stored]).tolist() == CLASSES * [kept]
    assert np.bincount(labels[held_out]).tolist() == CLASSES * [quota - kept]


def test_bic_never_trains_on_what_validates():
    bic = WatchedBic()
    training, _ = trained(bic, tasks=3, iterations=30, memory_per_class=20)
    seen, held_out = np.concatenate(bic.seen), np.concatenate(bic.validating)
    assert len(held_out) == 3 * CLASSES * 2
    assert not np.intersect1d(seen, held_out).size
    all_rows = np.concatenate([task.train for task in training.benchmark.tasks])
    assert np.array_equal(np.setdiff1d(all_rows, seen), np.sort(held_out))  # the rest is used


@pytest.mark.parametrize("task", [2, 3])
def test_bic_loss(task):
    """L = lambda L_d + (1 - lambda) L_c, with the previous model's own correction in L_d."""
    bic = WatchedBic(augment="none")  # the examples are no images
    training, _ = trained(bic, noisy_benchmark(), task - 1, iterations=20, memory_per_class=100)
    benchmark, previous = training.benchmark, bic.ends[-1]
    bic.start_task(task, [np.array([row]) for row in benchmark.tasks[task - 1].train[-3:]])
    draw = drawn(benchmark, task, np.concatenate(training.memory.parts)[::5])
    training.net.values.mul_(-1)  # training goes on; the previous model stays
    (terms,) = bic.passes(draw)

    new, old = two_logits(seed=task)
    past = np.arange(CLASSES * (task - 1))
    with torch.no_grad():
        o_hat = previous(torch.cat([draw.new.x, draw.old.x]))
    if task > 2:  # in task 2 the previous model knew no older classes to correct against
        alpha, beta = fitted(bic, previous, task - 1)
        assert 0.05 < abs(alpha - 1) + abs(beta) < 5
        last = columns(task - 1)
        o_hat[:, last] = float(alpha) * o_hat[:, last] + float(beta)
    pi_hat = (o_hat[:, past] / 2).softmax(1)
    pi = (torch.cat([new, old])[:, past] / 2).softmax(1)
    L_d = -(pi_hat * pi.log()).sum(1).mean()
    L_c = F.cross_entropy(new, draw.new.y) / task
    L_c = L_c + (1 - 1 / task) * F.cross_entropy(old, draw.old.y)
    n, m = len(past), CLASSES
    expected = n / (n + m) * L_d + m / (n + m) * L_c
    torch.testing.assert_close(value(terms, new, old), expected, rtol=1e-4, atol=1e-5)


def test_bic_in_the_first_task_is_cross_entropy():
    bic = WatchedBic()
    training, _ = trained(bic, tasks=1)
    benchmark = training.benchmark
    bic.start(benchmark, training.net, 0)
    bic.start_task(1, [np.array([0])])
    batch = benchmark.train.batch(np.arange(1, 11))
    ((only,),) = bic.passes(Draw(1, 1, batch))
    new, _ = two_logits(0)
    torch.testing.assert_close(only.weight * only.loss(new), F.cross_entropy(new, batch.y))


def accuracies(training: Training, correction: np.ndarray | None) -> list[float]:
    """Return the accuracy of the present network on the first two tasks, from corrected logits."""
    results = []
    for task in training.benchmark.tasks[:2]:
        batch = training.benchmark.test.batch(task.test)
        with torch.no_grad():
            q = training.net.copy()(batch.x)
        if correction is not None:
            q[:, columns(2)] = float(correction[0]) * q[:, columns(2)] + float(correction[1])
        results.append(100 * float((q.argmax(1) == batch.y).float().mean()))
    return results


def test_bic_is_evaluated_by_corrected_logits():
    bic = WatchedBic(augment="none")
    training, result = trained(bic, noisy_benchmark(), iterations=20, memory_per_class=100)
    expected = accuracies(training, fitted(bic, training.net.copy(), 2))
    assert result.task_ends[-1] == pytest.approx(expected)
    assert [result.curves[f"accuracy_{k}"][-1] for k in (1, 2)] == pytest.approx(expected)
    assert result.task_ends[-1] != pytest.approx(accuracies(training, None))


def test_bic_validates_with_one_pass_over_the_held_out_images_per_evaluation():
    def evaluated_images(objective: Objective) -> int:
        settings = Settings(lr=0.05, batch_size=10, seed=0, iterations=4, memory_per_class=20)
        training = Training(class_benchmark(), objective, [], settings)
        own, counts = training.net.module, []

        def count(module, inputs, _):
            if module is own and not module.training:
                counts.append(len(inputs[0]))

        own.register_forward_hook(count)
        training.run()
        return sum(counts)

    extra = evaluated_images(Bic()) - evaluated_images(Er())
    held_out = [task * CLASSES * 2 for task in (2, 3)]  # so far; nothing to correct in task 1
    # An evaluation after each of 4 iterations, one at the task's end, and what is kept for later.
    assert extra == sum((4 + 1 + 1) * images for images in held_out)


def test_correction_touches_the_new_classes_alone():
    logits, _ = two_logits(0)
    corrected = correct(logits, torch.tensor([7, 2]), (0.5, 3.0))
    others = [0, 1, 3, 4, 5, 6, 8]
    assert torch.equal(corrected[:, others], logits[:, others])
    torch.testing.assert_close(corrected[:, [2, 7]], 0.5 * logits[:, [2, 7]] + 3)
    assert torch.equal(logits, two_logits(0)[0])


def bias_problem(
    seed: int, examples: int, old: int, new: int, scale: float = 2.0, bias: float = 1.5
):
    """Logits that know something of the labels and favour the new classes."""
    random = np.random.default_rng(seed)
    order = random.permutation(old + new + 2)  # two outputs are of classes not yet seen
    y = order[random.integers(0, old + new, examples)]
    logits = scale * random.normal(size=(examples, old + new + 2))
    logits[np.arange(examples), y] += scale
    new_classes = order[old : old + new]
    logits[:, new_classes] += bias
    return logits, y, order[:old], new_classes


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    old=st.integers(1, 8),
    new=st.integers(1, 5),
    bias=st.sampled_from([0.0, 1.5, 5.0, 20.0]),  # from which a full Newton step leads astray
)
def test_the_bias_fit_is_the_optimum_of_another_optimiser(seed, old, new, bias):
    problem = bias_problem(seed, 60, old, new, bias=bias)
    ours, other = fit_bias(*problem), by_simplex(problem)
    assert bias_loss(ours, *problem) == pytest.approx(bias_loss(other, *problem), abs=1e-7)
    np.testing.assert_allclose(ours, other, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("bias", [4.0, 8.0, 15.0, 40.0])
def test_the_bias_fit_is_the_optimum_however_strong_the_bias(bias):
    """The end of split-cifar100: 90 old classes, 10 new ones, 10 examples of each."""
    problem = bias_problem(0, 1000, 90, 10, bias=bias)
    ours, other = (bias_loss(w, *problem) for w in (fit_bias(*problem), by_simplex(problem)))
    assert ours == pytest.approx(other, abs=1e-5)
    assert ours < bias_loss((1.0, 0.0), *problem) - 0.1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    examples=st.integers(1, 30),
    log_scale=st.floats(-3, 8),
    only_old=st.booleans(),  # no example of a new class: beta wants to go to minus infinity
)
def test_the_bias_fit_is_never_worse_than_no_correction(seed, examples, log_scale, only_old):
    logits, y, old, new = bias_problem(seed, examples, 3, 2, 10**log_scale)
    if only_old:
        y = np.full_like(y, old[0])
    fit = fit_bias(logits, y, old, new)
    assert np.isfinite(fit).all()
    before = bias_loss((1.0, 0.0), logits, y, old, new)
    assert bias_loss(fit, logits, y, old, new) <= before * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("scale", [1e20, 1e30, 1e33, 1e36])
def test_a_network_about_to_diverge_has_a_bias_fit_that_is_no_worse(scale):
    """Logits that single precision still holds, at one evaluation of a run that goes astray."""
    for seed in range(10):
        logits, y, old, new = bias_problem(seed, 20, 3, 2, scale)
        fit = fit_bias(logits, y, old, new)
        assert np.isfinite(fit).all()
        before = bias_loss((1.0, 0.0), logits, y, old, new)
        assert bias_loss(fit, logits, y, old, new) <= before * (1 + 1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_diverged_network_is_not_corrected(wrong):
    logits, y, old, new = bias_problem(0, 20, 3, 2)
    logits[3, new[0]] = wrong
    assert fit_bias(logits, y, old, new) == (1.0, 0.0)


def test_bic_refuses_domain_incremental_benchmarks():
    with pytest.raises(UserError, match="class-incremental"):
        trained(Bic(), domain_benchmark())
    with pytest.raises(UserError, match="class-incremental"):
        configure("rotated-mnist", "bic+agem")


def test_bic_refuses_a_memory_that_cannot_be_split():
    with pytest.raises(UserError, match="at least 2"):
        trained(Bic(), memory_per_class=1)


def test_bic_refuses_a_batch_larger_than_what_it_trains_on():
    """6 of the 60 examples of a task validate, so the other 54 make no batch of 60."""
    with pytest.raises(UserError, match="batch size"):
        trained(Bic(), batch_size=60, memory_per_class=20)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_validation_is_a_share(share):
    with pytest.raises(UserError, match=r"bic's validation must be in 0\.\.1"):
        Bic(validation=share)
