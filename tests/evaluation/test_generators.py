"""The states of Python's and numpy's generators, by their memory or by their own functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.evaluation import generators
from twofold.evaluation.generators import NumpyState, PythonState

DRAWS: dict[str, Callable[[], object]] = {
    "uniform": lambda: (np.random.rand(), random.random()),
    "normal": lambda: (np.random.randn(), random.gauss(0, 1)),
    "words": lambda: (np.random.bytes(4 * 623), random.getrandbits(32 * 623)),
    "seed": lambda: (np.random.seed(3), random.seed(3)),
}
PLACES = ("_place_in_python", "_place_in_numpy")


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """Leave the generators to later tests as they were, by their own functions."""
    state, python = np.random.get_state(), random.getstate()
    yield
    np.random.set_state(state)
    random.setstate(python)


def states() -> list[Any]:
    name, key, *rest = np.random.get_state()
    return [name, key.tolist(), *rest, random.getstate()]


def check(seed: int, before: list[str], during: list[str]) -> None:
    np.random.seed(seed)
    random.seed(seed)
    for name in before:
        DRAWS[name]()
    expected = states()
    kept = PythonState(), NumpyState()
    assert states() == expected
    for name in during:
        DRAWS[name]()
    for state in kept:
        state.restore()
    assert states() == expected


draws = st.lists(st.sampled_from(sorted(DRAWS)), max_size=4)


@given(seed=st.integers(0, 2**32 - 1), before=draws, during=draws)
def test_a_state_is_as_it_was_whatever_was_drawn(seed, before, during):
    check(seed, before, during)


@pytest.mark.parametrize("draw", DRAWS)
def test_without_a_known_memory_the_functions_do_the_same(draw, monkeypatch):
    for name in PLACES:
        monkeypatch.setattr(generators, name, lambda: None)
    check(0, ["normal"], [draw])
    check(0, [], [draw])


def test_a_different_memory_is_recognised(monkeypatch):
    """As of another version of Python or numpy: their functions are used."""
    monkeypatch.setattr(generators, "_read", lambda address, size: bytes(size))
    for name in PLACES:
        assert getattr(generators, name).__wrapped__() is None


def test_nothing_is_set_if_nothing_was_drawn(monkeypatch):
    """It would take longer than all else that an evaluation keeps."""

    def refused(*state: object) -> None:
        raise AssertionError("the state is set")

    kept = PythonState(), NumpyState()
    monkeypatch.setattr(np.random, "set_state", refused)
    monkeypatch.setattr(random, "setstate", refused)
    for state in kept:
        state.restore()
    for name in ("normal", "uniform"):
        DRAWS[name]()
        for state in kept:
            with pytest.raises(AssertionError, match="the state is set"):
                state.restore()
