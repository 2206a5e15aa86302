"""Hold against dense linear algebra in double precision, its limits, and bad input."""

from __future__ import annotations

import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.training import trained, training_of
from torch import Tensor, nn

from twofold import How
from twofold.benchmarks import Batch
from twofold.errors import UserError
from twofold.method import Method
from twofold.models import FlatModel
from twofold.routines.base import Step
from twofold.routines.hold import LEAST, Hold
from twofold.routines.lpr import Lpr

OLD = 0.75  # the weight of old data


def direction(net: FlatModel, x: Tensor, g: Tensor, old: Tensor, routine: Hold) -> Tensor:
    routine.start(net)

    def memory(count: int) -> Batch:
        return Batch(x[:count], torch.zeros(len(x), dtype=torch.long), torch.arange(len(x)))

    return routine.direct(g, Step(3, 1, net, g, old, old_weight=OLD, memory=memory))


def linear(bias: bool = True) -> tuple[FlatModel, Tensor, Tensor, Tensor]:
    """A layer, 20 old inputs that use some directions more than others, g and g_old."""
    torch.manual_seed(0)
    net = FlatModel(nn.Linear(6, 4, bias=bias))
    x = torch.randn(20, 6) * torch.tensor([8.0, 4.0, 2.0, 1.0, 0.5, 0.25])
    return net, x, torch.randn(net.size), torch.randn(net.size)


def matrix(vector: Tensor) -> Tensor:
    """The weights and the bias of the layer as one matrix in double precision."""
    return torch.cat([vector[:24].view(4, 6), vector[24:].view(4, 1)], 1).double()


def moment(x: Tensor) -> Tensor:
    Z = torch.cat([x, torch.ones(len(x), 1)], 1).double()
    return Z.T @ Z / len(Z)


def inverse(M: Tensor, strength: float) -> Tensor:
    return torch.linalg.inv(torch.eye(7, dtype=M.dtype) + strength * M / (M.trace() / 7))


def damped(M: Tensor, strength: float) -> Tensor:
    """The same with the directions alone along which at least a tenth is held."""
    U, values, _ = torch.linalg.svd(M)
    c = strength * values / (M.trace() / 7)
    held = torch.where(c / (1 + c) >= LEAST, c / (1 + c), 0.0)
    return torch.eye(7, dtype=M.dtype) - U @ held.diag() @ U.T


@pytest.mark.parametrize("damping", [0.0, 0.3, 5.0])
def test_both_parts_take_proximal_steps_of_their_own_strength(damping):
    net, x, g, old = linear()
    result = direction(net, x, g, old, Hold(omega=3.0, gain=1.5, damping=damping, share=1.0))
    new, M = matrix(g - OLD * old), moment(x)
    expected = 1.5 * new @ inverse(M, 3.0) + OLD * matrix(old) @ damped(M, damping)
    torch.testing.assert_close(matrix(result), expected, rtol=1e-4, atol=1e-5)


def test_it_is_the_minimum_of_the_proximal_problem():
    """min_d <G, d> + 1/2 |d|^2 + omega / 2 mean |change of an old output|^2 / m, by descent."""
    net, x, g, old = linear()
    result = matrix(direction(net, x, g, old, Hold(omega=2.0, gain=1.0, damping=0.0, share=1.0)))
    new, M = matrix(g - OLD * old), moment(x)
    Z, m = torch.cat([x, torch.ones(20, 1)], 1).double(), M.trace() / 7
    d = torch.zeros_like(new, requires_grad=True)
    optimizer = torch.optim.LBFGS([d], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure() -> Tensor:
        optimizer.zero_grad()
        change = (Z @ d.T).square().sum() / 20
        loss = (new * d).sum() + d.square().sum() / 2 + 2.0 / m * change / 2
        loss.backward()
        return loss

    optimizer.step(closure)
    torch.testing.assert_close(result - OLD * matrix(old), -d.detach(), rtol=1e-3, atol=1e-4)


def test_only_the_leading_directions_are_held():
    net, x, g, old = linear()
    result = matrix(direction(net, x, g, old, Hold(omega=3.0, gain=1.0, damping=0.0, share=0.9)))
    M = moment(x)
    U, values, _ = torch.linalg.svd(M)  # a different decomposition, largest first
    count = int((values.cumsum(0) / values.sum() < 0.9).sum()) + 1
    assert 0 < count < 7
    P = torch.eye(7, dtype=M.dtype)
    for u, value in zip(U.T[:count], values[:count], strict=True):
        P += 3.0 * value / (M.trace() / 7) * torch.outer(u, u)
    expected = matrix(g - OLD * old) @ torch.linalg.inv(P) + OLD * matrix(old)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_the_unit_of_the_inputs_does_not_matter():
    net, x, g, old = linear(bias=False)
    one, other = (direction(net, scale * x, g, old, Hold()) for scale in (1.0, 30.0))
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_without_strength_it_is_sgd():
    plain, none = (
        trained(method)[0].net.values for method in ("er", "er+hold(omega=0,gain=1,damping=0)")
    )
    torch.testing.assert_close(plain, none, rtol=1e-4, atol=1e-5)


def test_with_endless_strength_new_data_leave_old_outputs_unchanged():
    """Each layer's outputs stay, so the next layer's inputs do: not only to first order."""
    torch.manual_seed(0)
    net = FlatModel(nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 3)))
    x, g = torch.randn(8, 30), torch.randn(net.size)
    held = direction(net, x, g, torch.zeros_like(g), Hold(omega=1e9, share=1.0))
    assert held.norm() > 0.3 * g.norm()  # there are more weights than old outputs

    def change(d: Tensor, length: float) -> float:
        with torch.no_grad():
            before = net(x)
            with net.using(net.values + length * d / d.norm()):
                return float((net(x) - before).norm())

    assert change(g, 1e-1) > 0.02
    assert change(held, 1e-1) < 1e-5


@pytest.mark.parametrize("norm", [False, True])
def test_convolutions_and_batch_norm_keep_their_outputs_as_well(norm):
    torch.manual_seed(0)
    parts = [nn.Conv2d(3, 5, 3), *([nn.BatchNorm2d(5)] if norm else []), nn.ReLU(), nn.Flatten()]
    net = FlatModel(nn.Sequential(*parts, nn.Linear(5 * 16, 3)))
    x, g = torch.randn(4, 3, 6, 6), torch.randn(net.size)
    strong, weak = (
        direction(net, x, g, torch.zeros_like(g), Hold(omega=omega, share=1.0, gain=1.0))
        for omega in (1e4, 0.0)
    )
    torch.testing.assert_close(weak, g)

    def change(d: Tensor) -> float:
        with torch.no_grad(), net.evaluating():
            before = net(x)
            with net.using(net.values + 1e-3 * d / d.norm()):
                return float((net(x) - before).norm())

    assert change(strong) < 0.2 * change(g)


def test_with_equal_strengths_it_is_lpr():
    net, x, g, old = linear()
    lpr = Lpr(omega=50.0 / float(moment(x).trace() / 7), examples=20)
    lpr.start(net)
    memory = lambda count: Batch(x, torch.zeros(20, dtype=torch.long), torch.arange(20))  # noqa: E731
    expected = lpr.direct(g, Step(2, 1, net, g, memory=memory))
    result = direction(net, x, g, old, Hold(omega=50.0, gain=1.0, damping=50.0, share=1.0))
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_without_damping_old_data_pull_as_before():
    net, x, _, old = linear()
    result = direction(net, x, OLD * old, old, Hold(damping=0.0))
    torch.testing.assert_close(result, OLD * old)


def test_without_old_data_in_the_objective_all_of_the_gradient_is_held():
    training = training_of("finetune+hold", benchmark=domain_benchmark())
    training.run()
    curves = training.curves.columns()
    assert (curves["projected"][curves["task"] > 1] == 1).all()
    assert (curves["norm_ratio"][curves["task"] > 1] != 1).all()


def test_a_network_that_diverged_is_left_alone():
    net, x, g, old = linear()
    result = direction(net, torch.full_like(x, torch.inf), g, old, Hold(gain=1.0))
    torch.testing.assert_close(result, g)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("er+hold(omega=-1)", "hold's omega must be at least 0, not -1"),
        ("er+hold(omega=nan)", "omega must be a finite number, not 'nan'"),
        ("er+hold(omega=1e39)", "hold's omega must be at most 1,000,000,000, not 1e+39"),
        ("er+hold(damping=1e10)", "hold's damping must be at most 1,000,000,000, not 1e+10"),
        ("er+hold(damping=inf)", "damping must be a finite number, not 'inf'"),
        ("er+hold(omega=much)", "omega must be a finite number, not 'much'"),
        ("er+hold(gain=0)", "hold's gain must be above 0, not 0"),
        ("er+hold(damping=-0.1)", "hold's damping must be at least 0, not -0.1"),
        ("er+hold(share=0)", "hold's share must be above 0 and at most 1, not 0"),
        ("er+hold(share=1.5)", "hold's share must be above 0 and at most 1, not 1.5"),
        ("er+hold(every=0)", "hold's every must be above 0, not 0"),
        ("er+hold(examples=0)", "hold's examples must be above 0, not 0"),
    ],
)
def test_bad_options_are_answered_in_one_line(method, message):
    with pytest.raises(UserError) as error:
        Method.parse(method).make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("before", ["clip", "gem", "lpr", "hold"])
def test_it_comes_first(before):
    with pytest.raises(UserError, match=f"which {before} has changed: write hold first"):
        training_of(f"er+{before}+hold")


@pytest.mark.parametrize(
    ("layer", "name"),
    [(nn.Embedding(5, 4), "0.weight"), (nn.Conv2d(4, 4, 3, groups=2), "0.weight")],
)
def test_a_layer_that_it_does_not_know_is_named(layer, name):
    with pytest.raises(UserError, match=f"the network's '{name}' belongs to a different layer"):
        Hold().start(FlatModel(nn.Sequential(layer, nn.Linear(4, 3))))


def test_a_memory_without_examples_is_answered():
    net, x, g, old = linear()
    with pytest.raises(UserError, match="hold needs examples in the memory, and there are none"):
        direction(net, x[:0], g, old, Hold())
    with pytest.raises(UserError, match="memory per class 0 the memory stays empty"):
        training_of("er+hold", memory_per_class=0)


def test_in_a_users_loop_the_weight_of_old_data_must_be_given():
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    how = How("hold", optimizer, model)
    x = torch.randn(5, 6)
    how.old(lambda: model(x).square().mean())
    how.memory(lambda n: x)
    how.switch()
    model(x).mean().backward()
    with pytest.raises(UserError, match=r"let how\.old return \(loss, weight\)"):
        optimizer.step()
