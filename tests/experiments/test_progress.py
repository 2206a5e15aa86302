"""The display of progress: how many runs are done, and how long the others take."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from twofold.experiments import progress
from twofold.experiments.config import configure
from twofold.experiments.execution import Finished
from twofold.experiments.progress import Display
from twofold.training import Progress

SUMMARY: dict[str, Any] = {"min": 80.0, "avg": 90.0, "diverged": False}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"now": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: now["now"])
    return now


def test_the_time_left_follows_from_what_was_trained(clock: dict[str, float]) -> None:
    """Neither the start of the workers nor what a checkpoint had counts as speed.

    Of five runs, one is there. In 60 s, one goes from a tenth to its end, and one from 0.5 to 0.75.
    """
    out = io.StringIO()
    configs = [configure("rotated-mnist", "er", seed=seed) for seed in range(5)]
    with Display(configs, Console(file=out, width=200)) as display:
        display.finished(0, Finished("there", SUMMARY, Path("there")))
        assert display.seconds_left() is None
        display.started(1)
        display.started(2)
        clock["now"] = 20.0
        display.progressed(1, Progress(1, 10, 100, 0.5))
        display.progressed(2, Progress(1, 50, 100, 0.5))
        assert display.seconds_left() is None
        clock["now"] = 80.0
        display.progressed(2, Progress(1, 75, 100, 0.5))
        display.finished(1, Finished("trained", SUMMARY, Path("trained")))
        assert display.seconds_left() == pytest.approx(60 * 2.25 / 1.15)
    first, *_, last = out.getvalue().splitlines()
    assert first.endswith("(was there already)  (1 of 5 done)")
    assert last == "er seed 1: MIN 80.0  AVG 90.0  (2 of 5 done, about 2 min left)"


def test_a_longer_run_has_more_time_left(clock: dict[str, float]) -> None:
    """A run that costs 1 has taken a minute, so the one that costs 9 takes nine."""
    configs = [configure("rotated-mnist", method) for method in ("er", "er+gem")]
    with Display(configs, Console(file=io.StringIO()), [1.0, 9.0]) as display:
        display.started(0)
        display.progressed(0, Progress(1, 0, 100, 0.5))
        clock["now"] = 60.0
        display.finished(0, Finished("trained", SUMMARY, Path("trained")))
        assert display.seconds_left() == pytest.approx(9 * 60)


def test_a_terminal_shows_the_same(clock: dict[str, float]) -> None:
    out = io.StringIO()
    configs = [configure("rotated-mnist", "er", seed=seed) for seed in range(2)]
    with Display(configs, Console(file=out, width=200, force_terminal=True)) as display:
        display.started(0)
        clock["now"] = 20.0
        display.progressed(0, Progress(1, 1, 100, 0.5))
        clock["now"] = 50.0
        display.progressed(0, Progress(1, 51, 100, 0.5))
    assert "0 of 2 done, about 1.5 min left, 1 running" in out.getvalue()


def test_a_line_that_a_plugin_prints_cannot_act_on_the_terminal() -> None:
    out = io.StringIO()
    with Display([configure("rotated-mnist", "er")], Console(file=out, width=200)) as display:
        display.printed(0, "[bold]loss\x1b[2J 1.0")
    assert out.getvalue() == "er seed 142: [bold]loss\\x1b[2J 1.0\n"
