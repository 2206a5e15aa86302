"""Continual learning as what x how: any objective with any optimisation routine.

    import twofold

    run = twofold.run("rotated-mnist", "er+gem(gamma=0.5)", seed=142)
    print(run.min, run.avg)

Names are loaded when first used, so that the command line answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold.benchmarks import Benchmark, Recipe
    from twofold.errors import UserError
    from twofold.experiments.config import Config, configure
    from twofold.experiments.execution import run
    from twofold.experiments.runs import Run, Runs
    from twofold.experiments.store import Store
    from twofold.method import Method
    from twofold.objectives import Draw, Objective, Term
    from twofold.routines import Needs, Routine, Step

_HOME = {
    "Benchmark": "benchmarks",
    "Recipe": "benchmarks",
    "UserError": "errors",
    "Config": "experiments.config",
    "configure": "experiments.config",
    "Run": "experiments.runs",
    "Runs": "experiments.runs",
    "run": "experiments.execution",
    "Store": "experiments.store",
    "Method": "method",
    "Draw": "objectives",
    "Objective": "objectives",
    "Term": "objectives",
    "Needs": "routines",
    "Routine": "routines",
    "Step": "routines",
}

__all__ = [
    "Benchmark",
    "Config",
    "Draw",
    "Method",
    "Needs",
    "Objective",
    "Recipe",
    "Routine",
    "Run",
    "Runs",
    "Step",
    "Store",
    "Term",
    "UserError",
    "configure",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"twofold.{_HOME[name]}"), name)
    raise AttributeError(f"module 'twofold' has no attribute {name!r}")
