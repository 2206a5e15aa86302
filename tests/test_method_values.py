"""Methods as values: wrong objects are named in one line."""

from __future__ import annotations

import numpy as np
import pytest

from twofold import configure
from twofold.errors import UserError
from twofold.objectives.er import Er
from twofold.routines import Clip
from twofold.routines.gem import Gem


@pytest.mark.parametrize(
    ("combine", "part"),
    [
        (lambda: Er() + "gem", "'gem'"),
        (lambda: Er() + 0.5, "0.5"),
        (lambda: Er() + None, "None"),
        (lambda: Er() + Gem, "the class Gem: write Gem()"),
        (lambda: Er + Gem(), "the class Er: write Er()"),
        (lambda: Er() + Gem() + Clip, "the class Clip: write Clip()"),
        (lambda: configure("rotated-mnist", Er), "the class Er: write Er()"),
        (lambda: configure("rotated-mnist", 3), "3"),
        (lambda: configure("rotated-mnist", ["er", "gem"]), "['er', 'gem']"),
    ],
)
def test_wrong_objects_in_a_method_are_named(combine, part):
    with pytest.raises(UserError) as caught:
        combine()
    start = "a method consists of an objective and routines, such as Er() + Gem(), not of "
    assert str(caught.value) == start + part


def test_a_long_or_multiline_object_is_named_in_one_line():
    with pytest.raises(UserError) as caught:
        Er() + np.zeros((40, 40))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
