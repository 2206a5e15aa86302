"""Hypotheses: what papers claim, and where verdicts look at it.

A paper's hypotheses.py has HYPOTHESES, a tuple of Hypothesis. They apply to all runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from twofold import papers


@dataclass(frozen=True)
class Hypothesis:
    """A claim that a routine raises a metric of plain SGD."""

    name: str
    words: str
    metric: str
    modes: tuple[str, ...]
    # What must show for the same methods before anything follows for this hypothesis.
    given: Hypothesis | None = None
    without: tuple[str, ...] = ()  # objectives for which nothing ever follows
    remark: str = ""  # how to read its verdicts


@cache
def hypotheses() -> papers.Catalogue[Hypothesis]:
    """Return the hypotheses of all papers by name."""
    return papers.Catalogue(
        "hypothesis",
        {
            paper: {each.name: each for each in module.HYPOTHESES}
            for paper, module in papers.modules("hypotheses").items()
        },
    )
