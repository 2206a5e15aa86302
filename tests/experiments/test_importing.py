"""Curves of other programs: tables and event files become runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.watching import network, train, watched

import twofold
from twofold.cli import main
from twofold.compare.groups import groups
from twofold.experiments import curve_files
from twofold.experiments.importing import import_curves

MANY = ",".join(f"acc{k}" for k in range(1, 1001))


def curves_of(run: Any) -> Any:
    return run.curves[["iteration", "task", "accuracy_1", "accuracy_2"]]


@pytest.fixture(scope="module")
def run() -> Any:
    watch = watched(schedule="dense:3:4", size=50)
    train(network(), watch, steps=12)
    return watch.finish()


def imported(file: Path, *words: str) -> Any:
    store = file.parent / "store"
    given = ["--benchmark", "mine", "--method", "theirs", "--seed", "0"]
    code = main(["runs", "import", str(file), "--runs", str(store), *given, *words])
    assert code == 0
    (imported_run,) = twofold.Store(store).runs()
    return imported_run


def same(found: Any, run: Any) -> None:
    assert np.array_equal(found.accuracy, run.accuracy, equal_nan=True)
    assert np.array_equal(found.columns["task"], run.columns["task"])
    assert found.gaps == run.gaps
    assert found.min == run.min


def test_a_wide_table_is_imported(tmp_path, run, capsys):
    curves_of(run).to_csv(tmp_path / "curves.csv", index=False)
    imported_run = imported(tmp_path / "curves.csv", "--lr", "0.5", "--set", "width=8")
    same(imported_run, run)
    assert imported_run.config.lr == 0.5
    assert imported_run.config.settings == {"width": 8}
    assert imported_run.quantity(1) == "accuracy"
    assert imported_run.config.eval_schedule == "dense:4:4"  # which means the same
    assert "1 run imported" in capsys.readouterr().out
    second = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    names = ["--benchmark", "mine", "--method", "theirs", "--seed", "0"]
    assert main([*second, *names, "--lr", "0.5", "--set", "width=8"]) == 2
    assert "removes it" in capsys.readouterr().err


def test_only_evaluated_rows_and_a_count_per_task_are_enough(tmp_path, run):
    curves = curves_of(run).dropna(subset="accuracy_1").copy()
    curves["step"] = curves.pop("iteration") - 12 * (curves["task"] - 1)
    curves["task"] = ["first" if task == 1 else "second" for task in curves["task"]]
    curves[["accuracy_1", "accuracy_2"]] /= 100
    curves.to_csv(tmp_path / "curves.tsv", sep="\t", index=False)
    imported_run = imported(
        tmp_path / "curves.tsv", "--scale", "100", "--columns", "accuracy_1,accuracy_2"
    )
    assert np.allclose(imported_run.accuracy, run.accuracy, equal_nan=True)


def test_a_long_table_is_imported(tmp_path, run):
    curves = curves_of(run).dropna(subset="accuracy_1")
    named = curves.rename(columns={"accuracy_1": "1", "accuracy_2": "2"})
    long = named.melt(["iteration", "task"], var_name="test", value_name="accuracy").dropna()
    long.sort_values(["iteration", "test"]).to_csv(tmp_path / "long.csv", index=False)
    imported_run = imported(tmp_path / "long.csv", "--measure", "reward")
    same(imported_run, run)
    assert imported_run.quantity(2) == "reward"


@pytest.mark.parametrize(
    ("rows", "schedule"),
    [
        ("100,1,9,\n200,2,9,9\n", "every:100"),  # the ends of tasks only
        ("100,1,9,\n350,2,9,9\n", "every:250"),
        ("10,1,9,\n20,1,9,\n25,1,9,\n35,2,9,9\n", "every:10"),
        ("1,1,9,\n2,1,9,\n7,1,9,\n8,2,9,9\n9,2,9,9\n14,2,9,9\n", "dense:2:5"),
    ],
)
def test_the_schedule_of_a_table_is_that_of_its_rows(tmp_path, rows, schedule):
    (tmp_path / "curves.csv").write_text(f"iteration,task,a,b\n{rows}")
    assert imported(tmp_path / "curves.csv").config.eval_schedule == schedule


def test_values_up_to_1_are_imported_if_that_is_meant(tmp_path):
    (tmp_path / "curves.csv").write_text("iteration,task,a,b\n1,1,0.5,\n2,2,0.25,0.5\n")
    assert imported(tmp_path / "curves.csv", "--measure", "reward").min == 0.25
    (tmp_path / "again").mkdir()
    (tmp_path / "curves.csv").rename(tmp_path / "again" / "curves.csv")
    assert imported(tmp_path / "again" / "curves.csv", "--scale", "1").min == 0.25


def test_a_table_of_several_runs_is_imported(tmp_path):
    for seed in range(3):
        watch = watched(out=tmp_path / "old", seed=seed, settings={"lr": 0.1, "width": 16}, size=50)
        train(network(seed), watch, steps=4)
        watch.finish()
    frame = twofold.Store(tmp_path / "old").runs().frame()
    frame.drop(columns="benchmark").to_csv(tmp_path / "all.csv", index=False)
    words = ["runs", "import", str(tmp_path / "all.csv"), "--runs", str(tmp_path / "new")]
    assert main([*words, "--benchmark", "mine"]) == 0
    runs = twofold.Store(tmp_path / "new").runs()
    assert [run.config.seed for run in runs] == [0, 1, 2]
    assert len(groups(runs)) == 1


def test_event_files_are_imported(tmp_path, run):
    pytest.importorskip("tensorboard", reason="with TensorBoard (pip install tensorboard)")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "events")) as writer:
        for row in curves_of(run).itertuples():
            writer.add_scalar("loss", 1.0, row.iteration)
            for task, value in enumerate((row.accuracy_1, row.accuracy_2), 1):
                if not np.isnan(value):
                    writer.add_scalar(f"accuracy/task {task}", value, row.iteration)
    same(imported(tmp_path / "events", "--switches", "12"), run)


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    words = ["runs", "import", str(tmp_path), "--runs", str(tmp_path / "store"), "--seed", "0"]
    assert main([*words, "--benchmark", "mine", "--method", "theirs"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "reading event files needs tensorboard" in line
    assert "[tensorboard]" in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n", "has no column 'iteration'"),
        ("iteration,task,x\n1,1,high\n", "columns hold the values"),
        ("iteration,a,b\n1,1,2\n2,1,2\n", "which task was being learned?"),
        ("iteration,task,a\n1,1,5\n2,2,5\n", "there are 2 tasks and the columns a"),
        ("iteration,task,a,b\n1,1,5,\n2,2,,5\n", "'a' has no value after its own task"),
        ("iteration,task,a,b\n1,1,5,\n3,1,5,\n2,1,5,5\n", "iteration 2 comes after 3"),
        ("iteration,task,a\n1.5,1,5\n", "must count iterations with whole numbers"),
        ("iteration,task,test,value\n1,1,a,5\n1,1,a,6\n", "two values of 'a' at iteration 1"),
        ("", "is not a table that can be read"),
        ("iteration,task,a,b\n1,1,0.9,\n2,2,0.5,1\n", "are they shares? Set --scale 100, or"),
        ("iteration,task,a\n1,1,500\n2,1,5\n", "from 0 to 100 percent: name other values"),
        ("iteration,task, task,a\n1,1,1,5\n", "two columns have the same name"),
        ("iteration,task,a\n1,1,5,6\n", "a row has more values than there are columns"),
        ("iteration,task,a\n1,1,5\n1e300,1,6\n", "iterations; at most 10,000,000 are read"),
        ("iteration,task,a\n1,1,\n2,1,\n", "there are no values in a"),
        ("iteration,task,a\x1b[31m\n1,1,5\n2,1,6\n", "test_sets must be printable text"),
        (f"iteration,task,{MANY}\n1,1{',5' * 1000}\n10000000,1{',5' * 1000}\n", "too large"),
        ("iteration,test,value\n" + "".join(f"{k},{k},5\n" for k in range(1, 10_000)), "large"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path, capsys, text, line):
    (tmp_path / "curves.csv").write_text(text)
    words = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    assert main([*words, "--benchmark", "mine", "--method", "theirs", "--seed", "0"]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not twofold.Store(tmp_path / "store").folders()


def test_names_of_an_imported_run_are_needed(tmp_path, capsys):
    (tmp_path / "curves.csv").write_text("iteration,task,a\n1,1,5\n")
    words = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    assert main([*words, "--benchmark", "mine", "--seed", "0"]) == 2
    assert "which method? Set it with --method" in capsys.readouterr().err
    assert main(["runs", "--scale", "2"]) == 2
    assert "--scale is for `twofold runs import`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seeds", "line"),
    [
        (["abc", "abc"], "seed must be a whole number, not 'abc'"),
        (["1.5", "1.5"], "seed must be a whole number, not '1.5'"),
        (["1e400", "1e400"], "seed must be a whole number"),
        (["", "7"], "a row has no seed"),
    ],
)
def test_seeds_of_a_table_are_whole_numbers(tmp_path, capsys, seeds, line):
    rows = [f"{seed},{k},1,50" for k, seed in enumerate(seeds, 1)]
    (tmp_path / "curves.csv").write_text("\n".join(["seed,iteration,task,acc1", *rows]))
    words = ["runs", "import", str(tmp_path / "curves.csv"), "--runs", str(tmp_path / "store")]
    assert main([*words, "--benchmark", "mine", "--method", "theirs"]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message


@pytest.mark.parametrize("column", ["iteration", "task", "test", "method"])
@pytest.mark.parametrize("nested", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_are_refused(tmp_path, column, nested):
    plain = {"iteration": [1, 2], "value": [50.0, 60.0]}
    pq.write_table(pa.table({**plain, column: nested}), tmp_path / "curves.parquet")
    with pytest.raises(twofold.UserError, match=f"column '{column}' must hold numbers or text"):
        import_curves(tmp_path / "curves.parquet", benchmark="mine", method="theirs", seed=0)


def test_a_table_that_grows_when_it_is_read_is_refused(tmp_path, monkeypatch):
    """A text of one letter compresses to nothing."""
    monkeypatch.setattr(curve_files, "LARGEST", 5_000_000)
    large = {"iteration": [1] * 600, "acc1": [1.0] * 600, "note": ["a" * 10_000] * 600}
    file = tmp_path / "curves.parquet"
    pq.write_table(pa.table(large), file, compression="zstd", use_dictionary=False)
    assert file.stat().st_size < 100_000
    with pytest.raises(twofold.UserError, match="is too large: its curves would take 6"):
        import_curves(file, benchmark="mine", method="theirs", seed=0)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.tfevents.1", "events/a.tfevents.1"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_that_never_ends_is_refused_at_once(tmp_path, name, kind):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    source = file.parent if file.parent != tmp_path else file
    with pytest.raises(twofold.UserError, match="it is not a plain file"):
        import_curves(source, benchmark="mine", method="theirs", seed=0)
