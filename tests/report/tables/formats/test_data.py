"""Tables as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from twofold.report.tables import StudyTable, notes, render


def test_json_has_every_number_in_full(small: StudyTable) -> None:
    whole = json.loads(render(small, "json"))
    assert (whole["table"], whole["profile"]) == ("main", "paper")
    assert whole["notes"] == notes(small)
    first = whole["numbers"][0]
    assert first == {
        "table": "main",
        "profile": "paper",
        "benchmark": "rotated-mnist",
        "mode": "offline",
        "lr": 0.1,
        "batch_size": 128,
        "method": "er",
        "metric": "min",
        "mean": 83.0,
        "sem": pytest.approx(1 / math.sqrt(3)),
        "seeds": [142, 152, 162],
        "diverged": 0,
        "bound": "",
        "reduced": "",
        "bold": True,  # er+gem has 85 +- 2.9
        "used": False,
        "reference_mean": 83.1,
        "reference_sem": 0.5,
        "difference": pytest.approx(-0.1),
        "errors_apart": pytest.approx(0.1 / math.sqrt(1 / 3 + 1 / 4)),
        "command": "twofold run rotated-mnist er --mode offline --seeds 3 --profile paper",
    }
    joint = next(n for n in whole["numbers"] if n["method"] == "joint")
    assert joint["bound"] == "≤"
    assert "every 10 iterations" in joint["reduced"]
    assert [n["mean"] for n in whole["numbers"] if n["method"] == "er+agem"] == [None, None]


def test_csv_says_the_same(small: StudyTable) -> None:
    read = list(csv.DictReader(io.StringIO(render(small, "csv"))))
    whole = json.loads(render(small, "json"))["numbers"]
    assert len(read) == len(whole) == 12
    for line, one in zip(read, whole, strict=True):
        assert line["method"] == one["method"]
        assert line["seeds"] == " ".join(map(str, one["seeds"]))
        for name in ("mean", "sem", "reference_mean", "difference"):
            assert (float(line[name]) if line[name] else None) == one[name]
