"""Reservoir: every example seen so far is stored with the same probability."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.stats
from helpers.memories import shown

from twofold.memories import Reservoir


def test_at_every_moment_all_examples_seen_have_the_same_chance():
    labels = np.zeros(24, np.int64)
    counts = np.zeros((6, 24))
    for seed in range(400):
        memory = Reservoir(5)
        for moment, parts in enumerate(shown(memory, labels, tasks=2, batch=4, seed=seed)):
            counts[moment, np.concatenate(parts)] += 1
    assert (counts.sum(1) == [400 * min(5, 4 * (k + 1)) for k in range(6)]).all()
    for seen in (counts[2, :12], counts[5]):  # after each task
        assert scipy.stats.chisquare(seen).pvalue > 0.01


def test_what_was_dropped_does_not_come_back():
    history = [set(np.concatenate(parts)) for parts in shown(Reservoir(7), np.zeros(60, np.int64))]
    everything: set[int] = set()
    for before, after in itertools.pairwise(history):
        everything |= before
        assert after & everything <= before


def test_a_reservoir_is_full_as_soon_as_it_can_be():
    sizes = [sum(map(len, parts)) for parts in shown(Reservoir(7), np.zeros(30, np.int64), 1)]
    assert sizes == [4, 7, 7, 7, 7, 7, 7, 7]
