"""Stores that a stranger has written, and commands that must answer them in a few lines."""

from __future__ import annotations

import io
import resource
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twofold.cli import main
from twofold.experiments.store import Store

NAN = float("nan")
SECONDS, MEMORY = (
    20.0,
    600 * 2**20,
)  # limits of one command, in a process that has imported everything
COMMANDS = (
    ["runs"],
    ["runs", "show"],
    ["runs", "verify"],
    ["table", "main"],
    ["table"],
    ["table", "--format", "csv"],
    ["compare", "er", "er+gem"],
    ["verdicts"],
    ["departures"],
    ["report"],
)


def accuracies(dip: float) -> list[list[float]]:
    return [[80.0, 90.0, dip, 85.0], [NAN, NAN, 70.0, 88.0]]


def victim(store: Path) -> Path:
    return next(folder for folder in Store(store).folders() if "er-paper-142" in folder.name)


def answer(words: list[str], store: Path) -> tuple[int, str, str]:
    """Run a command within bounds of time and memory."""
    out, err = io.StringIO(), io.StringIO()
    more = ["-o", str(store.parent / "report.html")] if words == ["report"] else []
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, "--runs", str(store), *more])
    assert time.process_time() - start < SECONDS, words
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY, words
    assert code in (0, 1, 2), words
    errors = err.getvalue()
    assert len(errors.splitlines()) <= 6, errors
    assert "Traceback" not in errors + out.getvalue()
    assert "\x1b" not in errors + out.getvalue()
    return code, out.getvalue(), errors


def answered_export(store: Path) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["runs", "export", "--runs", str(store), "--to", str(store.parent / "to")]) == 0
    return out.getvalue()
