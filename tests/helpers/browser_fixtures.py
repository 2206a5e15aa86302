"""A real headless Chromium. A test file takes it in with `pytest_plugins`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER = "in a browser (apt install chromium, or name one in TWOFOLD_BROWSER)"
PLAYWRIGHT = "in a browser (pip install playwright)"
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
    playwright.expect.set_options(timeout=30_000)  # as long as everything else waits: 5 s is short
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=result, args=FLAGS)
        yield launched
        launched.close()
