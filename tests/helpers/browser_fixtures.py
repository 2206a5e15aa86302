"""A real headless Chromium. A test file takes it in with `pytest_plugins`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER = "in a browser (apt install chromium, or name one in TWOFOLD_BROWSER)"
PLAYWRIGHT = "in a browser (pip install playwright)"
PATIENCE = (
    180_000  # ms that a page may take: a busy host can stop it for longer than the usual 30 s
)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    named = os.environ.get("TWOFOLD_BROWSER")
    result = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if not result:
        pytest.skip(BROWSER)
    playwright = pytest.importorskip("playwright.sync_api", reason=PLAYWRIGHT)
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=result, args=FLAGS, timeout=PATIENCE)
        yield PatientBrowser(launched)
        launched.close()


class PatientBrowser:
    """A browser whose pages wait as long as `PATIENCE`."""

    def __init__(self, launched: Any) -> None:
        self._launched = launched

    def new_context(self, **options: Any) -> Any:
        context = self._launched.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context

    def new_page(self, **options: Any) -> Any:
        page = self._launched.new_page(**options)
        page.set_default_timeout(PATIENCE)
        return page
