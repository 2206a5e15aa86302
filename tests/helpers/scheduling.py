"""Which process of pytest-xdist runs which tests: those of a file together, long files first.

Tests of a file share its fixtures, so a file in several processes would build them several times.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from helpers.selection import SHARED, long_tests, name_of, unit_of

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

SHORT = 0.1  # of a long test


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # the hook below has put them in order
    return Units(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long units first, so that no process is left with one at the end."""
    if hasattr(config, "workerinput"):
        lengths = unit_lengths([item.nodeid for item in items])
        items.sort(key=lambda item: -lengths[unit_of(item.nodeid)])


def unit_lengths(nodeids: list[str]) -> dict[str, float]:
    """Return how long each unit is, in long tests. A browser and a cluster take the longest."""
    long = long_tests()
    lengths: dict[str, float] = defaultdict(float)
    for nodeid in nodeids:
        unit = unit_of(nodeid)
        lengths[unit] += 1 if name_of(nodeid) in long else SHORT
    return {unit: inf if unit in SHARED else length for unit, length in lengths.items()}
