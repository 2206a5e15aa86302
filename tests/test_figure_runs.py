"""Which runs a figure shows, what it says of them, and the command."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from helpers.figures import BLACK, GREEN, curves, nan, note, panels, stored, two_tasks

from twofold import UserError
from twofold.cli import main
from twofold.report.figures import KINDS, compare_figure, find_kind, gap_figure, select_runs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.01}, r"er's runs differ in lr \(0\.01, 0\.1\): choose one with the option lr"),
        ({"batch_size": 10}, r"in batch size \(10, 128\): choose one with the option batch_size"),
        ({"momentum": 0.5}, r"in momentum \(0\.5, 0\.9\): put them in separate folders"),
        ({"profile": "published"}, r"in profile \(paper, published\): choose one with the"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_runs_of_a_method_may_differ_in_their_seed_only(options, message):
    runs = [two_tasks("er", [50, 60, 70, 80]), two_tasks("er", [50, 60, 70, 80], 152, **options)]
    with pytest.raises(UserError, match=message):
        gap_figure(runs)


def test_of_runs_that_were_judged_or_shortened_in_several_ways_the_fullest_are_shown():
    """All have four iterations here; the last accuracy tells them apart."""
    fewer = two_tasks("er", [nan, 60, nan, 80], eval_schedule="every:2")
    every = two_tasks("er", [50, 60, 70, 81])
    short = two_tasks("er", [50, 60, 70, 82], iterations=2)
    for runs in ([fewer, every, short], [short, every, fewer]):
        (whole,) = panels(gap_figure(runs), "whole")
        assert curves(whole)[BLACK][1] == [50, 60, 70, 81]


def test_runs_of_different_length_or_mode_do_not_mix():
    short = two_tasks("er", [50, 60, 70, 80], iterations=2)
    other = two_tasks("joint", [50, 60, 70, 80, 90, 90])
    with pytest.raises(UserError, match=r"differ in length \(er 4, joint 6\): choose with the"):
        gap_figure([short, other])
    with pytest.raises(UserError, match=r"the runs differ in mode \(offline, online\)"):
        gap_figure([short, two_tasks("joint", [50, 60, 70, 80], mode="online")])
    for kind in KINDS.values():
        with pytest.raises(UserError, match="at least one run"):
            kind.draw([])


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
        found = select_runs(list(runs.values()), *(place or ("rotated-mnist",)), **more)
        return [name for name, run in runs.items() if any(run is one for one in found)]

    assert chosen() == ["plain", "slow", "gem", "long"]
    assert chosen("rotated-mnist", "online") == ["online"]
    assert chosen(profile="published") == ["published"]
    assert chosen(methods=["er+gem"]) == ["gem"]
    assert chosen(lr=0.01, iterations=None) == ["slow"]
    assert chosen(iterations=4) == ["long"]
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
    command = "`twofold run split-cifar100 er --seeds 5 --profile published`"
    with pytest.raises(UserError, match=f"no runs of split-cifar100, .*: train .* with {command}"):
        chosen("split-cifar100", profile="published")


def test_a_method_is_selected_by_any_spelling_of_it():
    runs = [two_tasks(m, [50, 60, 70, 80]) for m in ("er+gem", "er+gem(gamma=0.1)", "joint")]
    for spelling in ("er+gem(0.1)", "er+gem( gamma=0.1, when=violated )"):
        (found,) = select_runs(runs, "rotated-mnist", methods=[spelling])
        assert found.config.method == "er+gem(gamma=0.1)"


def test_a_run_belongs_to_every_profile_that_would_make_it():
    """The published profile, spelled out under the paper's, makes the same run."""
    published = two_tasks("joint", [60, 70, 80, 90], 142, profile="published")
    settings = {"memory_grouping": "class", "whitening": "published"}
    spelled = two_tasks("joint(keep=20000)", [50, 60, 70, 80], 142, **settings)
    assert spelled.config.identity() == published.config.identity()

    labelled = two_tasks("joint", [60, 70, 80, 90], 152, profile="published")
    near = [two_tasks("joint(keep=20000)", [1, 2, 3, 4], 162, **{k: settings[k]}) for k in settings]
    runs = [spelled, labelled, *near, two_tasks("joint", [1, 2, 3, 4], 162)]
    found = select_runs(runs, "rotated-mnist", profile="published")
    assert {(run.config.method, run.config.seed) for run in found} == {
        ("joint", 142),
        ("joint", 152),
    }
    (whole,) = panels(gap_figure(found), "whole")
    assert curves(whole) == {BLACK: ([1, 2, 3, 4], [55, 65, 75, 85])}
    # It is the paper's profile's, too, by its longer name; the labelled one is not.
    found = select_runs(runs, "rotated-mnist", methods=["joint(keep=20000)"])
    assert [run.config.seed for run in found] == [142, 162, 162]


def test_a_component_that_is_not_at_hand_is_taken_by_its_name():
    run = two_tasks("er", [50, 60, 70, 80])
    strange = [("er", {}), ("mine", {"share": 0.5})]
    config = dataclasses.replace(run.config, method="er+mine(share=0.5)", components=strange)
    runs = [run, dataclasses.replace(run, config=config)]
    assert len(select_runs(runs, "rotated-mnist", methods=["er+mine(share=0.5)"])) == 1
    with pytest.raises(UserError, match="no runs of rotated-mnist, offline, published"):
        select_runs(runs, "rotated-mnist", profile="published")
    (whole,) = panels(gap_figure(runs), "whole")
    assert set(curves(whole)) == {BLACK, GREEN}


def test_the_papers_methods_are_shown_unless_others_are_named():
    methods = ["er", "er+gem", "joint", "der", "finetune", "er+gem(gamma=0.1)", "joint(keep=50)"]
    runs = [two_tasks(method, [50, 60, 70, 80]) for method in methods]

    def chosen(runs, *methods):
        runs, _, left_out = find_kind("gap").choose(runs, "rotated-mnist", methods=methods)
        return [run.config.method for run in runs], left_out

    others = ["der", "er+gem(gamma=0.1)", "finetune", "joint(keep=50)"]
    assert chosen(runs) == (["er", "er+gem", "joint"], others)
    assert chosen(runs, "der", "er+gem(0.1)") == (["der", "er+gem(gamma=0.1)"], [])
    assert chosen(runs[3:5]) == (["der", "finetune"], [])  # where there are none of the paper's


def test_of_a_grid_the_setting_where_plain_methods_end_highest_is_shown():
    """ER and joint end at 90 and 91 with 0.1, and at 80 and 99 with 0.01: 90.5 against 89.5."""
    final = {("er", 0.1): 90, ("er", 0.01): 80, ("joint", 0.1): 91, ("joint", 0.01): 99}
    final |= {("er+gem", 0.1): 10, ("er+gem", 0.01): 99}
    runs = [
        two_tasks(method, [50, 60, 70, 80], lr=lr, metrics=(50, avg))
        for (method, lr), avg in final.items()
    ]
    shown = find_kind("gap").choose(runs, "rotated-mnist")
    assert [run.config.method for run in shown.runs] == ["er", "er+gem", "joint"]
    assert {run.config.lr for run in shown.runs} == {0.1}
    assert "highest final accuracy of plain er and joint" in shown.setting
    shown = find_kind("gap").choose(runs, "rotated-mnist", lr=0.01)
    assert {run.config.lr for run in shown.runs} == {0.01}
    assert shown.setting == ""


def test_the_notes_say_the_setting_and_the_seeds():
    accuracy = [50, 60, 70, 80]
    alone = gap_figure([two_tasks("er", accuracy)])
    assert note(alone) == "rotated-mnist, offline, lr 0.1, batch size 128: one seed"
    runs = [two_tasks("er", accuracy, seed) for seed in (1, 2, 3)]
    runs += [two_tasks("joint", accuracy, seed, lr=0.01) for seed in (1, 2)]
    setting = "rotated-mnist, offline, lr 0.1 (joint 0.01), batch size 128"
    assert note(compare_figure(runs)) == f"{setting}: mean ± standard error over 3 seeds (joint 2)"
    published = two_tasks("er", accuracy, profile="published", mode="online")
    assert note(gap_figure([published])) == (
        "rotated-mnist, online, lr 0.01, batch size 10, profile published: one seed"
    )


def test_the_notes_say_what_was_left_out():
    every, thinned = [50, 60, 70, 80], [nan, 60, nan, 80]
    often = "evaluated every 2 iterations and at the end of each task only: the deepest drop may be"
    missed = f"{often} missed, and MIN is an upper bound"
    seed = "rotated-mnist, offline, lr 0.1, batch size 128: one seed"
    alone = [two_tasks("er", thinned, eval_schedule="every:2")]
    assert note(gap_figure(alone)) == f"{seed} {missed}"
    assert note(gap_figure([*alone, two_tasks("joint", every)])) == f"{seed} er: {missed}"

    short = two_tasks("er", every, eval_schedule="dense:100:10", eval_size=200, iterations=2)
    said = note(gap_figure([short]))
    assert "at most 2 iterations per task, evaluated on 200 images per task" in said
    assert "evaluated after each of a task's first 100 iterations, then every 10 iterations" in said


def test_the_command_draws_what_is_in_a_folder(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "runs"
    for method in ("er", "er+gem"):
        stored([two_tasks(method, [50, 60, 70, 80], seed) for seed in (142, 152)], folder)
    output = tmp_path / "gap.pdf"
    assert main(["figure", "gap", "rotated-mnist", "--runs", str(folder), "-o", str(output)]) == 0
    assert output.read_bytes().startswith(b"%PDF")
    assert capsys.readouterr().out == f"The figure is in {output}; runs: er (2), er+gem (2)\n"

    monkeypatch.chdir(tmp_path)
    assert main(["figure", "gap", "rotated-mnist", "--methods", "er", "--task", "2"]) == 0
    assert "rotated-mnist-offline-gap.png; runs: er (2)" in capsys.readouterr().out
    assert Path("rotated-mnist-offline-gap.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_says_what_it_left_out_and_which_setting_it_chose(tmp_path, capsys):
    runs = [two_tasks("er", [50, 60, 70, 80], lr=lr, metrics=(1, lr)) for lr in (0.1, 0.01)]
    stored([*runs, two_tasks("der", [50, 60, 70, 80])], tmp_path)
    words = ["figure", "gap", "rotated-mnist", "--runs", str(tmp_path)]
    assert main([*words, "-o", str(tmp_path / "gap.svg")]) == 0
    said = capsys.readouterr().out
    assert "runs: er (1)\n" in said
    assert "The setting is LR 0.1, BS 128, highest final accuracy of plain er" in said
    assert "Left out: der; --methods chooses" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--runs", "nowhere"], "there is no folder nowhere: `twofold run rotated-mnist er"),
        (["--mode", "online"], "no runs of rotated-mnist, online, paper: train them with `twofold"),
        (["-o", "gap.gif"], "a figure's name must end in .png, .svg or .pdf, not 'gap.gif'"),
        (["--lr", "0.5"], "no runs with lr 0.5: there are 0.01, 0.1"),
        (["--task", "3"], "task must be from 1 to 2, not 3"),
    ],
)
def test_the_command_answers_errors_in_one_line(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored([two_tasks("er", [50, 60, 70, 80], lr=lr) for lr in (0.1, 0.01)], Path("runs"))
    assert main(["figure", "gap", "rotated-mnist", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"twofold: {message}")
    assert error.count("\n") == 1
    assert not list(Path().glob("*.png"))


def test_a_wrong_figure_is_answered_with_the_closest(capsys):
    assert main(["figure", "projection_rule", "rotated-mnist"]) == 2
    wrong = "unknown figure 'projection_rule': did you mean 'projection-rule'?"
    assert wrong in capsys.readouterr().err


def test_a_figure_without_runs_says_the_command_that_makes_them(tmp_path, capsys):
    stored([two_tasks("er", [50, 60, 70, 80], profile="published")], tmp_path)
    commands = {
        "joint": "joint --seeds 5 --profile published`",
        "projection-rule": "'er+gem(when=violated)' 'er+gem(when=always)' --seeds 5 --profile pub",
        "gamma": "er 'er+gem(gamma=0.0,when=always)' 'er+gem(gamma=0.05,when=always)' ",
    }
    for kind, words in commands.items():
        place = ["rotated-mnist", "--runs", str(tmp_path), "--profile", "published"]
        assert main(["figure", kind, *place]) == 2
        wrong = f"no runs for the figure {kind}: train them with `twofold run rotated-mnist {words}"
        assert wrong in capsys.readouterr().err
