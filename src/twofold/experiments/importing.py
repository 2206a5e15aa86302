"""Curves of a program that is not twofold as runs: from tables, and from TensorBoard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twofold.curves import ACCURACY, RECORDED, Columns
from twofold.errors import UserError
from twofold.evaluation.trajectory import ends
from twofold.experiments.curve_files import check_bytes, listed, read_events, read_table
from twofold.experiments.foreign import describe
from twofold.experiments.reader import summary_of
from twofold.experiments.runs import Run
from twofold.experiments.summary import summarise
from twofold.extras import need
from twofold.options import convert
from twofold.results import Result

if TYPE_CHECKING:
    import pandas as pd

Table = NDArray[np.float32]

# The names of columns that are understood, in lower case; the first one found counts.
ITERATION = ("iteration", "step", "global_step", "iter")
LEARNED = ("task", "current_task", "train_task", "experience")
TEST = ("test", "test_task", "test_set", "evaluated", "eval_task")
VALUE = ("accuracy", "value", "acc", "score", "reward")
NAMES = ("benchmark", "method", "seed")
OWN = "imported"  # in place of a digest of test sets, which are not known
LONGEST = 10**7  # iterations


def import_curves(
    file: Path,
    *,
    benchmark: str | None = None,
    method: str | None = None,
    seed: int | None = None,
    schedule: str | None = None,
    size: int | None = None,
    settings: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    switches: Sequence[int] | None = None,
    scale: float | None = None,
    measure: str = ACCURACY,
) -> list[Run]:
    """Return the runs whose curves a file holds.

    A wide table has a row per evaluated iteration and a column of values per task. A long table has
    a row per value, with the columns `test` and `value`. Both have a column `iteration`, and `task`
    for the task that was being learned.

    Args:
        file: A CSV, TSV or Parquet table, or an event file of TensorBoard or its folder.
        benchmark, method, seed: Of the run. Columns with these names are used if they are not
            given, and the table may hold several runs.
        schedule: After which iterations the model was evaluated; by default it follows from the
            table.
        size: The examples per task that it was evaluated on.
        settings: Further settings of the run.
        columns: The columns, or TensorBoard's tags, with the values of each task in order.
        switches: The iterations after which a new task began, if there is no column `task`. By
            default a task begins when its values do.
        scale: What values are multiplied by; by default 1. Accuracies are in percent, so values
            that are at most 1 need it.
        measure: A word for the values, for axes.
    """
    need("frames", "the import of curves")
    events = file.is_dir() or "tfevents" in file.name
    table = read_events(file) if events else read_table(file)
    given = {"benchmark": benchmark, "method": method, "seed": seed}
    runs = []
    for names, part in _divided(table, given):
        curves, tests = _curves(
            file, part, columns, switches, 1.0 if scale is None else scale, events
        )
        task, accuracy = curves["task"], _accuracies(curves)
        if not np.isfinite(accuracy).any():
            raise UserError(f"{file}: there are no values in {', '.join(tests)}")
        if scale is None and measure == ACCURACY and np.nanmax(np.abs(accuracy)) <= 1:
            raise UserError(
                f"{file}: no accuracy is above 1: are they shares? Set --scale 100, or --scale 1 "
                "if they are percent"
            )
        if measure == ACCURACY and ((accuracy < 0) | (accuracy > 100)).any():
            raise UserError(
                f"{file}: an accuracy is from 0 to 100 percent: name other values with --measure"
            )
        config = describe(
            *names,
            own=OWN,
            schedule=schedule or _schedule(task, accuracy),
            size=1000 if size is None else size,
            settings=settings,
        )
        final = _within(file, lambda t=task, a=accuracy: ends(t, a))
        summary = summarise(config, Result(curves, final, [], True, {}))
        summary |= {"test_sets": tests, "made_with": {"imported_from": file.name}}
        if measure != ACCURACY:
            summary["quantities"] = [measure] * len(final)
        _within(file, lambda s=summary, c=config: summary_of(s, c))  # it must be readable again
        runs.append(Run(config, summary, curves))
    return runs


def _within(file: Path, compute: Any) -> Any:
    try:
        return compute()
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def _divided(
    table: pd.DataFrame, given: Mapping[str, Any]
) -> Iterable[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield benchmark, method and seed of each run, and its part of the table."""
    within = [name for name in NAMES if given[name] is None and name in table.columns]
    for name in NAMES:
        if given[name] is None and name not in within:
            raise UserError(f"which {name}? Set it with --{name}")
        if name in within and table[name].isna().any():
            raise UserError(f"a row has no {name}")
    groups = table.groupby(within, sort=False) if within else [((), table)]
    for values, part in groups:
        options: dict[str, Any] = {**given, **dict(zip(within, values, strict=True))}
        names = str(options["benchmark"]), str(options["method"]), _whole(options["seed"])
        yield names, part.reset_index(drop=True)


def _whole(seed: Any) -> int:
    """Return the seed that a table holds, which may be a whole number among others with points."""
    number = int(seed) if isinstance(seed, float) and seed.is_integer() else seed
    whole: int = convert(str(number), int, "seed", text=True)
    return whole


def _curves(
    file: Path,
    table: pd.DataFrame,
    columns: Sequence[str] | None,
    switches: Sequence[int] | None,
    scale: float,
    events: bool,
) -> tuple[Columns, list[str]]:
    """Return the columns of a run, with a row per iteration, and the names of its test sets."""
    named = {name.lower(): name for name in table.columns}
    step = _found(named, ITERATION)
    if step is None:
        raise UserError(f"{file} has no column {ITERATION[0]!r}: there are {listed(table)}")
    learned, test, value = (_found(named, names) for names in (LEARNED, TEST, VALUE))
    if test is not None and value is not None:
        table, columns = _widened(file, table, step, learned, test, value, columns)
    else:
        columns = columns or _value_columns(file, table, {step, learned}, events)
    for name in columns:
        if name not in table.columns:
            raise UserError(f"{file} has no column {name!r}: there are {listed(table)}")
    steps = _numbers(file, table, step)
    if not (np.isfinite(steps).all() and (steps == steps.round()).all() and (steps >= 0).all()):
        raise UserError(f"{file}: {step!r} must count iterations with whole numbers from 0 or 1")
    if steps.max() > LONGEST:
        raise _too_long(file, steps.max())
    values = np.stack([scale * _numbers(file, table, name) for name in columns], axis=1)
    labels = None if learned is None else table[learned].tolist()
    places = _places(file, steps.astype(int), labels)
    if switches is not None:
        numbers = 1 + np.searchsorted(sorted(switches), places, side="left")
    elif labels is not None:
        numbers = np.unique(labels, return_inverse=True)[1]  # by what is equal
        order = list(dict.fromkeys(numbers.tolist()))
        numbers = np.array([order.index(each) + 1 for each in numbers])
    else:
        numbers = _begun(file, values)
    tasks = int(numbers[-1])
    if (np.diff(numbers) < 0).any() or tasks > len(columns):
        raise UserError(
            f"{file}: tasks must come one after another, each with a column of values; there are "
            f"{tasks} tasks and the columns {', '.join(map(str, columns))}"
        )
    length = int(places[-1])
    check_bytes(file, 8 * length * (2 + len(RECORDED) + tasks))  # with a row per iteration
    if switches is not None:
        task = 1 + np.searchsorted(sorted(switches), np.arange(1, length + 1), side="left")
    else:  # a task begins right after the last row of the task before it
        task = numbers[np.searchsorted(places, np.arange(1, length + 1))]
    curves: Columns = {
        "iteration": np.arange(1, length + 1, dtype=np.int32),
        "task": task.astype(np.int16),
    }
    for name, empty in RECORDED.items():
        curves[name] = np.full(length, empty, np.float32)
        if name in table.columns and name not in columns:
            curves[name][places - 1] = _numbers(file, table, name)
    for k in range(tasks):
        curve = np.full(length, np.nan, np.float32)
        curve[places - 1] = values[:, k]
        curve[task <= k] = np.nan  # before its task begins, a test set says nothing here
        curves[f"accuracy_{k + 1}"] = curve
        if k < tasks - 1 and not np.isfinite(curve[task > k + 1]).any():
            raise UserError(f"{file}: {columns[k]!r} has no value after its own task")
    return curves, [str(name) for name in columns[:tasks]]


def _found(named: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((named[name] for name in names if name in named), None)


def _numbers(file: Path, table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    import pandas as pd

    try:
        numbers: NDArray[np.float64] = pd.to_numeric(table[name]).to_numpy(float)
    except (TypeError, ValueError):
        raise UserError(f"{file}: the column {name!r} must hold numbers") from None
    if np.isinf(numbers).any():
        raise UserError(f"{file}: the column {name!r} must hold finite numbers")
    return numbers


def _widened(
    file: Path,
    table: pd.DataFrame,
    step: str,
    learned: str | None,
    test: str,
    value: str,
    columns: Sequence[str] | None,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a long table as a wide one, and its columns of values in the order of tasks."""
    index = [name for name in (learned, step) if name is not None]
    duplicates = table.duplicated([*index, test])
    if duplicates.any():
        row = table[duplicates].iloc[0]
        raise UserError(f"{file} has two values of {row[test]!r} at iteration {row[step]}")
    check_bytes(file, 8 * len(table[step].unique()) * len(table[test].unique()))
    table_of_sets = table.pivot(index=index, columns=test, values=value)
    rows = table[index].drop_duplicates()  # in the order of the file
    table_of_sets = table_of_sets.loc[
        list(rows.itertuples(index=False, name=None)) if learned else rows[step]
    ]
    table_of_sets.columns = [str(name) for name in table_of_sets.columns]
    tests = list(dict.fromkeys(map(str, table[test])))
    tasks = list(dict.fromkeys(map(str, table[learned]))) if learned is not None else []
    if tasks and {*tasks} <= {*tests}:
        tests = [*tasks, *(name for name in tests if name not in tasks)]
    return table_of_sets.reset_index(), list(columns or tests)


def _value_columns(
    file: Path, table: pd.DataFrame, apart: set[str | None], events: bool
) -> list[str]:
    """Return the columns with the values of tasks, in order: those that are numbered, or all."""
    import pandas as pd

    candidates = [
        name
        for name in table.columns
        if name not in (*apart, *RECORDED, *NAMES) and pd.api.types.is_numeric_dtype(table[name])
    ]
    kinds: dict[str, dict[int, str]] = {}
    for name in candidates:
        match = re.fullmatch(r"(.*?)(\d+)", name)
        if match:
            kinds.setdefault(match[1], {})[int(match[2])] = name
    if len(kinds) > 1:
        kinds = {
            kind: candidates
            for kind, candidates in kinds.items()
            if re.match(r"(?i)(.*\W)?acc", kind)
        }
    if len(kinds) == 1:
        (numbered,) = kinds.values()
        return [numbered[number] for number in sorted(numbered)]
    if not candidates or kinds or events:
        raise UserError(
            f"{file}: which columns hold the values of the tasks? Set --columns A,B (there are "
            f"{listed(table)})"
        )
    return candidates


def _places(file: Path, steps: NDArray[np.int_], labels: list[Any] | None) -> NDArray[np.int_]:
    """Return the iteration of each row from 1 on; a count may begin anew with every task."""
    first = int(steps.min()) == 0
    places: list[int] = []
    start = 0
    for row, step in enumerate(steps.tolist()):
        switched = labels is not None and row > 0 and labels[row] != labels[row - 1]
        if switched and step <= steps[row - 1]:
            start = places[-1]
        places.append(start + step + first)
    if (np.diff(places) <= 0).any():
        row = int(np.argmax(np.diff(places) <= 0)) + 1
        raise UserError(f"{file}: iteration {steps[row]} comes after {steps[row - 1]}")
    if places[-1] > LONGEST:
        raise _too_long(file, places[-1])
    return np.array(places)


def _too_long(file: Path, iterations: float) -> UserError:
    return UserError(f"{file} has {iterations:,.0f} iterations; at most {LONGEST:,} are read")


def _begun(file: Path, values: NDArray[np.float64]) -> NDArray[np.int_]:
    """Return the task of each row, if a task begins with its first value."""
    known = np.isfinite(values)
    if values.shape[1] > 1 and known[0].all():
        raise UserError(
            f"{file}: which task was being learned? Add a column 'task', or set --switches to the "
            "iterations after which a new task began"
        )
    starts = [int(np.argmax(column)) for column in known.T if column.any()]
    numbers: NDArray[np.int_] = np.searchsorted(starts, np.arange(len(values)), side="right")
    return np.maximum(numbers, 1)


def _accuracies(curves: Columns) -> Table:
    columns = [column for name, column in curves.items() if name.startswith("accuracy_")]
    return np.stack(columns, axis=1).astype(np.float32)


def _schedule(task: Any, accuracy: Table) -> str:
    """Return the schedule that the evaluated iterations follow, as far as it can be told."""
    known = np.asarray(np.isfinite(accuracy).any(axis=1))
    if known.all():
        return "every"
    dense, gaps = len(known), list[int]()
    for k in np.unique(task):
        rows = known[task == k]
        first = int(np.argmin(rows)) if not rows.all() else len(rows)
        dense = min(dense, first)
        later = 1 + first + np.flatnonzero(rows[first:])
        gaps += np.diff([first, *later]).tolist()
    sparse = max(max(set(gaps), key=lambda gap: (gaps.count(gap), gap)), 2)
    return f"dense:{dense}:{sparse}" if dense > 1 else f"every:{sparse}"
