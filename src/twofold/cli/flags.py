"""Flags, made from the descriptions of options."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin

from twofold.cli.parsing import Parser
from twofold.errors import UserError
from twofold.experiments.options import Request
from twofold.options import Option, options

Group = Callable[[str], Any]  # the argument group with a heading

MOST_SEEDS = 10_000
FILTERS = [each for each in options(Request).values() if not each.several and each.flag is not None]


def groups_of(parser: Parser) -> Group:
    """Return a function that gives a parser one argument group per heading."""
    groups: dict[str, Any] = {}

    def group(title: str) -> Any:
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        return groups[title]

    return group


def add_flags(group: Group, known: Iterable[Option]) -> None:
    """Add a flag for one value of each option."""
    for option in known:
        if option.flag is None:
            continue
        shape: dict[str, Any] = {"dest": option.name, "help": option.help}
        if option.hint is bool:
            shape |= {"action": "store_true", "default": None}
        elif option.several:
            shape |= {"action": "append", "metavar": option.metavar}
        else:
            shape |= {"metavar": option.metavar or _metavar(option)}
        group(option.group).add_argument(option.flag_text, **shape)


def add_filters(group: Any, known: Iterable[Option], help: str | None = None) -> None:
    """Add a flag for several values of each option; a method is written once per flag."""
    for option in known:
        flag, shape = option.flag_text, {"dest": option.name, "action": "append"}
        if option.name == "method":
            explanation = help and "only this one; may be repeated"
            group.add_argument(flag, metavar="METHOD", help=explanation, **shape)
        else:
            action = group.add_argument(flag, metavar=f"{_metavar(option)},...", help=help, **shape)
            action.reader = _reader(option)


def _metavar(option: Option) -> str:
    if get_origin(option.hint) is Literal:
        return "|".join(get_args(option.hint))
    if int in (option.hint, *get_args(option.hint)):
        return "N"
    return option.metavar or option.name.upper()


def _reader(option: Option) -> Callable[[str], list[Any]]:
    split = (lambda text: [text]) if option.commas else _words
    return lambda text: [option.value(word.strip(), text=True) for word in split(text)]


def _words(text: str) -> list[str]:
    """Split a list at its commas. Those in brackets separate options of one value."""
    return re.split(r",(?![^(]*\))", text)


def given(args: argparse.Namespace, known: Iterable[Option]) -> dict[str, Any]:
    """Return the values that were given, checked."""
    pairs = ((option, getattr(args, option.name, None)) for option in known)
    return {
        option.name: option.value(text, text=not isinstance(text, bool))
        for option, text in pairs
        if text is not None
    }


def given_filters(args: argparse.Namespace, known: Iterable[Option]) -> dict[str, list[Any]]:
    """Return the values that were given for each filter, checked."""
    filters: dict[str, list[Any]] = {}
    for option in known:
        texts = getattr(args, option.name, None) or []
        if option.name == "method":
            values = [one_method(text) for text in texts]
        else:
            values = [value for text in texts for value in _reader(option)(text)]
        if values:
            filters[option.name] = list(dict.fromkeys(values))
    return filters


def one_method(text: str) -> str:
    """Return the text of one method. A comma separates its options, so it cannot end it."""
    methods = _words(text)
    if len(methods) > 1:
        right = repeated("--method", [method.strip() for method in methods])
        raise UserError(f"--method takes one method: write {right}")
    return text


def repeated(flag: str, values: list[str]) -> str:
    """Return `--method er --method er+gem`."""
    return shlex.join(word for value in values for word in (flag, value))


def add_own_settings(group: Any, help: str) -> None:
    """Add `--set NAME=VALUE` for settings of a user's own loop."""
    group.add_argument("--set", dest="own", action="append", metavar="NAME=VALUE", help=help)


def given_own_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given with `--set`, as numbers or truth values if they are."""
    settings = {}
    for text in args.own or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise UserError(f"--set takes a name and a value, such as width=64, not {text!r}")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        settings[name] = read if isinstance(read, bool | int | float | str) else value
    return settings


def add_seeds(group: Any, help: str, count_help: str) -> None:
    """Add `--seed N,N,...` and `--seeds N`, of which one may be given."""
    choice = group.add_mutually_exclusive_group()
    seed: Any = choice.add_argument("--seed", metavar="N,N,...", action="append", help=help)
    seed.reader = _reader(options(Request)["seed"])
    choice.add_argument("--seeds", metavar="N", help=count_help)


def seed_count(args: argparse.Namespace) -> int | None:
    """Return how many seeds `--seeds` asks for."""
    if args.seeds is None:
        return None
    count = Option("", name="seeds", hint=int).value(args.seeds, text=True)
    if not 1 <= count <= MOST_SEEDS:
        raise UserError(f"seeds must be from 1 to {MOST_SEEDS:,}, not {count}")
    return int(count)
