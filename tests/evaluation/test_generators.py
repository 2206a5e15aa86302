"""The state of numpy's generator, by its memory or by numpy's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.evaluation import generators
from twofold.evaluation.generators import NumpyState

DRAWS: dict[str, Callable[[], object]] = {
    "uniform": np.random.rand,
    "normal": np.random.randn,
    "words": lambda: np.random.bytes(4 * 623),
    "seed": lambda: np.random.seed(3),
}


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """Leave the generator to later tests as it was, by numpy's own functions."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


def state() -> list[Any]:
    name, key, *rest = np.random.get_state()
    return [name, key.tolist(), *rest]


def check(seed: int, before: list[str], during: list[str]) -> None:
    np.random.seed(seed)
    for name in before:
        DRAWS[name]()
    expected = state()
    kept = NumpyState()
    assert state() == expected
    for name in during:
        DRAWS[name]()
    kept.restore()
    assert state() == expected


draws = st.lists(st.sampled_from(sorted(DRAWS)), max_size=4)


@given(seed=st.integers(0, 2**32 - 1), before=draws, during=draws)
def test_the_state_is_as_it_was_whatever_was_drawn(seed, before, during):
    check(seed, before, during)


@pytest.mark.parametrize("draw", DRAWS)
def test_without_a_known_memory_the_functions_do_the_same(draw, monkeypatch):
    monkeypatch.setattr(generators, "_place_in_numpy", lambda: None)
    check(0, ["normal"], [draw])
    check(0, [], [draw])


def test_a_different_memory_is_recognised(monkeypatch):
    """The functions of a version of numpy with a different memory are used instead."""
    assert generators._place_in_numpy.__wrapped__() is not None
    monkeypatch.setattr(generators, "_read", lambda address, size: bytes(size))
    assert generators._place_in_numpy.__wrapped__() is None


def test_nothing_is_set_if_nothing_was_drawn(monkeypatch):
    """It would take longer than all else that an evaluation keeps."""

    def refused(*_: object) -> None:
        raise AssertionError("the state is set")

    kept = NumpyState()
    monkeypatch.setattr(np.random, "set_state", refused)
    kept.restore()
    for name in ("normal", "uniform"):
        DRAWS[name]()
        with pytest.raises(AssertionError, match="the state is set"):
            kept.restore()
