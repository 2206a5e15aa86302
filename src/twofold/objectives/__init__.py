"""Objectives, the "what": the loss to optimise, as weighted terms. One file an objective."""

from twofold.discovery import import_all
from twofold.objectives.base import Draw, Objective, Term

import_all(__name__, __path__)

__all__ = ["Draw", "Objective", "Term"]
