"""The page in a browser: the runs that it shows, what it draws and what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.runs import curve_run, gap_accuracies
from twofold import Run

SEEDS = (142, 152, 162)
LENGTH = 600  # three tasks of 200 iterations
METHODS = ("er", "er+gem", "er+agem", "joint", "joint+gem", "finetune")


def example_runs() -> list[Run]:
    runs = [
        curve_run(method, gap_accuracies(LENGTH, 3, 100 * k + seed), seed)
        for k, method in enumerate(METHODS)
        for seed in SEEDS
    ]
    runs.append(curve_run("er", gap_accuracies(LENGTH, 3, 1), mode="online"))
    runs.append(curve_run("er", gap_accuracies(LENGTH, 3, 2), lr=0.01))
    return runs


class Watcher:
    """The addresses that a page requested, and its complaints."""

    def __init__(self, page: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.note(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(f"{line.type}: {line.text}"))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def note(self, url: str) -> None:
        if not url.startswith(("blob:", "data:")):  # the page's own memory
            self.requests.append(url.partition("#")[0])


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
    """Wait for a condition. Playwright's own way evaluates text in the page, which it forbids."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never came to {condition}")


def command_of(page: Any) -> str:
    return page.locator("#command-text").inner_text()


# Downloads


def download(page: Any, button: str) -> tuple[str, bytes]:
    with page.expect_download() as started:
        page.get_by_role("button", name=button, exact=True).click()
    return started.value.suggested_filename, Path(started.value.path()).read_bytes()
