"""One convention for all that becomes text: `render(x, format)`, with formats by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from twofold.errors import unknown

T = TypeVar("T")


class Renderer(Generic[T]):
    """A function from a thing and the name of a format to text."""

    def __init__(self, writers: Mapping[str, Callable[[T], str]]) -> None:
        self._writers = writers

    @property
    def formats(self) -> list[str]:
        return list(self._writers)

    def __call__(self, x: T, format: str = "md") -> str:
        if format not in self._writers:
            raise unknown("format", format, self._writers)
        return self._writers[format](x)
