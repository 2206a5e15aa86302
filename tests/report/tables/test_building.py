"""Tables from runs: which runs belong, and numbers that are worked by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers.runs import grouped, scored_run, seeded
from helpers.tables import number, rows

from twofold.compare.groups import groups
from twofold.compare.shelf import Setting
from twofold.errors import UserError
from twofold.experiments.config import Config, configure
from twofold.experiments.runs import Run
from twofold.report.tables import render, study_table


def test_a_number_by_hand() -> None:
    # 82, 82, 84, 84: mean 83, deviation 2 / sqrt(3), standard error 1 / sqrt(3). The paper has
    # 83.1 +- 0.5: 0.1 below, and both errors together are sqrt(1/3 + 1/4) = 0.764.
    table = study_table("main", grouped(seeded("er", [82, 82, 84, 84])))
    n = number(table, "er")
    assert n.value == (83, pytest.approx(1 / math.sqrt(3)))
    assert n.printed == (83.1, 0.5)
    assert n.difference == pytest.approx(-0.1)
    assert n.errors_apart == pytest.approx(0.1 / math.sqrt(1 / 3 + 1 / 4))
    assert n.seeds == [142, 152, 162, 172]
    assert n.command == "twofold run rotated-mnist er --mode offline --seeds 4 --profile paper"
    _, low, paper, difference, *_ = rows(render(table, "md"))
    assert [low[5], paper[5], difference[5]] == ["83.0 ± 0.6 (n=4)", "83.1 ± 0.5", "−0.1 (0.1 se)"]


def test_no_bound_is_bold() -> None:
    """The highest of several upper bounds need not be the highest MIN."""
    thin = {"eval_schedule": "every:10"}
    runs = [seeded("er", [80, 81, 82], **thin), seeded("er+gem", [90, 91, 92], **thin)]
    assert bold(*runs) == []


def test_two_seeds_are_no_unit_and_not_bold() -> None:
    """Domain CIFAR-100 had bold numbers and "7.2 se" from two seeds."""
    table = study_table("main", grouped(seeded("er", [82, 84]), seeded("er+gem", [92, 94])))
    assert number(table, "er").difference == pytest.approx(-0.1)
    assert number(table, "er").errors_apart is None
    assert rows(render(table, "md"))[3][5] == "−0.1"
    assert not any(n.bold for n in table.numbers())


def test_one_seed_has_no_error() -> None:
    table = study_table("main", grouped(seeded("er", [83.1])))
    assert rows(render(table, "md"))[1][5] == "83.1 (n=1)"
    assert number(table, "er").errors_apart is None


def test_a_single_task_has_no_min() -> None:
    table = study_table("main", groups([scored_run(low=None, tasks=1)]))
    assert number(table, "er").value is None
    assert number(table, "er", "avg").value == (90, None)


def test_an_error_that_the_paper_rounds_to_nothing_is_no_unit() -> None:
    table = study_table("main", grouped(seeded("joint", [86, 87, 88], [97, 97.5, 98])))
    assert number(table, "joint", "avg").printed == (97.5, 0.0)
    assert number(table, "joint", "avg").difference == 0
    assert number(table, "joint", "avg").errors_apart is None


def bold(*runs: list[Run]) -> list[str]:
    table = study_table("main", grouped(*runs))
    return [n.method for n in table.numbers() if n.bold and n.metric.name == "min"]


def test_the_highest_of_each_group_is_bold() -> None:
    low, high = [80.0, 81.0, 80.5], [90.0, 91.0, 90.5]
    methods = ("er", low), ("er+gem", high), ("joint", low), ("joint+agem", high)
    assert bold(*(seeded(*each) for each in methods)) == ["er+gem", "joint+agem"]


def test_so_are_those_within_its_standard_error() -> None:
    # er+gem: 89, 89, 91, 91 is 90 +- 0.577. 89.5 lies within, 89.4 does not, whatever its error.
    best = seeded("er+gem", [89, 89, 91, 91])
    near, far = seeded("er", [89.5] * 4), seeded("er+agem", [80, 97.6, 90, 90])
    assert bold(best, near, far) == ["er", "er+gem"]


def test_a_method_alone_in_its_group_is_compared_with_nothing() -> None:
    assert bold(seeded("er", [80, 81, 82]), seeded("joint+gem", [80, 81, 82])) == []


@pytest.mark.parametrize("few", [[80], [80, 81]])
def test_nothing_is_bold_beside_fewer_than_three_seeds(few: list[float]) -> None:
    many = [90.0, 91.0, 92.0]
    assert bold(seeded("er", many), seeded("er+gem", few)) == []
    assert bold(seeded("er", few), seeded("er+gem", many)) == []


def test_runs_that_were_not_evaluated_alike_are_not_ranked() -> None:
    thinned = seeded("er+gem", [90, 91, 92], eval_schedule="every:10")
    table = study_table("main", grouped(seeded("er", [80, 81, 82]), thinned))
    assert not any(n.bold for n in table.numbers() if n.metric.name == "min")
    # AVG does not depend on the schedule.
    assert [n.method for n in table.numbers() if n.bold] == ["er+gem"]


def as_published() -> Config:
    """Plain ER as the paper's text has it, said under the other profile."""
    same = {"memory_grouping": "class-task", "whitening": "train"}
    return configure("rotated-mnist", "er", profile="published", seed=152, **same)


def test_runs_are_known_by_what_they_are() -> None:
    assert as_published().identity() == scored_run(seed=152).config.identity()
    same = Run(as_published(), {**scored_run(seed=152).summary, "min": 84.0}, {})
    paper = study_table("main", groups([scored_run(low=82), same]))
    assert number(paper, "er").seeds == [142, 152]
    assert number(paper, "er").value == (83, None)
    published = study_table("main", groups([scored_run(low=82), same]), "published")
    assert published.blocks == ()


def test_each_profile_has_its_own_runs() -> None:
    all_groups = grouped(seeded("er", [80, 82]), seeded("er", [70, 72], profile="published"))
    assert number(study_table("main", all_groups), "er").value == (81, None)
    table = study_table("main", all_groups, "published")
    assert number(table, "er").value == (71, None)
    assert number(table, "er").command.endswith("--profile published")


@pytest.mark.parametrize(
    "other",
    [
        {"memory_per_class": 10},
        {"memory_grouping": "class"},
        {"whitening": "published"},
        {"momentum": 0.5},
        {"method": "er+momentum-reset"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_runs_do_not_belong(other: dict[str, Any]) -> None:
    assert study_table("main", groups([scored_run(**other)])).blocks == ()
    both = study_table("main", groups([scored_run(low=80), scored_run(low=10, seed=152, **other)]))
    assert number(both, "er").seeds == [142]


def test_gem_with_another_gamma_is_no_column() -> None:
    assert study_table("main", groups([scored_run("er+gem(gamma=0.1)")])).blocks == ()


def test_shortened_runs_are_never_mixed_with_full_ones() -> None:
    short = [scored_run(low=10, seed=seed, iterations=20) for seed in (142, 152, 162)]
    table = study_table("main", groups([scored_run(low=80), *short]))
    assert number(table, "er").value == (80, None)
    assert number(table, "er").seeds == [142]


def test_shortened_runs_are_shown_if_there_are_no_others_and_compared_with_nothing() -> None:
    # 10, 10, 13: mean 11; deviations -1, -1, 2; variance 6 / 2 = 3; error sqrt(3 / 3).
    table = study_table("main", grouped(seeded("er", [10, 10, 13], iterations=20, tasks=2)))
    n = number(table, "er")
    assert n.value == (11, pytest.approx(1))
    assert n.difference is None
    assert number(table, "er", "avg").difference is None
    text = render(table, "md")
    assert "11.0 ± 1.0 (n=3) [a]" in text
    shortened = "at most 20 iterations per task, the first 2 tasks only."
    assert f"[a] differs from the reference runs: {shortened}" in text
    assert "difference" not in [line[4] for line in rows(text)]


def test_of_shortened_runs_the_longest_are_shown() -> None:
    runs = [*seeded("er", [10, 12], iterations=20), scored_run(low=50, iterations=200)]
    assert number(study_table("main", groups(runs)), "er").value == (50, None)


def test_a_limit_that_limits_nothing_shortens_nothing() -> None:
    table = study_table("main", grouped(seeded("er", [82, 84], iterations=2000, tasks=3)))
    assert number(table, "er").remarks == ()
    assert number(table, "er").difference == pytest.approx(-0.1)


def test_min_of_a_thinned_evaluation_is_an_upper_bound() -> None:
    thin = {"eval_schedule": "every:10"}
    table = study_table("main", grouped(seeded("er", [82, 83, 84], [91, 91.5, 92], **thin)))
    low, avg = number(table, "er"), number(table, "er", "avg")
    assert low.bound
    assert not avg.bound
    assert low.errors_apart is None
    assert avg.errors_apart is not None
    text = render(table, "md")
    assert rows(text)[1][5] == "≤ 83.0 ± 0.6 (n=3)"
    assert rows(text)[3][5] == "≤ −0.1"
    assert "evaluated every 10 iterations" in text


def test_complete_evaluation_is_preferred_to_more_seeds() -> None:
    thinned = seeded("er", [82, 84, 86], eval_schedule="every:10")
    assert number(study_table("main", groups([*thinned, scored_run(low=80)])), "er").value == (
        80,
        None,
    )


def test_min_on_fewer_images_is_another_quantity() -> None:
    table = study_table("main", grouped(seeded("er", [82, 84], [91, 92], eval_size=100)))
    assert number(table, "er").difference is None
    assert number(table, "er").remarks == ("evaluated on 100 images per task",)
    assert number(table, "er", "avg").difference == pytest.approx(-0.4)
    assert number(table, "er", "avg").remarks == ()


def test_numbers_of_held_out_training_images_say_so() -> None:
    table = study_table("main", grouped(seeded("er", [82, 84], [91, 92], validation=0.1)))
    for metric in ("min", "avg"):
        assert number(table, "er", metric).difference is None
        assert number(table, "er", metric).remarks == (
            "evaluated on 0.1 of the training images, held out",
        )


@pytest.mark.parametrize("different", [0, 2, 3])
def test_bf16_counts_as_fp32_unless_audits_found_a_difference_that_counts(different: int) -> None:
    runs = seeded("er", [82, 84], [91, 92], eval_precision="bf16")
    runs[1].summary["audit"] = {"images": 20_000, "differences": different}
    table = study_table("main", grouped(runs))
    output = ("evaluated in bf16 (3 of 20,000 audited predictions differ from fp32)",)
    assert number(table, "er").remarks == (output if different > 2 else ())
    assert number(table, "er").difference == pytest.approx(83 - 83.1)
    assert number(table, "er", "avg").remarks == ()


def test_seeds_of_both_precisions_are_one_number() -> None:
    """A seed that was evaluated in both counts in fp32."""
    rounded = seeded("er", [82, 84, 86], eval_precision="bf16")
    for runs in ((seeded("er", [80]), rounded), (rounded, seeded("er", [80]))):
        result = number(study_table("main", grouped(*runs)), "er")
        assert result.value == (pytest.approx(250 / 3), pytest.approx(math.sqrt(28 / 9)))
        fast, full = sorted(result.command.split(" && "), key=len, reverse=True)
        assert "--seed 152,162 --eval-precision bf16" in fast
        assert "--seed 142 " in full


def chosen(*runs: list[Run], name: str = "main") -> tuple[Setting, str]:
    ((setting, why),) = study_table(name, grouped(*runs)).choices.values()
    return setting, why


def test_the_setting_is_one_for_er_and_joint() -> None:
    # Means of both: lr 0.1: (90 + 97) / 2 = 93.5; lr 0.01: (93 + 95) / 2 = 94, the highest.
    setting, why = chosen(
        seeded("er", [80], [90]),
        seeded("joint", [80], [97]),
        seeded("er", [80], [93], lr=0.01),
        seeded("joint", [80], [95], lr=0.01),
    )
    assert setting == Setting(0.01, 128)
    assert why == (
        "highest final accuracy of plain er and joint among 2 settings; joint alone ends highest "
        "with LR 0.1, BS 128 (usually LR 0.1, BS 128)"
    )


def test_methods_with_a_routine_have_no_say() -> None:
    runs = (seeded("er", [80], [90]), seeded("er", [80], [89], lr=0.01))
    assert chosen(*runs, seeded("er+gem", [80], [99], lr=0.01))[0] == Setting(0.1, 128)


def test_what_is_there_for_both_goes_before_what_is_not() -> None:
    runs = (seeded("er", [80], [90]), seeded("joint", [80], [91]))
    assert chosen(*runs, seeded("er", [80], [99], lr=0.01))[0] == Setting(0.1, 128)


def test_the_only_setting_is_taken_and_named() -> None:
    setting, why = chosen(seeded("er", [80], lr=0.05))
    assert setting == Setting(0.05, 128)
    assert why == "the only ones with runs (usually LR 0.1, BS 128)"
    table = study_table("main", grouped(seeded("er", [80], lr=0.05)))
    assert rows(render(table))[1][2:4] == ["0.05", "128"]
    assert number(table, "er").printed is None  # the paper has none for it


def test_shortened_runs_do_not_choose() -> None:
    short = seeded("er", [99], [99], lr=0.01, iterations=20)
    full = (seeded("er", [80], [90]), seeded("er", [80], [85], lr=0.001))
    assert chosen(*full, short)[0] == Setting(0.1, 128)


def test_without_a_plain_method_the_papers_setting_is_shown() -> None:
    runs = [seeded("er+gem", [80], [90]), seeded("er+gem", [80, 81], [99, 99], lr=0.01)]
    assert chosen(*runs) == (Setting(0.1, 128), "the usual ones")
    others = [seeded("er+gem", [80], lr=0.2), seeded("er+gem", [80, 81], lr=0.3)]
    assert chosen(*others)[0] == Setting(0.3, 128)


def test_an_unknown_table_is_answered_with_the_closest() -> None:
    with pytest.raises(UserError, match="did you mean 'appendix'"):
        study_table("apendix", [])
    assert study_table("main", []).blocks == ()
