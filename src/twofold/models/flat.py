"""A network whose parameters, and their gradients, are views of one vector each.

GEM and similar routines compute with gradients as vectors. With flat storage, a projection takes a
few lines and no work per parameter. `backward` writes into the vector, and the update is two
operations on it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from twofold.errors import UserError
from twofold.models.state import detached_copy, examine


class FlatModel:
    """A module with flat parameters: `values` are the weights, and backward adds to `gradient`.

    keeps_state: whether the module keeps state apart from its parameters and buffers. It is then
        evaluated on a copy of itself, so that evaluation leaves no trace.
    changes_inputs: whether it changes its inputs in place, and is given copies.
    """

    keeps_state = changes_inputs = False

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        self.module = module.to(device).train()  # it may come in evaluation mode
        self.batch_norms = [m for m in module.modules() if isinstance(m, _BatchNorm)]
        self._affine = [p for m in self.batch_norms for p in m.parameters()]
        parameters = list(module.parameters())
        size = sum(p.numel() for p in parameters)
        self.values = torch.empty(size, device=device)
        self.gradient = torch.zeros(size, device=device)
        self.slices: dict[Tensor, slice] = {}  # the place of each parameter in the vectors
        start = 0
        for p in parameters:
            stop = start + p.numel()
            self.slices[p] = slice(start, stop)
            view = _like(self.values[start:stop], p)
            view.copy_(p.data)
            p.data = view
            p.grad = _like(self.gradient[start:stop], p)
            start = stop

    @property
    def has_batch_norm(self) -> bool:
        return bool(self.batch_norms)

    @property
    def has_convolutions(self) -> bool:
        return any(isinstance(m, nn.Conv2d) for m in self.module.modules())

    def __call__(self, x: Tensor) -> Tensor:
        logits: Tensor = self.module(x.clone() if self.changes_inputs else x)
        return logits

    def examine(self, x: Tensor) -> None:
        """Find out on a few inputs whether the module keeps state or changes its inputs."""
        self.keeps_state, self.changes_inputs = examine(self.module, x)

    def outputs(self, x: Tensor) -> int:
        """Return the number of outputs for inputs like these."""
        self.module.eval()
        try:
            with torch.no_grad():  # not inference mode: a network may keep its tensors
                return self(x).shape[1]
        finally:
            self.module.train()

    def buffers(self) -> list[Tensor]:
        """Return the batch-norm statistics; an empty list for a network without batch norm."""
        return list(self.module.buffers())

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the weights and buffers by name, in the layout of a plain module."""
        state = self.module.state_dict()
        return {name: value.detach().contiguous().clone().cpu() for name, value in state.items()}

    def copy(self) -> nn.Module:
        """Return an independent copy of the network as it is now, which is not to be trained."""
        return copy.deepcopy(self.module).requires_grad_(False).eval()

    @contextmanager
    def frozen_batch_norm(self, affine: bool) -> Iterator[None]:
        """Use the running statistics without updating them (FREEZE_BATCH_NORM, algorithm 3).

        affine: whether scale and shift still get gradients. GEM's references leave them out, as
        in the authors' code, so that they count neither in G nor in its products.
        """
        training = [m.training for m in self.batch_norms]
        trained = [p.requires_grad for p in self._affine]
        for m in self.batch_norms:
            m.eval()
        for p in self._affine:
            p.requires_grad_(p.requires_grad and affine)
        try:
            yield
        finally:
            for m, was in zip(self.batch_norms, training, strict=True):
                m.train(was)
            for p, was in zip(self._affine, trained, strict=True):
                p.requires_grad_(was)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Switch to evaluation mode without gradients, and back afterwards."""
        module = self.module
        if self.keeps_state:
            self.module = detached_copy(module)
        self.module.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.module = module.train()

    @contextmanager
    def using(self, values: Tensor, buffers: list[Tensor] | None = None) -> Iterator[None]:
        """Use different weights (and batch-norm statistics), and restore its own afterwards."""
        kept = [place.clone() for place in self._places(buffers)]
        for place, other in zip(self._places(buffers), [values, *(buffers or [])], strict=True):
            place.copy_(other)
        try:
            yield
        finally:  # a network may have assigned new buffers meanwhile
            for place, old in zip(self._places(buffers), kept, strict=True):
                place.copy_(old)

    def _places(self, buffers: list[Tensor] | None) -> list[Tensor]:
        return [self.values, *(self.buffers() if buffers is not None else [])]


def load_weights(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Set a network's weights and buffers. Raise UserError if they are of a different network."""
    own = module.state_dict()
    for name in (*own, *state):
        if name not in state or name not in own:
            raise UserError(
                "weights of a different network: "
                + (f"they lack {name!r}" if name in own else f"they have {name!r} as well")
            )
        if own[name].shape != state[name].shape:
            raise UserError(
                f"weights of a different network: {name!r} has shape "
                f"{list(state[name].shape)}, and here {list(own[name].shape)}"
            )
    module.load_state_dict(dict(state))


def _like(vector: Tensor, parameter: Tensor) -> Tensor:
    """Return the vector in the parameter's shape.

    Convolution weights are stored channels last, which is faster.
    """
    if parameter.dim() == 4:
        o, i, h, w = parameter.shape
        return vector.view(o, h, w, i).permute(0, 3, 1, 2)
    return vector.view(parameter.shape)
