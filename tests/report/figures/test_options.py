"""Options of figures: lasting colours, labels, zooms, the mean over tasks, objectives together."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from helpers.figures import colours, curves, legend, nan, note, panels, two_tasks
from helpers.runs import curve_run

from twofold import Run, UserError
from twofold.drawing.style import LINES, SPARE, looks
from twofold.experiments.several import Runs
from twofold.report.figures import compare_figure, find_kind, gap_figure
from twofold.report.figures.front import front_figure
from twofold.report.page import page_contents

METHODS = ["er", "er+gem", "er+gem(gamma=0.1)", "er+hold", "joint", "joint+hold"]


def runs_of(*methods: str) -> list[Run]:
    return [two_tasks(method, [50 + k, 60, 70, 80]) for k, method in enumerate(methods)]


def renamed(run: Run, method: str) -> Run:
    """A run of a loop that knows no methods."""
    config = dataclasses.replace(run.config, method=method, components=[(method, {})])
    return dataclasses.replace(run, config=config)


def test_a_method_keeps_its_colour_in_every_figure_and_on_the_page():
    """Whatever is shown beside it: two at a time, of which some have names of their own."""
    own = [renamed(runs_of("er")[0], name) for name in ("My loop", "Theirs")]
    store = [*runs_of(*METHODS), *own]
    groups = page_contents(store, "runs")["groups"]
    expected = {group["method"]: group["look"]["colour"].lower() for group in groups}
    assert len(expected) == 8
    assert len({*expected.values()}) == 7  # er+hold and joint+hold share theirs
    for pair in itertools.pairwise([*store, store[0]]):
        for draw in (gap_figure, compare_figure):
            shown = colours(draw(pair, among=store))
            assert shown == {run.config.method: expected[run.config.method] for run in pair}


def test_names_look_different_while_there_are_looks_and_keep_them_when_others_come():
    names = [f"name {k}" for k in range(len(SPARE) * len(LINES))]
    looked = looks(names)
    assert len({(one["color"], one["linestyle"]) for one in looked.values()}) == len(names)
    assert len({one["color"] for one in looks(names[: len(SPARE)]).values()}) == len(SPARE)
    for few in itertools.combinations(names[:6], 2):
        assert looks(few, among=names) == {name: looked[name] for name in few}
    assert len(looks([*names, "one more"])) == len(names) + 1


def test_objectives_share_a_column_on_request_and_no_two_lines_look_alike():
    runs = runs_of("er", "er+gem", "joint", "joint+gem", "finetune+gem")
    assert len(gap_figure(runs).subfigs) == 3
    figure = gap_figure(runs, together=True)
    assert len(figure.subfigs) == 1
    assert len(legend(figure)) == len({*legend(figure).values()}) == 5
    assert colours(figure)["er+gem"] == colours(figure)["joint+gem"]


def test_labels_replace_methods_in_the_legend_and_the_notes():
    runs = [*runs_of("er", "er+gem(gamma=0.1)"), two_tasks("er", [50, 60, 70, 80], seed=152)]
    figure = gap_figure(runs, labels={"er+gem(0.1)": "Mine, γ = 0.1"})
    assert list(legend(figure)) == ["er", "Mine, γ = 0.1"]
    assert note(figure).endswith("over 2 seeds (Mine, γ = 0.1 1)")
    assert next(iter(legend(Runs(runs).plot(labels={"er": "ER"})))) == "ER"
    for labels, message in (
        ({"der": "A"}, r"no label can be given to 'der': the figure shows er, er\+gem"),
        ({"er": " "}, "the label of er is empty"),
        ({"er": "er+gem(gamma=0.1)"}, "is that of 2 lines: make them differ"),
    ):
        for draw in (gap_figure, compare_figure, front_figure):
            with pytest.raises(UserError, match=message):
                draw(runs, labels=labels)


@pytest.mark.parametrize(("zoom", "reach"), [(1, 1), (7, 7), (80, 80), (1000, 90)])
def test_zooms_reach_as_far_as_asked_or_as_tasks_are_long(zoom, reach):
    run = two_tasks("er", [float(k) for k in range(180)], eval_schedule="dense:20:5")
    for figure in (gap_figure([run], zoom=zoom), run.plot(zoom=zoom)):
        (axes,) = panels(figure, "zoom")
        assert list(axes.get_xticks()) == [0, reach]
        assert max(curves(axes).popitem()[1][0]) <= reach
    for wrong in (0, -3, 2.5):
        with pytest.raises(UserError, match=f"zoom must be a whole number of .*, not {wrong}"):
            gap_figure([run], zoom=wrong)


def test_the_mean_is_over_the_tasks_begun():
    accuracy = [[80.0, 90, 50, 70, 60, 90], [nan, nan, 10, 90, 80, 60], [nan] * 4 + [10, 90]]
    run = curve_run("er", accuracy)
    for figure in (gap_figure([run], task="mean"), run.plot("mean")):
        (whole,) = panels(figure, "whole")
        assert [*curves(whole).values()] == [([1, 2, 3, 4, 5, 6], [80, 90, 30, 80, 50, 80])]
        assert whole.get_ylabel() == "mean task accuracy (%)"
        assert [axes.get_title() for axes in panels(figure, "zoom")] == ["task 2", "task 3"]
        assert "the mean is over the tasks that have begun" in note(figure)
    thinned = np.array(accuracy)
    thinned[:, 3] = nan
    (whole,) = panels(gap_figure([curve_run("er", thinned.tolist())], task="mean"), "whole")
    assert [x for x, _ in curves(whole).values()] == [[1, 2, 3, 5, 6]]
    run.summary["quantities"] = ["accuracy", "reward", "accuracy"]
    with pytest.raises(UserError, match="accuracy and reward have no mean: choose one task"):
        gap_figure([run], task="mean")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("front", {"task": "mean"}, r"front has no option task \(it has labels\)"),
        ("joint", {"zoom": 5}, r"joint has no option zoom \(it has labels, task\)"),
        ("compare", {"together": True}, "compare has no option together"),
        ("gamma", {"labels": {"er": "A"}}, "gamma has no option labels"),
    ],
)
def test_a_figure_refuses_options_that_it_does_not_have(kind, options, message):
    with pytest.raises(UserError, match=message):
        find_kind(kind).draw(runs_of("er", "joint"), **options)
