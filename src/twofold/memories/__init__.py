"""Memories: which examples are stored. One file per memory.

A file added to this folder adds its memory.
"""

from typing import TYPE_CHECKING, Any

from twofold.discovery import exported, import_all
from twofold.memories.base import Memory

import_all(__name__, __path__)
globals().update(exported(Memory))  # Reservoir, Ring, ...

__all__ = ["Memory"]
__all__ += [*exported(Memory)]

if TYPE_CHECKING:  # components are found at run time

    def __getattr__(name: str) -> Any: ...
