"""A network for evaluation, with batch norm folded into the convolutions before it.

In evaluation, batch norm is the same affine map for every image. With s = scale / sqrt(var + eps),

    bn(conv(x; W)) = conv(x; s W) + shift - s mean,

so one convolution with different weights computes both. Folding takes very little time. It saves a
pass over the activations of every layer, and the remaining operations run in place.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from twofold.models.state import own_state
from twofold.models.view import View


class Fold(NamedTuple):
    """A convolution and its batch norm in training, and the convolution that computes both."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d
    both: nn.Conv2d  # has a bias


class ChangedError(Exception):
    """The network has changed itself in a way that a copy of it cannot follow."""


class _Tracer(fx.Tracer):
    proxy_buffer_attributes = True  # else what is computed from a buffer would be a constant


class Inference:
    """A copy of a network with batch norm folded, which follows the network's weights.

    dtype: the type that it computes in. Its logits are always float32.
    """

    def __init__(self, net: View, dtype: torch.dtype = torch.float32) -> None:
        self.net, self._state = net, own_state(net.module)
        self._module, self._folds = _folded(net.copy(), net.module)
        self._module.to(dtype)
        # Convolutions are faster channels last; a `FlatModel` has its weights so already.
        self._module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if dtype != torch.float32:
            _end_in_fp32(self._module)
        self._dtype = dtype
        live, copies = _tensors(net.module), _tensors(self._module)
        folded = {id(tensor) for fold in self._folds for tensor in fold.both.parameters()}
        names = [name for name in copies if name in live and id(copies[name]) not in folded]
        self._copied = [(copies[name], live[name]) for name in names]

    @torch.no_grad()
    def follow(self) -> None:
        """Copy the network's current weights and statistics."""
        if self.net.keeps_state or own_state(self.net.module) != self._state:
            self.net.keeps_state = True
            raise ChangedError
        for tensor, live in self._copied:
            tensor.copy_(live)
        for conv, norm, fold in self._folds:
            mean, variance, bias = norm.running_mean, norm.running_var, fold.bias
            assert mean is not None  # `_foldable` and `_folded` ensure all three
            assert variance is not None
            assert bias is not None
            scale = norm.weight * torch.rsqrt(variance + norm.eps)
            fold.weight.copy_(conv.weight * scale.view(-1, 1, 1, 1))
            bias.copy_(norm.bias - scale * (mean if conv.bias is None else mean - conv.bias))

    def __call__(self, x: Tensor) -> Tensor:
        logits: Tensor = self._module(x.to(self._dtype) if x.is_floating_point() else x)
        return logits.float()


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _folded(module: nn.Module, live: nn.Module) -> tuple[nn.Module, list[Fold]]:
    """Return the module without foldable batch norms, or unchanged if it cannot be traced."""
    try:
        traced = fx.GraphModule(module, _Tracer().trace(module))
    except Exception:  # a forward pass in the user's code may depend on its input
        return module, []
    named, folds = dict(live.named_modules()), []
    calls = _calls(traced)
    for node in traced.graph.nodes:
        pair = _foldable(node, named, calls)
        if pair is None:
            continue
        source = node.args[0]
        fold = traced.get_submodule(source.target)
        assert isinstance(fold, nn.Conv2d)
        fold.bias = nn.Parameter(torch.zeros_like(fold.weight[:, 0, 0, 0]), requires_grad=False)
        folds.append(Fold(*pair, fold))
        node.replace_all_uses_with(source)
        traced.graph.erase_node(node)
    for node in traced.graph.nodes:
        _work_in_place(node, named)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced, folds


def _end_in_fp32(module: nn.Module) -> None:
    """Let the last layer, if linear, compute in fp32.

    It takes little time, and rounded logits are the largest part of the error.
    """
    if not isinstance(module, fx.GraphModule):
        return
    *_, end = module.graph.nodes
    last = end.args[0]
    if not isinstance(last, fx.Node) or last.op != "call_module":
        return
    if _calls(module)[last.target] > 1:
        return  # it is also called before the end
    layer, features = module.get_submodule(str(last.target)), _first_input(last)
    if isinstance(layer, nn.Linear) and features is not None:
        layer.float()
        with module.graph.inserting_before(last):
            last.args = (module.graph.call_method("float", (features,)),)
        module.recompile()


def _calls(module: fx.GraphModule) -> Counter[fx.node.Target]:
    """Return how many times each submodule is called."""
    return Counter(node.target for node in module.graph.nodes if node.op == "call_module")


def _first_input(node: fx.Node) -> fx.Node | None:
    """Return the first positional input; None if there is none or it is not a node."""
    first = node.args[0] if node.args else None
    return first if isinstance(first, fx.Node) else None


def _foldable(
    node: fx.Node, named: dict[str, nn.Module], calls: Counter[fx.node.Target]
) -> tuple[nn.Conv2d, nn.BatchNorm2d] | None:
    """Return a convolution and its batch norm if they can be folded, else None.

    The batch norm needs running statistics and must be the only user of the convolution's output.
    Both must be called only once, since folding changes every call of the convolution.
    """
    norm = named.get(str(node.target)) if node.op == "call_module" else None
    if not isinstance(norm, nn.BatchNorm2d) or not norm.affine or norm.running_mean is None:
        return None
    source = _first_input(node)
    if source is None or source.op != "call_module" or len(source.users) > 1:
        return None
    if calls[node.target] > 1 or calls[source.target] > 1:
        return None
    conv = named[str(source.target)]
    return (conv, norm) if isinstance(conv, nn.Conv2d) else None


def _work_in_place(node: fx.Node, named: dict[str, nn.Module]) -> None:
    """Let a sum or a ReLU overwrite its first input if that is new and not used elsewhere."""
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
