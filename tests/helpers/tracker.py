"""A package with the interface that trackio and wandb share. It appends each call to a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

print("a package may print when it is imported")


def _record(*call: object) -> None:
    with Path(os.environ["TRACKED"]).open("a") as file:
        file.write(json.dumps([os.getpid(), *call]) + "\n")
    if call[0] == os.environ.get("TRACKER_FAILS"):
        raise ConnectionError("the service\nis away")


current: list[str] = []


class Run:
    def __init__(self, name: str) -> None:
        self.name = name

    def log(self, metrics: dict[str, float], step: int | None = None) -> None:
        _record("log", self.name, step, metrics)


def init(
    project: str,
    name: str | None = None,
    group: str | None = None,
    config: dict[str, object] | None = None,
) -> Run:
    print("* a package greets")
    _record("init", project, name, group, config)
    current.append(name or "")
    return Run(name or "")


def finish() -> None:
    print("a package may print when a run ends")
    _record("finish", current.pop())
