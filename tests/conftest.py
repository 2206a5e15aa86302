"""Settings of all tests, and fixtures that many of them use."""

from __future__ import annotations

import gc
import os
import signal

import pytest
import torch
from helpers.tables import papers_grid
from hypothesis import settings

from twofold import Memory, Objective, Recipe, Routine
from twofold.compare.groups import Group
from twofold.terms import Addition

# A shell that starts the tests in the background may ignore Ctrl-C, and so would their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Some virtual machines promise matrix instructions (AMX) that do not work, on which bf16 ends in
# an error. Without them, bf16 is tested there as well. It counts before the first operation.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# Syncing to the disk counts when the power fails, which no test can see, and tests of stores would
# wait for it thousands of times. The tests of syncing replace it by their own.
os.fsync = os.fstat

# The time of an example says more about the machine than about the code.
settings.register_profile("twofold", deadline=None)
settings.load_profile("twofold")

pytest_plugins = (
    "helpers.browser_fixtures",
    "helpers.commandline_fixtures",
    "helpers.image_fixtures",
    "helpers.selection",
    "helpers.scheduling",  # which imports the former
    "helpers.untested",
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse components that test files define outside of a test, since other tests list them."""
    for kind in (Recipe, Objective, Addition, Routine, Memory):
        for name, cls in kind.known.items():
            if not cls.__module__.startswith("twofold."):
                raise pytest.UsageError(f"{cls.__module__}: define {name!r} inside a test")
    # Every run ends with a garbage collection, which would go through all tests and modules.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread, as runs do: results and time must not depend on the machine's load."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def papers() -> list[Group]:
    """The paper's own grid, as the cells of runs that give its numbers."""
    return papers_grid()
