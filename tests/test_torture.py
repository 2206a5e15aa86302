"""One attempt of each kind of torture that takes a moment; `make torture` makes many."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from torture import __main__ as torture
from torture import clusters, shims
from torture.outcome import bad
from torture.processes import Patience
from twofold.cli import main
from twofold.experiments import checkpoints
from twofold.experiments import store as store_module
from twofold.experiments.store import Store


@pytest.mark.parametrize("kind", [kind for kind in torture.KINDS if kind not in torture.SELDOM])
def test_a_store_bears_it(kind):
    assert torture.attempt(kind, seed=7) == torture.Outcome()


def unsynced(path: Path, *parts: bytes) -> None:
    path.with_name("unsynced").write_bytes(b"".join(parts))
    path.with_name("unsynced").replace(path)


def test_a_run_that_is_not_synced_is_lost_in_a_power_failure(monkeypatch):
    """The shim drops what was not synced, so only syncing keeps a complete run."""
    monkeypatch.setattr(store_module, "sync", lambda folder: None)
    assert any(torture.attempt("power", seed).lost for seed in (2, 5, 10))


def test_a_checkpoint_that_is_not_synced_is_lost_in_a_power_failure(monkeypatch):
    monkeypatch.setattr(checkpoints, "replace_file", unsynced)
    assert any(torture.attempt("power", seed).lost for seed in (1, 3))


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 10])
def test_a_power_failure_costs_nothing_that_counts(seed):
    assert torture.attempt("power", seed) == torture.Outcome()


def test_a_process_that_is_killed_without_a_word_is_badly_answered():
    code, message = shims.forked(lambda: time.sleep(60), seconds=0.1)
    assert bad(code, message)
    assert not bad(0, "")
    assert bad(2, "", good=[0])


@pytest.mark.parametrize(("load", "seconds"), [(0.5, 10), (2.0, 10), (20.0, 100)])
def test_a_busy_machine_gets_more_time(load, seconds, monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    patience = Patience(10)
    now = 0.9 * seconds
    assert not patience.is_over()
    now = 1.1 * seconds
    assert patience.is_over()


def test_the_table_counts_what_went_wrong():
    result = {"kill": [torture.Outcome(), torture.Outcome(lost=True)]}
    assert "| kill |        2 |        1 |    1 |" in torture.table(result)


def test_clusters_are_compared_with_the_runs_that_their_command_trains(monkeypatch, tmp_path):
    """The command knows the digest of the plugin's data, which is a part of a run's name."""
    monkeypatch.setattr(clusters, "METHODS", ("er",))
    monkeypatch.setattr(clusters, "SEEDS", (142,))
    monkeypatch.setattr(clusters, "expected", {})
    assert main([*clusters.words(tmp_path), "--engine", "inline"]) == 0
    assert [place.name for place in Store(tmp_path).folders()] == [*clusters.undisturbed()]
