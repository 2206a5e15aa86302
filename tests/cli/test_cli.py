"""The command line as a whole: help that answers at once, and output that is never an error."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commandline import Command

from twofold.cli import main
from twofold.experiments.options import Options, Work
from twofold.options import Option, options

HEAVY = {"torch", "numpy", "scipy", "pyarrow", "rich", "pandas", "matplotlib"}
COMMANDS = (  # `table` and `figure` list what papers define, which takes their modules
    *("", "run", "study", "study list", "study show", "study run", "runs", "verdicts"),
    *("compare", "departures", "report", "list", "data"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy(command: str) -> None:
    """Not measured by the clock: what takes the time is torch."""
    code = f"""if True:
        import sys
        from twofold.cli import main
        try:
            main({[*command.split(), "--help"]})
        except SystemExit as end:
            assert not end.code
            print("loaded:", {HEAVY} & set(sys.modules))
    """
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600
    )
    assert process.stdout.startswith("usage: twofold " + command), process.stdout + process.stderr
    assert process.stdout.endswith("loaded: set()\n"), process.stdout + process.stderr


def test_a_wrong_command_is_answered_without_anything_heavy() -> None:
    code = f"""if True:
        import sys
        from twofold.cli import main
        assert main(["rnu"]) == 2
        print("loaded:", {HEAVY} & set(sys.modules))
    """
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600
    )
    assert process.stdout == "loaded: set()\n", process.stdout + process.stderr


@pytest.mark.parametrize(
    ("command", "more"), [("run", ["seed"]), ("study run", ["seed", "benchmark", "method"])]
)
def test_help_names_every_option(
    command: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    known: list[Option] = [*options(Options).values(), *options(Work).values()]
    flags = {option.flag_text for option in known if option.flag is not None}
    assert {"--eval-schedule", "--keep-weights", "--start-from", "--workers"} <= flags
    for flag in (*sorted(flags), *(f"--{name}" for name in more), "--seeds", "--dry-run"):
        assert re.search(rf"^ +{flag}\b", text, re.MULTILINE), flag


def test_a_terminal_that_knows_ascii_only(
    run_tiny: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours of training must not end in a UnicodeEncodeError."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    result = run_tiny("er", "--seeds", 2)
    stdout.flush()
    assert result.code == 0
    assert b"20.0" in stdout.buffer.getvalue()  # type: ignore[attr-defined]


def test_a_reader_that_has_seen_enough() -> None:
    """`twofold list | head -1`, with the pipe closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "twofold", "list"], stdout=write, stderr=subprocess.PIPE, timeout=600
    )
    os.close(write)
    assert process.stderr == b""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_the_output(unbuffered: str) -> None:
    """`twofold list > file`: the error comes at the end, or with a line."""
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [sys.executable, "-m", "twofold", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=600,
        )
    line = b"twofold: can't write the output: No space left on device\n"
    assert (process.returncode, process.stderr) == (2, line)


def test_sigterm_ends_a_command_with_the_words_of_ctrl_c(monkeypatch, capsys):
    def act(args: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("twofold.cli.listing.act", act)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["list"]) == 143
    assert capsys.readouterr().err == "twofold: stopped\n"
    assert signal.getsignal(signal.SIGTERM) is before
