"""Notes below figures."""

from __future__ import annotations

from helpers.figures import nan, note, two_tasks

from twofold.report.figures import compare_figure, gap_figure


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
    output = note(gap_figure([short]))
    assert "at most 2 iterations per task, evaluated on 200 images per task" in output
    assert (
        "evaluated after each of a task's first 100 iterations, then every 10 iterations" in output
    )
