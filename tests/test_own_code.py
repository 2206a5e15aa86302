"""Digests of users' own code: what changes them, and what does not."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from twofold.objectives import Er
from twofold.own_code import UNKNOWN, code_digest
from twofold.routines import Gem


def defined(text: str, name: str = "made") -> Any:
    """What a shell has after a text was typed into it: there is no file."""
    shell = types.ModuleType("a_shell")
    exec(text, vars(shell))
    return vars(shell)[name]


def of(text: str, name: str = "made") -> str:
    return code_digest([defined(text, name)])


def test_what_belongs_to_packages_has_no_digest() -> None:
    assert code_digest([Er, Gem, nn.Linear, len, torch.relu]) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def made(g): return 2 * g", "def made(g): return 3 * g"),
        ("def made(g): return g.sum()", "def made(g): return g.mean()"),
        ("made = lambda g, k=1: k * g", "made = lambda g, k=2: k * g"),
        ("k = 1\ndef made(g): return k * g", "k = 2\ndef made(g): return k * g"),
        (
            "def half(g): return g / 2\ndef made(g): return half(g)",
            "def half(g): return g / 3\ndef made(g): return half(g)",
        ),
        ("class made:\n  k = 1", "class made:\n  k = 2"),
        (
            "class made:\n  @staticmethod\n  def f(): return 1",
            "class made:\n  @staticmethod\n  def f(): return 2",
        ),
        (
            "class made:\n  @property\n  def f(s): return 1",
            "class made:\n  @property\n  def f(s): return 2",
        ),
        (
            "class base:\n  def f(s): return 1\nclass made(base): pass",
            "class base:\n  def f(s): return 2\nclass made(base): pass",
        ),
        (
            "import torch\nw = torch.zeros(3, dtype=torch.bfloat16)\ndef made(g): return w * g",
            "import torch\nw = torch.ones(3, dtype=torch.bfloat16)\ndef made(g): return w * g",
        ),
        (
            "from functools import partial\nmade = partial(max, 1)",
            "from functools import partial\nmade = partial(max, 2)",
        ),
    ],
)  # fmt: skip
def test_a_change_changes_the_digest(one: str, other: str) -> None:
    assert of(one) == of(one) != of(other)
    assert UNKNOWN not in of(one)


def test_a_factory_makes_different_classes() -> None:
    def made(k: int) -> type:
        class Made:
            def direct(self, g: Any) -> Any:
                return k * g

        return Made

    assert code_digest([made(1)]) == code_digest([made(1)]) != code_digest([made(2)])


def test_comments_and_places_change_nothing() -> None:
    assert of("def made(g): return 2 * g") == of("# twice\n\n\ndef made(g):\n    return 2 * g")


def test_what_is_not_used_changes_nothing() -> None:
    assert of("def made(g): return g") == of("seeds = 5\ndef made(g): return g")


def test_what_cannot_be_described_is_equal_to_nothing() -> None:
    lock = threading.Lock()

    def made(g: Any) -> Any:
        with lock:
            return g

    one, other = code_digest([made]), code_digest([made])
    assert one != other
    assert one.startswith(UNKNOWN)
    assert one.endswith(": a _thread.lock that it uses cannot be described")


SCRIPT = """
import torch
from dataclasses import dataclass
from twofold import Routine
from twofold.own_code import code_digest

NAMES = {"one", "two", "three", "four"}

@dataclass
class Mine(Routine, name="mine"):
    scale: float = 1.0
    @torch.no_grad()
    def direct(self, g, step):
        return self.scale * g if step.task in NAMES else (1, 2), (1, 2)

print(code_digest([Mine]))
"""


def test_every_process_finds_the_same_digest(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    one, other = (subprocess.check_output(command, text=True, timeout=600) for _ in range(2))
    assert one == other
    assert UNKNOWN not in one
