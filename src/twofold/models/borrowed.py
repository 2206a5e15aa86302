"""A network that belongs to somebody else, seen as vectors without changing its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce

import torch
from torch import Tensor, nn

from twofold.errors import UserError
from twofold.models.flat import FlatModel, shaped


class BorrowedModel(FlatModel):
    """A module whose parameters stay where they are: vectors are gathered from them and put back.

    The order within the vectors is that of `FlatModel`, so that sums over them round alike.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        if not self.parameters:
            raise UserError("the model has no parameters")
        devices = {str(p.device) for p in self.parameters}
        if len(devices) > 1:
            raise UserError(f"the model is on several devices ({', '.join(sorted(devices))})")
        self._describe(module)
        kinds = (p.dtype for p in self.parameters)
        self.dtype = reduce(torch.promote_types, kinds, torch.float32)

    @property
    def values(self) -> Tensor:
        """The weights, gathered into a new vector."""
        return self.gathered(self.parameters)

    def vector(self, *rows: int) -> Tensor:
        """Return an uninitialised vector, or a matrix with this many rows."""
        device = self.parameters[0].device
        return torch.empty(*rows, self.size, dtype=self.dtype, device=device)

    def gathered(self, tensors: Iterable[Tensor | None], into: Tensor | None = None) -> Tensor:
        """Return tensors in the shapes of the parameters as one vector; None stands for zeros."""
        vector = self.vector() if into is None else into
        for view, tensor in zip(self.views(vector), tensors, strict=True):
            if tensor is None:
                view.zero_()
            else:
                view.copy_(tensor.detach())
        return vector

    def views(self, vector: Tensor) -> Iterator[Tensor]:
        """Yield the parts of a vector in the shapes of the parameters."""
        for p in self.parameters:
            yield shaped(vector[self.slices[p]], p)

    @contextmanager
    def using(self, values: Tensor, buffers: list[Tensor] | None = None) -> Iterator[None]:
        places = [*self.parameters, *(self.buffers() if buffers is not None else [])]
        kept = [place.detach().clone() for place in places]
        with torch.no_grad():
            for place, other in zip(places, [*self.views(values), *(buffers or [])], strict=True):
                place.copy_(other)
        try:
            yield
        finally:
            with torch.no_grad():
                for place, old in zip(places, kept, strict=True):
                    place.copy_(old)
