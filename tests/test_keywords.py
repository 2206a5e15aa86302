"""Keywords of the Python functions: typed for editors, and listed by `dir` and `help`."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import twofold

ROOT = Path(__file__).parents[1]

RIGHT = """
import twofold
from twofold import Method

run = twofold.run("rotated-mnist", "er", lr=0.1, mode="online", out="runs")
runs = twofold.run_all([twofold.configure("rotated-mnist", Method.parse("er"), seed=1)], workers=2)
low: float | None = run.min
"""
WRONG = {
    'twofold.run("rotated-mnist", "er", lrr=0.1)': 'Unexpected keyword argument "lrr"',
    'twofold.run("rotated-mnist", "er", mode="onlin")': "incompatible type",
    'twofold.run_all("main", worker=2)': 'Unexpected keyword argument "worker"',
    'twofold.configure("rotated-mnist", "er", batch_size="big")': "incompatible type",
}


def test_type_checkers_know_every_keyword(tmp_path):
    lines = [RIGHT, *WRONG]
    (tmp_path / "script.py").write_text("\n".join(lines) + "\n")
    # With the project's own settings, what `make lint` has checked need not be checked again.
    own = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache"]
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *own, "script.py"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    errors = [line for line in process.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(WRONG), process.stdout
    for error, expected in zip(errors, WRONG.values(), strict=True):
        assert expected in error


def test_the_signature_shows_every_option_with_its_default():
    parameters = inspect.signature(twofold.run).parameters
    assert list(parameters)[:2] == ["benchmark", "method"]
    assert parameters["eval_size"].default == 1000
    assert parameters["eval_size"].kind is inspect.Parameter.KEYWORD_ONLY
    assert {"out", "data", "progress", "keep_weights", "start_from"} <= parameters.keys()


def test_dir_lists_the_public_names():
    assert {*twofold.__all__} <= {*dir(twofold)}
    assert all(getattr(twofold, name) is not None for name in twofold.__all__)
