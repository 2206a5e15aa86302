"""Runs whose precision chooses itself, beside runs with a fixed one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import runs_in

import twofold
from twofold import Store
from twofold.experiments.config import configure
from twofold.experiments.estimate import seconds_left

SHORT: dict[str, Any] = {"batch_size": 10, "iterations": 4, "tasks": 2}
PLUGIN = str(Path(__file__).parents[1] / "helpers" / "plugin.py")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_auto_takes_a_run_that_is_there_in_either_precision(tmp_path: Path, precision: str) -> None:
    """The other way round, a run that asks for a precision is trained in it."""
    fixed = configure("toy", "er", plugins=[PLUGIN], eval_precision=precision, **SHORT)
    auto = dataclasses.replace(fixed, eval_precision="auto")
    (trained,) = twofold.run_all(fixed, out=tmp_path, engine="inline")
    (found,) = twofold.run_all(auto, out=tmp_path, engine="inline")
    assert found.folder == trained.folder
    assert len(runs_in(tmp_path)) == 1
    assert seconds_left([auto], Store(tmp_path), None) == [None]

    different = dataclasses.replace(auto, seed=7)
    for each in (different, dataclasses.replace(different, eval_precision=precision)):
        twofold.run_all(each, out=tmp_path, engine="inline")
    assert len(runs_in(tmp_path)) == 3
