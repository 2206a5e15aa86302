"""Weights of networks as safetensors files, which hold tensors by name and no code.

A run's folder may hold `weights/end.safetensors`, or a file per task: `weights/task-1.safetensors`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from twofold.choices import Kept
from twofold.errors import UserError
from twofold.experiments import files
from twofold.experiments.plain import WrongContentError, read_json
from twofold.plainfiles import opened, replace_file

State = dict[str, Tensor]  # a network's parameters and buffers by name

FOLDER, SUFFIX = "weights", ".safetensors"
LARGEST = 2**34  # bytes of a file
END, TRAINED = "end", "-trained"


def of_task(task: int) -> str:
    """Return the name of the weights after a task, counted from 1."""
    return f"task-{task}"


def write(path: Path, module_state: Mapping[str, Any]) -> None:
    """Write a state dict, whole or not at all."""
    for name, value in module_state.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise UserError(f"weights are tensors, and {name!r} of the network's state is a {kind}")
    # Copies, since two names may share memory, which the format cannot express.
    plain = {
        name: value.detach().cpu().contiguous().clone() for name, value in module_state.items()
    }
    replace_file(path, save(plain, {"format": "pt"}))


def read(path: Path, follow: bool = True) -> State:
    """Read a state dict, onto the CPU.

    follow: whether a symbolic link is followed.
    """
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a file of weights (safetensors)")
        with opened(path, follow) as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise UserError(f"{path} is larger than {LARGEST:,} bytes")
            return load(file.read())
    except MemoryError:
        raise UserError(f"the weights {path} do not fit into memory") from None
    except OSError as error:
        raise UserError(f"can't read the weights {path}: {error.strerror or error}") from None
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is not a file of weights (safetensors)") from None


def digest(source: Path | Mapping[str, Tensor]) -> str:
    """Return a short digest of the names, shapes and all bits of weights."""
    state = read(source) if isinstance(source, Path) else source
    sha = hashlib.sha256()
    for name in sorted(state):
        value = state[name].detach().cpu().contiguous()
        sha.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        sha.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()[:10]


def file_of(source: Path) -> Path:
    """Return the file of weights that a path names: itself, or the last of a run's folder.

    If different weights were evaluated than trained, it is the evaluated ones, as in `Run.weights`.
    """
    if not source.is_dir():
        return source
    names = written(source)
    if not names:
        raise UserError(f'{source} holds no weights: train it with keep_weights="end"')
    return source / max(names, key=_order)


def _order(name: str) -> tuple[bool, int, bool]:
    """Return a sorting key: by task, with `end` last, and evaluated after trained weights."""
    stem = Path(name).stem
    number = re.search(r"\d+", stem)
    return stem.startswith(END), int(number[0]) if number else 0, not stem.endswith(TRAINED)


def write_all(folder: Path, states: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write weights by name (`end`, `task-1`) into a run's folder."""
    for name, state in states.items():
        (folder / FOLDER).mkdir(exist_ok=True)
        write(folder / FOLDER / f"{name}{SUFFIX}", state)


def written(folder: Path) -> list[str]:
    """Return the files of weights in a run's folder, as its checksums name them."""
    place = folder / FOLDER
    found = () if place.is_symlink() else place.glob(f"[!.]*{SUFFIX}")  # it may lead anywhere
    return sorted(f"{FOLDER}/{path.name}" for path in found)


def holds(folder: Path, kept: Kept, tasks: int) -> bool:
    """Tell whether a run's folder holds the weights that the option `keep_weights` asks for."""
    names = {Path(name).stem for name in written(folder)}
    if kept == "switches":
        return names >= {of_task(task) for task in range(1, tasks + 1)}
    return kept == "none" or bool(names & {END, of_task(tasks)})


class StoredWeights(Mapping[str, State]):
    """The weights in a run's folder by name (`end`, `task-1`), read when they are needed."""

    def __init__(self, folder: Path, checksums: str) -> None:
        self._folder, self._checksums = folder, checksums

    def __getitem__(self, name: str) -> State:
        if name not in list(self):
            raise KeyError(name)
        path = self._folder / FOLDER / f"{name}{SUFFIX}"
        if path.is_symlink() or path.parent.is_symlink():
            raise UserError(f"{path} is a symbolic link, which is not followed")
        try:
            sums = read_json(self._folder / self._checksums)
            if sums[f"{FOLDER}/{path.name}"] != files.digest(path):
                raise UserError(f"{path} is damaged")
        except (OSError, WrongContentError, LookupError, TypeError):
            raise UserError(f"{path} has no checksum: it is not part of this run") from None
        return read(path)

    def __iter__(self) -> Iterator[str]:
        names = [Path(file).stem for file in written(self._folder)]
        return iter(sorted(names, key=lambda name: (len(name), name)))

    def __len__(self) -> int:
        return len(list(iter(self)))
