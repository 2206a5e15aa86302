"""A shelf: runs by what they are, not by what they are called, so that those alike form a group."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import NamedTuple

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions, changed_plugins
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.options import options
from twofold.text import stated

SMALLER = tuple(name for name, each in options(Config).items() if each.reduces)


class Setting(NamedTuple):
    """The tuned hyperparameters."""

    lr: float
    batch_size: int

    @classmethod
    def of(cls, config: Config) -> Setting:
        return cls(config.lr, config.batch_size)

    def __str__(self) -> str:
        return f"LR {stated(self.lr)}, BS {stated(self.batch_size)}"

    @property
    def order(self) -> tuple[int, float]:
        """For sorting: by batch size, with the highest learning rate first."""
        return self.batch_size, -self.lr


def essence(config: Config, apart: Iterable[str] = (*Setting._fields, *SMALLER)) -> str:
    """Return all that decides a run's result, except for its seed and these fields."""
    decisive = config.decisive() | {"plugins": config.plugins}
    kept = {name: value for name, value in decisive.items() if name not in {"seed", *apart}}
    return json.dumps(kept, sort_keys=True)


def preference(group: Group) -> tuple[object, ...]:
    """For sorting: full runs first, then those nearest to them, then those with more seeds."""
    return *training_preference(group), *evaluation_preference(group), -len(group.runs)


def training_preference(group: Group) -> tuple[object, ...]:
    """For sorting: runs trained in full first, then those nearest to them."""
    config = group.config
    size = (-(config.iterations or math.inf), -(config.tasks or math.inf))
    shortened = bool(Reductions.of(group).training)
    return bool(changed_plugins(group.runs[0])), shortened, *(size if shortened else ())


def evaluation_preference(group: Group) -> tuple[object, ...]:
    """For sorting: runs evaluated in full first, then those nearest to them."""
    reductions = Reductions.of(group)
    thinned = (not group.complete, not group.knows_min)
    return *thinned, bool(reductions.images), bool(reductions.precision)


class Shelf:
    """Groups by what they are. Runs that are alike form a group, whatever their profile's name.

    Seeds that were evaluated in fp32 and in bf16 form a group, too, unless audits found
    differences. A seed that was evaluated in both counts in fp32.

    curves: whether numbers are needed that follow from whole curves only. If not, seeds of all
        schedules that know MIN exactly form a group.
    """

    def __init__(self, found: Iterable[Group], curves: bool = True) -> None:
        by_seed: dict[str, dict[int, Run]] = {}
        for group in found:
            ignored = [] if Reductions.of(group).precision else ["eval_precision"]
            if not curves and group.knows_min and not group.replaces_evaluated:
                ignored.append("eval_schedule")
            for run in group.runs:
                runs_by_seed = by_seed.setdefault(
                    f"{essence(run.config, ignored)} {run.plugins}", {}
                )
                if run.config.seed not in runs_by_seed or run.config.eval_precision == "fp32":
                    runs_by_seed[run.config.seed] = run
        self._groups: dict[str, list[Group]] = {}
        for seeds in by_seed.values():
            group = Group(tuple(seeds[seed] for seed in sorted(seeds)))
            self._groups.setdefault(essence(group.config), []).append(group)

    def groups(self) -> list[Group]:
        return [group for by_setting in self._groups.values() for group in by_setting]

    def find(self, config: Config) -> dict[Setting, Group]:
        """Return the groups of a method by learning rate and batch size.

        Of several groups in one setting, those as small as `config` come first, then full ones.
        """
        names = [name for name in SMALLER if name != "eval_precision"]  # which `preference` weighs

        def order(group: Group) -> tuple[object, ...]:
            pairs = ((getattr(group.config, name), getattr(config, name)) for name in names)
            return any(one != other for one, other in pairs), *preference(group)

        by_setting: dict[Setting, Group] = {}
        for group in sorted(self._groups.get(essence(config), ()), key=order):
            by_setting.setdefault(Setting.of(group.config), group)
        return by_setting
