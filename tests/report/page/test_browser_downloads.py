"""Pictures and numbers that the page offers for download."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from helpers.browser import METHODS, SEEDS, download
from helpers.browser_fixtures import PLAYWRIGHT
from PIL import Image

from twofold.evaluation.trajectory import gaps

pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)


def test_the_picture_is_downloaded(page):
    page.locator("#view-2").check()
    name, data = download(page, "PNG")
    assert name == "rotated-mnist-offline-task-1-mean-switch-2.png"
    picture = Image.open(io.BytesIO(data))
    shown = page.locator("#chart").bounding_box()
    assert picture.size == pytest.approx((2 * shown["width"], 2 * shown["height"]), abs=2)
    assert len(np.unique(np.asarray(picture.convert("L")))) > 20  # not blank

    name, data = download(page, "SVG")
    assert name.endswith(".svg")
    text = data.decode()
    assert text.startswith("<svg")
    assert "rotated-mnist · offline" in text
    assert "iterations after the switch to task 2" in text


def test_the_numbers_shown_are_downloaded(page, runs):
    page.locator("#show-seeds").check()
    page.locator("#view-2").check()
    name, data = download(page, "Curves as CSV")
    assert name == "rotated-mnist-offline-task-1-seeds-switch-2.csv"
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert {(row["series"], row["seed"]) for row in rows} == {
        (method, str(seed)) for method in METHODS if method != "finetune" for seed in SEEDS
    }
    own = [row for row in rows if (row["method"], row["seed"]) == ("er+gem", "152")]
    assert [int(row["iteration"]) for row in own] == list(range(198, 252))
    accuracy = runs["er+gem", 152].accuracy[197:251, 0]
    assert (
        np.array([float(row["accuracy"]) for row in own], np.float32).tolist() == accuracy.tolist()
    )
    assert {row["benchmark"] for row in rows} == {"rotated-mnist"}

    name, data = download(page, "Gaps as CSV")
    assert name == "rotated-mnist-offline-task-1-seeds-switch-2-gaps.csv"
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert len(rows) == 5 * len(SEEDS)
    for row in rows:
        run = runs[row["method"], int(row["seed"])]
        gap = gaps(run.columns["task"], run.accuracy)[0]
        assert float(row["depth"]) == pytest.approx(gap.depth, rel=1e-6)
        assert row["recovery"] == ("" if gap.recovery is None else str(gap.recovery))
        assert row["command"] == run.summary["command"]
