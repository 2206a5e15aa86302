"""Routines, the "how": they change the gradient between `backward` and the parameter update.

One file per routine. A file added to this folder adds its routine.
"""

from typing import TYPE_CHECKING, Any

from twofold.discovery import exported, import_all
from twofold.routines.base import Needs, Routine, Step

import_all(__name__, __path__)
globals().update(exported(Routine))  # Gem, Agem, ...

__all__ = ["Needs", "Routine", "Step"]
__all__ += [*exported(Routine)]

if TYPE_CHECKING:  # components are found at run time

    def __getattr__(name: str) -> Any: ...
