"""Full replay: what is stored, and how it is weighted."""

from __future__ import annotations

import itertools

import pytest
import torch
from helpers.objectives import trained
from helpers.passes import BENCHMARKS, batch, joint_passes, network, with_and_without_norm

from twofold.benchmarks import Batch
from twofold.errors import UserError
from twofold.objectives import Draw
from twofold.objectives.joint import Joint


def test_joint_stores_everything_whatever_the_quota():
    training, _ = trained(Joint(), memory_per_class=1)
    for part, task in zip(training.memory.parts, training.benchmark.tasks, strict=False):
        assert sorted(part) == sorted(task.train)


def test_joint_may_keep_some_of_each_task():
    training, _ = trained(Joint(keep=25))
    for part, task in zip(training.memory.parts, training.benchmark.tasks, strict=False):
        assert len(part) == len(set(part)) == 25
        assert set(part) <= set(task.train)
        assert sorted(part) != sorted(task.train[:25])  # drawn, not the first


@with_and_without_norm
def test_joint_is_the_mean_over_tasks_where_fewer_than_a_batch_are_kept(norm):
    net, _ = network(norm)
    objective = Joint(keep=3)
    objective.start(BENCHMARKS[norm], net, seed=0)
    old = Batch.joined([batch(norm, task, 3) for task in (1, 2)])
    terms = list(itertools.chain(*objective.passes(Draw(3, 1, batch(norm, 3, 8), old))))
    for role, examples, share in (("new", 8, 1 / 3), ("old", 6, 2 / 3)):
        own = [term for term in terms if term.role == role]
        assert sum(len(term.x) for term in own) == examples
        assert all(t.weight == pytest.approx(share * len(t.x) / examples) for t in own)


def test_joint_with_batch_norm_counts_every_example_once_and_alike():
    batches, passes = joint_passes(True, network(norm=True)[0])
    assert len(passes) == 3
    assert sum(term.weight for terms in passes for term in terms) == pytest.approx(1)
    for terms in passes:
        assert sum(len(term.x) for term in terms) == 8
        assert [term.role for term in terms] == ["new", "old"]  # mixed, with this draw
        assert all(term.weight == pytest.approx(len(term.x) / 24) for term in terms)
    for role, images in (("new", batches[2].x), ("old", Batch.joined(batches[:2]).x)):
        seen = torch.cat([t.x for terms in passes for t in terms if t.role == role])
        assert sorted(seen.sum((1, 2, 3)).tolist()) == sorted(images.sum((1, 2, 3)).tolist())
    first_half = set(batches[0].x.sum((1, 2, 3)).tolist())
    old = [{*terms[1].x.sum((1, 2, 3)).tolist()} for terms in passes]
    assert all(part & first_half and part - first_half for part in old)  # both past tasks in each


def test_at_least_one_example_is_kept():
    with pytest.raises(UserError, match="joint's keep must be above 0"):
        Joint(keep=0)
