"""Checkpoints: the state of a run in one file, which is written whole and runs no code when read.

The file contains only tensors and plain data, and is loaded with `weights_only`, which refuses
anything else. It begins with a digest, since a flipped bit would go unnoticed.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from twofold.plainfiles import opened, replace_file

FORMAT = 5
DIGEST = 32  # bytes
LARGEST = 2**34
ARRAY = "numpy array"  # marks an array, which is stored as the tensor that shares its memory
HELD = (torch.Tensor, np.generic, type(None), bool, int, float, str, bytes)
Array = NDArray[Any]


class _RefusedError(Exception):
    """A checkpoint that cannot be continued from."""


def write(path: Path, state: dict[str, Any], run: str = "") -> None:
    """Replace the checkpoint. A reader finds either the old one or the new one, complete.

    run: the identity of the run that it belongs to.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "run": run, "state": _packed(state)}, buffer)
    content = buffer.getbuffer()
    replace_file(path, hashlib.sha256(content).digest(), content)


def read(
    path: Path,
    device: torch.device | str = "cpu",
    run: str = "",
    refused: Callable[[str], None] = lambda why: None,
) -> dict[str, Any] | None:
    """Return the state; None if there is no checkpoint, or none of this run that can be used.

    run: the identity of the run that is to continue.
    refused: called with the reason if there is a checkpoint that cannot be used.
    """
    try:
        return _read(path, device, run)
    except FileNotFoundError:
        return None
    except _RefusedError as error:
        refused(f"its checkpoint {error}")
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, EOFError):
        refused("its checkpoint cannot be read")
    except pickle.UnpicklingError:
        refused("its checkpoint is damaged")
    return None


def _read(path: Path, device: torch.device | str, run: str) -> dict[str, Any]:
    with opened(path, follow=False) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise _RefusedError("is too large")
        digest = file.read(DIGEST)
        if hashlib.file_digest(file, "sha256").digest() != digest:
            raise _RefusedError("is damaged")
        file.seek(DIGEST)
        content = file.read()
    stored = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    if stored["format"] != FORMAT:
        raise _RefusedError("is of a different version of twofold")
    if stored["run"] != run:
        raise _RefusedError("belongs to a different run")
    state: dict[str, Any] = _unpacked(stored["state"])
    return state


def misfit(value: Any) -> str | None:
    """Return the type of the first thing in a value that no checkpoint can hold; None if none."""
    if type(value) in (dict, list, tuple):  # others would come back as one of these
        parts = value.values() if isinstance(value, dict) else value
        return next((kind for kind in map(misfit, parts) if kind is not None), None)
    if isinstance(value, HELD) or (isinstance(value, np.ndarray) and _is_numeric(value)):
        return None
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _is_numeric(array: Array) -> bool:
    try:
        torch.from_numpy(np.ascontiguousarray(array[..., :0] if array.ndim else array))
    except TypeError:  # such as an array of texts
        return False
    return True


def _packed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()  # a view would be saved with its whole base
    if isinstance(value, np.ndarray):
        return {ARRAY: torch.from_numpy(np.ascontiguousarray(value))}
    if isinstance(value, dict):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_packed(item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise TypeError(f"a checkpoint holds tensors, arrays and plain data, not {type(value)}")


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            return value[ARRAY].cpu().numpy()
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_unpacked(item) for item in value)
    return value
