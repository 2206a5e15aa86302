"""Families: declared by studies, whatever else is in the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.runs import grouped, seeded

from twofold.compare.families import primary_families
from twofold.compare.groups import groups
from twofold.compare.verdicts import Verdict, verdicts
from twofold.errors import UserError
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

STORES = Path(__file__).parents[2] / "replication/runs"
PLAIN = [80.0, 80.0, 80.0, 80.0, 80.0]
GEM = [82.0, 83.1, 81.2, 84.1, 80.0]

STUDY = """
seeds = 5

[[grid]]
benchmark = "rotated-mnist"
method = ["er", "er+gem", "er+clip(1.0)"]

[primary]
method = {methods}
margin = {margin}
"""


def stored(*names: str) -> list[Run]:
    return [run for name in names for run in Store(STORES / name).runs()]


def primary(found: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in found if verdict.study]


def test_stored_exploratory_runs_change_no_primary_verdict() -> None:
    """ER+GEM's MIN on Rotated MNIST went from p = 0.027 to 0.273 with the folder's further runs."""
    every = stored("replication", "gamma", "trajectories", "checks")
    few = [run for run in every if run.config.method in ("er", "er+gem")]
    alone, together = (primary(verdicts(groups(runs))) for runs in (few, every))
    places = [(v.hypothesis, v.benchmark, v.mode) for v in alone]
    assert ("H1", "rotated-mnist", "offline") in places
    own = [v for v in together if v.study == "main" and (v.objective, v.routine) == ("er", "gem")]
    assert own == alone


def test_fewer_seeds_of_a_fuller_evaluation_change_no_primary_verdict() -> None:
    """Three seeds evaluated after every iteration replaced the 24 of the confirmation."""
    confirmation = [
        run
        for run in stored("confirmation")
        if run.config.mode == "offline" and "der" not in run.config.method
    ]
    five = [run for run in stored("replication") if run.config.profile == "paper"]
    alone = primary(verdicts(groups(confirmation)))
    assert {len(v.seeds) for v in alone} == {24}
    together = primary(verdicts(groups([*confirmation, *five, *stored("trajectories")])))
    same_place = {(v.hypothesis, v.study, v.benchmark, v.mode) for v in alone}
    own = [v for v in together if (v.hypothesis, v.study, v.benchmark, v.mode) in same_place]
    assert own == alone


def test_all_images_of_too_few_seeds_do_not_count() -> None:
    some = {"eval_size": 250}
    runs = [seeded("er", PLAIN, **some), seeded("er+gem", GEM, **some)]
    more = [seeded("er", [80.0, 80.0]), seeded("er+gem", [90.0, 91.0])]
    assert primary(verdicts(grouped(*runs, *more))) == verdicts(grouped(*runs))


def test_effects_on_avg_without_a_smaller_gap_are_no_evidence_in_the_stored_runs() -> None:
    """Joint+GEM's lower AVG online was evidence against H2; ER+GEM's higher one has an H1."""
    found = {
        (v.objective, v.routine): v
        for v in primary(verdicts(groups(stored("confirmation"))))
        if (v.hypothesis, v.mode) == ("H2", "online")
    }
    joint, er = found["joint", "gem"], found["er", "gem"]
    assert (joint.outcome, joint.effect < 0, joint.evidence) == ("effect", True, "")
    assert "Nothing follows for H2 without evidence for H1 from the same" in joint.sentence
    assert (er.outcome, er.evidence) == ("effect", "for")


def test_less_forgetting_is_no_evidence_even_if_declared_in_the_stored_runs(
    tmp_path: Path,
) -> None:
    """GEM raises finetune's MIN and AVG by 40 points."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'seeds = 3\n[[grid]]\nbenchmark = "rotated-mnist"\nmode = "offline"\nlr = 0.1\n'
        'batch_size = 128\nmethod = ["finetune", "gem"]\n[primary]\nmethod = ["gem"]\n'
        "margin = {}\n"
    )
    results = verdicts(groups(stored("replication")), study=str(file))
    low, final = (v for v in primary(results) if v.profile == "paper")
    assert (low.hypothesis, low.outcome, low.evidence) == ("H1", "effect", "")
    assert low.effect > 40
    assert (final.hypothesis, final.outcome, final.evidence) == ("H3", "effect", "")
    assert "Nothing follows for H3 from finetune." in final.sentence


def test_intervals_and_decisions_agree_in_the_stored_runs() -> None:
    """In `gamma`, 2.97 points showed beside a sentence that less than 4.0 does not show."""
    found = verdicts(groups(stored("gamma")))
    assert len(found) == 12
    for verdict in found:
        assert verdict.interval is not None
        assert verdict.p_corrected is not None
        low, high = verdict.interval
        outside = low > 0 or high < 0
        assert (verdict.outcome == "effect") == outside == (verdict.p_corrected < 0.05)
        assert "does not show" not in verdict.sentence


def test_averaging_is_no_evidence_in_the_stored_runs() -> None:
    """The evaluated average of joint+ema was evidence for H1 and H3."""
    results = verdicts(groups(stored("trajectories")))
    ema = [v for v in results if v.objective == "joint" and v.routine == "ema(decay=0.998)"]
    assert [v.hypothesis for v in ema] == ["H1", "H3"]
    assert [(v.outcome, v.evidence) for v in ema] == [("equivalent", "")] * 2
    assert [v.effect for v in ema] == pytest.approx([0.0, 0.0], abs=1e-4)
    assert all(v.evaluated > 0.1 for v in ema)


def test_all_declared_comparisons_count_whether_they_were_run_or_not() -> None:
    (verdict, _) = verdicts(grouped(seeded("er", PLAIN), seeded("er+gem", GEM)))
    assert (verdict.study, verdict.family) == ("main", 4)
    assert verdict.p_corrected == pytest.approx(4 * verdict.p)


@pytest.mark.parametrize(
    "further",
    [
        [("er+clip", GEM, {}), ("er+gem(gamma=1)", GEM, {})],
        # ER ends higher there, but the study declares LR 0.1
        [("er", [90.0] * 5, {"lr": 0.01}), ("er+gem", [70.0] * 5, {"lr": 0.01})],
        [("er", [70.0] * 9, {"iterations": 20}), ("er+gem", [90.0] * 9, {"iterations": 20})],
        [("er", [70.0] * 9, {"optimizer": "adam"}), ("er+gem", GEM, {"optimizer": "adam"})],
        [("er", [70.0], {"eval_size": 500}), ("er+gem", [90.0], {"eval_size": 500})],
        [("er", [70.0] * 9, {"eval_size": 50}), ("er+gem", [90.0] * 9, {"eval_size": 50})],
        [("er", PLAIN, {"profile": "published"}), ("er+gem", GEM, {"profile": "published"})],
    ],
    ids=["routines", "setting", "length", "optimiser", "few seeds", "few images", "profile"],
)
def test_further_runs_change_no_primary_verdict(further: list) -> None:
    runs = [seeded("er", PLAIN), seeded("er+gem", GEM)]
    more = [seeded(method, lows, **options) for method, lows, options in further]
    assert primary(verdicts(grouped(*runs, *more))) == verdicts(grouped(*runs))


def test_a_fuller_evaluation_of_too_few_seeds_does_not_count() -> None:
    thin = {"eval_schedule": "every:10"}
    runs = [seeded("er", PLAIN, **thin), seeded("er+gem", GEM, **thin)]
    more = [seeded("er", [80.0]), seeded("er+gem", [90.0])]
    assert primary(verdicts(grouped(*runs, *more))) == verdicts(grouped(*runs))


def test_seeds_of_both_precisions_count_together() -> None:
    fast = {"eval_precision": "bf16"}
    plain, gem = seeded("er", PLAIN), seeded("er+gem", GEM)
    mixed = [*plain[:3], *seeded("er", PLAIN, **fast)[3:]]
    (low, _) = verdicts(grouped(mixed, gem))
    assert low.differences == verdicts(grouped(plain, gem))[0].differences
    one, other = low.commands[0].split(" && ")
    assert "--seeds 3" in one
    assert "--seed 172,182" in other
    assert "--eval-precision bf16" in other


def test_seeds_of_all_schedules_that_know_min_count_together() -> None:
    runs = [seeded("er", PLAIN), seeded("er+gem", GEM)]
    exact = {"eval_schedule": "exact-min"}
    mixed = [
        [*own[:3], *seeded(method, lows, **exact)[3:]]
        for own, method, lows in ((runs[0], "er", PLAIN), (runs[1], "er+gem", GEM))
    ]
    (low, _), (expected, _) = verdicts(grouped(*mixed)), verdicts(grouped(*runs))
    assert (low.seeds, low.differences) == (expected.seeds, expected.differences)
    assert low.sentence == expected.sentence
    assert [command.count("exact-min") for command in low.commands] == [1, 1]


def test_a_study_of_your_own_declares_its_families(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY.format(methods='["er+clip(1.0)"]', margin="{avg = 5}"))
    runs = grouped(seeded("er", PLAIN), seeded("er+gem", GEM), seeded("er+clip(1.0)", GEM))
    results = verdicts(runs, study=str(file))
    assert {(v.routine, v.hypothesis): (v.study, v.family, v.margin) for v in results} == {
        ("clip", "H1"): (str(file), 1, None),
        ("clip", "H3"): (str(file), 1, 5.0),
        ("gem", "H1"): ("", 1, None),
        ("gem", "H3"): ("", 1, None),
    }


def test_families_are_a_benchmark_and_mode() -> None:
    result = primary_families("main", "paper")
    assert [(family.methods, family.settings) for family in result] == [(4, 4)] * 8
    sota = primary_families("sota", "paper")
    assert [family.methods for family in sota] == [1, 1, 2, 2]


def test_a_study_without_primary_comparisons_is_refused() -> None:
    with pytest.raises(UserError, match="the study appendix declares no primary comparisons"):
        primary_families("appendix", "paper")


@pytest.mark.parametrize(
    ("methods", "margin", "message"),
    [
        ("[]", "{}", 'primary: method is missing, such as method = ["er+gem"]'),
        ('["er+gme"]', "{}", "primary: unknown routine or term 'gme'"),
        ('["er+sam"]', "{}", "primary: unknown method 'er+sam'"),
        ('["er"]', "{}", "primary: er has no routine to compare with its objective alone"),
        ('["er+gem"]', "1", "primary: margin must be such as {min = 1.0, avg = 0.5}, not 1"),
        ('["er+gem"]', "{mim = 1}", "primary: unknown metric 'mim': did you mean 'min'?"),
        ('["er+gem"]', "{min = 0}", "the margin of min must be a positive number, not 0"),
        ('["er+gem"]', "{min = true}", "the margin of min must be a positive number, not True"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    tmp_path: Path, methods: str, margin: str, message: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY.format(methods=methods, margin=margin))
    with pytest.raises(UserError) as error:
        primary_families(str(file), "paper")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_primary_method_needs_its_objective_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = STUDY.format(methods='["er+gem"]', margin="{}").replace('"er", ', "")
    file.write_text(text)
    with pytest.raises(UserError, match="er alone, which no grid has on rotated-mnist offline"):
        primary_families(str(file), "paper")
