"""Ring: a plain queue per class, written out."""

from __future__ import annotations

from collections import deque

import numpy as np
from helpers.memories import shown

from twofold.memories import Ring


def test_a_quota_is_a_queue_per_class():
    labels = np.random.default_rng(0).integers(0, 4, 60)
    memory = Ring(per_class=3)
    shown(memory, labels)
    queues = {c: deque(maxlen=3) for c in range(4)}
    for row in np.argsort(memory.arrival):
        queues[labels[row]].append(int(row))
    stored = {int(row) for part in memory.parts for row in part}
    assert stored == {row for queue in queues.values() for row in queue}


def test_a_size_is_shared_by_the_classes_seen_so_far():
    labels = np.repeat(np.arange(4), 20)  # two classes per task
    history = shown(Ring(12), labels, tasks=2)
    first, last = (np.concatenate(history[k]) for k in (9, -1))
    assert np.bincount(labels[first]).tolist() == [6, 6]
    assert np.bincount(labels[last]).tolist() == [3, 3, 3, 3]
