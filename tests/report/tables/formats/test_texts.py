"""Numbers of tables as text."""

from __future__ import annotations

from helpers.runs import grouped, scored_run, seeded
from helpers.tables import rows

from twofold.compare.groups import groups
from twofold.report.tables import render, study_table


def test_all_seeds_of_the_study_need_no_remark() -> None:
    table = study_table("main", grouped(seeded("er", [80, 81, 82, 83, 84])))
    # Mean 82, deviation sqrt(10 / 4), error sqrt(10 / 4 / 5) = 0.7071.
    assert rows(render(table, "md"))[1][5] == "82.0 ± 0.7"


def test_where_there_is_nothing_there_is_a_dash_beside_the_papers() -> None:
    _, low, paper, difference, *_ = rows(render(study_table("main", grouped(seeded("er", [80])))))
    assert low[6:] == ["–"] * 5
    assert paper[6] == "84.1 ± 0.4"
    assert difference[6:] == [""] * 5


def test_diverged_runs_are_marked() -> None:
    runs = [*seeded("er", [80, 81, 82, 83]), scored_run(low=9.8, avg=9.8, seed=182, diverged=True)]
    assert "(1 diverged)" in rows(render(study_table("main", groups(runs))))[1][5]
    assert "(n=1, 1 diverged)" in render(study_table("main", groups(runs[4:])))
