"""Class-balanced: the greedy balance, against a sampler that fills place by place."""

from __future__ import annotations

import numpy as np
from helpers.memories import shown
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.memories import ClassBalanced


def filled(counts: np.ndarray, size: int) -> list[int]:
    """Give places away one by one, always to a class with the fewest."""
    places = np.zeros(len(counts), int)
    for _ in range(min(size, counts.sum())):
        open_classes = np.flatnonzero(places < counts)
        places[open_classes[places[open_classes].argmin()]] += 1
    return sorted(places.tolist())


@given(seed=st.integers(0, 100), size=st.integers(1, 40), classes=st.integers(1, 5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_places_are_shared_evenly_and_all_of_them_are_used(seed, size, classes):
    random = np.random.default_rng(seed)
    labels = random.choice(classes, 40, p=random.dirichlet(np.ones(classes)))
    memory = ClassBalanced(size)
    shown(memory, labels, tasks=1, batch=40)
    (stored,) = memory.parts
    every = np.bincount(labels, minlength=classes)
    assert sorted(np.bincount(labels[stored], minlength=classes).tolist()) == filled(every, size)
    for c in np.unique(labels[stored]):
        of_class = np.flatnonzero(labels == c)
        ranked = of_class[np.argsort(-memory.priority[of_class])]
        kept = stored[labels[stored] == c]
        assert set(kept) == set(ranked[: len(kept)])


def test_a_quota_needs_no_size():
    labels = np.repeat(np.arange(3), 20)
    memory = ClassBalanced(per_class=7)
    shown(memory, labels)
    assert [len(part) for part in memory.parts] == [7, 7, 7]
