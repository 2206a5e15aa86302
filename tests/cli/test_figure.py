"""The command `twofold figure`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.figures import stored, two_tasks

from twofold.cli import main


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


def test_the_command_takes_labels_zooms_and_the_mean_over_tasks(tmp_path, capsys):
    stored(
        [two_tasks(method, [50, 60, 70, 80]) for method in ("er", "joint+gem(gamma=0.1)")],
        tmp_path / "runs",
    )
    words = ["figure", "gap", "rotated-mnist", "--runs", str(tmp_path / "runs"), "--together"]
    words += ["--methods", "er", "joint+gem(gamma=0.1)", "--task", "mean", "--zoom", "1"]
    words += ["--label", "joint+gem(gamma=0.1)=GEM, γ = 0.1", "-o", str(tmp_path / "gap.svg")]
    assert main(words) == 0
    assert "joint+gem(gamma=0.1) (1)" in capsys.readouterr().out
    texts = re.findall(r"<!-- (.*?) -->", (tmp_path / "gap.svg").read_text())
    assert {"er", "GEM, γ = 0.1", "mean task accuracy (%)", "1"} <= {*texts}


def test_the_command_says_what_it_left_out_and_which_setting_it_chose(tmp_path, capsys):
    runs = [two_tasks("er", [50, 60, 70, 80], lr=lr, metrics=(1, lr)) for lr in (0.1, 0.01)]
    stored([*runs, two_tasks("der", [50, 60, 70, 80])], tmp_path)
    words = ["figure", "gap", "rotated-mnist", "--runs", str(tmp_path)]
    assert main([*words, "-o", str(tmp_path / "gap.svg")]) == 0
    output = capsys.readouterr().out
    assert "runs: er (1)\n" in output
    assert "The setting is LR 0.1, BS 128, highest final accuracy of plain er" in output
    assert "Left out: der; --methods chooses" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--runs", "nowhere"], "there is no folder nowhere: `twofold run rotated-mnist er"),
        (["--mode", "online"], "no runs of rotated-mnist, online, paper: train them with `twofold"),
        (["-o", "gap.gif"], "a figure's name must end in .png, .svg or .pdf, not 'gap.gif'"),
        (["--lr", "0.5"], "no runs with lr 0.5: there are 0.01, 0.1"),
        (["--task", "3"], "task must be from 1 to 2 or mean, not 3"),
        (["--task", "all"], "argument --task: must be the number of a task, or mean, not 'all'"),
        (["--zoom", "0"], "zoom must be a whole number of iterations from 1 on, not 0"),
        (["--zoom", "abc"], "argument --zoom: must be a whole number, not 'abc'"),
        (["--label", "er"], "--label takes a method and a text, such as er+gem=GEM, not 'er'"),
        (["--label", "der=A"], "no label can be given to 'der': the figure shows er"),
        (["--label", "er=A", "--label", "er=B"], "--label names er twice"),
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
