"""Papers: all that one publication adds, as a folder that is found by being there.

    papers/hess2024/
        paper.toml          title, authors, year and url
        studies/*.toml      its studies
        reference/*.csv     the numbers that it prints
        reference.py        numbers() and slips(): these files by address
        profiles.py         DEPARTURES, PROFILES and NOTES
        tables.py           TABLES
        hypotheses.py       HYPOTHESES
        figures/            its own figures

A paper may leave out any part except paper.toml. Each layer asks for its own part, and a paper's
modules import the layer that they extend. Nothing imports a paper by name.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from twofold.errors import UserError, unknown

T = TypeVar("T")


@dataclass(frozen=True)
class Paper:
    """A publication, as its paper.toml describes it."""

    title: str
    authors: tuple[str, ...]
    year: int
    url: str = ""

    def __str__(self) -> str:
        """Return `Hess et al. (2024)`."""
        names = [author.split()[-1] for author in self.authors]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        return f"{' and '.join(names)} ({self.year})"


def folders() -> dict[str, Path]:
    """Return the folder of each paper by its name."""
    files = sorted(Path(__file__).parent.glob("*/paper.toml"))
    return {file.parent.name: file.parent for file in files}


@cache
def paper(name: str) -> Paper:
    """Return what a paper's paper.toml says."""
    entries = tomllib.loads((folders()[name] / "paper.toml").read_text(encoding="utf-8"))
    return Paper(**{**entries, "authors": tuple(entries["authors"])})


def modules(part: str) -> dict[str, ModuleType]:
    """Import a part of every paper that has it, such as `tables`; return the modules by paper."""
    return {
        name: importlib.import_module(f"{__name__}.{name}.{part}")
        for name, folder in folders().items()
        if (folder / f"{part}.py").is_file() or (folder / part / "__init__.py").is_file()
    }


class Catalogue(Mapping[str, T]):
    """Things of several papers by name; `PAPER/NAME` where two papers share a name.

    `find` takes the long form of any name.
    """

    def __init__(self, kind: str, entries: Mapping[str, Mapping[str, T]]) -> None:
        self._kind = kind
        self._entries = {
            (paper, name): value
            for paper, values in entries.items()
            for name, value in values.items()
        }
        self._names = {self.name(*key): key for key in self._entries}

    def name(self, paper: str, name: str) -> str:
        """Return the name under which a paper's entry is listed."""
        shared = sum(other == name for _, other in self._entries) > 1
        return f"{paper}/{name}" if shared else name

    def find(self, name: str) -> T:
        """Return an entry; raise UserError if there is none, or if papers share the name."""
        return self._entries[self._key(name)]

    def _key(self, name: str) -> tuple[str, str]:
        paper, slash, entry = name.partition("/")
        if slash and (paper, entry) in self._entries:
            return paper, entry
        if name in self._names:
            return self._names[name]
        shared = [listed for listed, key in self._names.items() if key[1] == name]
        if shared:
            raise UserError(f"several papers have a {self._kind} {name!r}: {', '.join(shared)}")
        raise unknown(self._kind, name, self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names or tuple(str(name).split("/", 1)) in self._entries

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise KeyError(name)
        return self.find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
