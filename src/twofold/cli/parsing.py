"""The parser of arguments, with errors in one line that suggest the closest spelling."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from twofold.errors import UserError, closest


class Parser(argparse.ArgumentParser):
    """A parser that raises UserError instead of printing its usage, without abbreviations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            known = [name.strip(" '") for name in choice[2].split(",")]
            message += _did_you_mean(choice[1], known)
        if message.endswith("required: COMMAND"):
            message = f"COMMAND is missing: write {', '.join(self._commands())}, or --help"
        raise UserError(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Let options with `dashed` take a value that starts with a dash: `--sort -avg`."""
        words = list(sys.argv[1:] if args is None else args)
        for place in reversed(range(len(words) - 1)):
            action = self._option_string_actions.get(words[place])
            if getattr(action, "dashed", False) and re.match(r"-[^-]", words[place + 1]):
                words[place : place + 2] = [f"{words[place]}={words[place + 1]}"]
        return super().parse_known_args(words, namespace)

    def _commands(self) -> list[str]:
        return [name for action in self._actions if action.choices for name in action.choices]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        parsed, extra = self.parse_known_args(words, namespace)
        used: Parser = getattr(parsed, "parser", self)
        if extra and not extra[0].startswith("-"):
            self.error(f"{extra[0]!r} is out of place: {used._right_place(words, extra[0])}")
        if extra:
            known = [option for action in used._actions for option in action.option_strings]
            self.error(f"unknown argument {extra[0]!r}{_did_you_mean(extra[0], known)}")
        return parsed

    def _right_place(self, words: list[str], extra: str) -> str:
        """Return a hint for an extra word, which is often a further value of the option before."""
        place = words.index(extra)
        option, first = ["", "", *words[:place]][-2:]
        values = [first, *takewhile(lambda word: not word.startswith("-"), words[place:])]
        action, listed = self._option_string_actions.get(option), ",".join(values)
        if _reads(action, listed):
            return f"write {option} {listed}"
        if action and action.metavar == "METHOD":
            return f"write {shlex.join(word for value in values for word in (option, value))}"
        if all(each.option_strings for each in self._actions):
            return f"{self.prog} takes no names"
        return "write all names, such as METHOD, first"


def _reads(option: argparse.Action | None, text: str) -> bool:
    """Tell whether a flag takes several values separated by commas and can read the text."""
    reader: Callable[[str], Any] | None = getattr(option, "reader", None)
    try:
        return reader is not None and bool(reader(text))
    except UserError:
        return False


def _did_you_mean(word: str, known: list[str]) -> str:
    bare = {name.lstrip("-"): name for name in known}  # all options share their dashes
    close = closest(word.lstrip("-"), bare)
    return f": did you mean {bare[close]!r}?" if close else ""


def folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must name a folder")
    return Path(text).expanduser()


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None
