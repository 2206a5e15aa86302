"""Checkpoints: the state of a run in one file, which is written whole and runs no code when read.

The file contains only tensors and plain data, and is loaded with `weights_only`, which refuses
anything else. It begins with a digest, since a flipped bit would go unnoticed.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

FORMAT = 4
DIGEST = 32  # bytes
ARRAY = "numpy array"  # marks an array, which is stored as the tensor that shares its memory


def write(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint. A reader finds either the old one or the new one, complete."""
    unfinished, buffer = path.with_suffix(".part"), io.BytesIO()
    torch.save({"format": FORMAT, "state": _packed(state)}, buffer)
    content = buffer.getbuffer()
    with unfinished.open("wb") as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def read(path: Path, device: torch.device | str = "cpu") -> dict[str, Any] | None:
    """Return the state; None if there is no usable checkpoint."""
    try:
        with path.open("rb") as file:
            digest, content = file.read(DIGEST), file.read()
        if hashlib.sha256(content).digest() != digest:
            return None
        stored = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        if stored["format"] != FORMAT:
            return None
        state: dict[str, Any] = _unpacked(stored["state"])
        return state
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, KeyError, TypeError):
        return None


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
