"""Merging stores: all runs are kept, and what differs is refused before anything is written."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import domain_benchmark

import twofold
from twofold import Run, Store, UserError
from twofold.cli import main
from twofold.experiments.export import export
from twofold.experiments.merging import merge

KILLED = """
import os, shutil, signal, sys
from twofold.experiments.merging import merge

copies, copy = [], shutil.copyfile

def deadly(source, target):
    copies.append(source)
    if len(copies) == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    copy(source, target)

shutil.copyfile = deadly
merge(sys.argv[1:-1], sys.argv[-1])
"""


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    options = {"batch_size": 10, "iterations": 2, "tasks": 2, "keep_weights": "end"}
    return [twofold.run(domain_benchmark(), "er", seed=seed, **options) for seed in (1, 2, 3)]


def store_of(folder: Path, *members: Run) -> Path:
    store = Store(folder)
    store.prepare()
    for run in members:
        store.save(run)
    return folder


def without_weights(run: Run) -> Run:
    return dataclasses.replace(run, states={})


def names(folder: Path) -> list[str]:
    return [place.name for place in Store(folder).folders()]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def three(tmp_path, runs) -> list[Path]:
    """Three stores: two of them share a run, and one has two."""
    return [
        store_of(tmp_path / "a", runs[0]),
        store_of(tmp_path / "b", runs[1], runs[0]),
        store_of(tmp_path / "c", runs[2]),
    ]


def test_all_runs_are_there_once_with_their_files(three, tmp_path, runs):
    before = [tree(store) for store in three]
    merged = merge(three, tmp_path / "all")
    assert (merged.added, merged.present, merged.remarks) == (3, 0, [])
    assert len(names(tmp_path / "all")) == 3
    together = {name: data for each in before for name, data in each.items()}
    assert tree(tmp_path / "all") == together
    assert [tree(store) for store in three] == before
    again = merge(three, tmp_path / "all")
    assert (again.added, again.present) == (0, 3)
    assert tree(tmp_path / "all") == together


def test_the_command(three, tmp_path, capsys):
    words = ["runs", "merge", *map(str, three), "--out", str(tmp_path / "all")]
    assert main(words) == 0
    assert main(words) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"3 runs merged into {tmp_path / 'all'}"
    assert second == f"0 runs merged into {tmp_path / 'all'}; 3 were there already"


def different(run: Run) -> Run:
    """The same run with a different accuracy in one iteration."""
    columns = {name: np.array(column) for name, column in run.columns.items()}
    columns["accuracy_1"][1] = 12.5
    return dataclasses.replace(run, columns=columns)


@pytest.mark.parametrize("into", [False, True])
def test_the_same_run_with_different_results_is_refused_by_name(into, tmp_path, runs):
    one = store_of(tmp_path / "one", runs[0])
    other = store_of(tmp_path / "other", runs[1], different(runs[0]))
    out = one if into else tmp_path / "all"
    name = runs[0].config.folder_name()
    with pytest.raises(UserError) as error:
        merge([other] if into else [one, other], out)
    assert str(error.value) == (
        f"{one / name} and {other / name} are the same run with different results, "
        "in accuracy_1: nothing was merged"
    )
    assert names(out) == ([name] if into else [])


def test_weights_that_differ_are_refused(tmp_path, runs):
    states = {"end": {key: value + 1 for key, value in runs[0].states["end"].items()}}
    other = dataclasses.replace(runs[0], states=states)
    stores = [store_of(tmp_path / "one", runs[0]), store_of(tmp_path / "other", other)]
    with pytest.raises(UserError, match=r"different results, in weights/end\.safetensors"):
        merge(stores, tmp_path / "all")


def test_weights_of_all_copies_are_kept(tmp_path, runs):
    run = runs[0]
    task = dataclasses.replace(run, states={"task-1": run.states["end"]})
    stores = [
        store_of(tmp_path / "none", without_weights(run)),
        store_of(tmp_path / "task", task),
        store_of(tmp_path / "end", run),
    ]
    merge(stores[:2], tmp_path / "all")
    assert merge(stores, tmp_path / "all").added == 1  # one that has more
    assert merge(stores, tmp_path / "all").added == 0
    (whole,) = Store(tmp_path / "all").runs()
    assert {*whole.states} == {"end", "task-1"}
    assert all(torch.equal(v, run.states["end"][k]) for k, v in whole.weights().items())


def test_archives_are_merged_and_give_way_to_whole_runs(three, tmp_path, runs):
    export(Store(three[1]).folders(), tmp_path / "archive")
    assert merge([tmp_path / "archive"], tmp_path / "all").added == 2
    assert "loss_new" not in Store(tmp_path / "all").runs()[0].columns
    assert merge([tmp_path / "archive"], tmp_path / "all").added == 0
    assert merge([three[1], tmp_path / "archive", three[0]], tmp_path / "all").added == 2
    assert tree(tmp_path / "all") == tree(three[1])
    assert merge([tmp_path / "archive"], tmp_path / "all").present == 2


def test_a_damaged_run_is_refused_and_nothing_is_written(three, tmp_path):
    damaged = next(three[2].glob("*/curves.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"curves\.parquet is damaged: nothing was merged"):
        merge(three, tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("file", ["summary.json", "weights/end.safetensors"])
def test_a_damaged_run_of_the_target_is_set_aside_and_replaced(file, three, tmp_path, capsys):
    merge(three, tmp_path / "all")
    whole = tree(tmp_path / "all")
    damaged = next((tmp_path / "all").glob(f"*/{file}"))
    damaged.write_text("{}")
    assert merge(three, tmp_path / "all").added == 1
    assert "set aside" in capsys.readouterr().err
    kept = {name: data for name, data in tree(tmp_path / "all").items() if "damaged" not in name}
    assert kept == whole


def test_a_merge_that_was_interrupted_is_repeated(three, tmp_path):
    """It is killed in the middle of the second run: the first is whole, and the next merge ends."""
    words = [sys.executable, "-c", KILLED, *map(str, three), str(tmp_path / "all")]
    assert subprocess.run(words).returncode == -signal.SIGKILL
    assert len(names(tmp_path / "all")) == 1
    assert not Store(tmp_path / "all").damaged(Store(tmp_path / "all").folders())
    merged = merge(three, tmp_path / "all")
    assert (merged.added, merged.present) == (2, 1)
    assert merge(three, tmp_path / "all").present == 3


def test_a_file_that_changes_meanwhile_is_noticed(three, tmp_path, monkeypatch):
    copy = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", lambda source, target: copy(os.devnull, target))
    with pytest.raises(UserError, match="was changed meanwhile: start again"):
        merge(three, tmp_path / "all")
    assert names(tmp_path / "all") == []


def test_versions_that_differ_and_unfinished_runs_are_told(three, tmp_path, runs, capsys):
    made = {**runs[2].summary["made_with"], "torch": "9.9"}
    other = dataclasses.replace(runs[2], summary={**runs[2].summary, "made_with": made})
    three[2] = store_of(tmp_path / "d", other)
    (three[0] / ".work" / "0123456789").mkdir(parents=True)
    main(["runs", "merge", *map(str, three), "--out", str(tmp_path / "all")])
    versions, unfinished = capsys.readouterr().err.splitlines()
    assert "the runs come from different versions" in versions
    assert "1 run with twofold" in versions
    assert "torch 9.9" in versions
    assert unfinished.endswith(
        "a has 1 unfinished run: finish with the command that began, and merge again"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["a"], "`twofold runs merge` needs --out DIR, and no other action takes it"),
        (["--out", "all"], "name the stores to merge: `twofold runs merge STORE... --out DIR`"),
        (["nowhere", "--out", "all"], "there is no folder nowhere"),
        (["empty", "--out", "all"], "empty is no run store"),
        ([".", "--out", "all"], ". is no run store: it holds stores, name them: a, archive, b, c"),
        (["a", "b", "--out", "b"], "b is the store to merge into: name the others only"),
        (["a", "--out", "archive"], "archive is an archive: merge into a store, then `twofold"),
        (["a", "--out", "all", "--seed", "1"], "merge takes whole stores: leave filters such as"),
    ],
)
def test_mistakes_are_answered_in_one_line(words, line, three, tmp_path, monkeypatch, capsys):
    export(Store(three[0]).folders(), tmp_path / "archive")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["runs", "merge", *words]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"twofold: {line}")
    assert not Path("all").exists()


def test_a_file_beside_the_weights_is_no_part_of_the_run(three, tmp_path, runs):
    """Whoever wrote the store may have put it there; it has no checksum."""
    for source in three:
        (Store(source).folders()[0] / "weights" / "more.safetensors").write_bytes(b"anything")
    merge(three, tmp_path / "out")
    assert names(tmp_path / "out") == sorted(run.config.folder_name() for run in runs)
    assert list((tmp_path / "out").rglob("more.safetensors")) == []


def test_weights_outside_the_store_are_not_merged(three, tmp_path):
    """A folder of weights may be a link that leads anywhere."""
    place = Store(three[0]).folders()[0]
    (place / "weights").rename(tmp_path / "outside")
    (place / "weights").symlink_to(tmp_path / "outside")
    with pytest.raises(UserError, match="nothing was merged"):
        merge(three, tmp_path / "out")
    assert not (tmp_path / "out").exists()
