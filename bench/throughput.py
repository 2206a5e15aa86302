"""Iterations per hour with evaluation: one worker per core, against the peer and against one.

The workers are processes that stand in the middle of a run. When told to, they all make a number of
iterations at the same time.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

import torch
from limits import precisions, seconds_at_peak
from measuring import Row, Stepper, benchmark, in_turns
from peer import Peer

CORES = os.cpu_count() or 1
WARM = 30  # training steps before anything is measured: a network that knows a little


def rows() -> list[Row]:
    return [
        *_against_peer("Rotated MNIST offline", "rotated-mnist", 2, 128, 0.1, 10, 7, (1.05, 1.4)),
        *_against_peer("online Split CIFAR-100", "split-cifar100", 2, 10, 0.01, 1, 3, (2.0, 3.5)),
        _scaling(),
    ]


def _against_peer(
    title: str,
    name: str,
    task: int,
    batch_size: int,
    lr: float,
    iterations: int,
    rounds: int,
    targets: tuple[float, float],
) -> list[Row]:
    arguments = name, batch_size, task, lr
    with ExitStack() as stack:
        crews = {
            precision: [stack.enter_context(_worker(*arguments, precision)) for _ in range(CORES)]
            for precision in precisions()
        }
        least = seconds_at_peak(benchmark(name), batch_size, task)
        peer = Peer(benchmark(name), batch_size, task, lr)
        torch.set_num_threads(CORES)
        acts = {p: functools.partial(_make, crew, iterations) for p, crew in crews.items()}
        acts["peer"] = functools.partial(_run, peer, iterations)
        _run(peer, 1)
        seconds = in_turns(acts, rounds, warm_up=0 if iterations == 1 else 1)  # ten seconds each
    title_of_row = f"{title} ER with evaluation in task {task}, {CORES} workers / eager PyTorch"
    rows = []
    for precision, end, target in zip(crews, ("", ", bf16"), targets, strict=False):
        ratio = CORES * seconds["peer"] / seconds[precision]
        limit = CORES * seconds["peer"] / (iterations * least[precision])
        note = f"matrix products alone, at the peak: {limit:.2f}"
        if "bf16" not in crews:
            note += "; not in bf16, which is slower here"
        rows.append(Row(f"{title_of_row}{end}", ratio, "at least", target, note=note))
    return rows


def _scaling() -> Row:
    """Runs an hour with a worker on every core, over one worker alone."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(_worker("rotated-mnist", 128, 2, 0.1, "fp32")) for _ in range(CORES)
        ]
        acts = {
            "one": functools.partial(_make, workers[:1], 10),
            "all": functools.partial(_make, workers, 10),
        }
        seconds = in_turns(acts, rounds=7)
    name = f"{CORES} workers / 1 worker, Rotated MNIST, runs an hour"
    return Row(name, CORES * seconds["one"] / seconds["all"], "at least", 0.925 * CORES)


def _run(what: Stepper | Peer, iterations: int) -> None:
    for _ in range(iterations):
        what.step()
        what.evaluate()


@contextmanager
def _worker(*arguments: object) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    own_end, worker_end = context.Pipe()
    process = context.Process(target=_work, args=(worker_end, *arguments), daemon=True)
    process.start()
    own_end.recv()  # it is ready
    try:
        yield own_end
    finally:
        process.kill()
        process.join()


def _work(
    pipe: Connection, name: str, batch_size: int, task: int, lr: float, precision: str
) -> None:
    torch.set_num_threads(1)
    stepper = Stepper(benchmark(name), "er", batch_size, task, lr, precision)
    for _ in range(WARM):
        stepper.step()
    stepper.evaluate()  # the first in bf16 is audited
    while True:
        pipe.send("ready")
        _run(stepper, pipe.recv())


def _make(crew: list[Connection], iterations: int) -> None:
    for pipe in crew:
        pipe.send(iterations)
    for pipe in crew:
        pipe.recv()
