"""Archives: every bit of the runs, read one by one, added to safely, and never trained into."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from helpers.commandline import Command, one_line
from helpers.crashes import every_crash
from helpers.runs import curve_run, gap_accuracies

from twofold import Run, Store, UserError
from twofold.experiments import archive as module
from twofold.experiments.archive import Archive
from twofold.experiments.export import export

FIGURE = "figure gap rotated-mnist --methods er+ema(0.9)"
FILES = ["checksums.json", "curves.parquet", "runs.jsonl", "store.json"]


def full_run(method: str, seed: int, tasks: int = 3, **options: str) -> Run:
    """A run with losses, infinities, and NaN of more than one kind."""
    run = curve_run(method, gap_accuracies(60, tasks, seed), seed, tasks=tasks, **options)
    odd = np.full(60, np.nan, np.float32)
    odd.view(np.uint32)[::2] += 1  # NaN with a different payload
    odd[5:8] = -0.0, np.inf, -np.inf
    columns = {**run.columns, "loss": odd.copy(), "norm_ratio": odd}
    if "ema" in method:
        columns["raw_accuracy_1"] = odd[::-1].copy()
    return Run(run.config, {**run.summary, "note": [float("inf"), 0.1, "ü\u2028"]}, columns)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    store = Store(tmp_path / "full")
    store.prepare()
    for method in ("er", "er+gem", "er+ema(0.9)"):
        for seed in (142, 152):
            store.save(full_run(method, seed, 2 if method == "er+gem" else 3))
    store.save(full_run("er", 142, memory_grouping="class"))
    return store.folder


@pytest.fixture
def archive(full: Path, tmp_path: Path) -> Path:
    to = tmp_path / "archive"
    assert export(Store(full).folders(), to)[0] == 7
    return to


def same_runs(archive: Path, folders: list[Path]) -> None:
    """Compare an archive with the run folders that it was made of, bit by bit."""
    store = Store(archive)
    assert [place.name for place in store.folders()] == sorted(f.name for f in folders)
    for folder in folders:
        entry = Archive(archive).entry(folder.name)
        for plain, name in ((entry.config, "config.json"), (entry.summary, "summary.json")):
            assert json.dumps(plain, indent=2) + "\n" == (folder / name).read_text()
        run, original = Run.load(archive / folder.name), Run.load(folder)
        kept = {name for name in original.columns if not name.startswith("loss")}
        assert set(run.columns) == kept
        for name in kept:
            assert run.columns[name].dtype == original.columns[name].dtype
            assert run.columns[name].tobytes() == original.columns[name].tobytes()


def test_every_bit_is_kept(full: Path, archive: Path) -> None:
    assert sorted(path.name for path in archive.iterdir()) == FILES
    same_runs(archive, Store(full).folders())


def test_lines_are_runs_by_name_and_row_groups_are_theirs(archive: Path) -> None:
    lines = (archive / "runs.jsonl").read_text().splitlines()
    names = [json.loads(line)["run"] for line in lines]
    assert names == sorted(names)
    parquet = pq.ParquetFile(archive / "curves.parquet")
    assert parquet.num_row_groups == len(names) == 7
    for index, name in enumerate(names):
        group = parquet.read_row_group(index)
        assert group.num_rows == 60
        assert group["run"].unique().to_pylist() == [name]
    compression = parquet.metadata.row_group(0).column(0).compression
    assert compression == "ZSTD"


def test_an_archive_does_not_depend_on_the_order_of_additions(
    full: Path, archive: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    for folder in reversed(Store(full).folders()):
        assert export([folder], other)[0] == 1
    for name in FILES:
        assert (archive / name).read_bytes() == (other / name).read_bytes()


def test_archives_can_be_joined(full: Path, tmp_path: Path) -> None:
    folders, both = Store(full).folders(), tmp_path / "both"
    for place, own in ((tmp_path / "a", folders[:4]), (tmp_path / "b", folders[2:])):
        export(own, place)
        export(Store(place).folders(), both)
    same_runs(both, folders)


def test_what_is_there_is_skipped(full: Path, archive: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in archive.iterdir()}
    assert export(Store(full).folders(), archive) == (0, 0)
    assert {path: path.stat().st_mtime_ns for path in archive.iterdir()} == before


def test_a_run_under_two_names_is_added_once(full: Path, tmp_path: Path) -> None:
    (first, *_) = Store(full).folders()
    copy = shutil.copytree(first, first.with_name(f"a-copy-{first.name[-10:]}"))
    assert export([first, Path(copy)], tmp_path / "to")[0] == 1


def test_the_store_finds_runs_in_an_archive(full: Path, archive: Path) -> None:
    (first, *_) = Store(full).runs()
    place = Store(archive).find(first.config)
    assert place == archive / first.name
    assert Run.load(place).summary == first.summary
    assert Store(archive).find(full_run("er", 999).config) is None
    frames = [Store(folder).frame() for folder in (full, archive)]
    kept = [name for name in frames[0] if name in frames[1]]
    assert {*frames[0]} - {*kept} == {"loss"}
    assert frames[0][kept].equals(frames[1][kept])
    summaries = [Store(folder).summaries() for folder in (full, archive)]
    for one, other in zip(*summaries, strict=True):
        assert {**one, "folder": ""} == {**other, "folder": ""}


def test_one_run_is_read_without_the_rest(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda self, index, names: (read.append(index), original(self, index, names))[1],
    )
    runs = Store(archive).runs()
    assert read == []
    assert len(runs[4].columns["task"]) == 60
    assert runs[4].accuracy.shape == (60, 3 if runs[4].config.tasks is None else 2)
    assert read == [4]


@pytest.mark.parametrize("command", ["table main", "verdicts", "runs", "runs --json"])
def test_tables_do_not_need_the_curves(command: str, archive: Path, twofold: Command) -> None:
    words = [*command.split(), "--runs", archive]
    before = twofold(*words)
    assert before.code == 0, before.err
    (archive / "curves.parquet").unlink()
    assert twofold(*words) == before


@pytest.mark.parametrize(
    "command",
    ["table trajectories", FIGURE, "report", "departures", "runs show"],
)
def test_commands_work_on_an_archive(
    command: str, full: Path, archive: Path, twofold: Command, tmp_path: Path
) -> None:
    outcomes = []
    for folder in (full, archive):
        file = tmp_path / f"{folder.name}.{'png' if 'figure' in command else 'html'}"
        output = ["-o", file] if command[:6] in ("figure", "report") else []
        result = twofold(*command.split(), "--runs", folder, *output)
        text = result.out.replace(str(archive), str(full)).replace("archive.", "full.")
        assert result.code == 0, result.err
        outcomes.append(text)
        if output:
            assert file.stat().st_size > 1000
    assert outcomes[0] == outcomes[1]


# Nothing is trained into an archive


def changes(archive: Path) -> dict[str, Callable[[], object]]:
    store, run = Store(archive), full_run("er", 999)
    return {
        "prepare": store.prepare,
        "save": lambda: store.save(run),
        "claim": lambda: store.claim(run.config).__enter__(),
    }


@pytest.mark.parametrize("kind", ["prepare", "save", "claim"])
def test_nothing_is_trained_into_an_archive(kind: str, archive: Path) -> None:
    before = {path: path.read_bytes() for path in archive.iterdir()}
    with pytest.raises(UserError) as error:
        changes(archive)[kind]()
    assert str(error.value) == (
        f"{archive} is an archive, which stays as it is: train into a different folder, then add "
        f"the runs with `twofold runs export --to {archive}`"
    )
    assert {path: path.read_bytes() for path in archive.iterdir()} == before


def test_nothing_is_removed_from_an_archive(archive: Path, twofold: Command) -> None:
    result = twofold("runs", "remove", "--method", "er", "--runs", archive)
    assert result.code == 2
    assert "is an archive, from which nothing is removed: export the runs" in one_line(result.err)
    assert len(Store(archive).runs()) == 7


def test_a_store_is_not_exported_into(full: Path, archive: Path, twofold: Command) -> None:
    result = twofold("runs", "export", "--runs", archive, "--to", full)
    assert result.code == 2
    assert "is a run store and not an archive: export to a different" in one_line(result.err)


def test_weights_are_left_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "full")
    store.save(full_run("er", 142), {"end": {"a": torch.zeros(100_000)}})
    export(store.folders(), tmp_path / "to")
    (run,) = Store(tmp_path / "to").runs()
    assert Archive(tmp_path / "to").size() < 20_000
    with pytest.raises(UserError, match="kept no weights"):
        run.weights()


# Kills, and several processes at once


def test_an_addition_that_is_killed_anywhere_loses_nothing(full: Path, tmp_path: Path) -> None:
    folders, place = Store(full).folders(), tmp_path / "place"
    half = tmp_path / "half"
    export(folders[:3], half)

    def prepare() -> tuple[Callable[[], object], Path]:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(half, place)
        return lambda: export(folders[3:], place), place

    counts = []
    for _ in every_crash(prepare):
        counts.append(len(Store(place).runs()))
        same_runs(place, folders[: counts[-1]])
        assert Store(place).damaged(Store(place).folders()) == {}
        export(folders, place)
        same_runs(place, folders)
        assert sorted(path.name for path in place.iterdir()) == FILES
    assert {*counts} == {3, 7}
    assert counts == sorted(counts)
    assert counts.count(7) > 4  # it was killed while the files were moved into place, too


def test_a_first_export_that_is_killed_can_be_repeated(full: Path, tmp_path: Path) -> None:
    folders, place = Store(full).folders()[:2], tmp_path / "place"

    def prepare() -> tuple[Callable[[], object], Path]:
        shutil.rmtree(place, ignore_errors=True)
        return lambda: export(folders, place), place

    for _ in every_crash(prepare):
        export(folders, place)
        same_runs(place, folders)
        assert sorted(path.name for path in place.iterdir()) == FILES


def test_two_exports_at_once_add_the_runs_of_both(full: Path, tmp_path: Path) -> None:
    folders, to = Store(full).folders(), tmp_path / "to"
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=export, args=(folders[k::2], to)) for k in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    same_runs(to, folders)


# Damage


def flip(path: Path, place: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def test_a_damaged_line_is_noticed_before_anything_is_shown(
    archive: Path, twofold: Command
) -> None:
    flip(archive / "runs.jsonl")
    result = twofold("table", "main", "--runs", archive)
    assert (result.code, result.out) == (2, "")
    assert one_line(result.err) == (
        f"{archive / 'runs.jsonl'} is not as it was written: get the archive again"
    )


@pytest.mark.parametrize("place", [0.05, 0.3, 0.6, 0.98])
def test_damaged_curves_are_noticed_by_verify_and_when_they_are_read(
    place: float, full: Path, archive: Path, twofold: Command
) -> None:
    flip(archive / "curves.parquet", place)
    result = twofold("runs", "verify", "--runs", archive)
    assert result.code == 1
    assert "0 of 7 runs" in result.out
    originals = {run.name: run for run in Store(full).runs()}
    for run in Store(archive).runs():
        with contextlib.suppress(UserError):
            columns, original = dict(run.columns), originals[run.name].columns
            assert all(columns[k].tobytes() == original[k].tobytes() for k in columns)


@pytest.mark.parametrize("name", FILES[:3])
def test_a_missing_file_is_named(name: str, archive: Path, twofold: Command) -> None:
    (archive / name).unlink()
    result = twofold("runs", "verify", "--runs", archive)
    assert result.code == 2
    assert name in one_line(result.err)


def test_damage_is_not_copied(archive: Path, tmp_path: Path) -> None:
    flip(archive / "curves.parquet", 0.3)
    with pytest.raises(UserError, match=r"are not as they were written|can't be read"):
        export(Store(archive).folders(), tmp_path / "to")
    store = Store(tmp_path / "more")
    store.save(full_run("er", 999))
    with pytest.raises(UserError, match=r"curves\.parquet is not as it was written: nothing is"):
        export(store.folders(), archive)
    assert sorted(path.name for path in archive.iterdir()) == FILES


def test_columns_of_two_types_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.save(full_run("er", 142))
    run = full_run("er", 152)
    store.save(Run(run.config, run.summary, {**run.columns, "projected": np.zeros(60)}))
    with pytest.raises(UserError, match="'projected' is float in other runs and double in rotated"):
        export(store.folders(), tmp_path / "to")


def test_a_newer_archive_is_left_alone(archive: Path) -> None:
    mark = {"format": module.FORMAT + 1, "kind": "archive"}
    (archive / "store.json").write_text(json.dumps(mark))
    with pytest.raises(UserError, match="written by a newer twofold"):
        Store(archive)


@pytest.mark.parametrize("name", ["runs.jsonl", "curves.parquet", "checksums.json"])
def test_a_link_out_of_an_archive_is_not_followed(name: str, archive: Path, tmp_path: Path) -> None:
    (archive / name).rename(tmp_path / "outside")
    (archive / name).symlink_to(tmp_path / "outside")
    with pytest.raises(UserError, match=r"link|symbolic"):
        Store(archive).runs()[0].accuracy  # noqa: B018


def test_a_folder_of_new_files_that_is_a_link_is_not_followed(
    archive: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("runs.jsonl", "curves.parquet", "checksums.json"):
        (archive / name).rename(outside / name)
    (archive / ".next").symlink_to(outside)
    with pytest.raises(UserError, match="can't read"):
        Store(archive).runs()


def test_a_run_that_an_archive_lacks_is_named(archive: Path) -> None:
    with pytest.raises(UserError, match="has no run 'nothing'"):
        Run.load(archive / "nothing")


def test_what_describes_all_curves_is_read_once(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as long as the archive: to read it for every run takes the square of their number."""
    export(Store(full).folders(), tmp_path / "archive")
    reads = []
    original = module.pq.ParquetFile

    def opened(*args: object, metadata: object = None) -> object:
        reads.append(metadata)
        return original(*args, metadata=metadata)

    monkeypatch.setattr(module.pq, "ParquetFile", opened)
    runs = Store(tmp_path / "archive").runs(curves=True)
    assert len(runs) > 2
    assert [each for each in reads if each is None] == [None]
    assert len(reads) == len(runs) + 1
