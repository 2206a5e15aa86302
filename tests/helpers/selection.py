"""`pytest --fast`: one case of every short test that starts no processes and reads no real images.

Whether a test starts processes is found out from its code: from the names that the test, its
fixtures and the functions of tests that they call refer to. Long tests are those of long_tests.txt,
which `pytest --record-times` writes.
"""

from __future__ import annotations

import inspect
import os
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from twofold.experiments.local import LocalEngine

LONG = Path(__file__).with_name("long_tests.txt")
SECONDS = 0.25  # of processor time, from which on a test is long
SHARED = {"a browser": "tests/report/page/test_browser", "a cluster": "tests/experiments/ray/"}
STARTERS = {"subprocess", "multiprocessing"}  # modules
WORKERS = {"--workers", "workers"}  # in a command, or as a keyword
START, TIME = pytest.StashKey[float](), "processor time"


def pytest_addoption(parser: pytest.Parser) -> None:
    fast = "only one case of every test that is short and starts no processes"
    parser.addoption("--fast", action="store_true", help=fast)
    record = f"write down which tests take more than {SECONDS} s of processor time, for --fast"
    parser.addoption("--record-times", action="store_true", help=record)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("record_times") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record())


# Selection


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("fast"):
        long = long_tests()
        short = [item for item in items if name_of(item.nodeid) not in long and is_fast(item)]
        chosen = {id(item) for item in one_of_each(short)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
        items[:] = [item for item in items if id(item) in chosen]


def name_of(nodeid: str) -> str:
    """Return the name of a test without the case."""
    return nodeid.partition("[")[0]


def unit_of(nodeid: str) -> str:
    """Return what stays in one process: a file, or the files that share a browser or a cluster."""
    file = nodeid.partition("::")[0]
    return next((unit for unit, start in SHARED.items() if file.startswith(start)), file)


def long_tests() -> set[str]:
    return {line for line in LONG.read_text().splitlines() if not line.startswith("#")}


def is_fast(item: pytest.Item) -> bool:
    if item.get_closest_marker("real_data") or item.get_closest_marker("slow"):
        return False
    return unit_of(item.nodeid) not in SHARED and not any(map(starts_processes, functions_of(item)))


def one_of_each(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return a case of each test, not always the first, so that components take turns."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(name_of(item.nodeid), []).append(item)
    return [each[zlib.crc32(name.encode()) % len(each)] for name, each in cases.items()]


def functions_of(item: pytest.Item) -> Iterator[Callable[..., Any]]:
    """Yield the test and its fixtures."""
    assert isinstance(item, pytest.Function)
    yield inspect.unwrap(item.function)
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield inspect.unwrap(definitions[-1].func)


@cache
def starts_processes(function: Callable[..., Any]) -> bool:
    return any(map(_starts, _reached(function, set())))


def _starts(value: object) -> bool:
    if isinstance(value, str):
        return value in WORKERS
    if value is LocalEngine:
        return True
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return module in STARTERS


def _reached(function: Callable[..., Any], seen: set[CodeType]) -> Iterator[object]:
    """Yield what a function refers to, in turn as far as functions of tests go."""
    code = getattr(function, "__code__", None)
    if code is None or code in seen:
        return
    seen.add(code)
    for word in _words(code):
        yield word
        value = function.__globals__.get(word)
        yield value
        if isinstance(value, FunctionType) and "/tests/" in value.__code__.co_filename:
            yield from _reached(value, seen)


def _words(code: CodeType) -> Iterator[str]:
    """Yield the names and the texts in a function, and in the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words(constant)
        texts = constant if isinstance(constant, tuple) else (constant,)
        yield from (text for text in texts if isinstance(text, str))


# Times


def processor_time() -> float:
    """Return the seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    item.stash[START] = processor_time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((TIME, processor_time() - item.stash[START]))
    return report


class Record:
    """Collects the times of all cases, here or from pytest-xdist's workers, and writes the list."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(TIME)
        if seconds is not None:
            name = name_of(report.nodeid)
            self.longest[name] = max(seconds, self.longest.get(name, 0.0))

    def pytest_sessionfinish(self) -> None:
        """Write long tests. Those that were not run now stay as they were."""
        known = long_tests() - self.longest.keys()
        long = {name for name, seconds in self.longest.items() if seconds > SECONDS}
        head = f"# Tests of more than {SECONDS} s of processor time, by pytest --record-times\n"
        LONG.write_text(head + "".join(f"{name}\n" for name in sorted(known | long)))
