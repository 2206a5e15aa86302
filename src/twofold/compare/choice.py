"""Choice of one setting of several: learning rate and batch size, the same for all methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from twofold.benchmarks import Recipe
from twofold.compare.groups import Group, groups
from twofold.compare.reductions import Reductions
from twofold.compare.shelf import Setting, preference
from twofold.experiments.config import configure
from twofold.experiments.runs import Run
from twofold.statistics import mean_and_error

Found = Mapping[str, Mapping[Setting, Group]]  # by method and setting


class Choice(NamedTuple):
    """A setting, and why it was chosen."""

    setting: Setting
    why: str


def choose(found: Found, plain: Sequence[str], usual: Setting) -> Choice | None:
    """Choose the setting in which the plain methods end highest; None if there are no runs.

    It is one setting for all methods. Of those that have the most plain methods, it is the one with
    the highest mean of their final accuracies. Without any plain method it is the usual setting,
    or the one with the most runs.
    """
    settings = sorted({setting for by_setting in found.values() for setting in by_setting})
    if not settings:
        return None
    finals = _finals(found, plain)
    if len(settings) == 1:
        choice = Choice(settings[0], "the only ones with runs")
    elif finals:
        choice = _highest(finals, plain)
    elif usual in settings:
        return Choice(usual, "the usual ones")
    else:
        count = {
            s: sum(len(by_setting[s].runs) for by_setting in found.values() if s in by_setting)
            for s in settings
        }
        choice = Choice(max(settings, key=lambda s: count[s]), "those with the most runs")
    if choice.setting != usual:
        choice = choice._replace(why=f"{choice.why} (usually {usual})")
    return choice


def _finals(found: Found, plain: Sequence[str]) -> dict[Setting, dict[str, float]]:
    """Return final accuracies by setting and plain method, of shortened runs only if all are."""
    candidates = [
        (method, s, group) for method in plain for s, group in found.get(method, {}).items()
    ]
    full = [each for each in candidates if not Reductions.of(each[2]).training]
    finals: dict[Setting, dict[str, float]] = {}
    for method, setting, group in full or candidates:
        finals.setdefault(setting, {})[method] = mean_and_error(group.values("avg"))[0]
    return finals


def _highest(finals: Mapping[Setting, Mapping[str, float]], plain: Sequence[str]) -> Choice:
    most = max(map(len, finals.values()))
    rivals = {
        s: mean_and_error(values.values())[0] for s, values in finals.items() if len(values) == most
    }
    best = max(rivals, key=lambda s: (rivals[s], s))
    methods = [method for method in plain if method in finals[best]]
    why = f"highest final accuracy of plain {' and '.join(methods)} among {len(rivals)} settings"
    for method in methods:
        own_best = max(finals, key=lambda s: (finals[s].get(method, -math.inf), s == best))
        if own_best != best:
            why += f"; {method} alone ends highest with {own_best}"
    return Choice(best, why)


def one_setting(runs: Sequence[Run]) -> tuple[list[Run], str]:
    """Return the runs with the setting that `choose` chooses, and why it did.

    If every method has a single setting, such as DER its own, there is nothing to choose. The
    usual setting of a user's own benchmark is not known, so there the user has to choose.
    """
    by_method: dict[str, dict[Setting, Group]] = {}
    for group in sorted(groups(runs), key=preference):
        by_method.setdefault(group.config.method, {}).setdefault(Setting.of(group.config), group)
    ambiguous = any(len(by_setting) > 1 for by_setting in by_method.values())
    if not ambiguous or runs[0].config.benchmark not in Recipe.known:
        return list(runs), ""
    plain = sorted(
        {group.objective for by_setting in by_method.values() for group in by_setting.values()}
    )
    default = configure(runs[0].config.benchmark, "er", mode=runs[0].config.mode)
    choice = choose(by_method, plain, Setting.of(default))
    if choice is None:
        return list(runs), ""
    chosen = [run for run in runs if Setting.of(run.config) == choice.setting]
    return chosen, f"{choice.setting}, {choice.why}"
