"""The search for `hold`: what methods do after a switch, on held-out training images.

Prints the table of the results in search.jsonl. With `--train`, trains the rows that are missing
there: task 1 once with ER, then each method for 300 iterations of task 2; and for task 3 from the
weights that `er+hold(damping=0)` has after the whole of task 2. Seed 7 is not a reported one.

With `--whole`, the table is that of whole_tasks.jsonl: tasks 2 and 3 one after the other, over
seeds that are not reported. Methods that are alike in task 1 share one training of it per seed.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks import Recipe
from twofold.discovery import import_file
from twofold.evaluation.measures import measures
from twofold.method import Method
from twofold.report.text import markdown_table
from twofold.settings import Settings
from twofold.statistics import mean_and_error
from twofold.text import value_text
from twofold.training import Training

HERE = Path(__file__).parent
SEED, ITERATIONS = 7, 300
METHODS = [
    *("er", "er+gem", "er+lpr(omega=1)", "er+lpr(omega=16)", "er+lpr(omega=64)", "er+hold"),
    *("er+hold(damping=0)", "er+hold(damping=0.02)", "er+hold(damping=0.2)"),
    *("er+hold(gain=1)", "er+hold(share=0.9)", "er+hold(share=0.99)", "er+hold(omega=64)"),
    *("er+hold(every=20)", "er+hold+warmup(10)", "er+hold+momentum-reset"),
    *("er+two-sided(omega=10)", "er+two-sided(omega=100)"),
    "er+two-sided(omega=100,metric=softmax)",
    *("er+hold(gain=1,damping=16)", "er+lpr(omega=16)+fade(100)"),
    *("er+ahead(reach=0.1)", "er+ahead(reach=1)", "er+ahead(reach=1,use=project)"),
]
HEAD = ["method", "task", "old before", "lowest", "at the end", "new task at 90%", "new at the end"]
WHOLE_SEEDS = (7, 17, 27)
WHOLE = [  # with the iterations of tasks 2 and 3
    ("er+hold(gain=1)", 2000),
    ("er+hold(gain=1)+cosine", 2000),
    ("joint+hold(gain=1)+fade(300)+warmup(500)+cosine", 2000),
    ("joint+hold(gain=1)+fade(300)+warmup(2000)+cosine", 2000),
    ("er+hold(share=0.99)+cosine", 600),
    ("joint+hold(gain=1)+fade(300)", 600),
    ("joint+hold(gain=4)+fade(300)+slow(0.25)", 600),
    ("joint+hold(gain=1)+fade(300)+slow(0.25)+cosine", 600),
    ("joint+hold(gain=4,share=0.99)+fade(600)+slow(0.25)+cosine", 600),
]
WHOLE_HEAD = [
    *("method", "iterations", "seeds", "MIN", "AVG", "residual", "gap depth", "new task at 90%"),
]
State = tuple[Tensor, Tensor]  # weights and velocity
Row = dict[str, Any]


@cache
def benchmark(seed: int) -> Any:
    return Recipe.find("rotated-mnist").build(seed)


def training(
    method: str, task: int, state: State | None, seed: int = SEED, **options: Any
) -> Training:
    """Return the training of a method at the beginning of a task, with its memory filled."""
    settings = Settings(lr=0.1, batch_size=128, seed=seed, validation=0.1, **options)
    run = Training(benchmark(seed), *Method.parse(method).make(), settings)
    for past in range(1, task):
        chosen, _ = run._start_task(past)
        run._end_task(past, chosen)
    if state is not None:
        run.net.values.copy_(state[0])
        run.velocity.copy_(state[1])
    return run


@cache
def state_after(method: str, task: int, state: State | None, seed: int = SEED) -> State:
    """Return weights and velocity after a whole task that began from a state."""
    run = training(method, task, state, seed)
    _, rows = run._start_task(task)
    for n in range(1, run.benchmark.offline_iterations + 1):
        run._iterate(task, n, rows)
    return run.net.values.clone(), run.velocity.clone()


def state_before(task: int) -> State:
    """Return weights and velocity at a switch: task 1 with ER, task 2 with hold."""
    first = state_after("er", 1, None)
    return first if task == 2 else state_after("er+hold(damping=0)", 2, first)


def result(method: str, task: int) -> Row:
    """Train a method after a switch, and return accuracies in percent; old tasks are averaged."""
    run = training(method, task, state_before(task), iterations=ITERATIONS)
    scores = run.objective.scores
    start = run.evaluator.subset(task - 1, scores)
    _, rows = run._start_task(task)
    curve = []
    for n in range(1, ITERATIONS + 1):
        run._iterate(task, n, rows)
        if n <= 100 or n % 20 == 0:
            curve.append((n, run.evaluator.subset(task, scores)))
    accuracies = torch.stack([accuracy for _, accuracy in curve])
    end = accuracies[-1]
    return {
        "method": method,
        "task": task,
        "before": float(start.mean()),
        "lowest": float(torch.minimum(accuracies[:, :-1].amin(0), start).mean()),
        "end": float(end[:-1].mean()),
        "speed": next(n for n, accuracy in curve if accuracy[-1] >= 0.9 * end[-1]),
        "new": float(end[-1]),
    }


def whole(method: str, iterations: int, seed: int) -> Row:
    """Train tasks 2 and 3, each for `iterations`, and return measures of the three tasks."""
    parts = Method.parse(method)
    acting = tuple(written for written in parts.routines if written[0].first_task)
    first = state_after(str(replace(parts, routines=acting)), 1, None, seed)
    run = training(method, 2, first, seed, iterations=iterations)
    learned, curves = [1], [evaluated(run, 1)]
    for task in (2, 3):
        chosen, rows = run._start_task(task)
        for n in range(1, iterations + 1):
            run._iterate(task, n, rows)
            due = n % 8 == 0 or (n <= 60 and n % 2 == 0)
            learned.append(task)
            curves.append(evaluated(run, task) if due else [math.nan] * 3)
        run._end_task(task, chosen)
    found = measures(learned, curves)
    final = run.evaluator.full(3, run.objective.scores)
    kept = {key: found[key] for key in ("min", "residual", "gap_depth", "new_speed")}
    place = {"method": method, "iterations": iterations, "seed": seed}
    return {**place, **kept, "avg": float(final.mean())}


def evaluated(run: Training, task: int) -> list[float]:
    """Return the accuracies on three tasks, NaN where a task is still to come."""
    known = run.evaluator.subset(task, run.objective.scores).tolist()
    return [*known, *[math.nan] * (3 - task)]


def stored(file: Path, *keys: str) -> dict[tuple[Any, ...], Row]:
    """Return the rows of a file by the values of these keys."""
    rows = map(json.loads, file.read_text().splitlines() if file.exists() else [])
    return {tuple(row[key] for key in keys): row for row in rows}


def add(file: Path, row: Row) -> Row:
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")
    return row


def after_switches(train: bool) -> list[list[str]]:
    file = HERE / "search.jsonl"
    results = stored(file, "method", "task")
    rows = [HEAD]
    for place in ((method, task) for task in (2, 3) for method in METHODS):
        if train and place not in results:
            results[place] = add(file, result(*place))
        if each := results.get(place):
            numbers = [f"{each[key]:.1f}" for key in ("before", "lowest", "end")]
            text, task = place
            rows.append([text, str(task), *numbers, str(each["speed"]), f"{each['new']:.1f}"])
    return rows


def whole_tasks(train: bool) -> list[list[str]]:
    file = HERE / "whole_tasks.jsonl"
    results = stored(file, "method", "iterations", "seed")
    rows = [WHOLE_HEAD]
    for method, iterations in WHOLE:
        for place in ((method, iterations, seed) for seed in WHOLE_SEEDS):
            if train and place not in results:
                results[place] = add(file, whole(*place))
        own = [row for place, row in results.items() if place[:2] == (method, iterations)]
        if own:
            keys = ("min", "avg", "residual", "gap_depth", "new_speed")
            errors = [mean_and_error([row[key] for row in own]) for key in keys]
            rows.append(
                [method, str(iterations), str(len(own)), *(value_text(*each) for each in errors)]
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--train", action="store_true", help="train what is missing")
    parser.add_argument("--whole", action="store_true", help="whole tasks, over several seeds")
    args = parser.parse_args()
    if args.train:
        torch.set_num_threads(1)
        for plugin in ("two_sided.py", "ahead.py", "slow.py"):
            import_file(str(HERE / plugin))
    table = whole_tasks if args.whole else after_switches
    print(markdown_table(table(args.train), left=1))


main()
