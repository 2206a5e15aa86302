"""The search for `hold`: what methods do after a switch, on held-out training images.

Prints the table of the results in search.jsonl. With `--train`, trains the rows that are missing
there: task 1 once with ER, then each method for 300 iterations of task 2; and for task 3 from the
weights that `er+hold(damping=0)` has after the whole of task 2. Seed 7 is not a reported one.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twofold.benchmarks import Recipe
from twofold.discovery import import_file
from twofold.method import Method
from twofold.report.text import markdown_table
from twofold.settings import Settings
from twofold.training import Training

HERE = Path(__file__).parent
RESULTS = HERE / "search.jsonl"
SEED, ITERATIONS = 7, 300
METHODS = [
    *("er", "er+gem", "er+lpr(omega=1)", "er+lpr(omega=16)", "er+lpr(omega=64)", "er+hold"),
    *("er+hold(damping=0)", "er+hold(damping=0.02)", "er+hold(damping=0.2)"),
    *("er+hold(gain=1)", "er+hold(share=0.9)", "er+hold(share=0.99)", "er+hold(omega=64)"),
    *("er+hold(every=20)", "er+hold+warmup(10)", "er+hold+momentum-reset"),
    *("er+two-sided(omega=10)", "er+two-sided(omega=100)"),
    "er+two-sided(omega=100,metric=softmax)",
]
HEAD = ["method", "task", "old before", "lowest", "at the end", "new task at 90%", "new at the end"]
State = tuple[Tensor, Tensor]  # weights and velocity


@cache
def benchmark() -> Any:
    return Recipe.find("rotated-mnist").build(SEED)


def training(method: str, task: int, state: State | None, **options: Any) -> Training:
    """Return the training of a method at the beginning of a task, with its memory filled."""
    settings = Settings(lr=0.1, batch_size=128, seed=SEED, validation=0.1, **options)
    run = Training(benchmark(), *Method.parse(method).make(), settings)
    for past in range(1, task):
        chosen, _ = run._start_task(past)
        run._end_task(past, chosen)
    if state is not None:
        run.net.values.copy_(state[0])
        run.velocity.copy_(state[1])
    return run


@cache
def state_before(task: int) -> State:
    """Return weights and velocity at a switch: task 1 with ER, task 2 with hold."""
    method, state = ("er", None) if task == 2 else ("er+hold(damping=0)", state_before(2))
    run = training(method, task - 1, state)
    _, rows = run._start_task(task - 1)
    for n in range(1, run.benchmark.offline_iterations + 1):
        run._iterate(task - 1, n, rows)
    return run.net.values.clone(), run.velocity.clone()


def result(method: str, task: int) -> dict[str, Any]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--train", action="store_true", help="train what is missing")
    train = parser.parse_args().train
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    results = {(each["method"], each["task"]): each for each in map(json.loads, lines)}
    if train:
        torch.set_num_threads(1)
        import_file(str(HERE / "two_sided.py"))
        for task in (2, 3):
            for method in METHODS:
                if (method, task) not in results:
                    results[method, task] = result(method, task)
                    with RESULTS.open("a") as file:
                        file.write(json.dumps(results[method, task]) + "\n")
    rows = [HEAD]
    for task in (2, 3):
        for method in METHODS:
            if each := results.get((method, task)):
                numbers = [f"{each[k]:.1f}" for k in ("before", "lowest", "end")]
                rows.append([method, str(task), *numbers, str(each["speed"]), f"{each['new']:.1f}"])
    print(markdown_table(rows, left=1))


main()
