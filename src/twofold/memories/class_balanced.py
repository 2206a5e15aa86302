"""A random sample with as many examples of each class (GDumb; Prabhu et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.memories.balanced import Balanced


@dataclass
class ClassBalanced(Balanced, name="class-balanced"):
    """Random examples, as many of each class seen so far.

    size: examples in all (2000 without a quota); a class with too few leaves its places to the
        others.
    per_class: examples of each class, instead of a size.
    """
