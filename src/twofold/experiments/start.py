"""The weights that a run starts from: those of a run, of a file, or of a network in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from twofold.errors import UserError
from twofold.experiments import weights
from twofold.experiments.archive import CHECKSUMS
from twofold.experiments.weights import StoredWeights

PER_SEED = "per seed"  # in place of the names and digests of starts that belong to seeds


@dataclass(frozen=True)
class Start:
    """A name for some weights, and their digest; both are empty for a random initialisation."""

    name: str = ""
    digest: str = ""

    # Networks in memory, by digest: no file holds them.
    _known: ClassVar[dict[str, dict[str, Tensor]]] = {}

    @classmethod
    def read(cls, source: Any) -> Start:
        """Find weights: a path, a run with kept weights, a module or its state dict."""
        if source is None or source == "":
            return cls()
        if isinstance(source, str | Path):
            return cls(str(source), weights.digest(_stored(Path(source))))
        state = _state(source)
        digest = weights.digest(state)
        cls._known[digest] = state
        return cls(f"memory:{digest}", digest)

    def weights(self) -> dict[str, Tensor] | None:
        """Return the weights; None for a random initialisation."""
        if not self.name:
            return None
        if self.name.startswith("memory:"):
            if self.digest not in self._known:
                raise UserError("the weights to start from are not in this process")
            return self._known[self.digest]
        state = _stored(Path(self.name))
        if weights.digest(state) != self.digest:
            raise UserError(f"the weights of {self.name} have changed since the run was configured")
        return state


def _stored(source: Path) -> dict[str, Tensor]:
    """Read the weights of a file, or of a run, which are compared with their checksum."""
    file = weights.file_of(source)
    return weights.read(file) if file == source else StoredWeights(source, CHECKSUMS)[file.stem]


def _state(source: Any) -> dict[str, Tensor]:
    if isinstance(source, nn.Module):
        source = source.state_dict()
    if isinstance(source, dict) and all(isinstance(value, Tensor) for value in source.values()):
        for name, value in source.items():
            if value.is_meta or value.layout != torch.strided:
                kind = "on the meta device" if value.is_meta else "sparse"
                raise UserError(f"weights to start from are plain tensors, and {name!r} is {kind}")
        # Copies: the network may be trained further before the run begins.
        return {name: value.detach().cpu().clone() for name, value in source.items()}
    if hasattr(source, "weights"):
        weights: dict[str, Tensor] = source.weights()
        return weights
    raise UserError(
        "start from a run that kept its weights, a safetensors file, a module or its state dict, "
        f"not {type(source).__name__}"
    )
