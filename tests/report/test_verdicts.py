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
    found = groups(some())
    text = render(findings(found))
    assert text.count("**H1: better routines reduce the stability gap** (MIN, profile paper)") == 1
    assert "| 1 | rotated-mnist | offline | 0.1 | 128 | er   | gem |     3 |   +2.0 |" in text
    assert "| 0.074 |" in text
    assert "\n1. 3 seeds show no effect of gem on er's MIN" in text
    assert all(f"- {limit}" in text for limit in (*LIMITS, *unpaired(found)))


def test_json_and_csv_say_the_same() -> None:
    found = verdicts(groups(some()))
    whole = json.loads(render(Findings(found, ["alone"]), "json"))
    assert whole["unpaired"] == ["alone"]
    assert whole["limits"] == Findings(found).limits
    read = list(csv.DictReader(io.StringIO(render(Findings(found), "csv"))))
    assert len(read) == len(whole["verdicts"]) == len(found) == 2
    for line, one, verdict in zip(read, whole["verdicts"], found, strict=True):
        assert float(line["effect"]) == one["effect"] == verdict.effect
        assert [float(end) for end in line["interval"].split()] == one["interval"]
        assert line["sentence"] == one["sentence"] == verdict.sentence
        assert one["seeds"] == [142, 152, 162]
        assert line["commands"] == " && ".join(one["commands"])
