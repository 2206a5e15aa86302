"""The training loop: one iteration in the five steps of the paper's algorithms 2 and 3."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twofold import optimizers
from twofold.benchmarks import Benchmark
from twofold.benchmarks.arrangement import arranged
from twofold.benchmarks.base import Rows
from twofold.benchmarks.scenarios import in_scenario, own_outputs
from twofold.boundaries import check_boundaries
from twofold.chain import Chain
from twofold.compatibility import check_method, check_outputs, check_quota
from twofold.course import Course
from twofold.curves import Curves, rows_of
from twofold.diagnosis import Diagnosis
from twofold.errors import UserError
from twofold.evaluation.continual import Evaluator
from twofold.evaluation.minima import Minima
from twofold.evaluation.predictors import Scores
from twofold.gradients import factored_gradient, frozen_gradient, objective_gradient, old_weight
from twofold.memories.reading import everything, memory_of
from twofold.models import FlatModel
from twofold.models.checks import built
from twofold.models.flat import load_weights
from twofold.models.state import alike
from twofold.objectives import Draw, Objective
from twofold.objectives.base import Pass
from twofold.results import Progress, Result
from twofold.routines import Needs, Routine, Step
from twofold.sampling import Sampler
from twofold.settings import Settings
from twofold.storing import Storing
from twofold.streams import seeded, stream
from twofold.updates import Momentum, TorchUpdate, Update

LATER: dict[str, type] = {  # the parts of a state that grow with a run, and their types
    **dict.fromkeys(("memory", "objective", "curves", "seconds", "evaluator"), dict),
    **dict.fromkeys(("task_ends", "raw_task_ends"), list),
}
Weights = dict[str, Tensor]  # a network's state, by name


class Training:
    """One run: create it, then call `run`.

    on_progress: called after every evaluation.
    on_task_end: called with the number of the task that has ended, the evaluated weights and, if
        they are different, the trained weights.
    start_from: weights to start from instead of a random initialisation.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        objective: Objective,
        routines: list[Routine],
        settings: Settings,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_task_end: Callable[[int, Weights, Weights | None], None] | None = None,
        start_from: Weights | None = None,
    ) -> None:
        benchmark = in_scenario(arranged(benchmark, settings), settings.scenario)
        self.benchmark, self.objective, self.routines = benchmark, objective, routines
        self.settings, self.on_progress, self.on_task_end = settings, on_progress, on_task_end
        self.chain = Chain(routines)
        self.needs = self.chain.needs
        choice = optimizers.read(settings.optimizer)
        self.lr, self.momentum = choice.base(settings.lr, settings.momentum)
        self._summed = choice.summed(self.momentum)
        self.memory = everything() if objective.stores_all else memory_of(settings)
        self.course = Course(benchmark, objective, self.memory, settings)
        self.tasks = self.course.tasks
        self._check()
        device = benchmark.train.labels.device
        self.net = initialised(benchmark, settings.seed, device, start_from)
        outputs = check_outputs(self.net, benchmark, self.tasks)
        self.net.own = own_outputs(benchmark, outputs) if benchmark.scenario == "task" else None
        self.update: Update = (
            Momentum(self.net)
            if choice.plain_sgd
            else TorchUpdate(self.net, choice, self.lr, self.momentum)
        )
        past = len(self.tasks) - 1 if Needs.PER_TASK in self.needs else 0
        self._references = self.net.values.new_empty(past, len(self.net.values))  # G, reused
        self.storing = Storing(self.memory, objective, benchmark, self.net, self.course)
        self.storing.start()
        self.evaluator = Evaluator(
            benchmark, self.net, settings.eval_size, settings.seed, settings.eval_precision
        )
        self.schedule = settings.schedule
        self.sampler = Sampler(benchmark, objective, self.needs, self.memory, settings, self.course)
        self.task, self.n = 1, 0  # the task being learned, and how many of its iterations are done
        self.curves = Curves(len(self.tasks))
        self.task_ends: list[list[float]] = []
        self.raw_task_ends: list[list[float]] = []
        self.seconds = {"training": 0.0, "evaluation": 0.0}
        self._to_restore: dict[str, Any] | None = None
        self.diagnosis = (
            Diagnosis(benchmark, self.net, settings.seed) if settings.diagnose else None
        )
        objective.start(benchmark, self.net, settings.seed)
        for term in objective.terms:
            term.start(benchmark, self.net, settings.seed)
        self.chain.start(self.net)

    @property
    def velocity(self) -> Tensor:
        """The velocity of SGD with momentum."""
        assert isinstance(self.update, Momentum)
        return self.update.velocity

    def _check(self) -> None:
        scenario, memory = self.benchmark.scenario, self.memory
        check_method(self.objective, self.routines, scenario, memory, self.momentum)
        check_quota(self.objective, self.routines, memory, self.benchmark)
        sequence = [id(task) for task in self.tasks]
        check_boundaries(self.objective, self.routines, memory, self.settings, sequence)
        self._check_batch(min(len(task.train) for task in self.tasks))

    def _check_batch(self, examples: int) -> None:
        if self.settings.batch_size > examples:
            raise UserError(
                f"batch size {self.settings.batch_size} is larger than a task: "
                f"{self.benchmark.name} has one of {examples} training examples"
            )

    def run(self, every: Callable[[], None] = lambda: None) -> Result:
        """Train to the end, from the start or from a restored state.

        every: called after every iteration, when `state` may be called.
        """
        for task in range(self.task, len(self.tasks) + 1):
            chosen, rows = self._start_task(task)
            count, done = self.course.iterations(len(rows)), len(self.curves) - self.n
            left = sum(self.course.lengths[task:])
            for n in range(self.n + 1, count + 1):
                with self._timed("training"), self._network_draws(task, n):
                    self.curves.add(task, self._iterate(task, n, rows))
                if n == count or self.schedule.due(n):
                    mean = self._record_accuracies(task)
                    self.on_progress(Progress(task, done + n, done + count + left, mean))
                elif self.schedule.exact_min and task > 1:
                    self._record_minima()
                self.n = n
                every()
            accuracies, raw = self._evaluate(functools.partial(self.evaluator.full, task))
            self.task_ends.append(accuracies.tolist())
            if raw is not None:
                self.raw_task_ends.append(raw.tolist())
            self._hand_over_weights(task)
            self._end_task(task, chosen)
            self.task, self.n = task + 1, 0
        return self._result()

    def _result(self) -> Result:
        columns = self.curves.columns()
        finite = np.isfinite(columns["loss"].astype(float)).all()
        finite = finite and bool(torch.isfinite(self.net.values).all())
        ends = self.task_ends, self.raw_task_ends
        audit, precision = self.evaluator.audited(), self.evaluator.choice
        return Result(columns, *ends, bool(finite), self.seconds, audit, precision)

    def state(self) -> dict[str, Any]:
        """Return all that decides how the run continues, as tensors, arrays and plain data.

        Random draws are functions of their place, so no random state is needed.
        """
        return {
            "task": self.task,
            "n": self.n,
            "values": self.net.values,
            "buffers": self.net.buffers(),
            "optimizer": self.update.state(),
            "memory": self.memory.state(),
            "objective": self.objective.state(),
            "terms": [term.state() for term in self.objective.terms],
            "routines": self.chain.state(),
            "curves": self.curves.state(),
            "task_ends": self.task_ends,
            "raw_task_ends": self.raw_task_ends,
            "seconds": self.seconds,
            "evaluator": self.evaluator.state(),
        }

    def fits(self, state: dict[str, Any]) -> bool:
        """Tell whether a state can be one of this run: the same parts, of the same sizes."""
        sized = {
            "values": self.net.values,
            "buffers": self.net.buffers(),
            "optimizer": self.update.state(),
            "routines": self.chain.state(),
        }
        return (
            isinstance(state, dict)
            and {"task", "n", *sized, *LATER} <= state.keys()
            and all(alike(state[name], part) for name, part in sized.items())
            and all(isinstance(state[name], kind) for name, kind in LATER.items())
            and alike([state["task"], state["n"]], [0, 0])
            and state["task"] in range(1, len(self.tasks) + 1)
            and state["n"] in range(rows_of(state["curves"]) + 1)
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state: start its task again, then restore the progress within it."""
        self.task, self.n = state["task"], state["n"]
        self.memory.restore(state["memory"])
        self.objective.restore(state["objective"])
        self._to_restore = state

    def _start_task(self, task: int) -> tuple[list[Rows], Rows]:
        """Return the rows to store at the task's end, and the rows to train on."""
        chosen = self.course.choose(task)
        if self.settings.task_free:  # a method that acts at boundaries is refused
            rows = self.tasks[task - 1].train
        else:
            rows = self.objective.start_task(task, chosen)
            self._check_batch(len(rows))  # an objective may hold examples out
            for term in self.objective.terms:
                term.start_task(task)
            self.chain.start_task(task)
        if self._to_restore is not None:
            self._put_back(self._to_restore)
            self._to_restore = None
        if self.schedule.exact_min:
            known, raw = self.curves.last("lowest"), self.curves.last("raw_lowest")
            self.minima = Minima(self.evaluator, task, known)
            self.raw_minima = Minima(self.evaluator, task, raw)
        return chosen, rows

    def _end_task(self, task: int, chosen: list[Rows]) -> None:
        """Let the objective and the terms look at the network, and store examples of the task."""
        if self.settings.task_free:
            return
        rows = self.objective.end_task(task, chosen)
        for term in self.objective.terms:
            term.end_task(task)
        self.storing.end_task(task, rows)

    def _put_back(self, state: dict[str, Any]) -> None:
        self.net.values.copy_(state["values"])
        for buffer, old in zip(self.net.buffers(), state["buffers"], strict=True):
            buffer.copy_(old)
        self.update.restore(state["optimizer"])
        self.objective.restore(state["objective"])
        for term, values in zip(self.objective.terms, state.get("terms", []), strict=True):
            term.restore(values)
        self.chain.restore(state["routines"])
        self.curves.restore(state["curves"])
        self.task_ends, self.raw_task_ends = state["task_ends"], state["raw_task_ends"]
        self.seconds = state["seconds"]
        self.evaluator.restore(state["evaluator"])

    def _iterate(self, task: int, n: int, rows: Rows) -> dict[str, Tensor | float]:
        before = self.diagnosis.before(task, n) if self.diagnosis else None
        # 1. Sample: the current batch, and the examples to replay.
        draw = self.sampler.draw(task, n, rows)
        if self.course.mixes:
            self.objective.see_classes(draw.new.y)
        # 2. The gradient of the objective.
        apart = Needs.OLD in self.needs and self.objective.replays != "nothing"
        passes = self.objective.passes(draw)
        compute = factored_gradient if self.chain.takes_products else objective_gradient
        g, old, losses = compute(self.net, passes, apart, self.objective.terms)
        # 3. Reference gradients, and whatever else the routines need.
        own_pass, elsewhere = self._needs_own_pass(draw), Needs.ELSEWHERE in self.needs
        if isinstance(g, Tensor) and (draw.references or own_pass or elsewhere):
            g = g.clone()  # these passes reuse the network's gradient vector
        place, seed = (draw.task, draw.iteration), self.settings.seed
        step = Step(*place, self.net, g, old, losses=losses, seed=seed, momentum=self._summed)
        step.iterations = self.course.told_length(len(rows))
        step.old_loss = losses["old"] if old is not None else None
        step.old_weight = old_weight(passes)
        if draw.references or own_pass:
            self._add_references(step, draw)
        if elsewhere:
            step.gradient_at = functools.partial(self._gradient_at, (task, n), passes)
        if Needs.MEMORY in self.needs and draw.task > 1:
            step.memory = self.sampler.examples(place)
        if Needs.CURRENT in self.needs:
            step.stored = self.sampler.examples(place)
        # 4. Projection, or any other change of the direction and the step by the routines.
        direction = self.chain.direct(step)
        lr = self.chain.step_size(self.lr, step)
        momentum = self.chain.momentum(self.momentum, step)
        if self.diagnosis:
            step.log.update(self.diagnosis.direction(before, step.g, direction, lr))
        # 5. Update: SGD with momentum, which averages projected gradients; or another optimiser.
        self.update.step(direction, lambda: step.g, lr, momentum)
        self.storing.see(task, draw.new)
        self.chain.after_step(step)
        if self.diagnosis:
            step.log.update(self.diagnosis.after(before))
        named = {"loss" if role == "total" else f"loss_{role}": v for role, v in losses.items()}
        return {**named, **step.log}

    def _needs_own_pass(self, draw: Draw) -> bool:
        """Tell whether the gradient on old data needs a separate pass."""
        without = Needs.OLD in self.needs and self.objective.replays == "nothing"
        return draw.old is not None and (without or Needs.FROZEN_OLD in self.needs)

    def _add_references(self, step: Step, draw: Draw) -> None:
        if draw.references:
            step.references = self._references[: len(draw.references)]
            for row, batch in zip(step.references, draw.references, strict=True):
                row.copy_(frozen_gradient(self.net, [batch], affine=False)[0])
        if draw.old is not None and self._needs_own_pass(draw):
            batches = draw.old.split(self.settings.batch_size)
            # As in the authors' code, full replay leaves out batch norm's scale and shift.
            affine = self.objective.replays != "each"
            old, step.old_loss = frozen_gradient(self.net, batches, affine)
            step.old = old.clone()

    def _gradient_at(self, place: tuple[int, int], passes: list[Pass], values: Tensor) -> Tensor:
        """Return the objective's gradient at different weights, without a change of batch norm.

        Dropout drops the same units as in the iteration's first pass, unless that pass computed
        g_old separately, term by term.
        """
        with self.net.using(values, self.net.buffers()), self._network_draws(*place):
            terms = self.objective.terms
            return objective_gradient(self.net, passes, apart=False, additions=terms).g

    def _network_draws(self, task: int, n: int) -> AbstractContextManager[None]:
        """Seed the network's own draws in an iteration, such as dropout."""
        return seeded(stream(self.settings.seed, "network", task, n), self.net.values.device)

    def _record_accuracies(self, task: int) -> Tensor:
        """Record the accuracies on the tasks so far, and return their mean."""
        accuracies, raw = self._evaluate(functools.partial(self.evaluator.subset, task))
        self.curves.add_accuracies(accuracies, raw)
        if self.schedule.exact_min:
            lowest = self.minima.take(accuracies)
            raw_lowest = None if raw is None else self.raw_minima.take(raw)
            self.curves.add_accuracies(lowest, raw_lowest, "lowest")
        return accuracies.mean()

    def _record_minima(self) -> None:
        """Record the lowest accuracies so far on past tasks, from a part of the images."""
        lowest = self._evaluate(self.minima.search, self.raw_minima.search)
        self.curves.add_accuracies(*lowest, "lowest")

    def _evaluate(
        self, measure: Callable[[Scores], Tensor], raw: Callable[[Scores], Tensor] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the accuracies of the evaluated and, if different, of the trained weights.

        raw: the measure of the trained weights, if it is a different one.
        """
        with self._timed("evaluation"), self.evaluator.one_evaluation():
            with self._evaluated():
                accuracies = measure(self.objective.scores)
            if not self.chain.evaluates_others:
                return accuracies, None
            self.objective.before_evaluation()
            return accuracies, (raw or measure)(self.objective.scores)

    def _hand_over_weights(self, task: int) -> None:
        if self.on_task_end is None:
            return
        with self.chain.evaluated(self.net):
            evaluated = self.net.state()
        trained = self.net.state() if self.chain.evaluates_others else None
        self.on_task_end(task, evaluated, trained)

    @contextmanager
    def _evaluated(self) -> Iterator[None]:
        """Put the weights to evaluate in place, and prepare the objective."""
        with self.chain.evaluated(self.net):
            self.objective.before_evaluation()
            yield

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - start


def initialised(
    benchmark: Benchmark, seed: int, device: torch.device, start_from: Weights | None = None
) -> FlatModel:
    """Return a network with given weights, or with the initial weights of a seed."""
    with seeded(stream(seed, "initialisation"), device):
        module = built(benchmark.model)
    if start_from is not None:
        load_weights(module, start_from)
    return FlatModel(module, device)
