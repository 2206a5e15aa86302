"""The command `twofold report`."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from helpers.commandline import start
from helpers.page import ONE, ask, contents_of
from helpers.runs import curve_run, saved

from twofold import Recipe, Routine, Store
from twofold.cli import main


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(saved(tmp_path / "runs", [curve_run(method, ONE) for method in ("er", "er+gem")]))


def test_the_command_writes_the_page_and_says_how_to_open_it(store, capsys, monkeypatch):
    monkeypatch.chdir(store.folder.parent)
    assert main(["report", "runs"]) == 0
    page = Path("report.html")
    output = capsys.readouterr().out
    assert output.startswith("The page of 2 runs is in report.html (")
    assert page.resolve().as_uri() in output
    assert [cell["method"] for cell in contents_of(page.read_text())["groups"]] == ["er+gem", "er"]

    assert main(["report", "runs", "-o", "made/here.html"]) == 0
    assert Path("made/here.html").read_bytes() == page.read_bytes()
    assert main(["report"]) == 0  # of ./runs
    assert main(["report", "--runs", "runs", "-o", "again.html"]) == 0
    assert Path("again.html").read_bytes() == page.read_bytes()


def test_runs_with_a_users_components_no_longer_need_their_files(run_tiny, half, tmp_path):
    assert run_tiny("er;er+half(share=0.25)", "--plugin", half).code == 0
    del Routine.known["half"], Recipe.known["tiny"]
    half.unlink()
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "report.html")]) == 0
    cells = contents_of((tmp_path / "report.html").read_text())["groups"]
    (own,) = (cell for cell in cells if cell["method"] == "er+half(share=0.25)")
    assert (own["objective"], own["routine"]) == ("er", "half(share=0.25)")
    assert f"--plugin {half}" in own["command"]
    assert own["command"] == own["runs"][0]["command"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "there is no folder nowhere: `twofold run` makes one"),
        (["empty"], "there are no runs in empty: `twofold run` trains them"),
        (["runs", "--runs", "runs"], "STORE and --runs say the same: leave one out"),
        (["runs", "-o", "file/page.html"], "can't write file/page.html: "),
        (["runs", "--serve", "-o", "page.html"], "--serve writes no file: leave --output out"),
        (["runs", "--port", "8000"], "--port is for --serve"),
        (["runs", "--serve", "--port", "70000"], "can't serve on port 70000: "),
        (["runs", "--sevre"], "unknown argument '--sevre': did you mean '--serve'?"),
    ],
)
def test_errors_are_answered_in_one_line(store, words, message, capsys, monkeypatch):
    monkeypatch.chdir(store.folder.parent)
    Path("empty").mkdir()
    Path("file").touch()
    assert main(["report", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"twofold: {message}")
    assert error.count("\n") == 1


def test_an_empty_store_can_be_watched_and_ctrl_c_ends_it(tmp_path):
    (tmp_path / "runs").mkdir()
    process = start("report", tmp_path / "runs", "--serve", "--port", "0")
    try:
        output = process.stdout.readline()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", output)[1])
        assert json.loads(ask(port, "GET", "/contents.json").text)["groups"] == []
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
