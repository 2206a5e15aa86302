"""Numbers and effects as the page shows them, in real Chromium: they agree with Python's texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import until
from helpers.browser_fixtures import PLAYWRIGHT
from helpers.runs import curve_run

from twofold import Run
from twofold.report.page import build_page

pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)

SEEDS = (142, 152, 162)


def ends_at(method: str, *finals: float) -> list[Run]:
    """Return runs of two tasks with these AVGs, one per seed, and the same MIN."""
    return [
        curve_run(method, [[50.0, 50, 50, 50], [float("nan")] * 2 + [50, 2 * final - 50]], seed)
        for final, seed in zip(finals, SEEDS, strict=False)
    ]


@pytest.fixture
def page_of(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens the page of some runs."""
    page = browser.new_page()

    def page_of(*runs: list[Run]) -> Any:
        (tmp_path / "page.html").write_text(build_page([run for own in runs for run in own]))
        page.goto((tmp_path / "page.html").as_uri())
        return page

    yield page_of
    page.close()


def effects(page: Any, which: int) -> tuple[Any, ...]:
    """Return a hypothesis chart's symbols by method, its axis's range and its title."""
    result = page.evaluate(
        """(which) => {
            const { data, layout } = document.querySelectorAll(".effects")[which];
            const { xaxis, yaxis } = layout;
            return [yaxis.ticktext, data[0].marker.symbol, xaxis.range, xaxis.title.text];
        }""",
        which,
    )
    names, symbols, *axis = result
    return dict(zip(names, symbols, strict=True)), *axis


def test_numbers_are_rounded_as_python_does(page_of) -> None:
    page = page_of(ends_at("er", 50))
    numbers = [sign * k / 16 for k in range(400) for sign in (1, -1)]
    numbers += [0.15, 2.675, 1.005, 93.25, 99.95, 1e-9, 12345.5]
    for decimals in (0, 1, 3):
        result = page.evaluate(
            "([numbers, d]) => numbers.map((n) => fixed(n, d))", [numbers, decimals]
        )
        expected = [f"{abs(number):.{decimals}f}" for number in numbers]
        assert [text.removeprefix("-") for text in result] == expected


def test_a_verdict_does_not_contradict_its_sentence(page_of) -> None:
    page = page_of(ends_at("er", 50, 50), ends_at("er+gem", 51.25, 51.25))
    table = page.locator(".verdicts").last
    assert table.locator("tbody tr").first.inner_text().split("\t")[:2] == ["er+gem", "+1.2"]
    sentence = table.locator(".sentence")
    assert not sentence.is_visible()
    table.locator(".link").focus()
    page.keyboard.press("Enter")
    assert "(so far +1.2 points)" in sentence.inner_text()
    assert table.locator(".link").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert not sentence.is_visible()
    everything = page.locator("details", has_text="everything in this store")
    cells = everything.locator("td").all_text_contents()
    assert "51.2" in cells  # as the tables have it


def test_a_phone_shows_the_verdict_beside_a_long_name(page_of) -> None:
    """An effect that needs more than 1,000 new seeds has the longest verdict."""
    long = "er+gem(gamma=0.25,when=always,rule=added)+clip+warmup"
    page = page_of(ends_at("er", 60, 62, 64.1), ends_at(long, 62, 60, 64))
    page.set_viewport_size({"width": 390, "height": 800})
    link = page.locator(".verdicts .link").last
    assert "needs more than 1,000 new seeds" in link.text_content()
    cut = link.evaluate(
        """(link) => {
            const right = (e) => e.getBoundingClientRect().right;
            return right(link) - right(link.closest(".box"));
        }"""
    )
    assert cut <= 0


def test_effects_of_nothing_are_not_magnified(page_of) -> None:
    page = page_of(ends_at("er", 50, 50, 50), ends_at("er+gem", 50.002, 50.001, 50.003))
    symbols, (low, high), title = effects(page, 1)
    assert symbols == {"er+gem": "circle"}
    assert low <= -1 < 1 <= high
    assert title == "points more than plain SGD"


def test_effects_without_an_interval_are_hollow(page_of) -> None:
    gem, agem = ends_at("er+gem", 60, 62, 58), ends_at("er+agem", 55, 56)
    page = page_of(ends_at("er", 50, 50, 50), gem, agem)
    symbols, (low, high), title = effects(page, 1)
    assert symbols == {"er+gem": "circle", "er+agem": "circle-open"}
    assert low < -1
    assert high > 10
    assert title == "points more than plain SGD (hollow: no interval)"


@pytest.mark.parametrize("width", [1000, 600])
def test_effects_fit_a_window_made_narrow(page_of, width) -> None:
    """From a width at which the chart of curves has a different form, and from one at which not."""
    page = page_of(ends_at("er", 50, 50, 50), ends_at("er+gem", 60, 62, 58))
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.wait_for_selector(".effects .main-svg")
    names = "document.querySelector('.effects').layout.annotations.length"
    assert page.evaluate(names) == 0  # they stand beside the bars
    page.set_viewport_size({"width": 360, "height": 800})
    until(page, "document.querySelector('.effects')._fullLayout.width < 340")
    assert page.evaluate(names) == 1  # above them
    assert page.evaluate("document.querySelector('.effects').clientHeight") > 60


def test_the_chart_says_what_was_measured(page_of) -> None:
    for words, unit in (({}, "%"), ({"quantities": ["reward", "reward"]}, "")):
        runs = ends_at("er", 50, 51)
        for run in runs:
            run.summary.update(words)
        page = page_of(runs)
        measured = "reward" if words else "accuracy"
        assert f"{measured} on task 1" in page.locator("#status").text_content()
        titles, suffix, hover = page.evaluate(
            """() => {
                const { data, layout } = document.querySelector("#chart");
                const titles = layout.annotations.map(({ text }) => text);
                return [titles, layout.yaxis.ticksuffix, data.at(-1).hovertemplate];
            }"""
        )
        assert titles == [f"<b>er</b>  {measured} on task 1"]
        assert suffix == unit
        assert hover.removesuffix("<extra></extra>").endswith("}" + unit)
