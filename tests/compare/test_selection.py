"""Which runs belong to a method, a setting and a profile."""

from __future__ import annotations

import dataclasses

import pytest
from helpers.figures import BLACK, curves, nan, panels, two_tasks

from twofold import UserError
from twofold.report.figures import gap_figure, select_runs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.01}, r"er's runs differ in lr \(0\.01, 0\.1\): choose one with the option lr"),
        ({"batch_size": 10}, r"in batch size \(10, 128\): choose one with the option batch_size"),
        ({"optimizer": "adam", "momentum": 0.5}, r"in optimizer \(adam, sgd\): choose one"),
        ({"momentum": 0.5}, r"in momentum \(0\.5, 0\.9\): put them in separate folders"),
        ({"profile": "published"}, r"in profile \(paper, published\): choose one with the"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_runs_of_a_method_may_differ_in_their_seed_only(options, message):
    runs = [two_tasks("er", [50, 60, 70, 80]), two_tasks("er", [50, 60, 70, 80], 152, **options)]
    with pytest.raises(UserError, match=message):
        gap_figure(runs)


def test_of_runs_that_were_evaluated_or_shortened_in_several_ways_the_fullest_are_shown():
    """All have four iterations here; the last accuracy tells them apart."""
    fewer = two_tasks("er", [nan, 60, nan, 80], eval_schedule="every:2")
    every = two_tasks("er", [50, 60, 70, 81])
    short = two_tasks("er", [50, 60, 70, 82], iterations=2)
    for runs in ([fewer, every, short], [short, every, fewer]):
        (whole,) = panels(gap_figure(runs), "whole")
        assert curves(whole)[BLACK][1] == [50, 60, 70, 81]


def test_runs_are_selected_by_benchmark_mode_profile_method_and_settings():
    accuracy = [50, 60, 70, 80]
    runs = {
        "plain": two_tasks("er", accuracy),
        "slow": two_tasks("er", accuracy, lr=0.01),
        "gem": two_tasks("er+gem", accuracy),
        "online": two_tasks("er", accuracy, mode="online"),
        "published": two_tasks("er", accuracy, profile="published"),
        "long": two_tasks("er", accuracy + accuracy),
    }

    def chosen(*place, **more):
        selection = select_runs(list(runs.values()), *(place or ("rotated-mnist",)), **more)
        return [name for name, run in runs.items() if any(run is one for one in selection)]

    assert chosen() == ["plain", "slow", "gem", "long"]
    assert chosen("rotated-mnist", "online") == ["online"]
    assert chosen(profile="published") == ["published"]
    assert chosen(methods=["er+gem"]) == ["gem"]
    assert chosen(lr=0.01, iterations=None) == ["slow"]
    assert chosen(iterations=4) == ["long"]
    with pytest.raises(UserError, match="no runs with optimizer adam: there are sgd"):
        chosen(optimizer="adam")
    with pytest.raises(UserError, match=r"did you mean 'er\+gem'\? \(there are er, er\+gem\)"):
        chosen(methods=["er+gme"])
    with pytest.raises(UserError, match=r"no runs of er\+agem: .*`twofold run rotated-mnist er"):
        chosen(methods=["er", "er+agem"])
    with pytest.raises(UserError, match=r"no runs with batch size 7: there are 128"):
        chosen(batch_size=7)
    with pytest.raises(UserError, match=r"unknown benchmark 'rotated-mnits': did you mean 'rotat"):
        chosen("rotated-mnits")
    with pytest.raises(UserError, match=r"unknown mode 'onlin': did you mean 'online'"):
        chosen("rotated-mnist", "onlin")
    with pytest.raises(UserError, match=r"unknown profile 'publish': did you mean 'published'"):
        chosen(profile="publish")
    of_plugin = [
        dataclasses.replace(run, config=dataclasses.replace(run.config, plugins=["own.py"]))
        for run in runs.values()
    ]
    for choice in ({"methods": ["joint"]}, {"mode": "online", "profile": "published"}):
        with pytest.raises(UserError, match=r"`twofold run rotated-mnist .* --plugin own\.py`"):
            select_runs(of_plugin, "rotated-mnist", **choice)
    command = "`twofold run split-cifar100 er --seeds 5 --profile published`"
    with pytest.raises(UserError, match=f"no runs of split-cifar100, .*: train .* with {command}"):
        chosen("split-cifar100", profile="published")


def test_a_method_is_selected_by_any_spelling_of_it():
    runs = [two_tasks(m, [50, 60, 70, 80]) for m in ("er+gem", "er+gem(gamma=0.1)", "joint")]
    for spelling in ("er+gem(0.1)", "er+gem( gamma=0.1, when=violated )"):
        (selection,) = select_runs(runs, "rotated-mnist", methods=[spelling])
        assert selection.config.method == "er+gem(gamma=0.1)"


def test_a_run_belongs_to_every_profile_that_would_make_it():
    """The published profile, spelled out under the paper's, makes the same run."""
    published = two_tasks("joint", [60, 70, 80, 90], 142, profile="published")
    settings = {"memory_grouping": "class", "whitening": "published"}
    spelled = two_tasks("joint(keep=20000)", [50, 60, 70, 80], 142, **settings)
    assert spelled.config.identity() == published.config.identity()

    labelled = two_tasks("joint", [60, 70, 80, 90], 152, profile="published")
    near = [two_tasks("joint(keep=20000)", [1, 2, 3, 4], 162, **{k: settings[k]}) for k in settings]
    runs = [spelled, labelled, *near, two_tasks("joint", [1, 2, 3, 4], 162)]
    selection = select_runs(runs, "rotated-mnist", profile="published")
    assert {(run.config.method, run.config.seed) for run in selection} == {
        ("joint", 142),
        ("joint", 152),
    }
    (whole,) = panels(gap_figure(selection), "whole")
    assert list(curves(whole).values()) == [([1, 2, 3, 4], [55, 65, 75, 85])]
    # It is the paper's profile's, too, by its longer name; the labelled one is not.
    selection = select_runs(runs, "rotated-mnist", methods=["joint(keep=20000)"])
    assert [run.config.seed for run in selection] == [142, 162, 162]


def test_a_component_that_is_not_available_is_taken_by_its_name():
    run = two_tasks("er", [50, 60, 70, 80])
    strange = [("er", {}), ("mine", {"share": 0.5})]
    config = dataclasses.replace(run.config, method="er+mine(share=0.5)", components=strange)
    runs = [run, dataclasses.replace(run, config=config)]
    assert len(select_runs(runs, "rotated-mnist", methods=["er+mine(share=0.5)"])) == 1
    with pytest.raises(UserError, match="no runs of rotated-mnist, offline, published"):
        select_runs(runs, "rotated-mnist", profile="published")
    (whole,) = panels(gap_figure(runs), "whole")
    drawn = curves(whole)
    assert BLACK in drawn
    assert len(drawn) == 2
