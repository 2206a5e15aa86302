"""The page in real headless Chromium: it opens from disk, and all that one can do with it works.

$TWOFOLD_BROWSER names the browser; without it Debian's `chromium` is looked for. Where there is
none, these tests are skipped.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import curve_run, example_run, gap_accuracies
from PIL import Image

from twofold import Run, Store
from twofold.cli import main
from twofold.evaluation.measures import gaps
from twofold.report.page.server import page_server

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: it comes with [dev]")
expect = playwright.expect

pytestmark = pytest.mark.xdist_group("browser")

SEEDS = (142, 152, 162)
LENGTH = 600  # three tasks of 200 iterations
METHODS = ("er", "er+gem", "er+agem", "joint", "joint+gem", "finetune")
HOSTILE = "<img src=x onerror=\"document.title='hit'\">&lt;b&gt;'\"%{x}</script><script>hit()"


def example_runs() -> list[Run]:
    runs = [
        curve_run(method, gap_accuracies(LENGTH, 3, 100 * k + seed), seed)
        for k, method in enumerate(METHODS)
        for seed in SEEDS
    ]
    runs.append(curve_run("er", gap_accuracies(LENGTH, 3, 1), mode="online"))
    runs.append(curve_run("er", gap_accuracies(LENGTH, 3, 2), lr=0.01))
    return runs


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, int], Run]:
    """Those of the usual settings, by method and seed."""
    usual = [run for run in example_runs() if (run.config.mode, run.config.lr) == ("offline", 0.1)]
    return {(run.config.method, run.config.seed): run for run in usual}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    store = Store(folder / "runs")
    for run in example_runs():
        store.save(run)
    assert main(["report", str(store.folder), "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


class Watcher:
    """What a page asked for and what it complained about."""

    def __init__(self, page: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def asked(self, url: str) -> None:
        if not url.startswith(("blob:", "data:")):  # the page's own memory
            self.requests.append(url.partition("#")[0])


@pytest.fixture(scope="module")
def opened(browser: Any, page_file: Path) -> Iterator[tuple[Any, Watcher]]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(20_000)
    watcher = Watcher(page)
    page.goto(page_file.as_uri())
    yield page, watcher
    context.close()


@pytest.fixture
def page(opened: tuple[Any, Watcher], page_file: Path) -> Iterator[Any]:
    """As it is when it is opened; afterwards it has not complained, nor asked for anything."""
    page, watcher = opened
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(
        "byId('command').close(); document.activeElement.blur(); location.hash = '#tasks=1'"
    )
    expect(page.locator("#view-0")).to_be_checked()
    expect(page.locator("#show-mean")).to_be_checked()
    expect(page.locator("#methods input:checked")).to_have_count(5)
    yield page
    assert watcher.complaints == []
    assert {*watcher.requests} == {page_file.as_uri()}


def chart(page: Any) -> list[dict[str, Any]]:
    """The lines that Plotly draws, without bands; x and y as lists."""
    return page.evaluate(
        """() => byId("chart").data.filter((trace) => !trace.fill).map((trace) => ({
            ...trace, x: [...trace.x], y: [...trace.y], customdata: [...(trace.customdata ?? [])],
        }))"""
    )


def named(page: Any) -> set[str]:
    return {trace["meta"] for trace in chart(page)}


def x_range(page: Any) -> list[float]:
    return page.evaluate("byId('chart')._fullLayout.xaxis.range")


def bands(page: Any) -> int:
    return page.evaluate("byId('chart').data.filter((trace) => trace.fill).length")


def until(page: Any, condition: str) -> None:
    """Playwright's own way evaluates text within the page, which the page forbids."""
    for _ in range(400):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never came to {condition}")


def command_of(page: Any) -> str:
    return page.locator("#command-text").inner_text()


# What is drawn


def test_lines_are_means_over_seeds_of_the_full_curves(page, runs):
    assert named(page) == {"er", "er+gem", "er+agem", "joint", "joint+gem"}
    assert bands(page) == 5
    for trace in chart(page):
        table = np.stack([runs[trace["meta"], seed].accuracy[:, 0] for seed in SEEDS]).astype(float)
        rows = np.array(trace["x"]) - 1
        np.testing.assert_allclose(trace["y"], table.mean(axis=0)[rows], rtol=1e-6)
        error = table.std(axis=0, ddof=1)[rows] / np.sqrt(3)
        np.testing.assert_allclose(trace["customdata"], error, rtol=1e-5, atol=1e-6)
        assert {1, 200, 201, 260, 400, 401, 460, 600} <= {*trace["x"]}


def test_the_header_says_what_the_store_holds(page, page_file):
    expect(page.locator("h1")).to_have_text(str(page_file.parent / "runs"))
    expect(page.locator("#holdings")).to_have_text("20 runs of 6 methods on 1 benchmark")
    page.locator("#holdings button").click()
    assert command_of(page) == f"twofold runs --runs {page_file.parent / 'runs'}"


# Pick, zoom, toggle


def test_methods_tasks_and_settings_are_picked(page):
    page.get_by_label("er+gem", exact=True).uncheck()
    page.get_by_label("finetune", exact=True).check()
    assert named(page) == {"er", "er+agem", "joint", "joint+gem", "finetune"}
    page.get_by_role("button", name="none").click()
    assert chart(page) == []
    expect(page.locator("#chart")).to_contain_text("No method is chosen")
    page.get_by_role("button", name="all", exact=True).click()
    assert named(page) == {*METHODS}

    page.locator("#task-2").check()
    assert len(chart(page)) == 2 * len(METHODS)
    assert {(trace["xaxis"], trace["yaxis"]) for trace in chart(page)} == {
        (f"x{k}".replace("x1", "x"), f"y{k}".replace("y1", "y")) for k in range(1, 7)
    }
    second = [trace for trace in chart(page) if trace["xaxis"] in ("x4", "x5", "x6")]
    assert all(min(trace["x"]) == 201 for trace in second)

    page.locator("#pick-mode").select_option("online")
    assert named(page) == {"er"}
    assert bands(page) == 0  # of a single seed
    page.locator("#pick-mode").select_option("offline")
    page.locator("#pick-lr").select_option("0.01")
    assert named(page) == {"er"}
    page.locator("#pick-lr").select_option("*")
    page.get_by_role("button", name="all", exact=True).click()
    assert {"er, learning rate 0.1", "er, learning rate 0.01", "joint"} <= named(page)
    dashes = {trace["meta"]: trace["line"]["dash"] for trace in chart(page)}
    assert dashes["er, learning rate 0.1"] != dashes["er, learning rate 0.01"]


def test_one_click_zooms_to_a_switch_and_back(page):
    assert x_range(page) == [0, 600]
    page.locator("#view-3").check()
    assert x_range(page) == [398, 451]
    seen = [y for t in chart(page) for x, y in zip(t["x"], t["y"], strict=True) if 398 <= x <= 451]
    low, high = page.evaluate("byId('chart')._fullLayout.yaxis.range")
    assert low < min(seen) < max(seen) < high
    assert high - low < 1.3 * (max(seen) - min(seen))
    page.locator("#view-0").check()
    assert x_range(page) == [0, 600]
    page.locator("#gaps").get_by_role("button", name="task 2").first.click()
    assert x_range(page) == [198, 251]


def test_dragging_zooms_and_there_are_ways_back(page):
    def drag() -> None:
        box = page.locator("#chart .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 120, steps=4)
        page.mouse.up()
        until(page, "byId('chart')._fullLayout.xaxis.range[0] > 150")

    drag()
    low, high = x_range(page)
    assert (low, high) == (pytest.approx(180, abs=5), pytest.approx(360, abs=5))
    page.locator("#show-seeds").check()
    assert x_range(page) == [low, high]  # another way to show the same place
    page.locator("#view-0").click()
    assert x_range(page) == [0, 600]
    drag()
    page.locator("#frame").press("Home")
    assert x_range(page) == [0, 600]
    drag()
    page.locator("#chart .nsewdrag").first.dblclick()
    until(page, "byId('chart')._fullLayout.xaxis.range[0] < 1")


def test_single_seeds_are_the_runs_themselves(page, runs):
    page.locator("#show-seeds").check()
    assert bands(page) == 0
    found = chart(page)
    assert len(found) == 5 * len(SEEDS)
    for trace in found:
        method, seed = trace["meta"].split(", seed ")
        accuracy = runs[method, int(seed)].accuracy[:, 0]
        assert trace["y"] == accuracy[np.array(trace["x"]) - 1].tolist()  # exactly
        assert min(trace["y"][trace["x"].index(201) :]) == accuracy[200:].min()
    page.locator("#show-mean").check()
    assert bands(page) == 5


def test_depth_and_recovery_are_read_off(page, runs):
    page.locator("#show-seeds").check()
    page.locator("#view-2").check()
    rows = page.locator("#gaps tbody tr")
    expect(rows).to_have_count(5 * len(SEEDS))
    for text in rows.all_inner_texts():
        method, seed, *shown = text.split("\t")
        run = runs[method, int(seed)]
        (gap,) = (
            g for g in gaps(run.columns["task"], run.accuracy) if (g.switch, g.task) == (200, 1)
        )
        back = "not recovered" if gap.recovery is None else f"{gap.recovery}"
        assert shown == ["1", "task 2", f"{gap.depth:.1f}", f"{gap.lowest_at}", back]

    page.locator("#show-mean").check()
    first = rows.first.inner_text().split("\t")
    depths = [
        gap.depth
        for seed in SEEDS
        for gap in gaps(runs["er", seed].columns["task"], runs["er", seed].accuracy)
        if (gap.switch, gap.task) == (200, 1)
    ]
    error = np.std(depths, ddof=1) / np.sqrt(3)
    assert first[:4] == ["er", "1", "task 2", f"{np.mean(depths):.1f} ± {error:.1f}"]


def test_all_measures_unfold(page):
    page.get_by_text("All measures of these methods").click()
    expect(page.locator("#measures tbody tr")).to_have_count(5)
    expect(page.locator("#measures dt").first).to_have_text("MIN")
    page.get_by_text("All measures of these methods").click()


# Commands


def test_every_number_leads_to_its_command(page, runs):
    page.get_by_text("All measures of these methods").click()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_selector("#measures td")
    bare = page.evaluate(
        """() => [...document.querySelectorAll("td")]
        .filter((cell) => !cell.querySelector("button")).map((cell) => cell.innerText.trim())"""
    )
    results = [text for text in bare if re.match(r"(≤ )?[\d.]+ ±|[\d]+\.\d$", text)]
    assert set(results) <= {"0.1"}  # a learning rate
    page.locator("#gaps tbody tr").nth(2).locator(".number").first.click()
    expected = "twofold run rotated-mnist er+agem --mode offline --seeds 3 --profile paper"
    assert command_of(page) == expected
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#copied")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.get_by_role("button", name="Close").click()

    page.locator("#show-seeds").check()
    page.locator("#gaps tbody tr").first.locator(".number").first.click()
    assert command_of(page) == runs["er", 142].summary["command"]
    page.keyboard.press("Escape")

    page.locator(".study-table .number").first.click()
    assert (
        command_of(page) == "twofold run rotated-mnist er --mode offline --seeds 3 --profile paper"
    )
    page.keyboard.press("Escape")
    page.locator(".verdicts .number").first.click()
    plain, _ = command_of(page).splitlines()
    assert plain == "twofold run rotated-mnist er --mode offline --seeds 3 --profile paper"
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")


# Downloads


def download(page: Any, button: str) -> tuple[str, bytes]:
    with page.expect_download() as started:
        page.get_by_role("button", name=button, exact=True).click()
    return started.value.suggested_filename, Path(started.value.path()).read_bytes()


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
    page.keyboard.press("Tab")  # one stop a table
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
    page.set_viewport_size({"width": 360, "height": 740})
    until(page, "byId('chart').layout.grid.columns === 1 && byId('chart')._fullLayout.width < 340")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    outside = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *, footer *")]
        .filter((e) => !e.closest(".box, .js-plotly-plot") && e.getBoundingClientRect().right > 361)
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")


# What users name


def hostile_runs() -> list[Run]:
    """As a store from somewhere may have them: no name is what twofold would have made of it."""
    usual = curve_run("er+gem", gap_accuracies(60, 2, 0)).config
    plain = curve_run("er", gap_accuracies(60, 2, 0)).config
    options = {"benchmark": HOSTILE.replace("/", "∕"), "plugins": [f"/tmp/{HOSTILE}.py"]}
    runs = []
    for k, seed in enumerate(SEEDS):
        for config, method in ((usual, f"er+{HOSTILE}"), (plain, "er")):
            components = [("er", {}), (HOSTILE, {})] if method != "er" else [("er", {})]
            values = {**vars(config), **options, "method": method, "components": components}
            run = example_run(type(config)(**{**values, "seed": seed}), gap_accuracies(60, 2, k))
            run.summary["command"] = shlex.join(["twofold", "run", HOSTILE, "--seed", str(seed)])
            runs.append(run)
    known = curve_run("er", gap_accuracies(60, 2, 0))  # one that is in the paper's tables
    known.summary["command"] += f" --plugin {shlex.quote(HOSTILE)}"
    return [*runs, known]


def test_hostile_names_stay_text(browser, tmp_path):
    store = Store(tmp_path / HOSTILE.replace("/", "∕"))
    for run in hostile_runs():
        store.save(run)
    output = tmp_path / "report.html"
    assert main(["report", str(store.folder), "-o", str(output)]) == 0
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(20_000)
    watcher = Watcher(page)
    page.goto(output.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_selector("#measures td")
    expect(page.locator("h1")).to_have_text(str(store.folder))
    expect(page.locator("#pick-benchmark option").first).to_have_text(HOSTILE.replace("/", "∕"))
    expect(page.get_by_label(f"er+{HOSTILE}", exact=True)).to_be_checked()
    assert HOSTILE in page.locator("#chart .legend").text_content()
    expect(page.locator(".facts b").first).to_have_text(f"er+{HOSTILE}")
    assert HOSTILE in page.locator(".effects").first.text_content()
    assert HOSTILE in page.locator("#tables").inner_text()
    page.locator("#gaps .number").last.click()
    assert f"er+{HOSTILE}" in shlex.split(command_of(page))
    page.keyboard.press("Escape")
    page.locator(".study-table .number").first.click()
    # A table's command is built from the configuration: what a summary says is not repeated.
    assert command_of(page) == curve_run("er", gap_accuracies(60, 2, 0)).config.command([142])
    page.keyboard.press("Escape")
    page.evaluate("Plotly.Fx.hover('chart', [{ curveNumber: 3, pointNumber: 30 }])")
    assert HOSTILE in page.locator("#chart .hovertext").text_content()
    _, data = download(page, "SVG")
    picture = context.new_page()
    seen = Watcher(picture)
    (tmp_path / "picture.svg").write_bytes(data)
    picture.goto((tmp_path / "picture.svg").as_uri())
    assert HOSTILE in picture.locator("svg").first.text_content()
    for one in (page, picture):
        assert one.evaluate("document.querySelectorAll('img, image').length") == 0
    assert page.evaluate("document.scripts.length") == 3
    assert page.title() == f"{store.folder}: twofold report"
    assert watcher.complaints == seen.complaints == []
    assert {*watcher.requests} == {output.as_uri()}
    context.close()


def test_commands_in_notes_are_set_as_code(browser, tmp_path):
    store = Store(tmp_path / "runs")
    store.save(curve_run("er+gem", gap_accuracies(60, 2, 0)))  # and no er beside it
    assert main(["report", str(store.folder), "-o", str(tmp_path / "report.html")]) == 0
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    note = page.locator("#verdicts .note", has_text="has no plain er").first
    expect(note.locator("code")).to_have_text(re.compile("^twofold run rotated-mnist er "))
    expect(note).not_to_contain_text("`")
    page.close()


def test_even_a_slip_could_run_nothing_and_reach_nobody(browser, page_file):
    """The page forbids the browser all scripts but its own two, and all connections."""
    page = browser.new_page()
    watcher = Watcher(page)
    page.goto(page_file.as_uri())
    page.evaluate(
        """() => { document.body.insertAdjacentHTML("beforeend",
        `<img src="data:," onerror="window.hit = 1"><a href="javascript:hit=1" id="slip">x</a>`);
        document.getElementById("slip").click();
        const script = Object.assign(document.createElement("script"), { text: "window.hit = 1" });
        document.body.append(script) }"""
    )
    reached = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
    assert reached == "refused"
    assert page.evaluate("window.hit") is None
    assert not [url for url in watcher.requests if url.startswith("http")]
    assert sum("Content Security Policy" in said for said in watcher.complaints) >= 3
    page.close()


# Watching


def test_the_served_page_shows_new_runs_and_keeps_what_is_chosen(browser, tmp_path):
    store = Store(tmp_path / "runs")
    store.prepare()
    with page_server(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            page = browser.new_page()
            page.set_default_timeout(20_000)
            watcher = Watcher(page)
            address = f"http://127.0.0.1:{server.server_port}/"
            page.goto(address)
            expect(page.locator("#holdings")).to_have_text("0 runs of 0 methods on 0 benchmarks")
            expect(page.locator("#controls")).to_be_hidden()
            for method in ("er", "er+gem"):
                store.save(curve_run(method, gap_accuracies(60, 3, 0)))
            expect(page.locator("#holdings")).to_have_text("2 runs of 2 methods on 1 benchmark")
            page.get_by_label("er", exact=True).uncheck()
            page.locator("#view-3").check()
            page.locator("#show-seeds").check()
            assert named(page) == {"er+gem, seed 142"}

            page.get_by_text("everything in this store").click()
            page.locator("#task-2").focus()
            store.save(curve_run("er+gem", gap_accuracies(60, 3, 1), 152))
            expect(page.locator("#holdings")).to_have_text("3 runs of 2 methods on 1 benchmark")
            assert named(page) == {"er+gem, seed 142", "er+gem, seed 152"}
            assert x_range(page) == [38, 61]
            assert page.evaluate("document.activeElement.id") == "task-2"
            expect(page.locator("#tables details").last).to_have_attribute("open", "")
            assert watcher.complaints == []
            assert {*watcher.requests} == {address, f"{address}contents.json"}
        finally:
            server.shutdown()
            thread.join()
    expect(page.locator("#watch")).to_have_text(
        "The server does not answer: the page shows its last state."
    )
    page.close()
