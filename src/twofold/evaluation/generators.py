"""The states of the global generators of Python and numpy, read from memory.

Both are Mersenne twisters. Their own functions make an object of each of 624 words, which took more
time than all else that an evaluation keeps. The memory is only read: a state that has changed is
set by the functions. They are used throughout if the memory is not laid out as is known.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.random import MT19937, RandomState, mtrand

PYTHON = struct.Struct("=625I")  # the place in the words, then the words
NUMPY = struct.Struct("=624Ii")  # the words, then the place in them
NORMAL = struct.Struct("=i4xd")  # whether a normal number is left from a pair, and the number

GENERATOR: Any = random.getstate.__self__  # type: ignore[attr-defined]


class PythonState:
    """The state of Python's global generator, which can be set again."""

    def __init__(self) -> None:
        self._memory = _python_memory()
        if self._memory is None:
            self._state = random.getstate()

    def restore(self) -> None:
        """Set the state again if something has drawn."""
        if self._memory is None:
            random.setstate(self._state)
        elif _python_memory() != self._memory:
            place, *words = PYTHON.unpack(self._memory[0])
            random.setstate((random.Random.VERSION, (*words, place), self._memory[1]))


class NumpyState:
    """The state of numpy's global generator, which can be set again."""

    def __init__(self) -> None:
        self._memory = _numpy_memory()
        if self._memory is None:
            self._state = np.random.get_state(legacy=False)

    def restore(self) -> None:
        """Set the state again if something has drawn."""
        if self._memory is None:
            np.random.set_state(self._state)
        elif _numpy_memory() != self._memory:
            np.random.set_state(_numpy_state(self._memory))


def _python_memory() -> tuple[bytes, float | None] | None:
    place = _place_in_python()
    if place is None:
        return None
    return _read(id(GENERATOR) + place, PYTHON.size), GENERATOR.gauss_next


def _numpy_memory() -> tuple[bytes, bytes] | None:
    place, generator = _place_in_numpy(), mtrand.get_bit_generator()
    if place is None or not isinstance(generator, MT19937):
        return None
    words = _read(generator.ctypes.state_address, NUMPY.size)
    return words, _read(id(mtrand._rand) + place, NORMAL.size)


def _numpy_state(memory: tuple[bytes, bytes]) -> dict[str, Any]:
    *words, place = NUMPY.unpack(memory[0])
    left, number = NORMAL.unpack(memory[1])
    twister = {"key": np.array(words, np.uint32), "pos": place}
    return {"bit_generator": "MT19937", "state": twister, "has_gauss": left, "gauss": number}


@cache
def _place_in_python() -> int | None:
    """Return where a generator of Python has its state, in bytes; None if it is not found."""
    if sys.implementation.name != "cpython" or type(GENERATOR) is not random.Random:
        return None
    generator = random.Random(1)
    generator.random()
    *words, place = generator.getstate()[1]
    return _found(PYTHON.pack(place, *words), generator)


@cache
def _place_in_numpy() -> int | None:
    """Return where numpy has a normal number that is left; None if its state is not as known."""
    if sys.implementation.name != "cpython" or type(mtrand._rand) is not RandomState:
        return None
    twister = MT19937(1)
    twister.random_raw(700)
    state = twister.state["state"]
    expected = NUMPY.pack(*state["key"].tolist(), state["pos"])
    if _read(twister.ctypes.state_address, NUMPY.size) != expected:
        return None
    generator = RandomState(1)
    generator.standard_normal()
    number = generator.get_state(legacy=False)["gauss"]
    return _found(NORMAL.pack(1, number), generator)


def _found(state: bytes, generator: object) -> int | None:
    place = _read(id(generator), type(generator).__basicsize__).find(state)
    return None if place < 0 else place


_read = ctypes.string_at
