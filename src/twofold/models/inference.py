"""A network as it is evaluated: batch norm folded into the convolutions before it.

In evaluation, batch norm is the same affine map for every image. With s = scale / sqrt(var + eps),

    bn(conv(x; W)) = conv(x; s W) + shift - s mean,

so that a convolution with other weights does both. Folding costs next to nothing, a pass over
the activations is saved for every layer, and what is left runs in place.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from twofold.models.flat import FlatModel
from twofold.models.state import own_state


class Fold(NamedTuple):
    """A convolution and its batch norm as they are trained, and the convolution that does both."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d
    both: nn.Conv2d  # has a bias


class ChangedError(Exception):
    """The network has changed itself in a way that a copy of it cannot follow."""


class _Tracer(fx.Tracer):
    proxy_buffer_attributes = True  # else what is computed from a buffer would be a constant


class Inference:
    """A copy of a network, folded where it has batch norm, that follows the network's weights.

    dtype: what it computes in; its logits are float32 in any case.
    """

    def __init__(self, net: FlatModel, dtype: torch.dtype = torch.float32) -> None:
        self._net, self._state = net, own_state(net.module)
        self._module, self._folds = _folded(net.copy(), net.module)
        self._module.to(dtype)
        if dtype != torch.float32:
            _end_in_fp32(self._module)
        self._dtype = dtype
        live, own = _tensors(net.module), _tensors(self._module)
        folded = {id(tensor) for fold in self._folds for tensor in fold.both.parameters()}
        names = [name for name in own if name in live and id(own[name]) not in folded]
        self._copied = [(own[name], live[name]) for name in names]

    @torch.no_grad()
    def follow(self) -> None:
        """Take the network's weights and statistics as they are now."""
        if self._net.keeps_state or own_state(self._net.module) != self._state:
            self._net.keeps_state = True
            raise ChangedError
        for own, live in self._copied:
            own.copy_(live)
        for conv, norm, both in self._folds:
            mean, variance, bias = norm.running_mean, norm.running_var, both.bias
            assert mean is not None  # of all three, `_foldable` has seen to it
            assert variance is not None
            assert bias is not None
            scale = norm.weight * torch.rsqrt(variance + norm.eps)
            both.weight.copy_(conv.weight * scale.view(-1, 1, 1, 1))
            bias.copy_(norm.bias - scale * (mean if conv.bias is None else mean - conv.bias))

    def __call__(self, x: Tensor) -> Tensor:
        logits: Tensor = self._module(x.to(self._dtype))
        return logits.float()


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _folded(module: nn.Module, live: nn.Module) -> tuple[nn.Module, list[Fold]]:
    """The module without the batch norms that can be folded away; as it is if it can't be read."""
    try:
        traced = fx.GraphModule(module, _Tracer().trace(module))
    except Exception:  # a forward pass that depends on its input: any error, from the user's code
        return module, []
    named, folds = dict(live.named_modules()), []
    calls = _calls(traced)
    for node in traced.graph.nodes:
        pair = _foldable(node, named, calls)
        if pair is None:
            continue
        before = node.args[0]
        both = traced.get_submodule(before.target)
        assert isinstance(both, nn.Conv2d)
        both.bias = nn.Parameter(torch.zeros_like(both.weight[:, 0, 0, 0]), requires_grad=False)
        folds.append(Fold(*pair, both))
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    for node in traced.graph.nodes:
        _work_in_place(node, named)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced, folds


def _end_in_fp32(module: nn.Module) -> None:
    """A last linear layer costs little, and rounded logits are the largest part of the error."""
    if not isinstance(module, fx.GraphModule):
        return
    *_, end = module.graph.nodes
    last = end.args[0]
    if not isinstance(last, fx.Node) or last.op != "call_module":
        return
    if _calls(module)[last.target] > 1:
        return  # it is not only the last
    layer, features = module.get_submodule(str(last.target)), _first_input(last)
    if isinstance(layer, nn.Linear) and features is not None:
        layer.float()
        with module.graph.inserting_before(last):
            last.args = (module.graph.call_method("float", (features,)),)
        module.recompile()


def _calls(module: fx.GraphModule) -> Counter[fx.node.Target]:
    """How many times each of its modules is called."""
    return Counter(node.target for node in module.graph.nodes if node.op == "call_module")


def _first_input(node: fx.Node) -> fx.Node | None:
    """None where there is none, or it is no tensor, or handed over by name."""
    first = node.args[0] if node.args else None
    return first if isinstance(first, fx.Node) else None


def _foldable(
    node: fx.Node, named: dict[str, nn.Module], calls: Counter[fx.node.Target]
) -> tuple[nn.Conv2d, nn.BatchNorm2d] | None:
    """A batch norm with running statistics, right after a convolution that nobody else reads.

    Both are called once only: with the batch norm in it, a convolution would be another one
    wherever else it is called.
    """
    norm = named.get(str(node.target)) if node.op == "call_module" else None
    if not isinstance(norm, nn.BatchNorm2d) or not norm.affine or norm.running_mean is None:
        return None
    before = _first_input(node)
    if before is None or before.op != "call_module" or len(before.users) > 1:
        return None
    if calls[node.target] > 1 or calls[before.target] > 1:
        return None
    conv = named[str(before.target)]
    return (conv, norm) if isinstance(conv, nn.Conv2d) else None


def _work_in_place(node: fx.Node, named: dict[str, nn.Module]) -> None:
    """Let a sum or a ReLU overwrite its first input, where that is new and nobody else reads it."""
    if node.target not in (F.relu, torch.relu, operator.add):
        return
    first = _first_input(node)
    if first is None or len(first.users) > 1:
        return
    convolution = isinstance(named.get(str(first.target)), nn.Conv2d)
    if not convolution and first.target not in (operator.add, operator.iadd):
        return
    if node.target is operator.add:
        node.target = operator.iadd
    else:
        node.target = torch.relu_
        node.args, node.kwargs = (first,), {}
