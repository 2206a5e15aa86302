"""Digests of what a user brings to a run: code beside the plugins, networks, and data."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from twofold import datasets
from twofold.benchmarks import Benchmark, Recipe
from twofold.benchmarks.maps import Mapped, file_of
from twofold.choices import Precision
from twofold.datasets import cache
from twofold.datasets.fetch import sha256_of
from twofold.discovery import modules_of
from twofold.errors import MissingDataError, UserError
from twofold.memories.reading import memory_of
from twofold.models.checks import built
from twofold.own_code import UNKNOWN, code_digest
from twofold.own_modules import SCRIPT, is_library
from twofold.plainfiles import replace_file
from twofold.settings import SEED

if TYPE_CHECKING:
    from twofold.experiments.config import Config

DATA = "data "  # the start of a digest of data, among those of a configuration
CHUNK = 1000  # rows that are read at once
FILES = "digests.json"  # in the cache folder: digests of files by size and modification time


def benchmark_digest(benchmark: Benchmark) -> str:
    """Return a digest of data, tasks, and the network's description."""
    digest = hashlib.sha256()
    for pool in (benchmark.train, benchmark.test):
        if isinstance(pool.images, Mapped):
            digest.update("".join(map(_of_map, pool.images.parts)).encode())
        else:
            _add(digest, pool.images)
        _add(digest, pool.labels)
    for task in benchmark.tasks:
        digest.update(task.train.tobytes() + task.test.tobytes())
    with torch.random.fork_rng(devices=[]):  # the weights are not part of the description
        network = repr(built(benchmark.model))
    ordered = " ordered" if benchmark.ordered else ""  # others keep the digest that they had
    digest.update(f"{benchmark.offline_iterations} {network}{ordered}".encode())
    return digest.hexdigest()[:10]


def _add(digest: Any, tensor: Tensor) -> None:
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
    digest.update(np.ascontiguousarray(tensor.numpy(force=True)).data)


def _of_map(part: Tensor) -> str:
    """Return a digest of inputs in a file, whose contents are read only if it has changed.

    Inputs in memory, or in a private map that may have been written to, are read.
    """
    file = file_of(part)
    if file is not None and file.current:
        place = f"{file.offset} {part.dtype} {tuple(part.shape)} {part.stride()}"
        return f"{place} {_of_files([file.path])[0]}"
    digest = hashlib.sha256()
    for rows in part.split(CHUNK):
        _add(digest, rows)
    return digest.hexdigest()


def code_of(
    benchmark: Benchmark | type[Recipe], components: Iterable[type], plugins: Sequence[str]
) -> list[str]:
    """Return the digest of the user's own code in a run, except for the plugins' texts; if any."""
    parts: list[object] = list(components)
    if isinstance(benchmark, Benchmark):
        with torch.random.fork_rng(devices=[]):
            network = built(benchmark.model)
        kinds = dict.fromkeys(map(type, network.modules()))
        parts += [benchmark.model, *kinds]
    else:
        parts.append(benchmark)
    covered = {name: Path(plugin) for plugin in plugins for name in modules_of(plugin)}
    digest = code_digest(parts, covered)
    return [digest] if digest else []


def serving_identities(config: Config) -> list[str]:
    """Return a run's identity, and those of runs that serve as well.

    `auto` takes either precision, so a run in fp32 or bf16 need not be repeated.
    """
    fixed: tuple[Precision, ...] = ("fp32", "bf16") if config.eval_precision == "auto" else ()
    others = (dataclasses.replace(config, eval_precision=precision) for precision in fixed)
    return [each.identity() for each in (config, *others)]


def with_data(config: Config, folder: Path | None) -> Config:
    """Return a configuration with the digest of the data, unless they are as published."""
    if config.own or any(text.startswith(DATA) for text in config.digests):
        return config
    digest = _data.of(Recipe.find(config.benchmark), config.whitening, folder)
    if not digest:
        return config
    return dataclasses.replace(config, digests=[*config.digests, DATA + digest])


class _Data:
    """The digests of the data of recipes in this process; each is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[type[Recipe], str, Path | None], str] = {}

    def of(self, recipe: type[Recipe], whitening: str, folder: Path | None) -> str:
        key = recipe, whitening, folder
        if key not in self._known:
            self._known[key] = _described(recipe, whitening, folder)
        return self._known[key]


_data = _Data()


def _described(recipe: type[Recipe], whitening: str, folder: Path | None) -> str:
    """Return the digest of a recipe's files or else of its tensors, for the first usual seed.

    It is equal to no other one if the data cannot be read here, or are different each time.
    """
    if is_library(recipe.__module__):
        return version_of(recipe.dataset, folder)
    try:
        files = recipe.files(folder)
        if files:
            return hashlib.sha256("".join(_of_files(files)).encode()).hexdigest()[:10]
        first, second = (_of_build(recipe, whitening, folder) for _ in range(2))
    except Exception as error:  # of the user's code; a node of a cluster may have the data
        why = " ".join(str(error).split())[:200] or type(error).__name__
        return _unlike(f"its data cannot be read here ({why})")
    if first != second:
        return _unlike("its build delivers different data each time: draw them from the seed")
    return first


def version_of(name: str | None, folder: Path | None) -> str:
    """Return the digest of a dataset that a user provides; empty if it is as published."""
    try:
        return datasets.version(name, folder) if name else ""
    except MissingDataError:
        return ""  # an estimate needs no data, and training will ask for them


def _of_build(recipe: type[Recipe], whitening: str, folder: Path | None) -> str:
    """Return the digest of the tensors that a recipe builds."""
    benchmark = recipe.build(SEED, folder, whitening)  # type: ignore[arg-type]
    pools = benchmark.train, benchmark.test
    facts = benchmark_digest(benchmark), benchmark.scenario, [pool.whitening for pool in pools]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:10]


def _unlike(why: str) -> str:
    """Return a digest that is equal to no other one."""
    return f"{UNKNOWN} {uuid.uuid4().hex[:10]}: {why}"


def _of_files(files: Iterable[Path | str]) -> list[str]:
    """Return the digests of files. A file of the same size and time as before is not read again."""
    place = cache.root() / FILES
    try:
        known = json.loads(place.read_text())
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    found = {}
    for file in map(Path, files):
        facts = file.stat()
        key = f"{file.resolve()} {facts.st_size} {facts.st_mtime_ns}"
        found[key] = known[key] if isinstance(known.get(key), str) else sha256_of(file)
    if not found.keys() <= known.keys():
        with contextlib.suppress(OSError):  # a cache that cannot be written saves no time
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, json.dumps(known | found))
    return list(found.values())


def check_unchanged(config: Config) -> None:
    """Raise UserError if modules of the user's are not as they were when the command started."""
    if config.own:
        return
    objective, routines = config.make_components()
    parts = [type(each) for each in (objective, *objective.terms, *routines, memory_of(config))]
    recipe = Recipe.find(config.benchmark)
    if any(part.__module__ in SCRIPT for part in (recipe, *parts)):
        return  # a worker process runs a script again, with a different name
    before = [text for text in config.digests if not text.startswith(DATA)]
    if before != code_of(recipe, parts, config.plugins) and not unknown_reasons(config):
        raise UserError("modules that the plugins import were changed meanwhile: start again")


def unknown_reasons(config: Config) -> list[str]:
    """Return why a run will not be found again: what of it cannot be described."""
    parts = [text.removeprefix(DATA) for text in config.digests]
    return [text.partition(": ")[2] for text in parts if text.startswith(UNKNOWN)]
