"""Plain data from files that anybody may have written: JSON of a bounded size and depth."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from twofold.errors import UserError
from twofold.plainfiles import opened

LARGEST_JSON = 16 * 2**20  # bytes
DEEPEST = 16  # levels
NO_FILE = (errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG)


class WrongContentError(UserError):
    """A file does not hold what it should, as opposed to one that cannot be opened just now."""


def read_json(file: Path) -> Any:
    """Read a JSON file of a bounded size and depth."""
    return parse(read_bytes(file, LARGEST_JSON), file.name)


def read_bytes(file: Path, largest: int) -> bytes:
    """Read a file of a bounded size. A symbolic link is not followed."""
    try:
        with opened(file, follow=False) as stream:
            if os.fstat(stream.fileno()).st_size > largest:
                raise WrongContentError(f"{file.name} is larger than {largest:,} bytes")
            return stream.read(largest)
    except FileNotFoundError:
        raise WrongContentError(f"{file.name} is missing") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WrongContentError(f"{file.name} is a symbolic link") from None
        kind = WrongContentError if error.errno in NO_FILE else UserError
        raise kind(f"{file.name} can't be read: {error.strerror or error}") from None


def write_json(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def parse(text: str | bytes, name: str) -> Any:
    """Return the contents of JSON text; `name` is its file's."""
    try:
        content = json.loads(text)
        _check_depth(content, DEEPEST)
    except RecursionError:
        raise WrongContentError(f"{name} is nested too deeply") from None
    except ValueError:  # a UnicodeDecodeError is one, and a number of too many digits
        raise WrongContentError(f"{name} is not JSON in UTF-8") from None
    return content


def _check_depth(content: Any, left: int) -> None:
    if left < 0:
        raise RecursionError
    inner: Iterable[Any] = ()
    if isinstance(content, dict):
        inner = content.values()
    elif isinstance(content, list):
        inner = content
    for each in inner:
        if isinstance(each, dict | list):
            _check_depth(each, left - 1)
