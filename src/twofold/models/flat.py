"""A network whose parameters, and their gradients, are views of one vector each.

GEM and similar routines compute with gradients as vectors. With flat storage, a projection takes a
few lines and no work per parameter. `backward` writes into the vector, which the update reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from twofold.errors import UserError
from twofold.models.checks import outputs_of
from twofold.models.dense import Dense
from twofold.models.state import detached_copy, examine
from twofold.models.task_ids import task_argument
from twofold.models.view import View, parts_of


class FlatModel(View):
    """A module with flat parameters: `values` are the weights, and backward adds to `gradient`.

    dense: its layers, if it consists of linear layers and ReLUs.
    """

    dense: Dense | None = None

    def __init__(self, module: nn.Module, device: torch.device | str = "cpu") -> None:
        self._describe(module.to(device).train())  # it may come in evaluation mode
        self._values = torch.empty(self.size, device=device)
        self.gradient = torch.zeros(self.size, device=device)
        for p, place in self.slices.items():
            view = shaped(self._values[place], p)
            view.copy_(p.data)
            p.data = view
            p.grad = shaped(self.gradient[place], p)
        self.dense = Dense.read(module)

    def _describe(self, module: nn.Module) -> None:
        """Note what the module consists of, and where each parameter is in the vectors."""
        super().__init__(module)
        self._affine = [p for m in self.batch_norms for p in m.parameters()]
        self.slices: dict[Tensor, slice] = {}
        self.size = 0
        for p in module.parameters():
            self.slices[p] = slice(self.size, self.size + p.numel())
            self.size += p.numel()

    @property
    def values(self) -> Tensor:
        """The weights as one vector."""
        return self._values

    @property
    def device(self) -> torch.device:
        return self.values.device

    def examine(self, x: Tensor, tasks: Tensor | None = None) -> None:
        """Find out on a few inputs whether the module keeps state or changes its inputs."""
        given = task_argument(self.module, tasks)
        self.keeps_state, self.changes_inputs = examine(self.module, x, given)

    def outputs(self, x: Tensor, tasks: Tensor | None = None) -> int:
        """Return the number of outputs for inputs like these."""
        self.module.eval()
        try:
            return outputs_of(partial(self.all_logits, tasks=tasks), x)
        finally:
            self.module.train()

    def buffers(self) -> list[Tensor]:
        """Return the batch-norm statistics; an empty list for a network without batch norm."""
        return list(self.module.buffers())

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the weights and buffers by name, in the layout of a plain module."""
        state = self.module.state_dict()
        return {name: value.detach().contiguous().clone().cpu() for name, value in state.items()}

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
            for m, mode in zip(self.batch_norms, training, strict=True):
                m.train(mode)
            for p, mode in zip(self._affine, trained, strict=True):
                p.requires_grad_(mode)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Switch to evaluation mode without gradients, and back afterwards."""
        module = self.module
        if self.keeps_state:
            self.module = detached_copy(module)
        self.module.eval()
        try:
            with torch.inference_mode(), _in_place(self._relus()):
                yield
        finally:
            self.module = module.train()

    def _relus(self) -> list[nn.ReLU]:
        """Return the ReLUs between linear layers, whose outputs nobody else can see."""
        if self.dense is None or self.has_hooks:
            return []
        return [part for part in parts_of(self.module) if isinstance(part, nn.ReLU)]

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


@contextmanager
def _in_place(relus: list[nn.ReLU]) -> Iterator[None]:
    """Let ReLUs overwrite their inputs, which saves a pass over new memory."""
    modes = [relu.inplace for relu in relus]
    for relu in relus:
        relu.inplace = True
    try:
        yield
    finally:
        for relu, mode in zip(relus, modes, strict=True):
            relu.inplace = mode


def load_weights(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Set a network's weights and buffers. Raise UserError if they are of a different network."""
    tensors = module.state_dict()
    for name in (*tensors, *state):
        if name not in state or name not in tensors:
            raise UserError(
                "weights of a different network: "
                + (f"they lack {name!r}" if name in tensors else f"they have {name!r} as well")
            )
        if tensors[name].shape != state[name].shape:
            raise UserError(
                f"weights of a different network: {name!r} has shape "
                f"{list(state[name].shape)}, and here {list(tensors[name].shape)}"
            )
        if tensors[name].is_floating_point() != state[name].is_floating_point():
            raise UserError(
                f"weights of a different network: {name!r} is {state[name].dtype}, and here "
                f"{tensors[name].dtype}"
            )
    module.load_state_dict(dict(state))


def shaped(vector: Tensor, parameter: Tensor) -> Tensor:
    """Return the vector in the parameter's shape.

    Convolution weights are stored channels last, which is faster.
    """
    if parameter.dim() == 4:
        o, i, h, w = parameter.shape
        return vector.view(o, h, w, i).permute(0, 3, 1, 2)
    return vector.view(parameter.shape)
