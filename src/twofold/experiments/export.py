"""Runs copied into an archive, to be published beside a paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from twofold.errors import UserError
from twofold.experiments.archive import CURVES, Archive, Entry, is_archive, read_mark
from twofold.experiments.columns import read_parquet
from twofold.experiments.config import Config
from twofold.experiments.plain import read_json
from twofold.experiments.reader import CONFIG, SUMMARY, is_older
from twofold.plainfiles import real


def export(places: Sequence[Path], to: Path) -> tuple[int, int]:
    """Add runs to the archive `to`; return how many were new, and by how many bytes it grew.

    places: folders of runs, or the runs of an archive: its folder and the name of the run.
    """
    if any(real(to) == real(place.parent) for place in places):
        raise UserError(f"{to} is where the runs are: export them to a different folder")
    if read_mark(to) is not None and not is_archive(to):
        raise UserError(f"{to} is a run store and not an archive: export to a different folder")
    archive = Archive(to)
    old_size = archive.size()
    added = archive.add(map(_entry, places))
    return len(added), max(archive.size() - old_size, 0)


def _entry(place: Path) -> Entry:
    if not place.is_dir() and is_archive(place.parent):
        return Archive(place.parent).entry(place.name)
    # As they were written: an older configuration may lack an option that has come since.
    config, summary = (read_json(place / name) for name in (CONFIG, SUMMARY))
    if is_older(config):
        new = Config.stored(config)
        summary |= {"identity": new.identity(), "command": new.command()}
        read = partial(read_parquet, place / CURVES)
        return Entry(new.folder_name(), dataclasses.asdict(new), summary, read)
    return Entry(place.name, config, summary, partial(read_parquet, place / CURVES))
