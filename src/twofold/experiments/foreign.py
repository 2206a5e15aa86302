"""Configurations and states of runs that a loop other than twofold's has trained."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from twofold.curves import rows_of
from twofold.errors import UserError
from twofold.evaluation.schedule import Schedule
from twofold.experiments.config import UNSTATED, Config
from twofold.experiments.naming import canonical
from twofold.experiments.options import Options, Request
from twofold.experiments.reader import check_config, check_setting
from twofold.method import Method, split_text
from twofold.options import Option, options, shown
from twofold.settings import Settings

# The options that a user's settings can fill in, so that filters and tables know them.
KNOWN = {
    name: each
    for name, each in options(Settings).items()
    if each.role == "result" and not each.reduces and name != "seed"
}

# The entries of a state of `Watch`, and their types.
STATE: dict[str, Any] = {
    **dict.fromkeys(("task", "n"), int),
    **dict.fromkeys(("ended", "finite"), bool),
    **dict.fromkeys(("elapsed", "evaluation"), float),
    "raw": bool | None,
    "curves": dict | None,
    "ends": dict,
}


def describe(
    benchmark: str,
    method: str,
    seed: int,
    *,
    own: str,
    schedule: str = "every",
    size: int = 1000,
    settings: Mapping[str, Any] | None = None,
) -> Config:
    """Return the configuration of a run that was trained elsewhere, checked.

    own: a digest of what its test sets are.
    settings: of the user's loop. Those that twofold has, such as `lr`, are its options; all others
        are recorded by the names that they have.
    """
    known = options(Request)
    for name, value in (("benchmark", benchmark), ("method", method)):
        if not isinstance(value, str) or not value.strip():
            raise UserError(f"{name} must be a name, not {shown(value)}")
    given = {"seed": seed, "eval_schedule": schedule, "eval_size": size}
    checked = {name: known[name].value(value) for name, value in given.items()}
    when = Schedule.parse(checked["eval_schedule"])
    if when.exact_min:
        raise UserError("exact-min is for twofold's own training: write dense:100:10, for instance")
    checked["eval_schedule"] = when.text
    options_given, own_settings = _divided(settings or {})
    defaults = {name: each.default for name, each in options(Options).items()} | UNSTATED
    text = canonical(method.strip(), benchmark, str(defaults["profile"]))
    config = Config(
        benchmark=benchmark.strip(),
        method=text,
        components=components_of(text),
        own=own,
        settings=own_settings,
        **(defaults | checked | options_given),
    )
    check_config(config)
    return config


def components_of(method: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the parts of a method's text; a text that is no method is one part."""
    try:
        objective, routines = Method.parse(method).make()
        return [(part.name, part.explicit()) for part in (objective, *objective.terms, *routines)]
    except UserError:
        pass
    try:
        pieces = split_text(method)
    except UserError:
        return [(method, {})]
    parts = []
    for piece in pieces:
        given = {str(place): value for place, value in enumerate(piece.positional)}
        parts.append((piece.name, {**given, **piece.named}))
    return parts


def _divided(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that are options of twofold, checked, and all others."""
    if not isinstance(settings, Mapping):
        raise UserError(f'settings are a mapping such as {{"lr": 0.1}}, not {shown(settings)}')
    known_options: dict[str, Any] = {}
    own_settings: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(name, str) or not name:
            raise UserError(f"the name of a setting must be text, not {shown(name)}")
        if name in KNOWN:
            known_options[name] = KNOWN[name].value(value)
        else:
            check_setting(name)
            own_settings[name] = _plain(name, value)
    return known_options, own_settings


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bool | str):
        return value
    for hint in (int, float):
        try:
            return Option("", name=name, hint=hint).value(value)
        except UserError:
            continue
    raise UserError(f"setting {name!r} must be a number, text, true or false, not {shown(value)}")


def is_state(state: Any, tests: int) -> bool:
    """Tell whether a checkpoint holds a state of `Watch` with this number of test sets."""
    known = isinstance(state, dict) and all(
        name in state and isinstance(state[name], kind) for name, kind in STATE.items()
    )
    if not known or not 0 <= state["task"] <= tests or isinstance(state["n"], bool):
        return False
    curves = state["curves"]
    if curves is not None and (rows_of(curves) < 0 or not _are_of(curves, tests)):
        return False
    learned = [] if curves is None else curves["task"].tolist()
    ended = state["task"] - (not state["ended"])
    return bool(
        state["n"] == learned.count(state["task"])  # none right after a switch
        and [*learned, state["task"]] == sorted([*learned, state["task"]])
        and _are_ends(state["ends"].get("evaluated"), ended)
        and _are_ends(state["ends"].get("raw"), ended if state["raw"] else 0)
        and all(0 <= state[name] < math.inf for name in ("elapsed", "evaluation"))
    )


def _are_of(curves: Mapping[Any, Any], tests: int) -> bool:
    """Tell whether all columns have names, and none is of a further test set."""
    if not all(isinstance(name, str) for name in curves):
        return False
    numbers = [match[1] for name in curves if (match := re.fullmatch(r".*accuracy_(\d+)", name))]
    return all(1 <= int(number) <= tests for number in numbers)


def _are_ends(rows: Any, tasks: int) -> bool:
    """Tell whether these are finite values after each of the tasks that have ended."""
    return (
        isinstance(rows, list)
        and len(rows) == tasks
        and all(isinstance(row, list) and len(row) == k for k, row in enumerate(rows, 1))
        and all(isinstance(value, float) and math.isfinite(value) for row in rows for value in row)
    )
