"""How arguments are read: errors in one line, with the closest spelling."""

from __future__ import annotations

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from twofold.errors import UserError, closest


class Parser(argparse.ArgumentParser):
    """Raises UserError instead of printing its usage; takes no abbreviated options."""

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
            message = f"COMMAND is missing: say {', '.join(self._commands())}, or --help"
        raise UserError(message)

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
        """Most often it is a further value of the option before it."""
        place = words.index(extra)
        option, first = ["", "", *words[:place]][-2:]
        values = [first, *takewhile(lambda word: not word.startswith("-"), words[place:])]
        taken, listed = self._option_string_actions.get(option), ",".join(values)
        if taken and "," in str(taken.metavar) and _reads(taken, listed):
            return f"write {option} {listed}"
        if taken and taken.metavar == "METHOD":
            return f"write {_repeated(option, values)}"
        return "write all names, such as METHOD, first"


def _reads(option: argparse.Action, text: str) -> bool:
    try:
        return callable(option.type) and bool(option.type(text))
    except (argparse.ArgumentTypeError, ValueError):
        return False


def _repeated(option: str, values: list[str]) -> str:
    """`--method er --method er+gem`."""
    return shlex.join(word for value in values for word in (option, value))


def _did_you_mean(word: str, known: list[str]) -> str:
    bare = {name.lstrip("-"): name for name in known}  # all options have their dashes in common
    close = closest(word.lstrip("-"), bare)
    return f": did you mean {bare[close]!r}?" if close else ""


def _number(kind: type[int] | type[float], what: str) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}") from None

    return convert


whole, real = _number(int, "a whole number"), _number(float, "a number")


def at_least_one(text: str) -> int:
    number = int(whole(text))
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def seconds(text: str) -> float:
    number = real(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return number


def folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must name a folder")
    return Path(text).expanduser()


def one_method(text: str) -> str:
    """A comma belongs to a method's options, so several methods can't have commas between them."""
    several = re.split(r",(?![^(]*\))", text)
    if len(several) > 1:
        right = _repeated("--method", [method.strip() for method in several])
        raise argparse.ArgumentTypeError(f"takes one method: write {right}")
    return text


def seed_list(text: str) -> list[int]:
    """`142,152` as [142, 152]."""
    try:
        return list(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between them, not {text!r}"
        ) from None
