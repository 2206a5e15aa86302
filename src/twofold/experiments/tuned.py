"""Choices of a tuning, as a study's file holds them: `[[tuned]]`.

    [[tuned]]
    benchmark = "rotated-mnist"
    mode = "offline"
    method = "er+gem"                       # as in a grid; without it, all methods
    use = {method = "er+gem(gamma=1.0)"}    # in place of what the grid says
    why = "the highest avg ..."

`experiments/tuning.py` writes them, and a study that is loaded follows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twofold.component import plain
from twofold.errors import UserError
from twofold.experiments.files import writing
from twofold.plainfiles import replace_file

HEAD = "# Written by `"
KEYS = ("benchmark", "mode", "method", "use", "why")

Options = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """The options that were chosen for a benchmark and mode, and for one method or all."""

    benchmark: str
    mode: str
    use: Options
    why: str
    method: str | None = None

    @property
    def place(self) -> str:
        return f"{self.benchmark} {self.mode} {self.method or '(all methods)'}"

    def fits(self, benchmark: str, mode: str) -> bool:
        return (self.benchmark, self.mode) == (benchmark, mode)

    def toml(self) -> str:
        method = f"method = {_value(self.method)}\n" if self.method is not None else ""
        use = ", ".join(f"{name} = {_value(value)}" for name, value in self.use.items())
        return (
            f"[[tuned]]\nbenchmark = {_value(self.benchmark)}\nmode = {_value(self.mode)}\n"
            f"{method}use = {{{use}}}\nwhy = {_value(self.why)}\n"
        )


def read_choices(said: Any) -> list[Choice]:
    """Return the choices that a study's file holds."""
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise UserError("a choice begins with the line [[tuned]]")
    return [_choice(each) for each in said]


def _choice(said: Mapping[str, Any]) -> Choice:
    missing = [key for key in ("benchmark", "mode", "use") if key not in said]
    odd = [key for key in said if key not in KEYS]
    if missing or odd:
        wrong = f"{missing[0]} is missing" if missing else f"unknown key {odd[0]!r}"
        raise UserError(f"{wrong}: a choice has {', '.join(KEYS)}")
    texts = [said.get(key, "") for key in ("benchmark", "mode", "method", "why")]
    if not all(isinstance(text, str) for text in texts) or not isinstance(said["use"], dict):
        raise UserError("a choice has texts, and a table of options in use")
    return Choice(said["benchmark"], said["mode"], said["use"], texts[3], said.get("method"))


def write_choices(file: Path, choices: Iterable[Choice], command: str) -> None:
    """Put the choices at the end of a study's file, in place of those of an earlier tuning."""
    kept = file.read_text("utf-8").partition(f"\n{HEAD}")[0].rstrip()
    parts = "\n".join(choice.toml() for choice in choices)
    with writing(file):
        replace_file(file, f"{kept}\n\n{HEAD}{command}`; a new tuning replaces it.\n{parts}")


def _value(value: Any) -> str:
    """Return a value as TOML; its strings are those of JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else plain(value)
