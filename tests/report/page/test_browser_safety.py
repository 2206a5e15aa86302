"""Names from strangers stay text, and the page runs no script but its own."""

from __future__ import annotations

import shlex

import pytest
from helpers.browser import SEEDS, Watcher, command_of, download
from helpers.browser_fixtures import PLAYWRIGHT
from helpers.runs import curve_run, example_run, gap_accuracies

from twofold import Run, Store
from twofold.cli import main

playwright = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)
expect = playwright.expect

HOSTILE = "<img src=x onerror=\"document.title='hit'\">&lt;b&gt;'\"%{x}</script><script>hit()"


def hostile_runs() -> list[Run]:
    """Return runs with hostile names, as a store from elsewhere may have them."""
    default = curve_run("er+gem", gap_accuracies(60, 2, 0)).config
    plain = curve_run("er", gap_accuracies(60, 2, 0)).config
    options = {"benchmark": HOSTILE.replace("/", "∕"), "plugins": [f"/tmp/{HOSTILE}.py"]}
    runs = []
    for k, seed in enumerate(SEEDS):
        for config, method in ((default, f"er+{HOSTILE}"), (plain, "er")):
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
    watcher = Watcher(page)
    page.goto(output.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_selector("#measures td")
    expect(page.locator("h1")).to_have_text(str(store.folder))
    expect(page.locator("#pick-benchmark option").first).to_have_text(HOSTILE.replace("/", "∕"))
    expect(page.get_by_label(f"er+{HOSTILE}", exact=True)).to_be_checked()
    assert HOSTILE in page.locator("#chart .legend").text_content()
    expect(page.locator(".verdicts .name").first).to_have_text(f"er+{HOSTILE}")
    assert f"er+{HOSTILE}"[:20] in page.locator(".effects").first.text_content()  # it is shortened
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
    assert sum("Content Security Policy" in output for output in watcher.complaints) >= 3
    page.close()
