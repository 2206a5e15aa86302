"""Optimisers by name: `sgd`, `adam(lr=0.001)`, `nesterov`, any class of torch.optim.

Options are the numbers and truth values that the class takes; a pair such as `betas` is written as
`beta1` and `beta2`. `route` is both (default) or first: see routing.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.optim import Optimizer

from twofold.component import plain
from twofold.errors import UserError, unknown
from twofold.method import split_text
from twofold.options import convert
from twofold.routing import Route, check_route

DEFAULT = "sgd"
NESTEROV = "nesterov"
EXAMPLE = "write adam(lr=0.001)"
SUMMING = (torch.optim.SGD, torch.optim.RMSprop)  # their velocity adds up gradients
MOMENTA = ("momentum", "beta1")  # what `momentum` means in a class, by the name of its option
# How a step is computed, not what it is; and the opposite of learning.
APART = ("foreach", "fused", "capturable", "differentiable", "maximize")
REFUSED = {
    "lbfgs": "evaluates the loss several times per step",
    "sparseadam": "takes only sparse gradients",
}


@dataclass(frozen=True)
class Choice:
    """An optimiser and the options that were given, as its text says."""

    name: str  # in lower case
    given: dict[str, Any]

    @property
    def cls(self) -> type[Optimizer]:
        return _classes()["sgd" if self.name == NESTEROV else self.name]

    @property
    def route(self) -> Route:
        route: Route = self.given.get("route", "both")
        return route

    @property
    def plain_sgd(self) -> bool:
        """Whether this is SGD with momentum and nothing else: the loop's own update."""
        return self.name == DEFAULT and not set(self.given) - {"lr", "momentum"}

    @property
    def momentum_name(self) -> str | None:
        """The name of the option that is this optimiser's momentum, if it has one."""
        return next((name for name in MOMENTA if name in _options(self.cls)), None)

    def summed(self, momentum: float) -> float:
        """Return the momentum if the velocity adds up gradients; 0 if it averages them."""
        return momentum if issubclass(self.cls, SUMMING) else 0.0

    def usual(self) -> dict[str, float]:
        """Return the learning rate and momentum that hold unless others are given.

        They are torch's, except for SGD: its learning rates are the benchmark's.
        """
        chosen = {name: value for name, value in self.given.items() if name == "lr"}
        if self.momentum_name in self.given:
            chosen["momentum"] = self.given[self.momentum_name]
        if self.cls is torch.optim.SGD:
            return chosen
        known = _options(self.cls)
        momentum = known[self.momentum_name] if self.momentum_name else 0.0
        return {"lr": float(known["lr"]), "momentum": float(momentum), **chosen}

    def base(self, lr: float, momentum: float) -> tuple[float, float]:
        """Return learning rate and momentum: those of the text, or else these."""
        return self.given.get("lr", lr), self.given.get(self.momentum_name or "", momentum)

    def settled(self) -> Choice:
        """Return the choice without learning rate and momentum, which are options of a run."""
        excluded = ("lr", self.momentum_name)
        return Choice(self.name, {k: v for k, v in self.given.items() if k not in excluded})

    def __str__(self) -> str:
        options = [f"{key}={plain(value)}" for key, value in sorted(self.given.items())]
        return f"{self.name}({','.join(options)})" if options else self.name

    def check_momentum(self, momentum: float) -> None:
        """Raise UserError for a momentum that the optimiser can't use."""
        if momentum and self.momentum_name is None:
            raise UserError(f"{self.name} has no momentum: leave it out")
        if self.name == NESTEROV and not momentum:
            raise UserError("nesterov needs a momentum above 0")

    def make(
        self,
        parameters: list[torch.nn.Parameter],
        lr: float,
        momentum: float,
        cls: type[Optimizer] | None = None,
    ) -> Optimizer:
        """Return the optimiser; torch checks the range of its options.

        cls: a class to make instead of the named one.
        """
        values = _options(self.cls) | self.given | {"lr": lr}
        values.pop("route", None)
        if self.momentum_name is not None:
            values[self.momentum_name] = momentum
        if self.name == NESTEROV:
            values["nesterov"] = True
        try:
            optimizer = (cls or self.cls)(parameters, **_folded(self.cls, values))
        except (ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"optimizer {str(self)!r}: {reason}") from None
        check_route(self.route, optimizer)
        return optimizer


@cache
def read(text: str) -> Choice:
    """Return the optimiser that a text names, with its options checked."""
    pieces = split_text(text, "optimizer", EXAMPLE)
    if len(pieces) > 1:
        raise UserError(f"optimizer {text!r}: a run has one optimiser; {EXAMPLE}")
    piece, name = pieces[0], pieces[0].name.lower()
    if name in REFUSED:
        raise UserError(f"optimizer {piece.name!r} {REFUSED[name]}, which no run can do")
    if name not in (*_classes(), NESTEROV):
        raise unknown("optimizer", piece.name, [*_classes(), NESTEROV])
    if piece.positional:
        raise UserError(f"optimizer {text!r}: name its options; {EXAMPLE}")
    choice = Choice(name, {})
    known = _options(choice.cls) | {"route": "both"}
    for key, value in piece.named.items():
        if key not in known or (name == NESTEROV and key == NESTEROV):
            raise unknown(f"option of {name}", key, known)
        hint = Route if key == "route" else bool if isinstance(known[key], bool) else float
        converted = convert(value, hint, f"{name}'s {key}", text=True)
        whole = isinstance(known[key], int) and not isinstance(known[key], bool)
        if whole and converted == int(converted):
            converted = int(converted)
        if converted != known[key] or key in ("lr", choice.momentum_name):
            choice.given[key] = converted
    if choice.given.pop(NESTEROV, False) and choice.cls is torch.optim.SGD:
        choice = Choice(NESTEROV, choice.given)
    if choice.given:  # torch accepts its own defaults
        _try(choice)
    return choice


def _try(choice: Choice) -> None:
    """Make the optimiser once, so that torch and the route check their options.

    Torch's own `add_param_group` imports its compiler, which takes seconds.
    """

    def add_param_group(self: Optimizer, group: dict[str, Any]) -> None:
        self.param_groups.append({**self.defaults, **group})

    cls = type(choice.cls.__name__, (choice.cls,), {"add_param_group": add_param_group})
    values = {"lr": 0.1, "momentum": 0.9} | choice.usual()
    weight = torch.nn.Parameter(torch.zeros(1, 1))
    choice.make([weight], values["lr"], values["momentum"], cls)


@cache
def _classes() -> dict[str, type[Optimizer]]:
    """Return the optimisers of torch by name in lower case."""
    return {
        name.lower(): cls
        for name, cls in vars(torch.optim).items()
        if isinstance(cls, type) and issubclass(cls, Optimizer) and cls is not Optimizer
        if name.lower() not in REFUSED
    }


def _options(cls: type[Optimizer]) -> dict[str, Any]:
    """Return the options that can be written as text, with their defaults; pairs unfolded."""
    options: dict[str, Any] = {}
    for name, parameter in _parameters(cls.__init__).items():
        default = parameter.default
        if name in APART:
            continue
        if isinstance(default, bool | int | float):
            options[name] = default
        elif isinstance(default, tuple) and all(isinstance(v, int | float) for v in default):
            options |= {_part(name, k): value for k, value in enumerate(default)}
    return options


@cache  # signatures take long, and every configuration asks
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _part(name: str, k: int) -> str:
    return f"{name.removesuffix('s')}{k + 1}"  # betas: beta1 and beta2


def _folded(cls: type[Optimizer], values: dict[str, Any]) -> dict[str, Any]:
    """Return options as the class takes them."""
    folded: dict[str, Any] = {}
    for name, parameter in _parameters(cls.__init__).items():
        if name in values:
            folded[name] = values[name]
        elif isinstance(parameter.default, tuple) and _part(name, 0) in values:
            count = range(len(parameter.default))
            folded[name] = tuple(values[_part(name, k)] for k in count)
    return folded
