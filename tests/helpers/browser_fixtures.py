"""A real headless Chromium. A test file takes it in with `pytest_plugins`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    named = os.environ.get("TWOFOLD_BROWSER")
    result = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if not result:
        pytest.skip("no Chromium: install Debian's chromium, or name a browser in $TWOFOLD_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=result, args=FLAGS)
        yield launched
        launched.close()
