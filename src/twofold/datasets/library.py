"""The datasets by name: find, load, fetch and check them."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twofold.datasets import cache
from twofold.datasets.dataset import Copy, Dataset, Source, digest
from twofold.errors import MissingDataError, UserError, unknown
from twofold.locks import locked


@functools.cache
def sources() -> dict[str, Source]:
    """Return the sources by name. Each module of this package with a SOURCE adds one."""
    package = "twofold.datasets"
    files = pkgutil.iter_modules([str(Path(__file__).parent)])
    modules = [importlib.import_module(f"{package}.{file.name}") for file in files]
    all_sources = [module.SOURCE for module in modules if hasattr(module, "SOURCE")]
    return {source.name: source for source in all_sources}


def names() -> tuple[str, ...]:
    """Return the names of all datasets."""
    return tuple(sorted(sources()))


def load(name: str, folder: Path | None = None) -> Dataset:
    """Load a dataset from `folder`. Without `folder`, find it or else fetch it."""
    source = _source(name)
    copy = _find(source) if folder is None else _require(source, folder)
    copy = copy or _fetch(source, None)
    with _reading(copy.where):
        return cache.load(name, copy, lambda: _decode(source, copy))


def version(name: str, folder: Path | None = None) -> str:
    """Return a digest of a dataset that circulates in several versions.

    It is empty if one version is published, since every copy is compared with that.
    """
    return "" if _source(name).digest else load(name, folder).version


def get(name: str, folder: Path | None = None) -> Path:
    """Return the place of a dataset's files, in `folder` if given; fetch them if necessary."""
    source = _source(name)
    location = _find(source) if folder is None else _find_in(source, folder)
    return (location or _fetch(source, folder)).where


def check(name: str, folder: Path | None = None) -> str:
    """Read all files of a dataset, without the cache, and return a summary."""
    source = _source(name)
    copy = _find(source) if folder is None else _require(source, folder)
    if copy is None:
        raise _missing(source, None)
    dataset = _decode(source, copy)
    height, width, channels = dataset.train.images.shape[1:]
    verdict = "as published" if source.digest else f"{digest(dataset)[:16]} (none is published)"
    return (
        f"{name}: {len(dataset.train.labels):,} + {len(dataset.test.labels):,} images of "
        f"{height}x{width}x{channels}, {len(dataset.class_names)} classes, digest {verdict}, "
        f"from {copy.where}"
    )


def _source(name: str) -> Source:
    if name not in sources():
        raise unknown("dataset", name, sources())
    return sources()[name]


def _find(source: Source) -> Copy | None:
    """Find a copy in $TWOFOLD_DATA, or else in the cache folder."""
    return next((copy for place in _places() if (copy := _find_in(source, place))), None)


def _places() -> list[Path]:
    chosen = os.environ.get("TWOFOLD_DATA")
    if not chosen:
        return [cache.root()]
    if not Path(chosen).expanduser().is_dir():
        raise UserError(f"$TWOFOLD_DATA is {chosen}, which is not a folder: make it, or unset it")
    return [Path(chosen).expanduser(), cache.root()]


def _find_in(source: Source, folder: Path) -> Copy | None:
    with _reading(folder):
        return source.find(folder)


def _require(source: Source, folder: Path) -> Copy:
    copy = _find_in(source, folder)
    if copy is None:
        raise _missing(source, folder)
    return copy


def _fetch(source: Source, folder: Path | None) -> Copy:
    if source.fetch is None:
        raise _missing(source, folder)
    place = folder or cache.root()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with locked(place / f".{source.name}.lock"):
            if source.find(place) is None:  # a different process may have fetched it meanwhile
                source.fetch(place)
    except OSError as error:
        if folder is None:
            raise cache.unwritable(error) from error
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error
    except UserError as error:
        raise MissingDataError(str(error)) from error
    return _require(source, place)


def _decode(source: Source, copy: Copy) -> Dataset:
    with _reading(copy.where):
        dataset = copy.decode()
    if source.digest not in (None, digest(dataset)):
        raise UserError(
            f"{copy.where}: damaged or not {source.title}, for its contents differ from what was "
            f"published: delete it, then fetch it with `twofold data get {source.name}`"
        )
    return dataset


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = error.filename or place
        raise UserError(f"cannot read {name}: {error.strerror or error}") from error


def _missing(source: Source, folder: Path | None) -> UserError:
    if folder is None:
        places = " or ".join(str(place) for place in _places())
    else:
        places = str(folder) if folder.is_dir() else f"{folder} (which is not a folder)"
    option = "" if folder is None else f" --data {folder}"
    remedy = source.origin or f"`twofold data get {source.name}{option}` puts it there"
    return MissingDataError(f"no {source.title} in {places}: expected {source.files}; {remedy}")
