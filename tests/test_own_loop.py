"""`Watch` and `How` together: a plain script and `twofold.run` are one run, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.guide import run_script
from helpers.loops import SETTINGS, TASKS, Script, everything

import twofold
from twofold import Benchmark, How, Run, UserError, Watch
from twofold.method import Method
from twofold.routines import Needs
from twofold.routines.base import needs_of

SCHEDULE, SIZE = "dense:2:2", 20
SAME = ("loss", "projected", "norm_ratio", "unsolved", "task", "iteration")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sets_of(benchmark: Benchmark) -> dict[str, Any]:
    """The test sets of a benchmark, as a script has them."""
    pool = benchmark.test
    return {str(k): tuple(pool.batch(task.test))[:2] for k, task in enumerate(benchmark.tasks)}


def script(chain: str, norm: bool, out: Path | None = None) -> tuple[Run, Script]:
    """Run a plain script with both halves."""
    _, routines = Method.parse(f"er+{chain}").make()
    old = Needs.OLD in needs_of(routines)
    loop = Script(chain, norm, apart=old and not norm, retain=old)
    names: dict[str, Any] = {"benchmark": "toy", "method": f"er+{chain}", "seed": SETTINGS.seed}
    tests = sets_of(loop.benchmark)
    watch = Watch(tests, schedule=SCHEDULE, size=SIZE, out=out, **names)
    loop.run(watch)
    return watch.finish(), loop


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
@pytest.mark.parametrize("chain", ["sgd", "agem", "gem", "lpr", "warmup(3)+ema(0.9)"])
def test_a_script_with_both_is_bitwise_a_run(chain, norm, tmp_path):
    """All curves, the whole test sets after each task, and the trained weights."""
    options = vars(SETTINGS) | {"eval_schedule": SCHEDULE, "eval_size": SIZE}
    benchmark = domain_benchmark(TASKS, norm)
    run = twofold.run(benchmark, f"er+{chain}", out=tmp_path / "a", keep_weights="end", **options)
    result, loop = script(chain, norm, tmp_path / "b")
    (stored,) = twofold.Store(tmp_path / "b").runs()
    values = [name for name in run.columns if "accuracy" in name]
    assert len(values) == (2 * TASKS if "ema" in chain else TASKS)
    for name in (*SAME, *values):
        for other in (result, stored):
            assert np.array_equal(run.columns[name], other.columns[name], equal_nan=True), name
    for name in ("accuracy_after_task", "raw_accuracy_after_task"):
        assert run.summary.get(name) == result.summary.get(name)
    assert run.measures == result.measures
    assert run.raw_measures == result.raw_measures
    with loop.how.evaluated():
        assert torch.equal(everything(run.model(model=benchmark.model)), everything(loop.model))
    if chain in ("agem", "gem"):
        assert 0 < result.columns["projected"].mean() < 1
        assert result.columns["norm_ratio"].min() < 1


def test_watching_an_average_leaves_no_trace():
    """The weights of a loop with `ema` are the same with and without `Watch`."""
    _, watched = script("ema(0.9)", norm=True)
    alone = Script("ema(0.9)", norm=True).run()
    for one, other in zip(watched.weights, alone.weights, strict=True):
        assert torch.equal(one, other)


def test_an_average_is_not_given_twice():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    how, watch = How("ema", optimizer, model), Watch({"a": float}, benchmark="b", method="m")
    watch.task(0)
    with pytest.raises(UserError, match="a chain with ema evaluates both weights: leave raw out"):
        watch(model, raw=model, how=how)


def test_the_guides_script_runs(tmp_path):
    run_script("Plain PyTorch", tmp_path)
    runs = twofold.Store(tmp_path / "runs").runs()
    depths = {run.config.method: run.measures["gap_depth"] for run in runs}
    assert depths["replay+gem+warmup"] < depths["replay"]
    assert any(run.columns["projected"].any() for run in runs)
    assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
