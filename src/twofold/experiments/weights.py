"""stub until merged"""

from __future__ import annotations

import hashlib
from pathlib import Path

from torch import Tensor


def read(path: Path) -> dict[str, Tensor]:
    raise NotImplementedError


def write(path: Path, state: dict[str, Tensor]) -> None:
    raise NotImplementedError


def digest(state: dict[str, Tensor]) -> str:
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in state.values())).hexdigest()[:10]


def file_of(path: Path) -> Path:
    raise NotImplementedError
