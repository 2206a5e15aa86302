"""Benchmarks: sequences of tasks made from a dataset. One file per benchmark."""

from twofold.benchmarks.base import Batch, Benchmark, Pool, Recipe, Task
from twofold.discovery import import_all

import_all(__name__, __path__)

__all__ = ["Batch", "Benchmark", "Pool", "Recipe", "Task"]
