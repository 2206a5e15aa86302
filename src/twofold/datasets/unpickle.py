"""A reader of the publishers' pickles that runs no code of theirs.

A pickle is a program. Here it can build lists, dicts, strings, numbers and, through the stand-ins
below, arrays of numbers. It never gets numpy's own classes, since their `__setstate__` trusts its
input: it would build an array of objects from raw bytes.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from twofold.errors import UserError

_NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


def read(stream: IO[bytes], where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the dict of a pickle, which must have these keys; `where` names it in messages."""
    try:
        content = _Unpickler(stream, where).load()
    except UserError:
        raise
    except Exception as error:  # a damaged pickle may raise any error
        why = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where}: cannot be read as a pickle of arrays ({why})") from error
    if not isinstance(content, dict):
        raise UserError(f"{where}: holds a {type(content).__name__}, expected a dict")
    named = {text(key): value for key, value in content.items() if isinstance(key, str | bytes)}
    for key in keys:
        if key not in named:
            raise UserError(f"{where}: lacks {key!r}, expected {', '.join(keys)}")
    return named


def text(value: str | bytes) -> str:
    """Return a string of Python 2 or 3 as text."""
    return value.decode("latin1") if isinstance(value, bytes) else value


def integers(value: object, where: str) -> NDArray[np.int64]:
    """Return a list or array of whole numbers from a pickle as an array."""
    flat = isinstance(value, list) and all(type(each) is int for each in value)
    try:  # a nested list is not converted: a short pickle can hold one that never ends
        array = np.asarray(value) if flat or isinstance(value, ARRAYS) else np.empty(0)
    except OverflowError:
        array = np.empty(0)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise UserError(f"{where}: expected a list of whole numbers")
    return array.astype(np.int64)


def array(value: object, where: str) -> NDArray[Any]:
    """Return an array from a pickle."""
    if not isinstance(value, ARRAYS):
        raise UserError(f"{where}: expected an array of numbers")
    return np.asarray(value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: IO[bytes], where: str) -> None:
        # Python 2 does not record how its strings are encoded, so they stay bytes.
        super().__init__(stream, encoding="bytes")
        self._where = where

    def find_class(self, module: str, name: str, /) -> Any:
        known = module.replace("numpy._core", "numpy.core", 1), name
        if known not in _ALLOWED:
            # The name may contain any characters, and the message must stay on one line.
            label = f"{module}.{name}".encode("unicode_escape").decode()
            raise UserError(
                f"{self._where}: holds {label}: refused, a data pickle may hold only numpy arrays"
            )
        return _Call(_ALLOWED[known])


class _Call:
    """A callable that a pickle gets for a name, and that it cannot change or subclass."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("tries to change a function")


class _Dtype:
    """A stand-in for numpy.dtype that accepts only types of numbers."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        if not _NUMBERS.fullmatch(text(code)):
            raise pickle.UnpicklingError(f"holds an array of type {text(code)}, not of numbers")
        self.numpy = np.dtype(text(code))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.numpy = self.numpy.newbyteorder(text(state[1]))  # type: ignore[arg-type]


class _Array:
    """A stand-in for an array that is being built; np.asarray returns the array."""

    def __init__(self) -> None:
        self._numpy: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self._numpy = _array(raw, dtype, shape, "F" if fortran else "C")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._numpy if dtype is None else self._numpy.astype(dtype)


ARRAYS = _Array, np.ndarray  # protocol 5 gives arrays at once


def _array(raw: bytes, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> NDArray[Any]:
    if not isinstance(raw, bytes | bytearray):
        raise pickle.UnpicklingError("holds an array that is not made of bytes")
    array: NDArray[Any] = np.frombuffer(raw, dtype.numpy).reshape(shape, order=text(order))  # type: ignore[call-overload]
    if array.shape != shape:  # the shape had a -1, which reshape filled in
        raise pickle.UnpicklingError(f"holds an array of shape {shape}")
    return array


def _scalar(dtype: _Dtype, raw: bytes) -> Any:
    return _array(raw, dtype, (), "C").item()


def _encode(characters: str, encoding: str | bytes) -> bytes:
    """Return the bytes that Python 3 wrote as text into a pickle for Python 2."""
    if text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"holds bytes encoded as {text(encoding)}")
    return characters.encode("latin1")


def _uncallable(*_: object) -> None:
    """Refuse a call of numpy.ndarray, which the pickle of an array names but never calls."""
    raise pickle.UnpicklingError("calls numpy.ndarray")


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _array,  # protocol 5
    ("numpy", "ndarray"): _uncallable,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}
