"""Fixtures: one thread, and real data where it can be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from helpers.tables import papers_grid
from hypothesis import settings

from twofold import Memory, Objective, Recipe, Routine, datasets
from twofold.compare.groups import Group
from twofold.errors import UserError
from twofold.terms import Addition

# The time of an example says more about the machine than about the code.
settings.register_profile("twofold", deadline=None)
settings.load_profile("twofold")

pytest_plugins = ("helpers.commandline_fixtures", "helpers.browser_fixtures")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse components that test files define outside of a test, since other tests list them."""
    for kind in (Recipe, Objective, Addition, Routine, Memory):
        for name, cls in kind.known.items():
            if not cls.__module__.startswith("twofold."):
                raise pytest.UsageError(f"{cls.__module__}: define {name!r} inside a test")


@pytest.fixture(autouse=True)
def one_thread():
    """As runs are: results and time must not depend on what else the machine does."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory) -> Path | None:
    """Where real MNIST is: $TWOFOLD_DATA, or fetched now; otherwise the test is skipped.

    None means that `load` finds it by itself, in the cache folder.
    """
    if "TWOFOLD_DATA" in os.environ:
        return Path(os.environ["TWOFOLD_DATA"])
    try:
        datasets.get("mnist")
    except UserError as error:
        pytest.skip(f"no real MNIST: {error}")
    return None


@pytest.fixture
def need(data_folder):
    """`need("cifar100")`: skip, and say why, where that dataset is not at hand."""

    def need(name: str) -> Path | None:
        try:
            datasets.load(name, data_folder)
        except UserError as error:
            pytest.skip(f"no real {name}: {error}")
        return data_folder

    return need


@pytest.fixture(scope="session")
def papers() -> list[Group]:
    """The paper's own grid, as the cells of runs that give its numbers."""
    return papers_grid()
