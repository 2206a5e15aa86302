"""The page without a mouse, by its address, in the dark and on a phone."""

from __future__ import annotations

import re

import pytest
from helpers.browser import chart, command_of, until, x_range
from helpers.browser_fixtures import PLAYWRIGHT
from helpers.runs import curve_run, gap_accuracies

from twofold.report.page import build_page

playwright = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)
expect = playwright.expect


# Without a mouse


def test_the_keyboard_reaches_and_works_everything(page):
    page.locator("h1").click()  # the way begins at the top
    page.keyboard.press("Tab")
    reached = []
    for _ in range(60):
        focused = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            const mark = e.matches(".chip input") ? getComputedStyle(e.nextElementSibling) : s;
            return [e.id || e.className || e.textContent, mark.outlineStyle, mark.outlineWidth] }"""
        )
        reached.append(focused[0])
        assert focused[1:] == ["solid", "2px"], focused
        if focused[0] == "frame":
            break
        page.keyboard.press("Tab")
    ids = [
        "pick-benchmark",
        "pick-mode",
        "pick-lr",
        "method-0",
        "method-5",
        "task-1",
        "show-mean",
        "view-0",
    ]
    places = [reached.index(one) for one in [*ids, "frame"]]
    assert places == sorted(places)

    for key, shown in (("ArrowRight", [198, 251]), ("ArrowRight", [398, 451]), ("Home", [0, 600])):
        page.keyboard.press(key)
        assert x_range(page) == shown
    page.keyboard.press("ArrowLeft")
    assert x_range(page) == [398, 451]
    page.keyboard.press("s")
    expect(page.locator("#show-seeds")).to_be_checked()
    expect(page.locator("#status")).to_contain_text("single seeds, the switch to task 3.")
    assert page.evaluate("document.activeElement.id") == "frame"

    page.locator("#method-0").focus()
    page.keyboard.press("Space")
    expect(page.locator("#methods input:checked")).to_have_count(4)
    assert page.evaluate("document.activeElement.id") == "method-0"
    page.locator("#show-seeds").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#show-mean")).to_be_checked()

    page.locator("[data-download=gaps]").focus()
    page.keyboard.press("Tab")  # one stop per table
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    row, text = page.evaluate(
        "() => [document.activeElement.closest('tr').rowIndex, document.activeElement.className]"
    )
    assert (row, text) == (2, "number")
    page.keyboard.press("Enter")
    expect(page.locator("#command")).to_be_visible()
    assert command_of(page).startswith("twofold run rotated-mnist er+gem")
    page.keyboard.press("Escape")
    expect(page.locator("#command")).to_be_hidden()
    assert page.evaluate("document.activeElement.className") == "number"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_controls_have_names_for_those_who_cannot_see_them(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [role=region]")]
        .filter((e) => !`${e.textContent}${e.ariaLabel ?? ""}`.trim() && !e.closest("label"))
        .map((e) => e.outerHTML)"""
    )
    assert unnamed == []
    expect(page.get_by_role("group", name="Methods").get_by_role("checkbox")).to_have_count(6)
    expect(page.get_by_role("combobox", name="benchmark")).to_have_value("rotated-mnist")
    expect(page.locator("#status")).to_have_text(
        "5 methods, accuracy on task 1, mean over 3 seeds, the whole run."
    )


# The address


def test_the_address_keeps_what_is_chosen(page):
    page.get_by_role("button", name="none").click()
    page.get_by_label("er+gem", exact=True).check()
    page.locator("#task-2").check()
    page.locator("#view-3").check()
    page.locator("#show-seeds").check()
    before, address = chart(page), page.url
    page.evaluate("location.hash = '#'")
    expect(page.locator("#methods input:checked")).to_have_count(5)
    page.evaluate("(hash) => { location.hash = hash }", address.partition("#")[2])
    expect(page.locator("#methods input:checked")).to_have_count(1)
    assert chart(page) == before
    assert x_range(page) == [398, 451]
    page.get_by_role(
        "link", name="Verdicts"
    ).click()  # a link within the page is none in the address
    assert page.url == address


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "mode=backwards&lr=nan&tasks=0,9&view=77&show=all",
        "method=%3Cimg%20src%3Dx%3E&tasks=-1",
        "benchmark=*&iterations=*&view=1e9",
    ],
)
def test_an_address_that_means_nothing_shows_the_usual(page, address):
    page.evaluate("(hash) => { location.hash = hash }", address)
    until(page, "choice.view === 0 && choice.tasks.length === 1")
    assert len(chart(page)) == 5


# Looks

# All charts have been drawn for the window as it is.
FITTED = """[...document.querySelectorAll(".js-plotly-plot")]
    .every((one) => one._fullLayout.width === one.clientWidth && one.clientWidth < innerWidth)"""


def lightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3 / 255


def test_dark_mode_is_dark_with_its_charts_and_changes_at_once(page):
    def grounds() -> list[float]:
        colours = page.evaluate(
            """() => [getComputedStyle(document.documentElement).backgroundColor,
            ...[...document.querySelectorAll(".main-svg")].filter((e) => e.style.background)
                .map((e) => getComputedStyle(e).backgroundColor)]"""
        )
        assert len(colours) >= 3  # the page, the chart, effects
        return [lightness(colour) for colour in colours]

    def plain() -> float:
        return lightness(next(t["line"]["color"] for t in chart(page) if t["meta"] == "er"))

    assert min(grounds()) > 0.95
    assert plain() == 0
    page.emulate_media(color_scheme="dark")
    until(page, "byId('chart').layout.paper_bgcolor === style('--ground')")
    assert max(grounds()) < 0.15
    assert plain() > 0.85
    gem = next(t["line"]["color"] for t in chart(page) if t["meta"] == "er+gem")
    assert gem.startswith("rgba(77,156,201")  # #0072B2 and three tenths of the way to white


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(
        "change({ tasks: [1, 2], show: 'seeds', methods: allSeries.map((one) => one.label) })"
    )
    assert page.evaluate("byId('chart').layout.grid.columns") == 3
    page.evaluate(
        """() => {
            globalThis.excess = []; // of the page's width over the window's, at every frame
            const measure = () => {
                if (!excess) return;
                excess.push(document.documentElement.scrollWidth - innerWidth);
                requestAnimationFrame(measure);
            };
            measure();
        }"""
    )
    page.set_viewport_size({"width": 360, "height": 740})
    until(page, f"byId('chart').layout.grid.columns === 1 && {FITTED}")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("Math.max(...excess)") <= 0  # while charts were too wide as well
    outside = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *, footer *")]
        .filter((e) => !e.closest(".box, .js-plotly-plot") && e.getBoundingClientRect().right > 361)
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    page.evaluate("excess = null")


def test_numbers_are_in_sight_whatever_the_methods_are_called(browser, tmp_path):
    """A name of 80 letters, in windows of 1280 and 390 pixels."""
    long = "gem(gamma=0.25,when=always,rule=added,references=cumulative,ridge=0.01)+agem"
    runs = [
        curve_run(method, gap_accuracies(60, 2, k))
        for k, method in enumerate(["er", f"er+{long}", f"joint+{long}", "er+gem"])
    ]
    (tmp_path / "page.html").write_text(build_page(runs))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "page.html").as_uri() + "#panels=one")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, f"innerWidth === {width} && {FITTED}")
        heads, cut = page.evaluate(
            """() => {
                const box = [...document.querySelectorAll("#tables .box")].at(-1);
                const right = (e) => e.getBoundingClientRect().right;
                const heads = [...box.querySelectorAll("th[scope=col]")].map((e) => e.textContent);
                const cells = [...box.querySelectorAll("tbody td")];
                return [heads, cells.filter((e) => right(e) > right(box)).length];
            }"""
        )
        assert heads == ["method", "MIN", "AVG"]
        assert cut == 0
        legend, title, over = page.evaluate(
            """() => {
                const box = (name) => document.querySelector(name).getBoundingClientRect();
                const names = [...document.querySelectorAll("#chart .legendtext")];
                const right = Math.max(...names.map((e) => e.getBoundingClientRect().right));
                const { bottom } = box("#chart .legend");
                return [bottom, box("#chart .annotation").top, right - box("#frame").right + 12];
            }"""
        )
        assert legend <= title
        assert over <= 0
    common = page.locator("#tables .common").last
    expect(common).to_contain_text("In all rows: seeds 1, benchmark rotated-mnist, mode offline")
    page.close()
