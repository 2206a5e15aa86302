"""The page in real headless Chromium: it opens from disk, and all that one can do with it works.

$TWOFOLD_BROWSER names the browser; without it Debian's `chromium` is looked for. Where there is
none, these tests are skipped.
"""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from helpers.browser import METHODS, SEEDS, Watcher, bands, chart, command_of, named, until, x_range
from helpers.browser_fixtures import PLAYWRIGHT
from helpers.runs import curve_run, gap_accuracies

from twofold import Store
from twofold.cli import main
from twofold.evaluation.trajectory import gaps
from twofold.report.page.server import page_server

playwright = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)
expect = playwright.expect


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


def test_the_whole_run_shows_the_highest_point_of_its_first_task(page):
    """It leaves out that a task starts at chance, but not what is learned before a switch."""
    curve = "{ x: [1, 2, 3, 4], y: [10, 95, 80, 90], series: { group: { ends: [3, 4] } }, task: 1 }"
    low, high = page.evaluate(f"yRange([{curve}], [0, 4])")
    assert 70 < low < 80
    assert 95 < high < 100


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
    double_click_until(page, "byId('chart')._fullLayout.xaxis.range[0] < 1")


def double_click_until(page, condition: str) -> None:
    """Double-click until it shows: on a busy machine, two clicks may be too far apart to be one."""
    for _ in range(30):
        page.locator("#chart .nsewdrag").first.dblclick()
        page.wait_for_timeout(100)
        if page.evaluate(condition):
            return
    raise AssertionError(f"double clicks never led to {condition}")


def test_single_seeds_are_the_runs_themselves(page, runs):
    page.locator("#show-seeds").check()
    assert bands(page) == 0
    result = chart(page)
    assert len(result) == 5 * len(SEEDS)
    for trace in result:
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
        assert shown == [f"{gap.depth:.1f}", f"{gap.lowest_at}", back]
    expect(page.locator("#gaps .common")).to_have_text("In all rows: task 1, switch to task 2.")

    page.locator("#show-mean").check()
    first = rows.first.inner_text().split("\t")
    depths = [
        gap.depth
        for seed in SEEDS
        for gap in gaps(runs["er", seed].columns["task"], runs["er", seed].accuracy)
        if (gap.switch, gap.task) == (200, 1)
    ]
    error = np.std(depths, ddof=1) / np.sqrt(3)
    assert first[:2] == ["er", f"{np.mean(depths):.1f} ± {error:.1f}"]


def test_objectives_share_a_panel_on_request(page):
    def looks() -> dict[str, tuple[str, str]]:
        return {t["meta"]: (t["line"]["color"], t["line"]["dash"]) for t in chart(page)}

    several = looks()
    assert {trace["xaxis"] for trace in chart(page)} == {"x", "x2"}
    assert several["er+gem"] == several["joint+gem"]
    assert "er+gem, joint+gem" in {trace["name"] for trace in chart(page)}
    page.locator("#panels-one").check()
    assert {trace["xaxis"] for trace in chart(page)} == {"x"}
    assert len({*looks().values()}) == 5  # no two look alike,
    assert {m: c for m, (c, _) in looks().items()} == {m: c for m, (c, _) in several.items()}
    assert {trace["name"] for trace in chart(page)} == {*looks()}
    address = page.url
    page.locator("#panels-several").check()
    page.evaluate("(hash) => { location.hash = hash }", address.partition("#")[2])
    expect(page.locator("#panels-one")).to_be_checked()


def test_the_mean_over_tasks_is_a_panel(page, runs):
    """In iteration 250 two tasks have begun, in iteration 600 all three."""
    page.locator("#task-0").check()
    page.locator("#task-1").uncheck()
    page.locator("#show-seeds").check()
    expect(page.locator("#status")).to_contain_text("accuracy as the mean over tasks begun")
    for trace in chart(page):
        method, seed = trace["meta"].split(", seed ")
        accuracy = runs[method, int(seed)].accuracy
        shown = dict(zip(trace["x"], trace["y"], strict=True))
        assert shown[250] == pytest.approx(accuracy[249, :2].mean(), rel=1e-5)
        assert shown[600] == pytest.approx(accuracy[599].mean(), rel=1e-5)
    assert "tasks=mean" in page.url


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
    page.keyboard.press("Escape")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")


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


# Watching


def test_the_served_page_shows_new_runs_and_keeps_what_is_chosen(browser, tmp_path):
    store = Store(tmp_path / "runs")
    store.prepare()
    with page_server(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            page = browser.new_page()
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
