"""What configurations have in common, in words: a table or a comparison states it once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from twofold.compatibility import uses_memory
from twofold.errors import UserError
from twofold.experiments.config import QUOTA, UNSTATED, Config, own_settings, setting_words, varying
from twofold.memories.reading import described
from twofold.options import Option, options
from twofold.settings import Settings

START = "start_digest"  # no flag, but all that a run learns depends on where it starts
TUNED = tuple(UNSTATED)  # learning rate and batch size, which are stated even if they are usual


def shared_words(configs: Sequence[Config], apart: Iterable[str] = ()) -> list[str]:
    """Return the settings that all configurations have, such as `lr 0.1` and `tasks 2`.

    They are the tuned ones, the users' own, and all others that do not have their default value.
    """
    hidden = {"seed", *QUOTA, *apart, *(each.name for each in varying(configs))}
    known = options(Config) | own_settings(configs)
    stated = [
        each
        for name, each in known.items()
        if each.role != "place" and (each.flag is not None or name == START) and name not in hidden
        if _is_stated(each, configs[0].value(name))
    ]
    return setting_words(configs[0], stated)


def stores_some(config: Config) -> bool:
    """Return whether the method uses a memory that does not simply hold everything."""
    try:
        objective, routines = config.make_components()
    except UserError:  # a component that is not available here
        return True
    return uses_memory(objective, routines) and not objective.stores_all


def _is_stated(option: Option, value: Any) -> bool:
    if option.name in TUNED:
        return bool(value != UNSTATED[option.name])
    default = described(Settings()) if option.name == "memory" else option.default
    return bool(value != default)
