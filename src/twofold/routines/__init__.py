"""Routines, the "how": what happens to the gradient between `backward` and the parameter update.

One file a routine; a file added here is found.
"""

from twofold.discovery import import_all
from twofold.routines.base import Needs, Routine, Step

import_all(__name__, __path__)

__all__ = ["Needs", "Routine", "Step"]
