"""The restricted unpickler: arrays of numbers pass, nothing runs."""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from twofold.datasets import unpickle
from twofold.errors import UserError


def read(raw: bytes, *keys: str) -> dict[str, Any]:
    return unpickle.read(io.BytesIO(raw), "file.pkl", keys)


NUMBERS = st.one_of(
    npst.integer_dtypes(), npst.unsigned_integer_dtypes(), npst.floating_dtypes(), st.just(np.bool_)
)


@given(
    npst.arrays(NUMBERS, npst.array_shapes(min_dims=0)),
    st.integers(0, 5),
    st.booleans(),
)
@settings(deadline=None)
def test_arrays_come_back_the_same(array: np.ndarray, protocol: int, fortran: bool) -> None:
    array = np.asfortranarray(array) if fortran else array
    back = np.asarray(read(pickle.dumps({"a": array}, protocol), "a")["a"])
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


@given(npst.arrays(NUMBERS, npst.array_shapes()))
@settings(deadline=None)
def test_python_2_pickles_are_read(array: np.ndarray) -> None:
    content = read(publishers.python2({"a": array, "names": ["one"]}), "a", "names")
    assert np.array_equal(np.asarray(content["a"]), array, equal_nan=array.dtype.kind == "f")
    assert [unpickle.text(name) for name in content["names"]] == ["one"]


def test_old_and_new_names_of_numpy_are_read() -> None:
    raw = pickle.dumps({"a": np.arange(4)}, 2)
    for old, new in ((b"numpy._core", b"numpy.core"), (b"numpy.core", b"numpy._core")):
        assert np.asarray(read(raw.replace(old, new))["a"]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("protocol", range(6))
def test_numpy_scalars_are_read(protocol: int) -> None:
    labels = read(pickle.dumps({"a": [np.int64(7), np.uint8(3)]}, protocol))["a"]
    assert unpickle.integers(labels, "a").tolist() == [7, 3]


@pytest.mark.parametrize("value", [[1.5], ["a"], [[1, 2]], [[1], [1, 2]], 3, None, {}])
def test_what_is_no_list_of_integers_is_refused(value: object) -> None:
    with pytest.raises(UserError, match="expected a list of whole numbers"):
        unpickle.integers(value, "labels")


class Evil:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self._reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self._reduced


def hostile(touched: Path) -> dict[str, bytes]:
    """Pickles that would create the file `touched`, or worse, by each way that there is."""
    import functools
    import os
    import subprocess

    command = f"touch {touched}".encode()
    evil = Evil(os.system, command.decode())
    with_object = np.array([evil], dtype=object)
    function = b"cnumpy.core.multiarray\n_reconstruct\n"
    return {
        "reduce 0": pickle.dumps({"data": evil}, 0),
        "reduce 2": pickle.dumps({"data": evil}, 2),
        "reduce 5": pickle.dumps({"data": evil}, 5),
        "python 2": publishers.python2({"data": evil}),
        "hidden key": pickle.dumps({"data": 1, "other": [({"deep": evil},)]}),
        "subprocess": pickle.dumps({"data": Evil(subprocess.check_call, ["touch", str(touched)])}),
        "eval": pickle.dumps({"data": Evil(eval, f"open({str(touched)!r}, 'w')")}),
        "partial": pickle.dumps({"data": Evil(functools.partial(os.system), command.decode())}),
        "numpy loader": pickle.dumps({"data": Evil(np.load, str(touched), None, True)}),
        "numpy runner": b"cnumpy.testing._private.utils\nrunstring\n(S'x=1'\n}tR.",
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.size\x93.",
        "object array": pickle.dumps({"data": with_object}),
        "global": b"cos\nsystem\n(S'" + command + b"'\ntR.",
        "instance": b"(S'" + command + b"'\nios\nsystem\n.",
        "object": b"(cos\nsystem\nS'" + command + b"'\no.",
        "escape codes": b"\x80\x04\x8c\x05\x1b[2J\n\x8c\x06system\x93.",
        # Changing what the next reader of a pickle will call.
        "build on function": function + b"}(S'__defaults__'\nI1\nsb.",
        "setattr on function": function + b"(N}(S'_function'\nI1\nstb.",
        "newobj": b"\x80\x02" + function + b"(t\x81.",
        "call ndarray": b"cnumpy\nndarray\n((I1\ntS'O8'\nS'aaaaaaaa'\ntR.",
        "persistent": b"Pname\n.",
        "extension": b"\x80\x02\x82\x01.",
        "buffer": b"\x80\x05\x97.",
    }


@pytest.mark.parametrize("way", hostile(Path("/")))
def test_nothing_runs(way: str, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    with pytest.raises(UserError, match=r"^file\.pkl: ") as caught:
        read(hostile(touched)[way], "data")
    assert not touched.exists()
    assert str(caught.value).isprintable()  # one line, and no escape codes


def test_the_refused_name_is_told(tmp_path: Path) -> None:
    refusal = r"file.pkl: holds \w+\.system: refused, a data pickle may hold only numpy arrays"
    with pytest.raises(UserError, match=refusal):
        read(hostile(tmp_path / "touched")["reduce 5"])


def forged_array(code: str, state: tuple[Any, ...], raw: object) -> bytes:
    """An array of one element whose type and bytes are the attacker's."""

    class Dtype:
        def __reduce__(self) -> Any:
            return np.dtype, (code, False, True), state

    class Array:
        def __reduce__(self) -> Any:
            start = (np.ndarray, (0,), b"b")
            return np.zeros(0).__reduce__()[0], start, (1, (1,), Dtype(), False, raw)

    return pickle.dumps({"data": Array()})


@pytest.mark.parametrize(
    ("code", "state", "raw"),
    [
        ("O8", (3, "|", None, None, None, -1, -1, 63), struct.pack("<Q", 0xDEAD)),
        ("O8", (3, "|", None, None, None, -1, -1, 63), [1]),
        ("V8", (3, "|", None, ("f",), {"f": (np.dtype("O"), 0)}, 8, 1, 0), b"\0" * 8),
        ("u1", (3, "|", None, None, None, -1, -1, 63), [1]),
        ("u1", (3, "O", None, None, None, -1, -1, 0), b"\0"),
        ("S5", (3, "|", None, None, None, 1 << 40, 1, 0), b"abcde"),
        ("M8", (4, "<", None, None, None, -1, -1, 0, ({}, (b"ns", 1, 1, 1))), b"\0" * 8),
    ],
)
def test_bytes_do_not_become_objects(code: str, state: tuple[Any, ...], raw: object) -> None:
    with pytest.raises(UserError, match=r"file\.pkl"):
        read(forged_array(code, state, raw))


def test_the_state_of_a_dtype_cannot_change_its_kind_or_size() -> None:
    state = (3, "|", None, ("f",), {"f": (1, 0)}, 1 << 40, 1, 63)
    data = np.asarray(read(forged_array("u1", state, b"\7"))["data"])
    assert data.dtype == np.uint8
    assert data.tolist() == [7]


@pytest.mark.parametrize("shape", [(2,), (1 << 62, 1 << 62), (-5,), "x", None])
def test_wrong_shapes_in_a_pickle_are_refused(shape: object) -> None:
    class Array:
        def __reduce__(self) -> Any:
            start = (np.ndarray, (0,), b"b")
            state = (1, shape, np.dtype(np.uint8), False, b"abc")
            return np.zeros(0).__reduce__()[0], start, state

    with pytest.raises(UserError, match=r"file\.pkl"):
        read(pickle.dumps({"data": Array()}))


GOOD = pickle.dumps({"data": np.arange(50, dtype=np.uint8), "labels": list(range(9))}, 2)


@pytest.mark.parametrize("length", range(0, len(GOOD), 7))
def test_cut_short_pickles_are_refused(length: int) -> None:
    with pytest.raises(UserError, match="cannot be read as a pickle of arrays"):
        read(GOOD[:length], "data")


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_garbage_is_refused(raw: bytes) -> None:
    with pytest.raises(UserError):
        read(raw, "data")


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
@settings(deadline=None, max_examples=300)
def test_a_flipped_byte_is_read_or_refused(place: int, change: int) -> None:
    damaged = bytearray(GOOD)
    damaged[place] ^= change
    try:
        content = read(bytes(damaged), "data")
    except UserError:
        return
    assert np.asarray(content["data"]).dtype.kind != "V"


@pytest.mark.parametrize("value", [[1, 2], 3, "text", None])
def test_another_thing_than_a_dict_is_refused(value: object) -> None:
    with pytest.raises(UserError, match="expected a dict"):
        read(pickle.dumps(value))


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UserError, match="lacks 'labels', expected data, labels"):
        read(pickle.dumps({"data": 1}), "data", "labels")
