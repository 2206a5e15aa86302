"""Tables for the terminal: every number here is worked by hand."""

from __future__ import annotations

from helpers.runs import scored_run
from twofold.report.progress import result_text


def test_the_line_about_a_finished_run() -> None:
    assert result_text(scored_run("er", 83.149, 93.55)) == "MIN 83.1  AVG 93.5"
    assert result_text(scored_run("er", 80, 90, eval_schedule="dense")) == "MIN ≤ 80.0  AVG 90.0"
    assert result_text(scored_run("er", None, 93.6, eval_schedule="every:2")) == "MIN -  AVG 93.6"
    assert result_text(scored_run("er", 9.8, 9.8, diverged=True)) == "MIN 9.8  AVG 9.8  diverged"
