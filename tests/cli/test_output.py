"""What commands say of what they did, and of what can't be done."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from helpers.commandline import Command, Outcome, one_line
from helpers.runs import curve_run, scored_run

import twofold as package
from twofold import Run, Store, UserError
from twofold.experiments import running
from twofold.report.page.server import Watched

CURVES = [[90, 80, 85, 85], [float("nan"), float("nan"), 90, 90]]


def stored(folder: Path, *runs: Run) -> Path:
    store = Store(folder)
    store.prepare()
    for run in runs:
        store.save(run)
    return folder


def rows(done: Outcome) -> list[str]:
    """The lines of a list, its head first, with single spaces and without the runs' names."""
    lines = [" ".join(line.split()[1:]) for line in done.out.splitlines()]
    return [line for line in lines if line and "━" not in line]


def test_the_list_shows_what_varies(twofold: Command, tmp_path: Path) -> None:
    short, long = (curve_run("er", CURVES, iterations=n, tasks=2) for n in (20, 60))
    head, *body = rows(twofold("runs", "--runs", stored(tmp_path / "runs", short, long)))
    assert head == "benchmark mode method profile lr batch iterations seed MIN AVG"
    assert sorted(body) == [
        f"rotated-mnist offline er paper 0.1 128 {n} 142 85.0 87.5" for n in (20, 60)
    ]


def test_what_is_not_said_in_the_list_is_none(twofold: Command, tmp_path: Path) -> None:
    runs = curve_run("er", CURVES), curve_run("er", CURVES, tasks=2, momentum=0.5)
    head, *body = rows(twofold("runs", "--runs", stored(tmp_path / "runs", *runs)))
    assert "batch tasks momentum seed" in head
    assert {tuple(line.split()[6:8]) for line in body} == {("none", "0.9"), ("2", "0.5")}


def test_the_list_marks_upper_bounds(twofold: Command, tmp_path: Path) -> None:
    runs = [curve_run("er", CURVES), curve_run("gem", CURVES, eval_schedule="dense:1:2")]
    body = rows(twofold("runs", "--runs", stored(tmp_path / "runs", *runs)))[1:]
    assert {line.split()[2]: line.split(" 142 ")[1] for line in body} == {
        "er": "85.0 87.5",
        "gem": "≤ 85.0 87.5",
    }


def test_the_line_about_a_finished_run_marks_them(run_tiny: Command) -> None:
    result = run_tiny("er", "--eval-schedule", "every:2")
    assert re.search(r"^er seed 142: MIN ≤ \d+\.\d  AVG \d+\.\d$", result.err, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "name", "what"),
    [
        ("table main", "main.tex", "table"),
        ("verdicts", "verdicts.csv", "table"),
        ("departures", "departures.md", "table"),
        ("departures", "departures.svg", "figure"),
    ],
)
def test_where_a_file_is(
    twofold: Command, tmp_path: Path, command: str, name: str, what: str
) -> None:
    more = scored_run("er", 70, 80, memory_grouping="class"), scored_run("er+gem", 70, 80)
    place = ("--runs", stored(tmp_path / "runs", scored_run("er", 70, 80), *more))
    file = tmp_path / name
    result = twofold(*command.split(), *place, "-o", file)
    assert result == (0, f"The {what} is in {file}\n", "")
    assert "is in" not in twofold(*command.split(), *place).out.splitlines()[-1]


class Failing:
    """An engine whose runs fail."""

    def __init__(self, *_): ...

    def run(self, configs, store, data, watcher):
        for index in range(len(configs)):
            watcher.started(index)
            watcher.failed(index, "of itself", store.folder / "log.txt")


def test_the_folder_of_runs_is_printed_if_there_are_any(
    run_tiny: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LocalEngine", Failing)
    result = run_tiny("er;er+gem")
    assert (result.code, result.out) == (1, "")
    assert "er seed 142: failed: of itself" in result.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("finetune(3)", "finetune has no options"),
        ("agem(frozen,1)", "agem takes at most 1 option: reference"),
        ("er --plugin nope.py", "there is no file nope.py"),
        ("er --plugin .", "plugin '.' is not a Python file"),
        ("er+xyz", r"unknown routine or term 'xyz' \(there are .*\); define your own in a plugin"),
    ],
)
def test_what_cant_be_done(twofold: Command, words: str, told: str) -> None:
    result = twofold("run", "rotated-mnist", *words.split())
    assert result.code == 2
    assert re.fullmatch(told, one_line(result.err))


def test_a_misspelt_option_in_python() -> None:
    with pytest.raises(UserError, match="unknown option 'iteratons': did you mean 'iter"):
        package.run("rotated-mnist", "er", iteratons=3)


@pytest.mark.parametrize("ask", [Store.runs, Store.summaries, Store.frame])
def test_a_store_that_is_not_there(ask, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"there is no folder {tmp_path / 'nope'}"):
        ask(Store(tmp_path / "nope"))
    (tmp_path / "empty").mkdir()
    assert len(ask(Store(tmp_path / "empty"))) == 0


def test_a_folder_may_be_gone_while_its_page_is_served(tmp_path: Path) -> None:
    watched = Watched(Store(stored(tmp_path / "runs", curve_run("er", CURVES))))
    assert '"groups":[{' in watched.contents()[0]
    shutil.rmtree(tmp_path / "runs")
    assert '"groups":[]' in watched.contents()[0]


def test_one_run_is_no_runs(
    twofold: Command, tmp_path: Path, fixed_speed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = ("--runs", stored(tmp_path / "runs", curve_run("er", CURVES)))
    assert twofold("runs", "verify", *place).out == "1 of 1 run matches its checksums\n"
    second = ("runs", "export", "--to", "copy", *place)
    assert twofold(*second).out.startswith("1 run exported to copy, ")
    assert twofold(*second).out == "0 runs exported to copy, 0 KB; 1 was there already\n"
    assert twofold("report", *place).out.startswith("The page of 1 run is in report.html")
    assert twofold("runs", "remove", "--method", "er", *place).out == "1 run removed\n"


def test_one_run_to_make(twofold: Command, toy: Path, tmp_path: Path, fixed_speed: None) -> None:
    words = ("run", "tiny", "er", "--plugin", toy / "tiny.py", "--data", toy, "--dry-run")
    output = twofold(*words, "--out", tmp_path, "--workers", 1).out.splitlines()
    assert output[0].startswith("tiny  offline  er     1 run,     0 done, ")
    assert output[1] == "tiny: 1 run, 0 done, 1 to train"
