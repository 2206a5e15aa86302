"""The option `memory`: one form for one memory, and the identities of earlier runs."""

from __future__ import annotations

import pytest

import twofold
from twofold.errors import UserError
from twofold.memories import Herding, PerClass, PerClassTask, Reservoir, Ring
from twofold.memories.reading import read


def configured(**options):
    return twofold.configure("rotated-mnist", "er", **options)


@pytest.mark.parametrize(
    ("memory", "older"),
    [
        ("per-class-task", {}),
        ("per-class-task(100)", {}),
        ("per-class-task(50)", {"memory_per_class": 50}),
        ("per-class(100)", {"memory_grouping": "class"}),
        (PerClass(30), {"memory_grouping": "class", "memory_per_class": 30}),
    ],
    ids=str,
)
def test_the_papers_memory_has_the_identity_that_it_had(memory, older):
    one, other = configured(memory=memory), configured(**older)
    assert one == other
    assert one.identity() == other.identity()
    assert one.memory == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Reservoir(500), "reservoir(500)"),
        (Reservoir(), "reservoir(2000)"),
        (Ring(per_class=20), "ring(per_class=20)"),
        (Ring(), "ring(2000)"),
        (Herding(7, replay=64), "herding(7,replay=64)"),
        (PerClassTask(100, current=True), "per-class-task(100,current=true)"),
        (PerClassTask(100, replay=64), "per-class-task(100,replay=64)"),
    ],
    ids=str,
)
def test_a_value_and_its_text_are_one_memory(value, text):
    assert value.text() == text
    assert read(text) == value
    config = configured(memory=value)
    assert config.memory == text
    assert config.identity() == configured(memory=text).identity()
    assert config.identity() != configured().identity()
    assert "--memory" in config.command()


def test_a_default_that_is_written_out_is_the_same_run():
    assert configured(memory="reservoir") == configured(memory="reservoir(size=2000,current=true)")


def test_a_memory_wins_over_a_profile():
    published = configured(profile="published")
    assert published.memory_grouping == "class"
    for text, grouping in (("per-class-task(100)", "class-task"), ("ring(9)", "class-task")):
        assert configured(profile="published", memory=text).memory_grouping == grouping


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"memory_per_class": 50}, "the memory is set twice: 'ring(9)', and memory per class 50"),
        ({"memory_grouping": "class"}, "the memory is set twice: 'ring(9)', and memory grouping"),
    ],
)
def test_a_memory_that_is_set_twice_is_refused(options, why):
    with pytest.raises(UserError) as caught:
        configured(memory="ring(9)", **options)
    assert str(caught.value).startswith(why)
    assert configured(memory="ring(9)", memory_per_class=100).memory == "ring(9)"
