"""The routines with anyone's loop and any optimiser of torch.

how = twofold.How("gem(gamma=0.5)+clip(1.0)", optimizer, model)
how.references(lambda k: loss_on_memory(k))
...
loss.backward()
optimizer.step()  # along the direction that the routines make of the gradient
...
how.switch()      # a new task begins
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from twofold.benchmarks import Batch
from twofold.chain import Chain
from twofold.closures import Closure, NoLosses
from twofold.compatibility import check_chain
from twofold.curves import RECORDED
from twofold.errors import UserError
from twofold.method import Method, split_text
from twofold.models.borrowed import BorrowedModel
from twofold.objectives import Objective
from twofold.routines import Needs, Routine, Step
from twofold.routing import Route, Routed, check_route
from twofold.terms import Addition
from twofold.updates import Changes, momentum_of

LOGGED = {name: RECORDED[name] for name in ("projected", "norm_ratio", "unsolved")}

Loss = Callable[[], Tensor]
OldLoss = Callable[[], "Tensor | tuple[Tensor, float]"]


class How:
    """Changes the direction of an optimiser's steps by a chain of routines.

    The optimiser, the parameters and their gradients stay the user's own: hooks of the optimiser
    act before and after each `optimizer.step()`.

    chain: as text, `"gem(gamma=0.5)+clip(1.0)"`, or as values, `Gem(gamma=0.5) + Clip(1.0)`.
    route: with Adam and its relatives, `both` gives the changed gradient to both moments; `first`
        gives it to the first moment only, and the unchanged gradient to the second.
    seed: of routines that draw at random (`pcgrad`).
    iterations: the length of a task, for routines that need it (`cosine`).
    """

    def __init__(
        self,
        chain: str | Method | Routine,
        optimizer: Optimizer,
        model: nn.Module,
        *,
        route: Route = "both",
        seed: int = 0,
        iterations: int | None = None,
    ) -> None:
        self._chain = Chain(_routines(chain))
        _check_optimizer(optimizer, model)
        check_route(route, optimizer)
        check_chain(self._chain.routines, max(map(momentum_of, optimizer.param_groups)))
        _check_ranks(model, self._chain.needs)
        if Needs.CURRENT in self._chain.needs:
            raise UserError("nmc needs labelled examples of the memory, which a How does not have")
        self._route = route
        self._seed, self._iterations = seed, iterations
        self._net = BorrowedModel(model)
        self._g, self._matrix = self._net.vector(), self._net.vector(0)
        self._references: Callable[[int], Tensor] | None = None
        self._old: OldLoss | None = None
        self._memory: Callable[[int], Tensor] | None = None
        self._step: Step | None = None
        self._own: list[Tensor | None] | None = None  # the gradients that routed ones replace
        self._log: dict[str, Tensor | float] = {}
        self.task, self.iteration = 1, 0  # the current task, and how many of its steps are done
        self._chain.start(self._net)
        self._chain.start_task(1)
        self._attach(optimizer)

    def use(self, optimizer: Optimizer) -> None:
        """Go on with this optimiser, for loops that create a new one for each task."""
        if optimizer is not self._optimizer:
            _check_optimizer(optimizer, self._net.module)
            check_route(self._route, optimizer)
            self.remove()
            self._attach(optimizer)

    def _attach(self, optimizer: Optimizer) -> None:
        self._optimizer, self._changes = optimizer, Changes(optimizer)
        self._handles = [
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
        ]

    def references(self, loss: Callable[[int], Tensor]) -> None:
        """Set the loss on the memory of each past task: k is 0 for the first task.

        It is called at every step of a later task, with batch norm frozen.
        """
        self._references = loss

    def old(self, loss: OldLoss) -> None:
        """Set the loss on old data, such as that of a replay batch.

        It is called at every step of a later task, with batch norm frozen. It may also return a
        loss of which the graph still exists (`loss.backward(retain_graph=True)`); with a pair
        (loss, weight), the gradient is divided by the weight, which the loss contains.
        """
        self._old = loss

    def memory(self, inputs: Callable[[int], Tensor]) -> None:
        """Set a function that returns the inputs of n examples of the memory (`lpr`)."""
        self._memory = inputs

    def switch(self) -> None:
        """Begin a new task."""
        _check_optimizer(self._optimizer, self._net.module)  # what is trained may have changed
        if [*map(id, self._net.module.parameters())] != [*map(id, self._net.parameters)]:
            raise UserError("the model has different parameters than before: make a new How")
        self.task, self.iteration = self.task + 1, 0
        self._chain.start_task(self.task)

    @property
    def log(self) -> dict[str, float]:
        """What the last step recorded: `projected`, `norm_ratio`, `unsolved` and more."""
        return {name: float(value) for name, value in self.recorded.items()}

    @property
    def recorded(self) -> dict[str, Tensor | float]:
        """The same without a wait for a GPU: tensors stay where they are."""
        return {**LOGGED, **self._log}

    @property
    def evaluates_others(self) -> bool:
        """Whether different weights are evaluated than those that are trained (`ema`)."""
        return self._chain.evaluates_others

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """Put the weights that are to be evaluated in place for a while (`ema`)."""
        with self._chain.evaluated(self._net):
            yield

    def state_dict(self) -> dict[str, Any]:
        """Return what decides how the steps continue; it belongs beside the optimiser's."""
        return {"task": self.task, "iteration": self.iteration, "routines": self._chain.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with what `state_dict` returned."""
        self.task, self.iteration = state["task"], state["iteration"]
        self._chain.restore(state["routines"])

    def remove(self) -> None:
        """Leave the optimiser as it was."""
        for handle in self._handles:
            handle.remove()

    def _before(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Change the gradients, learning rates and momenta of the step that follows."""
        self._restore()  # in case that the last step has failed
        if getattr(optimizer, "found_inf", None) is not None:
            raise UserError("a fused optimiser hides the scale of its gradients: use fused=False")
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        repetition = Closure(closure, self._net) if closure is not None else None
        gradients = [p.grad for p in self._net.parameters]
        if all(gradient is None for gradient in gradients):
            return None  # a step without gradients is none
        if any(gradient is not None and gradient.is_sparse for gradient in gradients):
            raise UserError("routines need dense gradients: use sparse=False in embeddings")
        step = self._made_step(self._net.gathered(gradients, self._g), repetition)
        direction = self._chain.direct(step)
        if direction is not step.g:
            self._put(direction, step.g)
        self._changes.make(
            lambda lr: self._chain.step_size(lr, step),
            lambda momentum: self._chain.momentum(momentum, step),
        )
        self._step = step
        return None if repetition is None else ((optimizer, repetition.answer), {})

    def _made_step(self, g: Tensor, again: Closure | None) -> Step:
        """Return the step as routines see it, with all that they ask for."""
        needs, place = self._chain.needs, (self.task, self.iteration + 1)
        step = Step(*place, self._net, g, seed=self._seed, iterations=self._iterations)
        step.losses = NoLosses() if again is None else {"total": again.loss}
        if Needs.ELSEWHERE in needs:
            if again is None:
                raise self._lacking(
                    Needs.ELSEWHERE, "the loss at other weights", "optimizer.step(closure)"
                )
            step.gradient_at = again.gradient_at
        if self.task == 1:
            return step
        if Needs.PER_TASK in needs:
            step.references = self._reference_gradients(finite=g)
        if needs & (Needs.OLD | Needs.FROZEN_OLD):
            step.old, step.old_loss, step.old_weight = self._old_gradient()
        if Needs.MEMORY in needs:
            if self._memory is None:
                raise self._lacking(
                    Needs.MEMORY, "examples of the memory", "how.memory(lambda n: x)"
                )
            step.memory = self._remembered
        return step

    def _reference_gradients(self, finite: Tensor) -> Tensor:
        if self._references is None:
            raise self._lacking(
                Needs.PER_TASK, "a gradient per past task", "how.references(lambda k: loss)"
            )
        past = self.task - 1
        if len(self._matrix) < past:
            self._matrix = self._net.vector(past)
        for k, row in enumerate(self._matrix[:past]):
            try:
                loss, _ = self._gradient(self._references, (k,), row, affine=False)
            except (LookupError, _NoLossError) as error:
                raise UserError(
                    f"references({k}) has no loss ({error}): does past task {k} have a memory?"
                ) from None
            if loss.isnan() and finite.isfinite().all():
                raise UserError(f"references({k}) is not a number: is its memory empty?")
        return self._matrix[:past]

    def _old_gradient(self) -> tuple[Tensor, Tensor, float | None]:
        """Return the gradient of the loss on old data, the loss, and its weight if it is known."""
        need = self._chain.needs & (Needs.OLD | Needs.FROZEN_OLD)
        if self._old is None:
            raise self._lacking(need, "the gradient of old data", "how.old(lambda: loss)")
        gradient = self._net.vector()
        try:
            loss, weight = self._gradient(self._old, (), gradient, affine=True)
        except _NoLossError as error:
            raise UserError(f"old() has no loss ({error}): is the memory empty?") from None
        return gradient, loss, weight

    def _gradient(
        self, loss: Callable[..., Any], args: tuple[int, ...], into: Tensor, affine: bool
    ) -> tuple[Tensor, float | None]:
        """Write the gradient of a loss into a vector, and return the loss and its weight."""
        with torch.enable_grad(), self._net.frozen_batch_norm(affine):
            returned = loss(*args)
            value, weight = returned if isinstance(returned, tuple) else (returned, None)
            if not isinstance(value, Tensor) or not value.requires_grad:
                raise _NoLossError(f"it is {_described(value)}")
            trained = [p for p in self._net.parameters if p.requires_grad]
            try:
                parts = torch.autograd.grad(value, trained, allow_unused=True)
            except RuntimeError as error:
                if "second time" not in str(error):
                    raise
                raise UserError(
                    "the graph of a loss is gone: call loss.backward(retain_graph=True), or "
                    "compute the loss in the function"
                ) from None
            gradients = dict(zip(trained, parts, strict=True))
        self._net.gathered([gradients.get(p) for p in self._net.parameters], into)
        if weight is not None:
            into /= weight
            value = value / weight
        return value.detach(), weight

    def _remembered(self, count: int) -> Batch:
        assert self._memory is not None
        inputs = self._memory(count)
        if not isinstance(inputs, Tensor) or not len(inputs):
            raise UserError(f"memory({count}) must return inputs, not {_described(inputs)}")
        no_labels = inputs.new_empty(0, dtype=torch.long)  # labels and rows are the user's own
        return Batch(inputs, no_labels, no_labels)

    def _put(self, direction: Tensor, g: Tensor) -> None:
        """Write the direction into the gradients where they are."""
        net = self._net
        gradients = [p.grad for p in net.parameters]
        for p, view in zip(net.parameters, net.views(direction), strict=True):
            if p.grad is not None:
                p.grad.copy_(view)
            elif p.requires_grad and view.any():  # only a reference has a gradient there
                p.grad = view.to(p.dtype, copy=True)
        if self._route == "first":
            self._own = gradients
            for p, second in zip(net.parameters, net.views(g), strict=True):
                if p.grad is not None:
                    p.grad = Routed.of(p.grad, second.to(p.dtype))

    def _restore(self) -> None:
        self._changes.undo()
        if self._own is not None:
            for p, gradient in zip(self._net.parameters, self._own, strict=True):
                p.grad = gradient
            self._own = None

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Set the optimiser's own values again, and let the routines see the new weights."""
        self._restore()
        if self._step is None:
            return
        step, self._step = self._step, None
        self.iteration += 1
        self._chain.after_step(step)
        self._log = step.log

    def _lacking(self, need: Needs, what: str, call: str) -> UserError:
        name = next(each.name for each in self._chain.routines if each.asks() & need)
        return UserError(f"{name} needs {what}: call {call}")


class _NoLossError(Exception):
    """A function has returned no loss."""


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return "a tensor without a gradient" if value.numel() else "an empty tensor"
    return "None" if value is None else f"a {type(value).__name__}"


def _routines(chain: str | Method | Routine) -> list[Routine]:
    """Return the routines of a chain; an objective in it is a mistake."""
    if isinstance(chain, str):
        pieces = split_text(chain, "chain", "write gem(gamma=0.5)+clip(1.0)")
        for piece in pieces:
            for kind in (Objective, Addition):
                if kind.knows(piece.name):
                    raise _not_a_routine(chain, kind.kind, piece.name)
        pairs = [(Routine.find(piece.name), piece) for piece in pieces]
        return [cls.make(piece.options(cls)) for cls, piece in pairs]
    method = Method.of(chain)
    objective, routines = method.make()
    if not isinstance(chain, Routine) and objective.name != "finetune":  # which `+` implies
        raise _not_a_routine(str(chain), "objective", objective.name)
    for term in objective.terms:
        raise _not_a_routine(str(chain), "term", term.name)
    return routines


def _not_a_routine(chain: str, kind: str, name: str) -> UserError:
    article = "an" if kind == "objective" else "a"
    return UserError(
        f"chain {chain!r}: {name!r} is {article} {kind}, and the loss is yours: leave it out"
    )


def _check_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Raise UserError unless the optimiser trains all of the model that is trained."""
    if not isinstance(optimizer, Optimizer):
        raise UserError(f"How takes an optimiser of torch, not {_described(optimizer)}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UserError("How can't change LBFGS: it evaluates the loss several times per step")
    names = {p: name for name, p in model.named_parameters()}
    owned = {p for group in optimizer.param_groups for p in group["params"]}
    missing = [name for p, name in names.items() if p not in owned and p.requires_grad]
    if missing:
        raise UserError(
            f"the optimiser owns only a part of the model: it lacks {missing[0]!r}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; freeze what is not trained (requires_grad=False)"
        )
    if owned - names.keys():
        raise UserError("the optimiser owns parameters that are not in the model")


def _check_ranks(model: nn.Module, needs: Needs) -> None:
    if isinstance(model, nn.parallel.DistributedDataParallel) and needs & Needs.REPLAY:
        raise UserError(
            "in DistributedDataParallel each process would have references of its own: use a chain "
            "without references (clip, warmup, ema)"
        )
