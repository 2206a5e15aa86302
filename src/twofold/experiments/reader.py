"""The one reader of what stores hold: all of it may have been written by a stranger.

Everything is compared with the description of a run before it is used: types, ranges (by the
checks of the options), lengths, and sizes before memory is taken for them. An error names the file
and what is wrong with it, in one line.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from twofold.errors import UserError
from twofold.experiments.config import UNSTATED, Config
from twofold.experiments.plain import WrongContentError
from twofold.method import IMPLIED_OBJECTIVE, IMPLIED_ROUTINE, split_text
from twofold.objectives import Objective
from twofold.options import options
from twofold.routines import Routine
from twofold.settings import LARGEST
from twofold.terms import Addition
from twofold.text import LONGEST, is_shown

CONFIG, SUMMARY = "config.json", "summary.json"
Entry = Callable[[Any, str], object]  # a check of an entry, given its name

RESERVED = {"run", "iteration", "task", "loss", "projected", "norm_ratio", "unsolved"}
NEEDED = ("min", "avg", "diverged", "projected")  # entries of every summary


def run_of(config: Any, summary: Any) -> tuple[Config, dict[str, Any]]:
    """Return the configuration and the summary that the files of a run describe, checked."""
    checked = config_of(config)
    return checked, summary_of(summary, checked, is_older(config))


def config_of(content: Any) -> Config:
    """Return the configuration that a file describes, with every option checked."""
    try:
        entries = _table(content, "it")
        _check_components(entries.get("components"))
        _text(entries.get("method"), "method")
        config = Config.stored(entries)
        check_config(config)
        _check_method(config)
    except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
        message = str(error) if isinstance(error, UserError) else "it is no configuration"
        raise WrongContentError(f"{CONFIG}: {message}"[:300]) from None
    return config


def check_config(config: Config) -> None:
    """Check every option of a configuration: what is written must be readable again."""
    for name, each in options(Config).items():
        value = getattr(config, name)
        _check_option(name, each.hint, value)
        if not (config.own and value == UNSTATED.get(name)):
            each.value(value)
    _facts(config.settings, "settings")
    for name in config.settings:
        check_setting(name)


def check_setting(name: str) -> None:
    """Refuse a setting of a user's own whose name means something else."""
    reserved = RESERVED | {field.name for field in dataclasses.fields(Config)} | {*dir(Config)}
    if name in reserved or name.startswith(("accuracy_", "raw_accuracy_")):
        raise UserError(f"a setting can't be called {name!r}, which means something else here")


def _check_option(name: str, hint: Any, value: Any) -> None:
    if not isinstance(value, list) and hint is not str and name != "start_from":
        return
    for text in value if isinstance(value, list) else [value]:
        if _text(text, name).startswith("-"):  # a command would take it for a flag
            raise WrongContentError(f"{name} must not begin with a dash")


def _check_components(components: Any) -> None:
    if not isinstance(components, list) or not components:
        raise WrongContentError("components must be a list with an objective first")
    for component in components:
        if not isinstance(component, list | tuple) or len(component) != 2:
            raise WrongContentError("a component must be a name and its options")
        name, values = component
        _text(name, "a component's name")
        for key, value in _table(values, f"the options of {name}").items():
            _text(key, "an option's name")
            for each in value if isinstance(value, list) else [value]:
                _check_plain(each, f"{name}'s {key}")


def _check_plain(value: Any, what: str) -> None:
    if isinstance(value, str):
        _text(value, what)
    elif value is not None and not isinstance(value, bool):
        _number(value, what, -1e300, 1e300)


def _check_method(config: Config) -> None:
    """Compare the method's text, which tables show, with the components that were trained."""
    names = [name for name, _ in config.components]
    if not all(map(_is_known, names)):  # of a plugin that is not loaded: its name may be anything
        if not all(name in config.method for name in names if name != IMPLIED_OBJECTIVE):
            raise WrongContentError(f"the method {config.method!r} has different components")
        return
    pieces = [piece for piece in split_text(config.method) if piece.name != IMPLIED_ROUTINE]
    written = [piece.name for piece in pieces]
    if names not in (written, [IMPLIED_OBJECTIVE, *written]):
        method = "+".join(names)
        raise WrongContentError(f"the method {config.method!r} has different components: {method}")
    options = dict(config.components)
    for piece in pieces:
        for key, text in piece.named.items():
            value = options[piece.name].get(key)
            if not _says(text, value):
                raise WrongContentError(
                    f"the method {config.method!r} was trained with {key} {value!r}"
                )


def _is_known(name: str) -> bool:
    return any(kind.knows(name) for kind in (Objective, Addition, Routine))


def _says(text: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None or isinstance(value, str | list | dict):
        return not isinstance(value, bool | str | None) or text.lower() == str(value).lower()
    try:
        return float(text) == float(value)
    except ValueError:
        return False


# Summaries


def summary_of(content: Any, config: Config, older: bool = False) -> dict[str, Any]:
    """Return the summary of the run of a configuration, with all entries checked.

    older: whether the run was written before run identities changed.
    """
    try:
        summary = _table(content, "it")
        for key in NEEDED:
            if key not in summary:
                raise WrongContentError(f"{key} is missing")
        entries = _ENTRIES | (_MEASURED if "test_sets" in summary else {})
        for key, value in summary.items():
            _text(key, "a key")
            if key in entries:
                entries[key](value, key)
        _check_tasks(summary)
        identity = config.identity(_plugins(config, summary))
        if older:
            _text(summary.get("identity"), "identity")
        elif summary.setdefault("identity", identity) != identity:
            raise WrongContentError(f"its identity is not the one of {CONFIG}")
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        message = str(error) if isinstance(error, UserError) else "it is no summary"
        raise WrongContentError(f"{SUMMARY}: {message}"[:300]) from None
    return summary


def is_older(content: Any) -> bool:
    """Tell whether a configuration was written before run identities changed."""
    return isinstance(content, dict) and "eval_every" in content


def check_name(name: str, config: Config, summary: Mapping[str, Any]) -> None:
    """Compare the name of a run in a store with its configuration: a folder can be renamed."""
    if not name.isprintable():
        raise WrongContentError("its name has letters that cannot be shown")
    if name.rpartition("-")[2] != summary["identity"]:
        right = config.folder_name(_plugins(config, summary))
        raise WrongContentError(f"{CONFIG} is the one of a different run, {right}")


def _plugins(config: Config, summary: Mapping[str, Any]) -> list[str]:
    """Return the digests that the run recorded: no file that a store names is opened."""
    return list(summary.get("plugins", [""] * len(config.plugins)))


def _check_tasks(summary: Mapping[str, Any]) -> None:
    tasks = len(summary.get("accuracy_after_task", ()))
    for key in ("raw_accuracy_after_task", "quantities"):
        if len(summary.get(key, ())) not in (0, tasks):
            raise WrongContentError(f"{key} has {len(summary[key])} tasks, expected {tasks}")
    for kind in ("", "raw_"):
        ends, minima = (
            summary.get(f"{kind}{n}") for n in ("accuracy_after_task", "minimum_of_task")
        )
        if ends is not None and [len(row) for row in ends] != list(range(1, len(ends) + 1)):
            raise WrongContentError(
                f"{kind}accuracy_after_task must have a row per task, each longer by one"
            )
        if ends is not None and minima is not None and len(minima) != len(ends) - 1:
            raise WrongContentError(
                f"{kind}minimum_of_task has {len(minima)} tasks, expected {len(ends) - 1}"
            )


def _percent(value: Any, what: str) -> None:
    _number(value, what, 0, 100)


def _measured(value: Any, what: str) -> None:
    _number(value, what, -1e300, 1e300)


def _or_none(check: Entry) -> Entry:
    return lambda value, what: None if value is None else check(value, what)


def _each(check: Entry) -> Entry:
    def checked(value: Any, what: str) -> None:
        for each in _list(value, what):
            check(each, what)

    return checked


def _rows(check: Entry) -> Entry:
    def checked(value: Any, what: str) -> None:
        if not _list(value, what):
            raise WrongContentError(f"{what} is empty")
        _each(_each(check))(value, what)

    return checked


def _results(check: Entry) -> dict[str, Entry]:
    """Return the entries that hold results, all of which a number must pass."""
    return {
        **dict.fromkeys(("min", "raw_min"), _or_none(check)),
        **dict.fromkeys(("avg", "raw_avg"), check),
        **dict.fromkeys(("minimum_of_task", "raw_minimum_of_task"), _each(check)),
        **dict.fromkeys(("accuracy_after_task", "raw_accuracy_after_task"), _rows(check)),
    }


def _truth(value: Any, what: str) -> None:
    if not isinstance(value, bool):
        raise WrongContentError(f"{what} must be true or false")


def _count(value: Any, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongContentError(f"{what} must be a whole number")
    _number(value, what, 0, LARGEST)


def _numbers(value: Any, what: str) -> None:
    for key, each in _table(value, what).items():
        _text(key, f"a key of {what}")
        _number(each, f"{what}'s {key}", 0, 1e15)


def _facts(value: Any, what: str) -> None:
    for key, each in _table(value, what).items():
        _text(key, f"a key of {what}")
        _check_plain(each, f"{what}'s {key}")


def _examples(value: Any, what: str) -> None:
    if sorted(_table(value, what)) != ["test", "train"]:
        raise WrongContentError(f"{what} must have train and test")
    for key, each in value.items():
        _count(each, f"{what}'s {key}")


def _share(value: Any, what: str) -> None:
    _number(value, what, 0, 1)


_ENTRIES: dict[str, Entry] = {
    **_results(_percent),
    **dict.fromkeys(("diverged", "higher_is_better"), _truth),
    **dict.fromkeys(("iterations", "unsolved"), _count),
    "projected": _share,
    **dict.fromkeys(("seconds", "audit"), _numbers),
    **dict.fromkeys(
        ("plugins", "test_sets", "quantities"), _each(lambda value, what: _text(value, what))
    ),
    "examples": _examples,
    "made_with": _facts,
}
_MEASURED = _results(_measured)  # in runs of a user's own loop, which may measure anything


# Values


def _table(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongContentError(f"{what} must be a JSON object, not {_kind(value)}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise WrongContentError(f"{what} must be a list, not {_kind(value)}")
    return value


def _text(value: Any, what: str) -> str:
    """Accept text that shows as it is: no line ends, no terminal escapes."""
    if not isinstance(value, str):
        raise WrongContentError(f"{what} must be text, not {_kind(value)}")
    if not is_shown(value):
        raise WrongContentError(f"{what} must be printable text of at most {LONGEST} letters")
    return value


def _number(value: Any, what: str, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongContentError(f"{what} must be a number, not {_kind(value)}")
    if not (least <= value <= most) or (isinstance(value, float) and not math.isfinite(value)):
        raise WrongContentError(f"{what} must be a number from {least:g} to {most:g}")


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "text", type(None): "nothing"}.get(
        type(value), type(value).__name__
    )
