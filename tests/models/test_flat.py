"""The vectors that parameters and gradients are views of, and weights put into a network."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.benchmarks import class_benchmark
from torch import nn

from twofold.errors import UserError
from twofold.models import FlatModel, mlp, reduced_resnet18
from twofold.models.flat import load_weights


def small(norm: bool = True) -> nn.Module:
    torch.manual_seed(0)
    return class_benchmark(norm=norm).model()


def batch(n: int = 6, size: int = 8) -> torch.Tensor:
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("module", "size", "outputs", "parameters"),
    [
        (mlp, (1, 28, 28), 10, 478_410),
        (reduced_resnet18, (3, 32, 32), 100, 1_109_240),
        (lambda: reduced_resnet18(100, size=84), (3, 84, 84), 100, 1_157_240),
        (lambda: reduced_resnet18(20), (3, 32, 32), 20, 1_096_360),
    ],
    ids=["mlp", "cifar100", "mini-imagenet", "domain-cifar100"],
)
def test_size_and_outputs(module, size, outputs, parameters):
    net = FlatModel(module())
    assert net.values.numel() == net.gradient.numel() == parameters
    assert net(torch.zeros(2, *size)).shape == (2, outputs)


@pytest.mark.parametrize("norm", [False, True])
def test_flattening_changes_no_output_and_no_gradient(norm):
    module = small(norm)
    untouched, net, x = copy.deepcopy(module), FlatModel(module), batch()
    torch.testing.assert_close(net(x), untouched(x))
    net(x).square().mean().backward()
    untouched(x).square().mean().backward()
    for p, q in zip(net.module.parameters(), untouched.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)
        assert torch.equal(p, q)


def test_parameters_and_gradients_are_views_even_after_backward():
    net = FlatModel(small())
    net(batch()).square().mean().backward()
    values, gradient = net.values.untyped_storage(), net.gradient.untyped_storage()
    assert net.gradient.any()
    for p in net.module.parameters():
        assert p.untyped_storage().data_ptr() == values.data_ptr()
        assert p.grad.untyped_storage().data_ptr() == gradient.data_ptr()
    covered = sum(p.numel() for p in net.module.parameters())
    assert covered == net.values.numel()


def test_the_vectors_and_the_parameters_say_the_same():
    net = FlatModel(small())
    net.values.copy_(torch.arange(net.values.numel()))
    net.gradient.copy_(-torch.arange(net.values.numel()))
    for vector, of in ((net.values, lambda p: p), (-net.gradient, lambda p: -p.grad)):
        seen = torch.cat([of(p).flatten() for p in net.module.parameters()])
        assert torch.equal(seen.sort().values, vector)  # each entry once, wherever
    with torch.no_grad():
        for p in net.module.parameters():
            p.zero_()
    assert not net.values.any()


def test_backward_adds_to_the_gradient():
    net = FlatModel(small(norm=False))
    net(batch()).mean().backward()
    once = net.gradient.clone()
    net(batch()).mean().backward()
    torch.testing.assert_close(net.gradient, 2 * once)


def state(net: FlatModel) -> list[torch.Tensor]:
    return [net.values.clone(), *(b.clone() for b in net.buffers())]


def test_using_puts_other_weights_in_place_for_a_while():
    net, x = FlatModel(small()), batch()
    net.module.eval()
    before, outside = state(net), net(x)
    others = [torch.full_like(b, 2) for b in net.buffers()]
    with net.using(torch.zeros_like(net.values), others):
        assert not net.values.any()
        assert all((b == 2).all() for b in net.buffers())
        assert not net(x).any()
    assert all(torch.equal(a, b) for a, b in zip(before, state(net), strict=True))
    torch.testing.assert_close(net(x), outside)


def test_using_weights_alone_leaves_the_statistics():
    net = FlatModel(small())
    before = state(net)
    with net.using(net.values * 0):
        assert all(torch.equal(a, b) for a, b in zip(before[1:], net.buffers(), strict=True))
    assert torch.equal(net.values, before[0])


def test_using_restores_after_an_error():
    net = FlatModel(small())
    before = state(net)
    with (
        pytest.raises(ZeroDivisionError),
        net.using(net.values * 0, [b * 0 for b in net.buffers()]),
    ):
        _ = 1 / 0
    assert all(torch.equal(a, b) for a, b in zip(before, state(net), strict=True))


def test_a_copy_stands_apart():
    net, x = FlatModel(small()), batch()
    net(x)
    other = net.copy()
    net.module.eval()
    expected = net(x)
    net.values.zero_()
    torch.testing.assert_close(other(x), expected)
    assert not other.training
    assert not any(p.requires_grad for p in other.parameters())
    assert all(p.requires_grad for p in net.module.parameters())


def test_evaluating_is_eval_mode_without_gradients_and_ends_in_train_mode():
    net = FlatModel(small())
    before = state(net)
    with net.evaluating():
        assert not net.module.training
        assert not net(batch()).requires_grad
    assert all(torch.equal(a, b) for a, b in zip(before, state(net), strict=True))
    assert net.module.training
    assert net(batch()).requires_grad


def relus(net: FlatModel) -> list[bool]:
    return [part.inplace for part in net.module if isinstance(part, nn.ReLU)]


def test_relus_work_in_place_only_in_evaluation():
    torch.manual_seed(0)
    net, x = FlatModel(mlp()), torch.randn(50, 1, 28, 28)
    images, logits = x.clone(), net(x)
    with net.evaluating():
        assert relus(net) == [True, True]
        assert torch.equal(net(x), logits)
    assert relus(net) == [False, False]
    assert torch.equal(x, images)


def test_a_hook_sees_the_outputs_of_its_layer():
    net, seen = FlatModel(mlp()), []
    net.module[1].register_forward_hook(lambda _, inputs, output: seen.append(output))
    with net.evaluating():
        net(torch.randn(50, 1, 28, 28))
    assert seen[0].min() < 0


def test_a_network_is_trained_in_train_mode_whatever_mode_it_comes_in():
    assert all(m.training for m in FlatModel(small().eval()).module.modules())


def test_evaluating_ends_in_train_mode_after_an_error():
    net = FlatModel(small())
    with pytest.raises(ZeroDivisionError), net.evaluating():
        _ = 1 / 0
    assert net.module.training


def test_weights_are_put_into_a_network():
    source, target = small(), small()
    with torch.no_grad():
        for p in source.parameters():
            p.add_(1)
    source(batch())  # and the statistics move
    load_weights(target, source.state_dict())
    for name, value in source.state_dict().items():
        assert torch.equal(target.state_dict()[name], value), name


def test_the_state_of_a_flat_network_loads_into_a_plain_one():
    net = FlatModel(small())
    net(batch())
    plain = small()
    load_weights(plain, net.state())
    torch.testing.assert_close(plain.eval()(batch()), net.copy()(batch()))
    net.values.zero_()
    assert plain(batch()).any()  # a copy


def changed(change) -> dict[str, torch.Tensor]:
    state = dict(small().state_dict())
    change(state)
    return state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("0.weight"), "they lack '0.weight'"),
        (lambda s: s.pop("1.running_mean"), "they lack '1.running_mean'"),
        (lambda s: s.update(more=torch.zeros(1)), "they have 'more' as well"),
        (
            lambda s: s.update({"4.weight": torch.zeros(7, 256)}),
            "'4.weight' has shape [7, 256], and here [9, 256]",
        ),
    ],
    ids=["missing", "statistics", "more", "shape"],
)
def test_weights_of_a_different_network_are_refused(change, message):
    module = small()
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(UserError) as caught:
        load_weights(module, changed(change))
    assert str(caught.value) == f"weights of a different network: {message}"
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
