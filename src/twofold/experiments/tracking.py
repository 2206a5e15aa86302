"""Packages that track runs as sinks of curves: trackio and wandb, which share one interface."""

from __future__ import annotations

import importlib
from typing import Any

from twofold.experiments.config import Config, option_value
from twofold.options import options

PROJECT = "twofold"


class Tracker:
    """A run of such a package, with the options of the run and its curves by iteration.

    A run that continues from a checkpoint is a new one there, with all of its curves, since
    neither package can take back what an earlier attempt sent.

    asked: the package, with a project if one is given: `trackio:gaps`.
    """

    def __init__(self, asked: str, config: Config) -> None:
        package, _, project = asked.partition(":")
        self._package: Any = importlib.import_module(package)
        self._run: Any = self._package.init(
            project=project or PROJECT,
            name=config.folder_name(),
            group=config.method,
            config=_described(config),
        )

    def write(self, rows: list[tuple[int, dict[str, float]]]) -> None:
        for step, values in rows:
            self._run.log(values, step=step)

    def close(self) -> None:
        self._package.finish()  # with `_run.finish()`, trackio finishes it again at exit


def _described(config: Config) -> dict[str, object]:
    """Return the options that decide the result. Folders of this machine stay here."""
    shared = [name for name, each in options(Config).items() if each.role != "place"]
    return {name: option_value(config, name) for name in shared}
