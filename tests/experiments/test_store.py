"""The store: a run is replaced whole, whatever happens meanwhile; and what a frame holds."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.crashes import every_crash
from helpers.runs import curve_run, gap_accuracies

from twofold import Config, Run, Store, UserError
from twofold.experiments import files, store, weights
from twofold.experiments.checksums import DamagedRunError, check
from twofold.experiments.export import export
from twofold.options import options

STATE = {"fc.weight": torch.arange(6.0).reshape(2, 3), "fc.bias": torch.zeros(2)}


def run_with(avg: float, seed: int = 142, **options: object) -> Run:
    run = curve_run("er", gap_accuracies(60, 3, int(avg)), seed, **options)
    return dataclasses.replace(run, summary={**run.summary, "avg": avg})


def whole(folder: Path) -> list[float]:
    """The AVG of every run in a store, after all of it was read and compared."""
    store = Store(folder)
    runs = store.runs()
    for run in runs:
        assert run.folder is not None
        check(run.folder)
        expected = run_with(run.avg).columns
        assert all(np.array_equal(run.columns[k], expected[k], equal_nan=True) for k in expected)
    assert len(runs) == len([p for p in folder.iterdir() if p.is_dir() and p.name[0] != "."])
    return [run.avg for run in runs]


@pytest.mark.parametrize("swaps", [True, False], ids=["folders are swapped", "renamed in turn"])
def test_a_run_that_is_replaced_is_there_whenever_the_process_is_killed(
    swaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swaps:
        monkeypatch.setattr(store, "exchange", lambda one, other: False)
    elif not can_swap(tmp_path):
        pytest.skip("that swap two folders (a file system that can do so)")
    template = tmp_path / "template"
    Store(template).save(run_with(10))
    place = tmp_path / "runs"

    def prepare() -> tuple[object, Path]:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place)
        return lambda: Store(place).save(run_with(20), {"end": STATE}), place

    results = []
    for _ in every_crash(prepare):
        assert Store(place).find(run_with(10).config) is not None
        results += whole(place)
        Store(place).save(run_with(30))
        assert whole(place) == [30]
    assert results[0] == 10
    assert results[-1] == 20
    assert len(results) > 10
    assert results == sorted(results)


def can_swap(folder: Path) -> bool:
    for name in ("one", "other"):
        (folder / name).mkdir()
    return files.exchange(folder / "one", folder / "other")


def test_folders_are_swapped_in_one_step(tmp_path: Path) -> None:
    if not can_swap(tmp_path):
        pytest.skip("that swap two folders (a file system that can do so)")
    (tmp_path / "one" / "file").touch()
    assert files.exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "other" / "file").exists()
    with pytest.raises(FileNotFoundError):
        files.exchange(tmp_path / "one", tmp_path / "none")


def test_a_run_that_was_put_aside_comes_back(tmp_path: Path) -> None:
    """A kill came between the two renames of a file system that cannot swap folders."""
    runs = Store(tmp_path)
    folder = runs.save(run_with(10))
    (tmp_path / ".work").mkdir(exist_ok=True)
    folder.rename(tmp_path / ".work" / f".{folder.name}.old")
    assert [run.avg for run in Store(tmp_path).runs()] == [10]
    assert runs.find(run_with(10).config) == folder


def test_the_same_run_under_two_profiles_is_one_run(tmp_path: Path) -> None:
    """Their names differ, and their identity does not."""
    runs = Store(tmp_path)
    run = run_with(10)
    renamed = dataclasses.replace(run, config=dataclasses.replace(run.config, profile="other"))
    assert runs.save(run) != runs.save(renamed)
    assert [result.config.profile for result in runs.runs()] == ["other"]


def test_files_and_folders_are_synced_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def note_sync(descriptor: int) -> None:
        result.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def note_rename(path: Path, to: Path) -> Path:
        result.append(f"rename to {to.name}")
        return rename(path, to)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "rename", note_rename)
    folder = Store(tmp_path).save(run_with(10), {"end": STATE})
    renamed = result.index(f"rename to {folder.name}")
    written = {"config.json", "summary.json", "curves.parquet", "checksums.json"}
    assert {*written, "end.safetensors", "weights"} <= {*result[:renamed]}
    assert result[renamed - 1].startswith(f".{folder.name[-10:]}-")
    assert result[renamed + 1] == tmp_path.name


# Weights in a run's folder


def test_weights_are_saved_and_covered_by_checksums(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    states = {"task-1": STATE, "task-2": {"fc.bias": torch.ones(2)}}
    folder = runs.save(run_with(10), states)
    (run,) = runs.runs()
    assert list(run.states) == ["task-1", "task-2"]
    assert weights.digest(run.weights(1)) == weights.digest(STATE)
    assert runs.damaged([folder]) == {}
    file = folder / "weights" / "task-2.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert runs.damaged([folder]) == {folder: "weights/task-2.safetensors is damaged"}
    with pytest.raises(UserError, match=r"task-2\.safetensors is damaged"):
        run.weights(2)
    assert len(runs.runs()) == 1  # tables need no weights
    file.unlink()
    with pytest.raises(DamagedRunError, match=r"weights/task-2\.safetensors is missing"):
        check(folder)


def test_weights_that_are_not_the_runs_are_not_read(tmp_path: Path) -> None:
    folder = Store(tmp_path).save(run_with(10))
    (folder / "weights").mkdir()
    weights.write(folder / "weights" / "end.safetensors", STATE)
    (run,) = Store(tmp_path).runs()
    with pytest.raises(UserError, match="no checksum: it is not part of this run"):
        run.weights()


def test_weights_survive_when_their_run_is_saved_again(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    runs.save(run_with(10), {"end": STATE})
    (run,) = runs.runs()
    runs.save(run)  # has them
    runs.save(run_with(10))  # has none, and the same curves
    (run,) = runs.runs()
    assert weights.digest(run.weights()) == weights.digest(STATE)
    runs.save(run_with(20))  # has different curves
    (run,) = runs.runs()
    assert list(run.states) == []


def test_weights_of_a_damaged_run_are_not_kept(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    for damage in (Path.unlink, lambda file: file.write_bytes(b"")):
        for name in ("curves.parquet", "weights/end.safetensors"):
            folder = runs.save(run_with(10), {"end": STATE})
            damage(folder / name)
            runs.save(run_with(10))
            (run,) = runs.runs()
            assert list(run.states) == []


def test_a_folder_with_a_colon_is_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Store("lr:0.1").save(run_with(90))
    assert len(Store("lr:0.1").runs()) == 1
    assert export([place], Path("to:all"))[0] == 1


def test_a_run_that_was_removed_stays_away(tmp_path: Path) -> None:
    """Its older version may have been left behind by a kill."""
    runs = Store(tmp_path)
    folder = runs.save(run_with(10))
    shutil.copytree(folder, tmp_path / ".work" / f".{folder.name}.old")
    runs.remove(folder)
    assert Store(tmp_path).runs() == []


# Frames


def test_a_frame_has_all_options(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    runs.save(run_with(10))
    runs.save(run_with(20, seed=152, lr=0.5, tasks=2))
    frame = runs.frame()
    names = list(options(Config))
    assert list(frame.columns[: len(names) + 1]) == ["run", *names]
    assert len(frame) == 120
    assert sorted(set(frame["run"])) == [folder.name for folder in runs.folders()]
    assert dict(frame.groupby("seed")["lr"].first()) == {142: 0.1, 152: 0.5}
    assert {"iteration", "task", "accuracy_3"} <= {*frame.columns}


def test_a_frame_of_no_runs_is_empty(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    assert len(Store(tmp_path).frame()) == 0
