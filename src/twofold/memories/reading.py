"""Memories from text, and from the two options that say the same of the paper's memory."""

from __future__ import annotations

from typing import Any

from twofold.errors import UserError
from twofold.memories.base import Memory
from twofold.memories.per_class import PerClass
from twofold.memories.per_class_task import PerClassTask
from twofold.method import split_text
from twofold.settings import LARGEST, Settings


def read(text: str) -> Memory:
    """Return the memory that a text describes, such as `reservoir(2000)`."""
    pieces = split_text(text, "memory", "write reservoir(2000)")
    if len(pieces) > 1:
        raise UserError(f"memory {text!r}: there is one memory; write reservoir(2000)")
    cls = Memory.find(pieces[0].name)
    return cls.make(pieces[0].options(cls))


def memory_of(settings: Settings) -> Memory:
    """Return a new memory as the options describe it."""
    if settings.memory:
        return read(settings.memory)
    return (PerClass if settings.memory_grouping == "class" else PerClassTask)(
        settings.memory_per_class
    )


def described(settings: Settings) -> str:
    """Return the memory as a text, whichever options describe it: `per-class-task(100)`."""
    if settings.memory:  # perhaps of a plugin that is not loaded here
        return settings.memory
    return memory_of(settings).text()


def everything() -> Memory:
    """Return a memory without a limit."""
    return PerClassTask(LARGEST)


def quotas(memory: Memory) -> dict[str, Any] | None:
    """Return the two options that describe a memory; None if there is more to say of it."""
    kinds: dict[type[Memory], str] = {PerClassTask: "class-task", PerClass: "class"}
    if type(memory) not in kinds or memory.current or memory.replay is not None:
        return None
    return {"memory_per_class": memory.quota(), "memory_grouping": kinds[type(memory)]}
