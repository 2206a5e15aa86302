"""Stores combined into one: the same runs as if one machine had trained them all.

Everything is read and compared before anything is written. Each run is then written whole or not at
all, so a merge that was interrupted is repeated with the same command. The sources stay as they
are.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twofold.errors import UserError
from twofold.experiments.archive import CHECKSUMS, KEPT, identity_of, is_archive, read_mark
from twofold.experiments.checksums import FILES
from twofold.experiments.files import digest
from twofold.experiments.plain import read_json
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.experiments.weights import written
from twofold.plainfiles import real
from twofold.text import counted

# Entries of a summary that tell where and how a run was trained, and so may differ.
CIRCUMSTANCES = ("seconds", "made_with", "command", "profile", "audit", "precision")
VERSIONS = ("twofold", "sources", "torch")  # entries of `made_with` that may decide a result


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge."""

    added: int  # runs that the store did not have, or had with less
    present: int  # runs that it had already
    remarks: list[str]  # what the user should know


def merge(sources: Sequence[Path | str], out: Path | str) -> Merged:
    """Add all runs of stores and archives to a store.

    Raises:
        UserError: for a source that is no store, a damaged run, or the same run with different
            results. Nothing is written then.
    """
    stores, target = [_source(Path(place), Path(out)) for place in sources], Store(out)
    if is_archive(target.folder):
        raise UserError(f"{out} is an archive: merge into a store, then `twofold runs export`")
    sound, damaged = _checked(target)
    present = _by_identity(sound)
    found = _by_identity([place for store in stores for place in _all_sound(store)])
    new = {}
    for identity, places in found.items():
        known = [*present.get(identity, []), *places]
        copies = _compared(known) if len(known) > 1 else known
        if identity not in present or _holds_more(copies, present[identity]):
            new[identity] = copies
    everything = {**found, **present}
    remarks = [*_versions(places[0] for places in everything.values()), *_unfinished(stores)]
    target.prepare()
    for place, why in damaged.items():
        if identity_of(place.name) in new:
            target.set_aside(place, why)
    for places in new.values():
        _add(places, target)
    return Merged(len(new), len(found) - len(new), remarks)


def _source(place: Path, out: Path) -> Store:
    if not place.is_dir():
        raise UserError(f"there is no folder {place}")
    if real(place) == real(out):
        raise UserError(f"{place} is the store to merge into: name the others only")
    store = Store(place)
    if read_mark(place) is None and not store.folders():
        inner = ", ".join(map(str, store.inner()))
        hint = f": it holds stores, name them: {inner}" if inner else ""
        raise UserError(f"{place} is no run store{hint}")
    return store


def _checked(store: Store) -> tuple[list[Path], dict[Path, str]]:
    """Return the sound runs of a store, and what is wrong with each damaged one."""
    places = store.folders()
    damaged = store.damaged(places)
    return [place for place in places if place not in damaged], damaged


def _all_sound(store: Store) -> list[Path]:
    """Return the runs of a store, none of which may be damaged."""
    places, damaged = _checked(store)
    for place, why in damaged.items():
        raise UserError(
            f"{place}: {why}: nothing was merged; `twofold runs remove {place.name} --runs "
            f"{store.folder}` leaves it out"
        )
    return places


def _by_identity(places: Sequence[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for place in places:
        found.setdefault(identity_of(place.name), []).append(place)
    return found


def _compared(places: Sequence[Path]) -> list[Path]:
    """Return the copies of a run, the one that holds most first, if their results are equal."""
    runs = [Run.load(place) for place in places]
    for one, other in itertools.combinations(runs, 2):
        reason = _difference(one, other)
        if reason:
            versions = [_version(run) for run in (one, other)]
            made = "" if versions[0] == versions[1] else f" (made with {'; '.join(versions)})"
            raise UserError(
                f"{one.folder} and {other.folder} are the same run with different results, "
                f"in {reason}{made}: nothing was merged"
            )
    reduced = dict(zip(places, map(_is_reduced, runs), strict=True))
    return sorted(places, key=lambda place: (reduced[place], not place.is_dir()))


def _difference(one: Run, other: Run) -> str:
    """Return the first thing in which the results of two runs differ, or nothing."""
    reduced = _is_reduced(one) or _is_reduced(other)
    for name in {**one.columns, **other.columns}:
        if reduced and not KEPT.fullmatch(name):
            continue
        pair = [run.columns.get(name) for run in (one, other)]
        bits = [None if each is None else (each.dtype, each.tobytes()) for each in pair]
        if bits[0] != bits[1]:
            return name
    for name in sorted({*one.summary, *other.summary} - {*CIRCUMSTANCES}):
        if one.summary.get(name) != other.summary.get(name):
            return name
    sums = [_weights(run.folder) for run in (one, other) if run.folder is not None]
    differing = [name for name in sums[0].keys() & sums[1].keys() if sums[0][name] != sums[1][name]]
    return min(differing, default="")


def _is_reduced(run: Run) -> bool:
    """Tell whether a run has no more than archives keep."""
    return all(KEPT.fullmatch(name) for name in run.columns)


def _holds_more(copies: Sequence[Path], present: Sequence[Path]) -> bool:
    """Tell whether the best copy of a run is new, or others have weights that are."""
    weights = [
        {name for place in places for name in _weights(place)} for places in (copies, present)
    ]
    return copies[0] not in present or weights[0] > weights[1]


def _weights(place: Path) -> dict[str, str]:
    """Return the checksums of a run's weights by file. A file without one is no part of the run."""
    sums: dict[str, str] = read_json(place / CHECKSUMS) if place.is_dir() else {}
    return {name: sums[name] for name in written(place) if name in sums}


def _add(places: Sequence[Path], target: Store) -> None:
    """Write a run into the store: the files of its fullest place, and weights of the others."""
    first = places[0]

    def write(folder: Path) -> None:
        if not first.is_dir():
            Run.load(first).write(folder)
            return
        for name, place in _files(places):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(place / name, folder / name)
            if digest(folder / name) != read_json(place / CHECKSUMS)[name]:
                raise UserError(f"{place / name} was changed meanwhile: start again")

    target.save_files(first.name, write)


def _files(places: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Return the files of a run, each with the place that has it."""
    yield from ((name, places[0]) for name in FILES)
    weights = {name: place for place in reversed(places) for name in _weights(place)}
    yield from weights.items()


def _version(run: Run) -> str:
    made: Mapping[str, Any] = run.summary.get("made_with", {})
    twofold, sources, torch = (made.get(name, "?") for name in VERSIONS)
    return f"twofold {twofold} (sources {sources}) and torch {torch}"


def _versions(places: Iterable[Path]) -> list[str]:
    """Return a remark if the runs come from different versions."""
    made = Counter(_version(Run.load(place)) for place in places)
    if len(made) < 2:
        return []
    words = "; ".join(f"{counted(count, 'run')} with {name}" for name, count in made.most_common())
    return [f"the runs come from different versions, which may round differently: {words}"]


def _unfinished(stores: Sequence[Store]) -> list[str]:
    """Return a remark for each store with runs that were begun and not finished."""
    remarks = []
    for store in stores:
        work = store.folder / ".work"
        names = os.listdir(work) if work.is_dir() else []  # noqa: PTH208
        begun = [name for name in names if not name.startswith(".") and (work / name).is_dir()]
        if begun:
            remarks.append(
                f"{store.folder} has {counted(len(begun), 'unfinished run')}: finish with the "
                "command that began, and merge again"
            )
    return remarks
