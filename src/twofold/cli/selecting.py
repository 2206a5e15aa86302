"""Runs that flags select: a filter per option of a run, and `--set` for settings of one's own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from twofold.cli.flags import (
    FILTERS,
    add_filters,
    add_own_settings,
    given_filters,
    given_own_settings,
)
from twofold.cli.output import no_runs
from twofold.cli.parsing import Parser
from twofold.errors import UserError, unknown

if TYPE_CHECKING:
    from twofold.experiments.config import Config
    from twofold.experiments.several import Runs

T = TypeVar("T")


def add_selection(parser: Parser, apart: Iterable[str] = ()) -> None:
    """Add a filter for each option of a run, except for those `apart`."""
    values = parser.add_argument_group("only runs with these values")
    add_filters(values, [each for each in FILTERS if each.name not in apart])
    add_own_settings(values, "a setting of your own")


def filters_of(args: argparse.Namespace) -> dict[str, list[Any]]:
    """Return the values of options and of users' own settings that were given."""
    settings = {name: [value] for name, value in given_own_settings(args).items()}
    return {**settings, **given_filters(args, FILTERS)}


def narrowed(
    entries: Sequence[T],
    args: argparse.Namespace,
    config_of: Callable[[T], Config | None],
) -> list[T]:
    """Select entries by their options. Raise UserError for a value that no run has.

    config_of: returns the configuration of an entry; an entry without one may have any value.
    """
    from twofold.experiments.several import matches

    def has(entry: T, name: str, value: Any) -> bool:
        config = config_of(entry)
        return config is None or matches(config, {name: value})

    chosen = list(entries)
    for name, values in filters_of(args).items():
        for value in values:
            if not any(has(entry, name, value) for entry in entries):
                configs = filter(None, map(config_of, entries))
                known = {str(config.value(name)) for config in configs}
                raise unknown(name.replace("_", " "), str(value), known)
        chosen = [entry for entry in chosen if any(has(entry, name, v) for v in values)]
    if not chosen:
        raise UserError(f"no run in {args.runs} matches all filters: `twofold runs` lists them")
    return chosen


def selected_runs(
    args: argparse.Namespace, metrics: Iterable[str], command: str = "twofold run"
) -> Runs:
    """Return the runs that the flags select. The error for an empty store names `command`.

    metrics: the names of the measures that are shown. If they need the curves, runs whose curves
        cannot be read are left out.
    """
    from twofold.experiments.several import Runs
    from twofold.experiments.store import Store
    from twofold.experiments.summary import METRICS

    folder, curves = args.runs, any(name not in METRICS for name in metrics)
    runs = Store(folder).runs(curves) if folder.is_dir() else []
    if not runs:
        raise no_runs(folder, command)
    return Runs(narrowed(runs, args, lambda run: run.config))
