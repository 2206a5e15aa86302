"""The last line of the summary: what was not tested, and what enables it.

The reason of a skip is what was not tested with what enables it in brackets, such as "in a browser
(apt install chromium)".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

SLOW = "that wait for minutes (make test-slow)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what waits for minutes, unless the command line says what to do with it."""
    if "slow" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason=SLOW))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:  # pytest-xdist's workers have none
        line = untested(reporter.stats.get("skipped", []))
        if line:
            reporter.write_line(line)


def untested(skipped: list[pytest.TestReport | pytest.CollectReport]) -> str:
    """Return the line, largest number first; nothing if nothing was skipped."""
    counts = Counter((_reason(report), "::" in report.nodeid) for report in skipped)
    parts = [
        f"{count} {'test' if is_test else 'test file'}{'s' * (count > 1)} {reason}"
        for (reason, is_test), count in counts.most_common()
    ]
    return f"Not tested: {', '.join(parts)}" if parts else ""


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    _, _, text = report.longrepr  # type: ignore[misc]
    return str(text).removeprefix("Skipped: ")
