"""Objectives, the "what": the loss to optimise, as weighted terms. One file per objective."""

from typing import TYPE_CHECKING, Any

from twofold.discovery import exported, import_all
from twofold.objectives.base import Draw, Objective, Term

import_all(__name__, __path__)
globals().update(exported(Objective))  # Er, Joint, ...

__all__ = ["Draw", "Objective", "Term"]
__all__ += [*exported(Objective)]

if TYPE_CHECKING:  # components are found at run time

    def __getattr__(name: str) -> Any: ...
