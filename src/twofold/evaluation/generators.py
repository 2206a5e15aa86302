"""The state of numpy's global generator, read from memory.

Numpy's own functions take some 160 microseconds to return and set a state of 624 words, which is
more than everything else that an evaluation keeps. The memory is only read: numpy's function sets a
state that has changed. Its functions are used throughout if the memory is not laid out as known.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.random import MT19937, RandomState, mtrand

NUMPY = struct.Struct("=624Ii")  # the words, then the place in them
NORMAL = struct.Struct("=i4xd")  # whether a normal number is left from a pair, and the number


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
    left = NORMAL.pack(1, generator.get_state(legacy=False)["gauss"])
    place = _read(id(generator), RandomState.__basicsize__).find(left)
    return None if place < 0 else place


_read = ctypes.string_at
