"""Continual evaluation of any model in any loop.

    watch = twofold.Watch({"0": test0, "80": test1}, schedule="dense:100:10", size=1000,
                          out="runs", benchmark="mine", method="my idea", seed=0)
    for task, loader in enumerate(loaders):
        watch.task(task)
        for x, y in loader:
            ...
            optimizer.step()
            watch(model)
    run = watch.finish()

The model and all random states are left as they were, so a loop trains the same weights with and
without it.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from twofold.curves import ACCURACY, Curves, loggable
from twofold.errors import UserError
from twofold.evaluation.outside import OutsideEvaluator, Value, bare, rank, stacked
from twofold.evaluation.sets import Measured, digest_of, number_of, read_sets
from twofold.evaluation.untouched import kept_random_states, seed_all
from twofold.experiments import checkpoints
from twofold.experiments.config import Config
from twofold.experiments.foreign import describe, is_state
from twofold.experiments.options import Place
from twofold.experiments.runs import Run
from twofold.experiments.store import Store, Work, writing
from twofold.experiments.summary import summarise
from twofold.how import How
from twofold.models.view import device_of
from twofold.options import Option, between, options, shown
from twofold.results import Result
from twofold.settings import LARGEST
from twofold.text import is_shown

CHECKPOINT_EVERY = 30.0  # seconds
DONE = Option("", name="done", hint=int, check=between(0, LARGEST))
ROLES = ("evaluated", "raw")


class Watch:
    """Evaluates a model after every iteration of a loop, and saves the curves as a run.

    Args:
        tests: A test set per task by name, in the order of the tasks: two tensors, a `Dataset`, a
            `DataLoader`, or a function of the model that returns a number.
        schedule: After which iterations of a task to evaluate: `every`, `every:10`, or
            `dense:100:10` for each of the first 100 and then every tenth. The last iteration of a
            task is evaluated in any case.
        size: The examples per test set that are drawn for this. Whole test sets are evaluated at
            the end of each task.
        out: The run store. Without it, the run is kept in memory.
        benchmark: A name for the tasks.
        method: A name for what is trained, such as `my idea` or `er+gem`.
        seed: The seed of the run. It draws the examples.
        settings: Further settings of the loop, such as `{"lr": 0.1}`. They tell runs apart.
        higher_is_better: Whether higher values of the functions are better. If not, values are
            recorded with a minus sign, so that higher is better in every table and figure.
        measure: A word for what the functions return, such as `reward`, for axes.
        resume: Continue the curves of a run that was interrupted.
        checkpoint_every: The seconds between two checkpoints of the curves.
    """

    def __init__(
        self,
        tests: Mapping[str, Any],
        *,
        benchmark: str,
        method: str,
        schedule: str = "every",
        size: int = 1000,
        out: Path | str | None = None,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        higher_is_better: bool = True,
        measure: str = "value",
        resume: bool = False,
        checkpoint_every: float = CHECKPOINT_EVERY,
    ) -> None:
        with kept_random_states():
            seed_all(0)  # a Dataset may draw: so it draws the same whenever it is read here
            sets = read_sets(tests)
            digest = digest_of(sets)
        if not isinstance(measure, str) or not measure.strip() or not is_shown(measure):
            raise UserError(f"measure must be a word, not {shown(measure)}")
        if not higher_is_better and not any(isinstance(one, Measured) for one in sets):
            raise UserError("a higher accuracy is better: higher_is_better is for functions")
        self.config: Config = describe(
            benchmark, method, seed, own=digest, schedule=schedule, size=size, settings=settings
        )
        self._names = [one.name for one in sets]
        word = measure if higher_is_better else f"−{measure}"
        self._quantities = [word if isinstance(one, Measured) else ACCURACY for one in sets]
        self._higher_is_better, self._resume = higher_is_better, resume
        self._schedule = self.config.schedule
        self._every = options(Place)["checkpoint_every"].value(checkpoint_every)
        sign = 1.0 if higher_is_better else -1.0
        self._evaluator = OutsideEvaluator(sets, self.config.eval_size, self.config.seed, sign)
        self._idle = rank() != 0  # in distributed training, one process evaluates for all
        self._task = self._n = 0  # the task from 1, and how many of its iterations are done
        self._evaluated = self._ended = True  # the last iteration, and the current task
        self._models: dict[str, Any] = {}  # by role, of the last call
        self._how: How | None = None  # of the last call
        self._latest: dict[str, list[Value]] = {}  # the values of the last evaluation by role
        self._raw: bool | None = None  # whether the trained model is a different one
        self._logged: dict[str, Tensor | float] = {}
        self._curves = Curves(len(sets))
        self._ends: dict[str, list[list[float]]] = {role: [] for role in ROLES}
        self._finite, self._device, self._finished = True, "cpu", False
        self._evaluation = 0.0  # seconds
        self._began = self._saved = time.monotonic()
        self._claim = ExitStack()
        self._store: Store | None = None
        self._work: Work | None = None
        if out is not None and not self._idle:
            self._store = Store(options(Place)["out"].value(out))
            self._work = self._claimed(self._store)
            if resume:
                self._restore(self._read(self._work))

    def _read(self, work: Work) -> dict[str, Any] | None:
        """Return the state of an earlier attempt; say why if it cannot be used."""
        identity = self.config.identity()
        state = checkpoints.read(work.checkpoint, run=identity, refused=work.refuse)
        if state is not None and not is_state(state, len(self._names)):
            work.refuse("its checkpoint does not fit")
            state = None
        if work.refused:
            print(f"{self._name} begins anew: {work.refused}", file=sys.stderr)
        return state

    def _claimed(self, store: Store) -> Work:
        """Take the run's place in the store, or say why that is not possible."""
        store.prepare()
        different = "give this run a different seed, method or settings"
        work = self._claim.enter_context(store.claim(self.config))
        if work is None:
            raise UserError(f"{self._name} is being watched already: {different}")
        folder = store.find(self.config)
        if folder is not None:
            work.clear()
            self._claim.close()
            command = f"twofold runs remove {self.config.identity()} --runs {store.folder}"
            raise UserError(f"{self._name} is complete: {different}, or remove it with `{command}`")
        return work

    @property
    def _name(self) -> str:
        config = self.config
        return f"{config.method!r} on {config.benchmark!r} with seed {config.seed}"

    @property
    def position(self) -> tuple[int, int]:
        """The current task, from 0, and how many of its iterations are recorded.

        With `resume`, it is where the curves end. It is (-1, 0) if there are none.
        """
        return self._task - 1, self._n

    def task(self, task: int | str, done: int = 0) -> None:
        """Begin a task. The task before it ends, and is evaluated on its whole test sets.

        Args:
            task: Its number from 0, or the name of its test set.
            done: With `resume`, how many iterations of this task the loop has done before. What
                was recorded after them is dropped.
        """
        number, done = number_of(task, self._names), DONE.value(done)
        if self._idle:
            return
        self._check_open()
        if self._resume and number <= self._task + self._ended:
            self._go_back(number, done)
        elif number != self._task + 1:
            order = f"after task {self._task - 1} comes task {self._task}"
            hint = order if self._task else "the first task is task 0"
            raise UserError(f"{hint}, not task {number - 1}")
        elif self._resume:
            raise UserError(
                f"the curves of task {self._task - 1} end after iteration {self._n} of it: "
                "continue the loop there, or at an earlier place"
            )
        elif done:
            raise UserError("done is for a loop that continues: set resume=True")
        else:
            self._end_task()
            self._start(number, 0)
            self.save()

    def __call__(self, model: Any, raw: Any = None, how: How | None = None) -> None:
        """Count an iteration, and evaluate the model if that is due.

        Args:
            model: The model to evaluate, such as a moving average of the trained weights.
            raw: The trained model, if it is a different one. It is evaluated as well.
            how: The routines of the loop. Their log is recorded with the iteration. If they have
                different weights evaluated (`ema`), the trained weights are evaluated as well.
        """
        if self._idle:
            return
        self._check_open()
        if not self._task:
            raise UserError("call watch.task(0) before the first watch(model)")
        if how is not None:
            if not isinstance(how, How):
                raise UserError(f"how must be a How, not {shown(how)}")
            self._logged = how.recorded | self._logged
            if how.evaluates_others:
                if raw is not None:
                    raise UserError("a chain with ema evaluates both weights: leave raw out")
                raw = model
        if self._raw not in (None, raw is not None):
            raise UserError("give raw at every call of a run, or never")
        self._raw, self._how = raw is not None, how
        self._resume = False  # the loop is where the curves end: from here on, nothing is dropped
        self._models = {"evaluated": model} | ({} if raw is None else {"raw": raw})
        self._n += 1
        self._evaluated = self._ended = False
        self._curves.add(self._task, self._logged)
        self._logged = {}
        if self._schedule.due(self._n):
            self._evaluate()
        if time.monotonic() - self._saved >= self._every:
            self.save()

    def log(self, **values: Tensor | float) -> None:
        """Record numbers with the next iteration, such as `watch.log(loss=loss)`.

        Figures know `projected`, and all names are columns of the curves.
        """
        self._logged |= {name: loggable(name, value) for name, value in values.items()}

    def save(self) -> None:
        """Write the curves so far to the store; call it when the loop saves its own state."""
        if self._work is None or self._finished:
            return
        with writing(self._work.folder):
            checkpoints.write(self._work.checkpoint, self._state(), self.config.identity())
        self._saved = time.monotonic()

    def finish(self) -> Run:
        """End the last task and return the run, which is in the store if there is one.

        In distributed training, ranks other than 0 get None.
        """
        if self._idle:
            return cast(Run, None)  # all others get a run, and need not check for None
        self._check_open()
        if not self._task:
            raise UserError("nothing was watched: call watch.task(0), then watch(model)")
        self._end_task()
        self.save()
        run = self._run()
        if self._store is not None and self._work is not None:
            run = Run.load(self._store.save(run))
            self._work.clear()
        self._close()
        return run

    def close(self) -> None:
        """Let go of a run that is not finished. Its curves so far stay on disk, for `resume`."""
        self.save()
        self._close()

    def _close(self) -> None:
        self._finished, self._models, self._how = True, {}, None
        self._claim.close()

    def _check_open(self) -> None:
        if self._finished:
            raise UserError(f"{self._name} is finished: a new run needs a new Watch")

    def _start(self, number: int, done: int) -> None:
        self._task, self._n = number, done
        self._evaluated = self._ended = False
        self._models, self._latest = {}, {}
        self._evaluator.start_task()

    def _go_back(self, number: int, done: int) -> None:
        """Forget what was recorded after the iterations that a loop has done before."""
        learned = self._curves.columns()["task"].astype(int) if len(self._curves) else np.array([])
        before, count = int((learned < number).sum()), int((learned == number).sum())
        if done > count:
            raise UserError(
                f"the curves of task {number - 1} end after iteration {count} of it, and the loop "
                f"has done {done}: call watch.save() when the loop saves its own state"
            )
        self._curves.cut(before + done)
        for ends in self._ends.values():
            del ends[number - 1 :]
        self._start(number, done)

    def _evaluate(self) -> None:
        """Evaluate after the last iteration."""
        with self._evaluating():
            for role, model in self._models.items():
                with self._weights(role):
                    values = self._evaluator.subset(role, model, self._task, len(self._curves))
                self._latest[role] = values
            latest = {role: stacked(values) for role, values in self._latest.items()}
            self._curves.add_accuracies(latest["evaluated"], latest.get("raw"))
        self._evaluated = True

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Count the seconds; save the curves if anything fails in the model or in a measure."""
        start = time.perf_counter()
        try:
            yield
        except Exception as error:
            self.save()
            if isinstance(error, UserError):
                place = f"after iteration {self._n} of task {self._task - 1}"
                raise UserError(f"{error} ({place}; the curves so far are kept)") from error
            raise
        self._evaluation += time.perf_counter() - start

    def _weights(self, role: str) -> AbstractContextManager[None]:
        """Put the weights of a role in place: routines may have different ones evaluated."""
        how = self._how if role == "evaluated" else None
        return nullcontext() if how is None else how.evaluated()

    def _end_task(self) -> None:
        """Evaluate the last iteration of a task, if that was not due, and whole test sets."""
        if self._ended:
            return
        if not self._models:
            raise UserError(
                f"no iteration of task {self._task - 1} was watched: call watch(model) after each"
            )
        if not self._evaluated:
            self._evaluate()
        ends: dict[str, list[float]] = {}
        with self._evaluating():
            for role, model in self._models.items():
                with self._weights(role):
                    ends[role] = self._evaluator.whole(role, model, self._latest[role])
                module = bare(model)
                if isinstance(module, nn.Module):
                    self._device = str(device_of(module))
                    finite = all(bool(torch.isfinite(p).all()) for p in module.parameters())
                    self._finite = self._finite and finite
        for role, values in ends.items():
            self._ends[role].append(values)
        self._ended = True

    def _state(self) -> dict[str, Any]:
        return {
            "task": self._task,
            "n": self._n,
            "ended": self._ended,
            "curves": self._curves.state() if len(self._curves) else None,
            "ends": self._ends,
            "finite": self._finite,
            "raw": self._raw,
            "elapsed": time.monotonic() - self._began,
            "evaluation": self._evaluation,
        }

    def _restore(self, state: dict[str, Any] | None) -> None:
        if state is None:  # nothing was recorded, or nothing that can be used
            return
        self._task, self._n, self._ended = state["task"], state["n"], state["ended"]
        if state["curves"] is not None:
            self._curves.restore(state["curves"])
        self._ends, self._finite, self._raw = state["ends"], state["finite"], state["raw"]
        self._began -= state["elapsed"]
        self._evaluation = state["evaluation"]

    def _run(self) -> Run:
        columns = self._curves.columns()
        for kind in ("accuracy", "raw_accuracy"):  # of tasks that did not come
            for k in range(self._task, len(self._names)):
                columns.pop(f"{kind}_{k + 1}", None)
        training = time.monotonic() - self._began - self._evaluation
        finite = self._finite and not np.isinf(columns["loss"].astype(float)).any()
        seconds = {"training": max(training, 0.0), "evaluation": self._evaluation}
        result = Result(columns, self._ends["evaluated"], self._ends["raw"], bool(finite), seconds)
        tasks = None if self._task == len(self._names) else self._task
        config = dataclasses.replace(self.config, tasks=tasks, device=self._device)
        summary = summarise(config, result) | {"test_sets": self._names[: self._task]}
        if not self._higher_is_better:
            summary["higher_is_better"] = False
        if {*self._quantities} != {ACCURACY}:
            summary["quantities"] = self._quantities[: self._task]
        return Run(config, summary, columns)
