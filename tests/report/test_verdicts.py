"""Verdicts as text."""

from __future__ import annotations

import csv
import io
import json

from helpers.runs import seeded

from twofold.compare.groups import groups
from twofold.compare.verdicts import LIMITS, Findings, findings, unpaired, verdicts
from twofold.experiments.runs import Run
from twofold.report.verdicts import render

PLAIN = [80.0, 80.0, 80.0]


def some() -> list[Run]:
    return seeded("er", PLAIN) + seeded("er+gem", [81, 82, 83]) + seeded("joint+gem", [90])


def test_markdown() -> None:
    all_groups = groups(some())
    text = render(findings(all_groups))
    title = "**H1: better routines reduce the stability gap** (MIN, profile paper), primary"
    assert text.count(f"{title} comparisons of the study main") == 1
    assert "| 1 | rotated-mnist | offline | 0.1 | 128 | er   | gem |     3 |   +2.0 |" in text
    assert "| 0.074 |" in text
    # The quantile of 0.975 with two degrees of freedom is 4.303, that of 1 - 0.025 / 4 is 8.860;
    # the standard error is 1 / sqrt(3).
    assert "| −0.5 to +4.5 | −3.1 to +7.1 | 0.074 |       0.297 |  4 |" in text
    assert "\n1. Undecided: the effect of gem on er's MIN is +2.0 points on average" in text
    assert all(f"- {limit}" in text for limit in (*LIMITS, *unpaired(all_groups)))


def test_json_and_csv_say_the_same() -> None:
    results = verdicts(groups(some()))
    whole = json.loads(render(Findings(results, ["alone"]), "json"))
    assert whole["unpaired"] == ["alone"]
    assert whole["limits"] == Findings(results).limits
    read = list(csv.DictReader(io.StringIO(render(Findings(results), "csv"))))
    assert len(read) == len(whole["verdicts"]) == len(results) == 2
    for line, one, verdict in zip(read, whole["verdicts"], results, strict=True):
        assert float(line["effect"]) == one["effect"] == verdict.effect
        assert [float(end) for end in line["interval"].split()] == one["interval"]
        assert [float(end) for end in line["uncorrected"].split()] == one["uncorrected"]
        assert line["sentence"] == one["sentence"] == verdict.sentence
        assert one["seeds"] == [142, 152, 162]
        assert line["commands"] == " && ".join(one["commands"])
