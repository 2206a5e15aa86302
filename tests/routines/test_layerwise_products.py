"""Hold and LPR in a network of linear layers, where they map inputs instead of gradients."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from helpers.benchmarks import dense_benchmark
from helpers.training import run_and_resume, trained, training_of
from scipy import linalg
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks import Batch
from twofold.gradients import FactoredGradient, factored_gradient, objective_gradient
from twofold.models import FlatModel, mlp
from twofold.objectives import Draw
from twofold.objectives.er import Er
from twofold.routines.base import Needs, Routine, Step
from twofold.routines.hold import Hold
from twofold.routines.lpr import Lpr
from twofold.training import Training

INPUTS, HIDDEN, CLASSES, TASK = 12, 30, 4, 3


@dataclass
class Case:
    """A network, the examples of an iteration in the third task, and those of the memory."""

    net: FlatModel
    new: Batch
    old: Batch
    stored: Batch

    def step(self, routine: Routine) -> Tensor:
        """The direction from the factors of the gradient."""
        routine.start(self.net)
        passes = Er().passes(Draw(TASK, 1, self.new, self.old))
        found = factored_gradient(self.net, passes, Needs.OLD in routine.asks())
        assert isinstance(found, FactoredGradient)
        step = Step(TASK, 1, self.net, found.g, memory=lambda count: self.stored)
        direction = routine.direct_products(found.g, step)
        assert direction is not None
        assert isinstance(step.gradient, type(found.g))  # it did not compute g
        return direction

    def double(self) -> tuple[list[np.ndarray], ...]:
        """G of new and of old data, and M, of every layer: plain autograd in double precision."""
        module, inputs = copy.deepcopy(self.net.module).double(), []
        for layer in linear_layers(module):
            layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0].detach()))
        gradients = []
        for weight, batch in ((1 / TASK, self.new), (1 - 1 / TASK, self.old)):
            loss = weight * F.cross_entropy(module(batch.x.double()), batch.y)
            parts = torch.autograd.grad(loss, list(module.parameters()))
            gradients.append(joined(parts))
        inputs.clear()
        module(self.stored.x.double())
        Z = [np.c_[z.numpy(), np.ones(len(z))] for z in inputs]
        return *gradients, [z.T @ z / len(z) for z in Z]

    def matrices(self, vector: Tensor) -> list[np.ndarray]:
        self.net.gradient.copy_(vector)
        return joined([p.grad for p in self.net.module.parameters()])


def linear_layers(module: nn.Module) -> list[nn.Linear]:
    return [each for each in module.modules() if isinstance(each, nn.Linear)]


def joined(parts: Any) -> list[np.ndarray]:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [np.c_[weight.double().numpy(), bias.double().numpy()] for weight, bias in pairs]


def case(examples: int, stored: int = 50) -> Case:
    random = torch.Generator().manual_seed(0)

    def batch(count: int, shift: float) -> Batch:
        x = torch.randn(count, INPUTS, generator=random) * torch.linspace(0.2, 3, INPUTS) + shift
        y = torch.randint(CLASSES, (count,), generator=random)
        return Batch(x, y, torch.arange(count))

    torch.manual_seed(0)
    net = FlatModel(mlp(CLASSES, INPUTS, HIDDEN))
    return Case(net, batch(examples, 0.5), batch(examples + 2, 0.0), batch(stored, 0.0))


# All inputs are mapped, except for those of the last layer; and all gradients.
SIZES = [3, 40]


@pytest.mark.parametrize("examples", SIZES)
@pytest.mark.parametrize("stored", [5, 50])  # fewer old inputs than columns, and more
def test_lpr_is_the_solution_of_its_equation(examples, stored):
    one = case(examples, stored)
    results = one.matrices(one.step(Lpr(omega=2.5)))
    for result, new, old, M in zip(results, *one.double(), strict=True):
        expected = linalg.solve(np.eye(len(M)) + 2.5 * M, (new + old).T, assume_a="pos").T
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("examples", SIZES)
@pytest.mark.parametrize(("gain", "share"), [(1.5, 1.0), (2.0, 0.9)])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_hold_is_the_solution_of_both_its_equations(examples, gain, share, damping):
    one, omega = case(examples), 3.0
    results = one.matrices(one.step(Hold(omega, gain, damping, share)))
    for result, new, old, M in zip(results, *one.double(), strict=True):
        values, U = linalg.eigh(M)
        a = values / values.mean()
        leading = values.cumsum() > (1 - share) * values.sum()
        strong = np.where(leading, omega * a / (1 + omega * a), 0)
        weak = damping * a / (1 + damping * a)
        weak = np.where(leading & (weak >= 0.1), weak, 0)
        expected = gain * new @ (np.eye(len(M)) - U * strong @ U.T)
        expected += old @ (np.eye(len(M)) - U * weak @ U.T)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("examples", SIZES)
def test_with_endless_strength_no_old_output_changes(examples):
    one = case(examples, stored=8)
    x, net = one.stored.x, one.net
    for routine in (Lpr(omega=1e5), Hold(omega=1e9, damping=1e9, share=1.0)):
        held = one.step(routine)
        net.gradient.zero_()
        objective_gradient(net, Er().passes(Draw(TASK, 1, one.new, one.old)), apart=False)
        g = net.gradient.clone()
        assert held.norm() > 0.1 * g.norm()
        changes = []
        for d in (held, g):
            with torch.no_grad():
                before = net(x)
                with net.using(net.values - 1e-2 * d / d.norm()):
                    changes.append(float((net(x) - before).norm()))
        assert changes[0] < 0.02 * changes[1]


@pytest.mark.parametrize("method", ["er+hold(omega=0,gain=1,damping=0)", "er+lpr(omega=1e-9)"])
def test_without_strength_it_is_sgd(method):
    plain, none = (trained(each, benchmark=dense_benchmark())[0] for each in ("er", method))
    torch.testing.assert_close(plain.net.values, none.net.values, rtol=1e-4, atol=1e-5)


class PlainLpr(Lpr):
    def direct(self, g: Tensor, step: Step) -> Tensor:
        return super().direct(g, step)


class PlainHold(Hold):
    def direct(self, g: Tensor, step: Step) -> Tensor:
        return super().direct(g, step)


@pytest.mark.parametrize("objective", ["er", "joint", "finetune"])
@pytest.mark.parametrize(
    ("mapped", "plain"),
    [(Lpr(every=2), PlainLpr(every=2)), (Hold(every=4), PlainHold(every=4))],
    ids=["lpr", "hold"],
)
def test_a_run_is_that_without_factors_up_to_rounding(objective, mapped, plain):
    runs = [training_of(objective, each, benchmark=dense_benchmark()) for each in (mapped, plain)]
    assert [run.chain.takes_products for run in runs] == [True, False]
    weights: list[list[Tensor]] = [[], []]
    for run, kept in zip(runs, weights, strict=True):
        run.run(lambda run=run, kept=kept: kept.append(run.net.values.clone()))
    for n, (one, other) in enumerate(zip(*weights, strict=True)):
        assert (one - other).norm() < 1e-5 * one.norm(), n
    assert torch.equal(weights[0][5], weights[1][5])  # the first task
    assert not torch.equal(weights[0][-1], weights[1][-1])


@pytest.mark.parametrize("method", ["er+hold(every=3)", "er+lpr(every=4)", "joint+hold+fade"])
def test_a_run_is_resumed_bitwise(method, tmp_path):
    one, other = (training_of(method, benchmark=dense_benchmark()) for _ in range(2))
    first, second = run_and_resume(one, other, tmp_path / "checkpoint.pt")
    for name, column in first.curves.items():
        np.testing.assert_array_equal(column, second.curves[name])
    assert torch.equal(one.net.values, other.net.values)


@pytest.mark.parametrize("routine", [Hold(), Lpr()], ids=["hold", "lpr"])
def test_a_state_of_an_earlier_version_is_computed_again(routine):
    """Matrices lay the other way round, and had different names."""
    one, fresh = case(3), type(routine)()
    expected = one.step(fresh)
    passes = Er().passes(Draw(TASK, 2, one.new, one.old))
    found = factored_gradient(one.net, passes, Needs.OLD in routine.asks())
    assert isinstance(found, FactoredGradient)
    routine.start(one.net)
    rows = {0: torch.zeros(5, INPUTS + 1)}
    shares = {"_strong": {0: torch.zeros(5)}, "_weak": {0: torch.zeros(2)}}
    routine.restore({"_directions": rows, "_inverses": rows, **shares})
    step = Step(TASK, 2, one.net, found.g, memory=lambda count: one.stored)
    torch.testing.assert_close(routine.direct_products(found.g, step), expected)


def test_all_of_an_unbounded_stream_has_factors():
    """In the first iteration there is no memory, and the gradient is followed as it is."""
    for method in ("er+hold", "er+lpr"):
        options: dict[str, Any] = {"task_free": True, "memory": "reservoir(30)"}
        training: Training = training_of(method, benchmark=dense_benchmark(), **options)
        curves = training.run().curves
        assert curves["projected"].tolist() == [0.0] + [1.0] * (len(curves["task"]) - 1)
