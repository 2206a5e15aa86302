"""The core of the package while the packages of all extras are refused. It prints JSON.

python core_only.py PLUGIN STORE
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import twofold
from helpers.blocked import block
from twofold.cli import main
from twofold.errors import UserError

SMALL = ("--iterations", "5", "--batch-size", "10", "--engine", "inline")


def modules() -> dict[str, str]:
    """Import every module, and return the errors by module."""
    errors = {}
    for module in pkgutil.walk_packages(twofold.__path__, "twofold.", onerror=lambda name: None):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except (ImportError, UserError) as error:
            errors[module.name] = str(error)
    return errors


def command(*words: str) -> tuple[int, str]:
    """Return the exit code of a command, and what it printed to standard error."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words)
        except SystemExit as stop:  # --help
            code = int(stop.code or 0)
    return code, printed.getvalue()


def commands(plugin: str, store: str) -> dict[str, tuple[int, str]]:
    run = ("run", "blobs", "--plugin", plugin, *SMALL, "--out", store)
    lines: dict[str, tuple[str, ...]] = {
        "run": (*run, "er", "er+gem", "--seeds", "2", "--keep-weights", "end"),
        "runs": ("runs", "--runs", store),
        "show": ("runs", "show", "--runs", store),
        "verify": ("runs", "verify", "--runs", store),
        "export": ("runs", "export", "--runs", store, "--to", f"{store}-archive"),
        "table": ("table", "--runs", store),
        "list": ("list",),
        "forecast": ("run", "rotated-mnist", "er", "--dry-run", "--out", store),
        "figure help": ("figure", "--help"),
        "figure": ("figure", "gap", "blobs", "--runs", store),
        "report": ("report", store),
        "import": ("runs", "import", "curves.csv", "--runs", store),
        "tensorboard": (*run, "er", "--tensorboard", store),
        "trackio": (*run, "er", "--live", "trackio"),
        "wandb": (*run, "er", "--live", "wandb:gaps"),
        "ray": (*run, "er", "--engine", "ray"),
        "torchjd": (*run, "er+torchjd:UPGrad"),
    }
    return {name: command(*words) for name, words in lines.items()}


def values(store: str) -> dict[str, str]:
    """Return the answers of Python's functions that need an extra."""
    runs = twofold.Store(store).runs()
    run = runs[0]
    uses: dict[str, Any] = {
        "curves": lambda: run.curves,
        "frame": runs.frame,
        "measures": lambda: runs.measures,
        "plot": run.plot,
        "html": run._repr_html_,
        "weights": lambda: ", ".join(run.weights()),
    }
    answers = {}
    for name, use in uses.items():
        try:
            answers[name] = str(use())
        except UserError as error:
            answers[name] = f"UserError: {error}"
    return answers


if __name__ == "__main__":
    block()
    plugin, store = sys.argv[1:]
    found = {
        "modules": modules(),
        "commands": commands(plugin, store),
        "values": values(store),
        "left": sorted(path.name for path in Path().iterdir()),
    }
    print(json.dumps(found))
