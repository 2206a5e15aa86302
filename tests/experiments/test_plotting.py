"""Pictures of runs: lines, bands, labels and notes, read from the figure."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.figures import (
    colours,
    curves,
    dashed,
    edges,
    legend,
    note,
    panels,
    shares,
    two_tasks,
)
from matplotlib.figure import Figure

from twofold import UserError
from twofold.experiments.plotting import seed_words
from twofold.experiments.runs import Run
from twofold.experiments.several import Runs

FIRST = [50, 60, 90, 70, 80, 84]
SECOND = [54, 62, 92, 74, 80, 90]
THIRD = [58, 70, 94, 78, 83, 96]


def three_seeds(method: str) -> list[Run]:
    seeds = {142: FIRST, 152: SECOND, 162: THIRD}
    return [two_tasks(method, values, seed=seed) for seed, values in seeds.items()]


def labels(*runs: Run) -> list[str]:
    return list(legend(Runs(runs).plot()))


def test_a_run_is_a_line_without_a_band() -> None:
    figure = two_tasks("er+gem", FIRST).plot()
    assert isinstance(figure, Figure)
    (whole,), (zoom,) = panels(figure, "whole"), panels(figure, "zoom")
    ((x, y),) = curves(whole).values()
    assert (x, y) == ([1, 2, 3, 4, 5, 6], FIRST)
    ((x, y),) = curves(zoom).values()
    assert (x, y) == ([0, 1, 2, 3], FIRST[2:])
    assert dashed(whole) == [3]
    assert not whole.collections
    assert list(legend(figure)) == ["er+gem"]
    assert note(figure) == "rotated-mnist, offline: one seed"


def test_a_later_task_can_be_shown() -> None:
    run = two_tasks("er", FIRST)
    (whole,) = panels(run.plot(task=2), "whole")
    assert list(curves(whole).values()) == [([4, 5, 6], [50, 50, 50])]
    with pytest.raises(UserError, match="task must be from 1 to 2 or mean, not 3"):
        run.plot(task=3)


def test_lines_are_means_over_seeds_and_bands_standard_errors() -> None:
    figure = Runs(three_seeds("er")).plot()
    (whole,) = panels(figure, "whole")
    mean = [54, 64, 92, 74, 81, 90]
    assert list(curves(whole).values()) == [([1, 2, 3, 4, 5, 6], mean)]
    # Deviations are -4, 0, 4; -4, -2, 6; -2, 0, 2; -4, 0, 4; -1, -1, 2; -6, 0, 6. Errors are the
    # roots of their squares, summed, over 2, over 3.
    errors = np.sqrt(np.array([32, 56, 8, 32, 6, 72]) / 2 / 3)
    low, high = edges(whole)
    np.testing.assert_allclose(low, mean - errors)
    np.testing.assert_allclose(high, mean + errors)
    assert note(figure) == "rotated-mnist, offline: mean ± standard error over 3 seeds"


def test_two_seeds_are_a_mean_without_a_band() -> None:
    figure = Runs(three_seeds("er")[:2]).plot()
    (whole,) = panels(figure, "whole")
    assert list(curves(whole).values()) == [([1, 2, 3, 4, 5, 6], [52, 61, 91, 72, 80, 87])]
    assert not whole.collections
    assert note(figure) == "rotated-mnist, offline: mean over 2 seeds"


def test_two_seeds_have_no_error_in_words() -> None:
    assert seed_words({"er": 2, "joint": 2}) == "mean over 2 seeds"
    assert seed_words({"er": 2, "joint": 1}) == "mean over 2 seeds (joint 1)"
    assert seed_words({"er": 3, "joint": 2}) == "mean ± standard error over 3 seeds (joint 2)"


def test_a_method_with_fewer_seeds_is_named_in_the_note() -> None:
    runs = [*three_seeds("er"), two_tasks("er+gem", FIRST)]
    assert note(Runs(runs).plot()).endswith("standard error over 3 seeds (er+gem 1)")
    assert seed_words({"er": 5, "joint": 3, "der": 5}).endswith("over 5 seeds (joint 3)")
    assert seed_words({"er": 1, "joint": 1}) == "one seed"


def test_methods_look_different() -> None:
    figure = Runs([two_tasks("er", FIRST), two_tasks("er+gem", SECOND)]).plot()
    (whole,) = panels(figure, "whole")
    drawn = {name: curves(whole)[colour][1] for name, colour in colours(figure).items()}
    assert drawn == {"er": FIRST, "er+gem": SECOND}


def test_projected_gradients_have_a_panel_if_there_are_any() -> None:
    plain = two_tasks("er", FIRST)
    assert panels(plain.plot(), "share") == []
    gem = two_tasks("er+gem", FIRST, projected=[0, 0, 0, 1, 1, 0])
    (share,) = panels(Runs([plain, gem]).plot(), "share")
    assert sorted(list(values) for _, values in _values(share)) == [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 0],
    ]


def _values(axes):
    return [(edges, values.expected) for edges, values in shares(axes).values()]


def test_settings_that_differ_are_in_the_labels() -> None:
    default = two_tasks("er", FIRST)
    assert labels(default, two_tasks("er", SECOND, seed=152)) == ["er"]
    assert labels(default, two_tasks("er", FIRST, lr=0.01)) == ["er, lr 0.1", "er, lr 0.01"]
    assert labels(default, two_tasks("er", FIRST, batch_size=10, momentum=0.5)) == [
        "er, batch 128, momentum 0.9",
        "er, batch 10, momentum 0.5",
    ]
    assert labels(default, two_tasks("er", FIRST, memory_grouping="class")) == [
        "er, memory per-class-task(100)",
        "er, memory per-class(100)",
    ]


def test_settings_without_a_value_leave_no_trace_in_the_labels() -> None:
    default, short = two_tasks("er", FIRST), two_tasks("er", FIRST, iterations=3)
    assert labels(default, short) == ["er", "er, iterations 3"]


def test_the_note_has_the_benchmark_and_mode_that_all_share() -> None:
    online = two_tasks("er", FIRST, mode="online", lr=0.1, batch_size=128)
    figure = Runs([two_tasks("er", FIRST), online]).plot()
    assert list(legend(figure)) == ["er, offline", "er, online"]
    assert note(figure) == "rotated-mnist: one seed"


def test_runs_of_different_lengths_are_not_drawn_together() -> None:
    runs = Runs([two_tasks("er", FIRST), two_tasks("joint", FIRST[:4])])
    with pytest.raises(UserError, match=r"differ in length \(er 6, joint 4\): select some of them"):
        runs.plot()
    with pytest.raises(UserError, match="at least one run"):
        Runs().plot()
