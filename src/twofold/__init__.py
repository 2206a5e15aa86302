"""Continual learning as what x how: any objective with any optimisation routine.

    import twofold

    run = twofold.run("rotated-mnist", "er+gem(gamma=0.5)", seed=142)
    print(run.min, run.avg)
    run.plot()

Names are loaded when first used, so that the command line answers at once.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 (the one line that an older Python should see)
    raise ImportError("twofold needs Python 3.11 or later", name="twofold")

if TYPE_CHECKING:
    from twofold.benchmarks import Benchmark, Recipe
    from twofold.compare.asked import comparison
    from twofold.errors import UserError
    from twofold.evaluation.measures import measures
    from twofold.evaluation.trajectory import gaps
    from twofold.experiments.config import Config, configure
    from twofold.experiments.running import run, run_all
    from twofold.experiments.runs import Run
    from twofold.experiments.several import Runs
    from twofold.experiments.store import Store
    from twofold.experiments.studies import Study
    from twofold.how import How
    from twofold.memories import Memory
    from twofold.method import Method
    from twofold.objectives import Draw, Objective, Term
    from twofold.routines import Needs, Routine, Step
    from twofold.watch import Watch

_HOME = {
    "Benchmark": "benchmarks",
    "Config": "experiments.config",
    "Draw": "objectives",
    "How": "how",
    "Memory": "memories",
    "Method": "method",
    "Needs": "routines",
    "Objective": "objectives",
    "Recipe": "benchmarks",
    "Routine": "routines",
    "Run": "experiments.runs",
    "Runs": "experiments.several",
    "Step": "routines",
    "Store": "experiments.store",
    "Study": "experiments.studies",
    "Term": "objectives",
    "UserError": "errors",
    "Watch": "watch",
    "comparison": "compare.asked",
    "configure": "experiments.config",
    "gaps": "evaluation.trajectory",
    "measures": "evaluation.measures",
    "run": "experiments.running",
    "run_all": "experiments.running",
}

__all__ = [
    "Benchmark",
    "Config",
    "Draw",
    "How",
    "Memory",
    "Method",
    "Needs",
    "Objective",
    "Recipe",
    "Routine",
    "Run",
    "Runs",
    "Step",
    "Store",
    "Study",
    "Term",
    "UserError",
    "Watch",
    "comparison",
    "configure",
    "gaps",
    "measures",
    "run",
    "run_all",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"twofold.{_HOME[name]}"), name)
    raise AttributeError(f"module 'twofold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
