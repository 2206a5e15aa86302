"""Any aggregator of TorchJD (Quinton and Rey, 2024), by its name: `er+torchjd:UPGrad`.

An aggregator A turns the rows of a matrix into one vector. The rows are g and the gradients of the
past tasks:

    gbar = A(J),   J = (g, g_1, ..., g_{t-1})

If an aggregator has a preference vector, `preference=mean` is TorchJD's (1/t, ..., 1/t) and
`preference=gradient` is (1, 0, ..., 0). So `torchjd:DualProj(preference=gradient)` is GEM's
projection with gamma = 0. `torchjd:PCGrad` is t times `pcgrad`. TorchJD is an optional extra:
pip install 'twofold[torchjd]'.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from twofold.errors import UserError, unknown
from twofold.extras import need
from twofold.routines.base import Needs, Routine, Step


class Aggregated(Routine):
    """Follow the aggregate of g and the past tasks' gradients by an aggregator of TorchJD."""

    aggregator: ClassVar[type[torch.nn.Module]]

    needs = Needs.PER_TASK

    def __post_init__(self) -> None:
        try:
            self._made(rows=1, like=torch.zeros(1))
        except (ImportError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{self.name} can't be made: {reason}") from None

    def direct(self, g: Tensor, step: Step) -> Tensor:
        if step.references is None:
            return g
        rows = torch.cat([g[None], step.references])
        direction = None
        if bool(torch.isfinite(rows).all()):
            with _seeded(step, g):
                direction = self._aggregate(rows)
        solved = direction is not None and bool(torch.isfinite(direction).all())
        step.mark(projected=float(solved), unsolved=float(not solved))
        return direction if direction is not None and solved else g

    def _aggregate(self, rows: Tensor) -> Tensor | None:
        try:
            direction: Tensor = self._made(len(rows), rows)(rows)
        except (ValueError, RuntimeError):  # a quadratic program without a solution
            return None
        return direction

    def _made(self, rows: int, like: Tensor) -> torch.nn.Module:
        """Return a new aggregator for this many rows."""
        options = {name: getattr(self, name) for name in self.options()}
        if options.pop("preference", None) == "gradient":
            options["pref_vector"] = torch.eye(rows, 1).to(like)[:, 0]
        return self.aggregator(**options)


@contextmanager
def _seeded(step: Step, g: Tensor) -> Iterator[None]:
    """Seed torch's global generator, from which some aggregators draw, by the step."""
    with torch.random.fork_rng(devices=[g.device] if g.is_cuda else []):
        torch.manual_seed(int(step.random().integers(2**63)))
        yield


@functools.cache
def routine(name: str) -> type[Routine]:
    """An aggregator of TorchJD, such as UPGrad or MGDA, on g and the past tasks' gradients."""
    aggregators = _aggregators()
    if name not in aggregators:
        raise unknown("aggregator of TorchJD", name, sorted(aggregators))
    cls = aggregators[name]
    if issubclass(cls, _torchjd("torchjd").Stateful):
        raise UserError(
            f"torchjd:{name} keeps a state of its own between steps, which a run that is "
            "interrupted could not go on from"
        )
    fields = _options(cls)
    assert fields is not None
    about = f"TorchJD's {name}, of g and the past tasks' gradients."
    namespace = {"name": f"torchjd:{name}", "aggregator": cls, "__doc__": about}
    return dataclasses.make_dataclass(name, fields, bases=(Aggregated,), namespace=namespace)


def _aggregators() -> dict[str, Any]:
    """Return the aggregators that can be written as text, by name."""
    module = _torchjd("torchjd.aggregation")
    classes = {name: getattr(module, name) for name in module.__all__}
    return {
        name: cls
        for name, cls in classes.items()
        if issubclass(cls, module.Aggregator) and not inspect.isabstract(cls)
        if _options(cls) is not None
    }


def _options(aggregator: Any) -> list[Any] | None:
    """Return the parameters that are numbers or words, as fields; None if others are required."""
    fields: list[Any] = []
    hints = typing.get_type_hints(aggregator.__init__)
    _, *parameters = inspect.signature(aggregator.__init__).parameters.values()
    for parameter in parameters:
        name, hint, default = parameter.name, hints[parameter.name], parameter.default
        required = default is parameter.empty
        if name == "pref_vector":
            preference = dataclasses.field(default="mean")
            fields.append(("preference", Literal["mean", "gradient"], preference))
        elif typing.get_origin(hint) is Literal or hint in (int, float, int | None):
            field = dataclasses.field() if required else dataclasses.field(default=default)
            fields.append((name, hint, field))
        elif required:
            return None
    return fields


def _torchjd(module: str) -> Any:
    need("torchjd", "a routine of TorchJD")
    return importlib.import_module(module)


Routine.families["torchjd"] = routine
