"""`twofold list`: what there is, and what plugins add to it."""

from __future__ import annotations

import re
from pathlib import Path

from helpers.commandline import Command, one_line

from twofold.component import plain
from twofold.memories import Memory
from twofold.objectives import Objective
from twofold.routines import Routine
from twofold.terms import Addition


def test_list_names_everything_with_options(twofold: Command) -> None:
    result = twofold("list")
    assert (result.code, result.err) == (0, "")
    for name in ("rotated-mnist", "domain-cifar100", "split-cifar100", "split-mini-imagenet"):
        assert re.search(rf"^ +{name} +\S", result.out, re.MULTILINE), name
    for kind in (Objective, Addition, Routine, Memory):
        for name, component in kind.known.items():
            described = re.search(
                rf"^ +{name} +(\S.*\n(?: {{4}}\w+=.*\n)*)", result.out, re.MULTILINE
            )
            assert described, name
            for option, field in component.options().items():
                value = plain(field.default)
                assert f"{option}={value}" in described[1], (name, option)


def test_list_with_a_users_routine(twofold: Command, half: Path) -> None:
    result = twofold("list", "--plugin", half)
    assert result.code == 0
    assert re.search(r"half +Follows a part of the gradient\.\n +share=0\.5", result.out)


def test_plugins_of_one_name_in_two_folders(twofold: Command, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(
            f"from twofold import Routine\nclass R(Routine, name='{name}-of-mine'):\n"
            "    'Mine.'\n    def after_step(self, step): pass\n"
        )
    files = (tmp_path / "first" / "mine.py", tmp_path / "second" / "mine.py")
    result = twofold("list", "--plugin", files[0], "--plugin", files[1])
    assert "first-of-mine" in result.out
    assert "second-of-mine" in result.out


def test_a_name_where_there_is_none(twofold: Command) -> None:
    result = twofold("list", "benchmarks")
    assert (result.code, result.out) == (2, "")
    assert "'benchmarks' is out of place: twofold list takes no names" in one_line(result.err)
