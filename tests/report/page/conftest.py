"""The page of an example store, opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import Watcher, example_runs
from helpers.browser_fixtures import PLAYWRIGHT

from twofold import Run, Store
from twofold.cli import main


@pytest.fixture(scope="session")
def runs() -> dict[tuple[str, int], Run]:
    """The runs with the default settings, by method and seed."""
    default = [
        run for run in example_runs() if (run.config.mode, run.config.lr) == ("offline", 0.1)
    ]
    return {(run.config.method, run.config.seed): run for run in default}


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    store = Store(folder / "runs")
    for run in example_runs():
        store.save(run)
    assert main(["report", str(store.folder), "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def opened(browser: Any, page_file: Path) -> Iterator[tuple[Any, Watcher]]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    watcher = Watcher(page)
    page.goto(page_file.as_uri())
    yield page, watcher
    context.close()


@pytest.fixture
def page(opened: tuple[Any, Watcher], page_file: Path) -> Iterator[Any]:
    """The page in its first state. After the test, it has not complained or requested anything."""
    expect = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT).expect
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
