"""Values at the edge: every number has a range, and the answer is one line, at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

import twofold
from twofold.cli import main
from twofold.experiments.config import configure
from twofold.experiments.options import Options, Work
from twofold.objectives import Objective
from twofold.options import options
from twofold.routines import Routine

EXTREME = ("0", "-1", "99999999999999", "9" * 4000, "9" * 5000, "1e400", "nan", "", "x")
COMMAND = ["run", "rotated-mnist", "er", "--dry-run"]
FLAGS = sorted(
    each.flag_text
    for each in (*options(Options).values(), *options(Work).values())
    if each.flag is not None and each.hint is not bool and each.name not in ("data", "tensorboard")
)
PARTS = [
    (cls, name)
    for kind in (Objective, Routine)
    for cls in kind.known.values()
    for name in cls.options()
]


@pytest.fixture(autouse=True)
def no_forecast(monkeypatch):
    """It takes seconds, and values are checked before it."""
    monkeypatch.setattr("twofold.cli.run.print_forecast", lambda *_: None)


def answered(words: list[str], capsys: Any) -> None:
    start = time.process_time()
    code = main(words)
    assert time.process_time() - start < 5, words
    message = capsys.readouterr().err.strip()
    assert code in (0, 2), words
    assert len(message.splitlines()) <= 1, message
    assert len(message) < 400, message
    assert code == 0 or message


@pytest.mark.parametrize("flag", [*FLAGS, "--seed", "--seeds"])
def test_a_flag_is_answered_in_one_line(flag, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for text in EXTREME:
        answered([*COMMAND, f"{flag}={text}"], capsys)


@pytest.mark.parametrize(("cls", "name"), PARTS, ids=lambda part: str(getattr(part, "name", part)))
def test_an_option_of_a_component_is_answered_in_one_line(cls, name, capsys):
    first = "" if issubclass(cls, Objective) else "er+"
    for text in EXTREME:
        answered(["run", "rotated-mnist", f"{first}{cls.name}({name}={text})", "--dry-run"], capsys)


VALUES = {
    "a huge number": 10**5000,
    "a huge negative number": -(10**5000),
    "infinity": float("inf"),
    "a list": [],
    "an object": object(),
    "digits": "9" * 5000,
}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("plugins", 3, "plugins must be a list, not 3"),
        ("plugins", "mine.py", "plugins must be a list, not 'mine.py'"),
        ("out", "a\0b", "out must be a path"),
        ("out", "x" * 5000, "out must be a path"),
        ("out", "/".join(["x" * 200] * 30), "out must be a path"),
        ("data", "\0", "data must be a path"),
    ],
)
def test_lists_and_paths_that_are_none_are_answered_in_one_line(name, value, expected):
    with pytest.raises(twofold.UserError, match=expected) as caught:
        twofold.run("rotated-mnist", "er", **{name: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_any_value_from_python_is_answered_in_one_line(value):
    for name, each in options(Options).items():
        if name in ("plugins", "start_from"):
            continue
        with pytest.raises(twofold.UserError) as caught:
            configure("rotated-mnist", "er", **{name: value})
        assert len(str(caught.value)) < 400, each.name
        assert "\n" not in str(caught.value)


def test_many_seeds_are_refused_at_once(capsys):
    answered([*COMMAND, "--seeds", "1000000"], capsys)


@pytest.mark.parametrize("flag", ["--switches", "--scale", "--columns", "--seed"])
def test_flags_of_an_import(flag, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("iteration,task,a\n1,1,50\n")
    for text in EXTREME:
        words = ["runs", "import", str(tmp_path / "a.csv"), "--runs", str(tmp_path / "runs")]
        answered([*words, "--benchmark=b", "--method=m", f"{flag}={text}"], capsys)
