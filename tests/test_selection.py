"""What `pytest --fast` leaves out, and the line about what was not tested."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commandline import Command, leftovers, process
from helpers.scheduling import unit_lengths
from helpers.selection import long_tests, one_of_each, starts_processes
from helpers.untested import untested

ROOT = Path(__file__).parents[1]


def direct() -> None:
    subprocess.run(["true"], check=True)


def through_a_helper() -> None:
    process("list")


def in_an_inner_function() -> list[Any]:
    return [(lambda word: through_a_helper())(word) for word in "ab"]


def with_workers(twofold: Command) -> None:
    twofold("run", "rotated-mnist", "er", "--workers", 2)


def in_this_process(twofold: Command) -> list[str]:
    assert twofold("list").code == 0
    return leftovers(Path())


@pytest.mark.parametrize("function", [direct, through_a_helper, in_an_inner_function, with_workers])
def test_processes_are_found_through_functions(function: Any) -> None:
    assert starts_processes(function)


def test_a_command_in_this_process_is_none() -> None:
    assert not starts_processes(in_this_process)


def item(nodeid: str) -> Any:
    return SimpleNamespace(nodeid=nodeid)


def test_one_case_of_each_test_is_chosen() -> None:
    names = [f"{file}::test_{k}[{case}]" for file in "ab" for k in range(8) for case in range(3)]
    chosen = [each.nodeid for each in one_of_each([item(name) for name in names])]
    assert [name.partition("[")[0] for name in chosen] == list(
        dict.fromkeys(name.partition("[")[0] for name in names)
    )
    assert len({name.partition("[")[2] for name in chosen}) == 3  # not always the first


def test_the_list_of_long_tests_names_files_that_exist() -> None:
    files = {name.partition("::")[0] for name in long_tests()}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_what_waits_and_what_is_long_comes_first() -> None:
    name = min(long_tests())
    browser = [f"tests/report/page/test_browser{part}.py::test" for part in ("", "_access")]
    short = [f"tests/test_short.py::test[{k}]" for k in range(3)]
    lengths = unit_lengths([*short, name, *browser])
    assert sorted(lengths, key=lambda unit: -lengths[unit]) == [
        "a browser",
        name.partition("::")[0],
        "tests/test_short.py",
    ]


def skipped(nodeid: str, reason: str) -> Any:
    return SimpleNamespace(nodeid=nodeid, longrepr=("file.py", 1, f"Skipped: {reason}"))


def test_the_line_counts_tests_and_files_by_reason() -> None:
    browser = "in a browser (apt install chromium)"
    reports = [
        skipped("a.py::test_1", "with LaTeX (apt install texlive)"),
        skipped("b.py", "of the adapters (make test-adapters)"),
        *(skipped(f"a.py::test_2[{k}]", browser) for k in range(3)),
    ]
    assert untested(reports) == (
        "Not tested: 3 tests in a browser (apt install chromium), "
        "1 test with LaTeX (apt install texlive), "
        "1 test file of the adapters (make test-adapters)"
    )
    assert untested([]) == ""
