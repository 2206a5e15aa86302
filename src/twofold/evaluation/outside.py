"""Evaluation of a model that somebody else trains: fast where that is safe, and without a trace."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from twofold.errors import UserError
from twofold.evaluation.predictors import Confirmed, Plain, Predictor, chunk_size, confirmed
from twofold.evaluation.sets import Examples, Measured, Pair, TestSet
from twofold.evaluation.untouched import (
    kept_gradients,
    kept_parts,
    kept_random_states,
    kept_weights,
    same_autocast,
    seed_all,
)
from twofold.models import View
from twofold.models.view import have_hooks, parts_of

REBUILDS = 3  # of the predictor in a task; a model that is a new object each time is used as it is

Value = Tensor | float


def bare(model: Any) -> Any:
    """Return the module that a wrapper of torch.compile or of data parallelism holds."""
    while True:
        if isinstance(model, DistributedDataParallel | DataParallel):
            model = model.module
        elif isinstance(model, nn.Module) and "_orig_mod" in model._modules:
            model = model._orig_mod
        else:
            return model


class Contents(NamedTuple):
    """What is in a module, found once per evaluation: to look for it takes as long as a layer."""

    parts: list[nn.Module]
    tensors: list[Tensor]  # parameters, then buffers
    shapes: list[torch.Size]
    hooked: bool
    device: torch.device  # of the first tensor
    autocast: bool

    @classmethod
    def of(cls, module: nn.Module) -> Contents:
        parts = parts_of(module)
        tensors: list[Tensor] = []
        tensors += [p for part in parts for p in part._parameters.values() if p is not None]
        tensors += [b for part in parts for b in part._buffers.values() if b is not None]
        shapes = [tensor.shape for tensor in tensors]
        device = tensors[0].device if tensors else torch.device("cpu")
        autocast = torch.is_autocast_enabled(device.type)
        return cls(parts, tensors, shapes, have_hooks(parts), device, autocast)

    def same(self, other: Contents) -> bool:
        """Tell whether both are the same objects, with the same shapes and as few hooks."""
        return (
            _same(self.parts, other.parts)
            and _same(self.tensors, other.tensors)
            and (self.shapes, self.hooked) == (other.shapes, other.hooked)
        )


@dataclass
class _Known:
    """A module and its contents as they were, and the predictor that was made for it."""

    view: View
    contents: Contents | None  # None if the predictor is to be made anew
    shapes: dict[str, torch.Size]  # of its parameters
    predict: Predictor
    device: torch.device
    rebuilt: int = 0
    tried: bool = False  # whether it was found out if the module changes its inputs


class OutsideEvaluator:
    """Evaluates models on test sets; `role` tells the evaluated model from the trained one.

    sign: what values of functions are multiplied by, 1 or -1.
    """

    def __init__(self, sets: Sequence[TestSet], size: int, seed: int, sign: float) -> None:
        self._sets, self._size, self._seed, self._sign = sets, size, seed, sign
        self._known: dict[str, _Known] = {}
        self._drawn: dict[int, Pair] = {}
        self._most = 1000  # examples at once, less once the memory of a device was too small

    def start_task(self) -> None:
        """Make predictors anew: a model may use a different head from here on."""
        for known in self._known.values():
            known.contents, known.rebuilt = None, -1

    def subset(self, role: str, model: Any, tasks: int, place: int) -> list[Value]:
        """Return the values on the first test sets: accuracies in percent of drawn examples.

        place: the number of the iteration, which seeds the functions.
        """
        with self._untouched(model) as (module, contents):
            predict = self._predictor(role, module, contents, self._sets[:tasks])
            with self._mode(role, predict) as predict:
                return [self._value(role, module, predict, k, place) for k in range(tasks)]

    def whole(self, role: str, model: Any, latest: Sequence[Value]) -> list[float]:
        """Return the values on whole test sets.

        latest: what `subset` returned for the same model. Functions are not called again.
        """
        values = list(latest)
        with self._untouched(model) as (module, contents):
            predict = self._predictor(role, module, contents, self._sets[: len(values)])
            for k, test in enumerate(self._sets[: len(values)]):
                if isinstance(test, Examples) and predict and len(test.rows) > self._size:
                    moved = (part.to(self._known[role].device) for part in test.parts())
                    parts = [(self._predicted(role, predict, test, x), y) for x, y in moved]
                    predicted, labels = (torch.cat(each) for each in zip(*parts, strict=True))
                    values[k] = _accuracy(predicted, labels)
        return [float(value) for value in values]

    @contextmanager
    def _untouched(self, model: Any) -> Iterator[tuple[Any, Contents | None]]:
        module = bare(model)
        contents = Contents.of(module) if isinstance(module, nn.Module) else None
        parts = contents.parts if contents else ()
        autocast = same_autocast(contents.device) if contents and contents.autocast else None
        with kept_random_states(), kept_parts(parts), autocast or nullcontext():
            yield module, contents

    @contextmanager
    def _mode(self, role: str, predict: Predictor | None) -> Iterator[Predictor | None]:
        """Put the module itself in evaluation mode once for all test sets."""
        if isinstance(predict, Plain):
            with self._known[role].view.evaluating():
                yield predict.predicted
        else:
            yield predict

    def _value(
        self, role: str, module: Any, predict: Predictor | None, k: int, place: int
    ) -> Value:
        test = self._sets[k]
        if isinstance(test, Measured):
            seed_all(zlib.crc32(f"{self._seed} {k} {place}".encode()))
            return self._sign * _measured(test, module)
        assert predict is not None  # there is a test set of examples
        if k not in self._drawn:
            self._drawn[k] = test.drawn(self._size, self._seed, k)
        drawn, device = self._drawn[k], self._known[role].device
        if drawn.x.device != device:
            drawn = self._drawn[k] = drawn.to(device)
        return _accuracy(self._predicted(role, predict, test, drawn.x), drawn.y)

    def _predicted(self, role: str, predict: Predictor, test: Examples, x: Tensor) -> Tensor:
        while True:
            try:
                return self._tried(self._known[role], predict, x)
            except torch.OutOfMemoryError:
                if self._most == 1:
                    raise
                self._most //= 2
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                self._known.clear()  # the next model may be a different one, which fits
                if isinstance(error, UserError):
                    raise
                message = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise UserError(
                    f"the model can't be evaluated on test set {test.name!r}, with inputs of shape "
                    f"{list(x.shape)}: {message}"
                ) from error

    def _tried(self, known: _Known, predict: Predictor, x: Tensor) -> Tensor:
        """Predict on a copy the first time, since a module may change its inputs in place."""
        view = known.view
        if not known.tried:
            with torch.inference_mode(False):
                copied = x.clone()
            version = copied._version
            predictions = self._split(predict, copied)
            known.tried, view.changes_inputs = True, copied._version != version
            if not view.changes_inputs:
                return predictions
        if view.changes_inputs:  # which a faster copy would do as well
            predict = Plain(view, chunk_size(view, x))
        return self._split(predict, x)

    def _split(self, predict: Predictor, x: Tensor) -> Tensor:
        if len(x) <= self._most:
            return predict(x, lambda scores: scores)
        return torch.cat([predict(part, lambda scores: scores) for part in x.split(self._most)])

    def _predictor(
        self, role: str, module: Any, contents: Contents | None, sets: Sequence[TestSet]
    ) -> Predictor | None:
        """Return the predictor of a module, made anew if its contents are new ones.

        It is None if there are only functions.
        """
        test = next((test for test in sets if isinstance(test, Examples)), None)
        if test is None:
            return None
        if contents is None:
            raise UserError(
                f"test set {test.name!r} needs a torch.nn.Module, not {type(module).__name__}: "
                "give a function of the model instead"
            )
        device, known = contents.device, self._known.get(role)
        if known is None or known.contents is None or not known.contents.same(contents):
            shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
            if known is not None:
                _check_size(known.shapes, shapes)
            rebuilt = 0 if known is None else known.rebuilt + 1
            view = _Scoring(module)
            sample = test.few.x.to(device)
            plain = rebuilt > REBUILDS
            predict = Plain(view, chunk_size(view, sample)) if plain else confirmed(view, sample)
            known = self._known[role] = _Known(view, contents, shapes, predict, device, rebuilt)
        known.device = device
        if isinstance(known.predict, Confirmed):
            known.predict.current = False
        if contents.autocast:  # the copy computes in fp32
            return Plain(known.view, chunk_size(known.view, test.few.x))
        return known.predict


def _measured(test: Measured, model: Any) -> float:
    """Call a function in evaluation mode; it may compute gradients, which are not kept."""
    if not isinstance(model, nn.Module):
        return test(model)
    changer = f"the measure {test.name!r}"
    with View(model).evaluating(), kept_gradients(model), kept_weights(model, changer):
        return test(model)


class _Scoring(View):
    """A view of a module that must return scores in a row per example."""

    def __call__(self, x: Tensor, tasks: Tensor | None = None) -> Tensor:
        scores: Any = super().__call__(x, tasks)
        if isinstance(scores, Tensor) and scores.dim() == 2:
            return scores
        is_tensor = isinstance(scores, Tensor)
        form = f"shape {list(scores.shape)}" if is_tensor else f"a {type(scores).__name__}"
        raise UserError(
            f"the model must return a row of scores per example, not {form}: for other outputs, "
            "give a function of the model instead of a test set"
        )


def _check_size(then: dict[str, torch.Size], now: dict[str, torch.Size]) -> None:
    if then == now:
        return
    different = (name for name in (*then, *now) if then.get(name) != now.get(name))
    name = next(different)
    old, new = (list(shapes[name]) if name in shapes else "none" for shapes in (then, now))
    raise UserError(
        f"the model changed its size: {name!r} was of shape {old} and is {new} now. For a model "
        "that grows, give functions of the model instead of test sets"
    )


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _accuracy(predicted: Tensor, labels: Tensor) -> Tensor:
    return (predicted == labels).float().mean() * 100


def stacked(values: Sequence[Value]) -> Tensor:
    """Return values as one tensor, on the device of the first that has one."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) == len(values):
        return torch.stack(tensors)
    device = tensors[0].device if tensors else torch.device("cpu")
    return torch.stack([torch.as_tensor(value, device=device).float() for value in values])


def rank() -> int:
    """Return the rank of this process in distributed training; 0 elsewhere."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    distributed_run = int(os.environ.get("WORLD_SIZE", "1")) > 1  # set by torchrun
    return int(os.environ.get("RANK", "0")) if distributed_run else 0
