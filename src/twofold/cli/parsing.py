"""How arguments are read: errors in one line, with the closest spelling."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable
from typing import Any, NoReturn

from twofold.errors import UserError


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
        raise UserError(message)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, extra = self.parse_known_args(args, namespace)
        if extra:
            used: Parser = getattr(parsed, "parser", self)
            known = [option for action in used._actions for option in action.option_strings]
            self.error(f"unknown argument {extra[0]!r}{_did_you_mean(extra[0], known)}")
        return parsed


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f": did you mean {close[0]!r}?" if close else ""


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


def seed_list(text: str) -> list[int]:
    """`142,152` as [142, 152]."""
    try:
        return list(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between them, not {text!r}"
        ) from None
