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

from torch import Tensor, nn
from torch.optim import Optimizer

from twofold.chain import Chain
from twofold.closures import Closure, NoLosses, no_gradients
from twofold.compatibility import check_chain
from twofold.curves import RECORDED
from twofold.errors import UserError
from twofold.method import Method, split_text
from twofold.models.borrowed import BorrowedModel
from twofold.objectives import Objective
from twofold.optimizers import REFUSED, SUMMING
from twofold.options import options
from twofold.past import OldLoss, Past, described
from twofold.routines import Needs, Routine, Step
from twofold.routing import Route, Routed, check_route
from twofold.settings import Settings
from twofold.terms import Addition
from twofold.updates import Changes, momentum_of

LOGGED = {name: RECORDED[name] for name in ("projected", "norm_ratio", "unsolved")}


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
        _check_free(optimizer)
        check_route(route, optimizer)
        check_chain(self._chain.routines, max(map(momentum_of, optimizer.param_groups)))
        _check_ranks(model, self._chain.needs)
        if Needs.CURRENT in self._chain.needs:
            raise UserError("nmc needs labelled examples of the memory, which a How does not have")
        self._route = route
        known = options(Settings)
        self._seed = known["seed"].value(seed)
        self._iterations = known["iterations"].value(iterations)
        self._net = BorrowedModel(model)
        self._g, self._past = self._net.vector(), Past(self._net)
        self._names = [routine.name for routine in self._chain.routines]
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
            _check_free(optimizer)
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
        self._past.references = _function("references", loss)

    def old(self, loss: OldLoss) -> None:
        """Set the loss on old data, such as that of a replay batch.

        It is called at every step of a later task, with batch norm frozen. It may also return a
        loss of which the graph still exists (`loss.backward(retain_graph=True)`); with a pair
        (loss, weight), the gradient is divided by the weight, which the loss contains.
        """
        self._past.old = _function("old", loss)

    def memory(self, inputs: Callable[[int], Tensor]) -> None:
        """Set a function that returns the inputs of n examples of the memory (`lpr`)."""
        self._past.memory = _function("memory", inputs)

    def switch(self) -> None:
        """Begin a new task."""
        _check_optimizer(self._optimizer, self._net.module)  # what is trained may have changed
        if [*map(id, self._net.module.parameters())] != [*map(id, self._net.parameters)]:
            raise UserError("the model has different parameters than before: make a new How")
        self.task, self.iteration = self.task + 1, 0
        self._chain.start_task(self.task)

    @property
    def log(self) -> dict[str, float]:
        """What the last step recorded, such as `projected`, `norm_ratio` and `unsolved`."""
        return {name: float(value) for name, value in self.recorded.items()}

    @property
    def recorded(self) -> dict[str, Tensor | float]:
        """The same without a wait for a GPU, since tensors stay where they are."""
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
        place = {"task": self.task, "iteration": self.iteration}
        return {**place, "chain": self._names, "routines": self._chain.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with what `state_dict` returned."""
        if state.get("chain") != self._names:
            raise UserError("the state belongs to a different chain: start the task again")
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
            if repetition is not None:
                raise no_gradients()
            return None  # a step without gradients is none
        if any(gradient is not None and gradient.is_sparse for gradient in gradients):
            raise UserError("routines need dense gradients: use sparse=False in embeddings")
        step = self._made_step(self._net.gathered(gradients, self._g), repetition)
        direction = self._chain.direct(step)
        if direction is not step.g:
            self._put(direction, step.g)

        def momentum(own: float) -> float:
            """Return the momentum of a group, and tell routines the group's own for its lr."""
            step.momentum = own if isinstance(optimizer, SUMMING) else 0.0
            return self._chain.momentum(own, step)

        self._changes.make(lambda lr: self._chain.step_size(lr, step), momentum)
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
        past, old = self._past, Needs.OLD | Needs.FROZEN_OLD
        if Needs.PER_TASK in needs:
            if past.references is None:
                call = "how.references(lambda k: loss)"
                raise self._lacking(Needs.PER_TASK, "a gradient per past task", call)
            step.references = past.reference_gradients(self.task - 1, g)
        if needs & old:
            if past.old is None:
                raise self._lacking(old, "the gradient of old data", "how.old(lambda: loss)")
            step.old, step.old_loss, step.old_weight = past.old_gradient(g)
        if Needs.MEMORY in needs:
            if past.memory is None:
                call = "how.memory(lambda n: x)"
                raise self._lacking(Needs.MEMORY, "examples of the memory", call)
            step.memory = past.examples
        return step

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


def _function(name: str, given: Any) -> Any:
    if not callable(given) or isinstance(given, nn.Module):
        raise UserError(f"how.{name} takes a function, not {described(given)}")
    return given


def _check_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Raise UserError unless the optimiser trains all of the model that is trained."""
    if not isinstance(optimizer, Optimizer):
        raise UserError(f"How takes an optimiser of torch, not {described(optimizer)}")
    if not isinstance(model, nn.Module):
        raise UserError(f"How takes a model of torch, not {described(model)}")
    name = type(optimizer).__name__
    if name.lower() in REFUSED:
        raise UserError(f"How can't change {name}: it {REFUSED[name.lower()]}")
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


def _check_free(optimizer: Optimizer) -> None:
    hooks = optimizer._optimizer_step_pre_hooks.values()
    if any(isinstance(getattr(hook, "__self__", None), How) for hook in hooks):
        raise UserError(
            "the optimiser has a How already: call its remove(), or write one chain for both"
        )


def _check_ranks(model: nn.Module, needs: Needs) -> None:
    if isinstance(model, nn.parallel.DistributedDataParallel) and needs & Needs.REPLAY:
        raise UserError(
            "in DistributedDataParallel each process would have references of its own: use a chain "
            "without references (clip, warmup, ema)"
        )
