"""Stores and archives with arbitrary contents: every command answers in a few lines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.hostile import COMMANDS, answer, answered_export, victim
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torture.hostile import seal
from twofold.experiments.files import digest
from twofold.experiments.runs import Run

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
        present = {k: np.asarray(v) for k, v in Run.load(folder).columns.items()}
        column = data.draw(st.sampled_from(list(present)))
        values = data.draw(
            st.lists(st.floats(width=32), min_size=0, max_size=6)
            | st.lists(st.integers(-(2**40), 2**40), max_size=6)
            | st.lists(st.text(max_size=3), max_size=6)
        )
        resized = {k: np.resize(v, len(values)) for k, v in present.items() if k != column}
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
