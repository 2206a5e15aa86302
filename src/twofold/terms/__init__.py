"""Terms, which are added to the loss of any objective. One file per term."""

from typing import TYPE_CHECKING, Any

from twofold.discovery import exported, import_all
from twofold.terms.base import Addition, Forward

import_all(__name__, __path__)
globals().update(exported(Addition))  # Decay, Ewc, ...

__all__ = ["Addition", "Forward"]
__all__ += [*exported(Addition)]

if TYPE_CHECKING:  # components are found at run time

    def __getattr__(name: str) -> Any: ...
