"""Verdicts: which runs are compared, and the sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.runs import grouped, seeded
from hypothesis import strategies as st

from twofold.compare.groups import groups
from twofold.compare.statistics import chance
from twofold.compare.verdicts import Verdict, verdicts
from twofold.experiments.runs import Run

PLAIN = [80.0, 80.0, 80.0]


def against(differences: list[float], routine: str = "gem", **options: Any) -> Verdict:
    """The verdict on H1 of er with a routine that differs so much from er; `main` has er+gem."""
    plain = seeded("er", [80.0] * len(differences), **options)
    changed = seeded(f"er+{routine}", [80.0 + d for d in differences], **options)
    return next(v for v in verdicts(grouped(plain, changed)) if v.hypothesis == "H1")


differences = st.lists(
    st.floats(-50, 50).map(lambda x: round(x, 2)), min_size=3, max_size=8
).filter(lambda values: np.std(values) > 0.05)


def test_reservations_about_runs_of_plain_sgd_are_reported() -> None:
    plain = seeded("er", PLAIN, eval_precision="bf16")
    plain[0].summary["audit"] = {"images": 2000, "differences": 500}
    (verdict, _) = verdicts(grouped(plain, seeded("er+gem", [81, 82, 84])))
    assert "500 of 2,000 audited predictions differ from fp32" in verdict.sentence


def test_comparisons_with_the_same_methods_are_distinguished() -> None:
    small = {"memory_per_class": 50}
    runs = [seeded("er", PLAIN), seeded("er", PLAIN, **small), seeded("er+gem", [81, 82, 84])]
    runs.append(seeded("er+gem", [82, 84, 83], **small))
    sentences = [v.sentence for v in verdicts(grouped(*runs)) if v.hypothesis == "H1"]
    assert "With memory" not in sentences[0]  # the primary one, as the study has it
    assert " With memory per-class-task(50)." in sentences[1]
    assert "With memory" not in against([1, 2, 4]).sentence


def test_an_objective_that_is_not_available_still_has_verdicts() -> None:
    runs = [seeded("er", PLAIN), seeded("er+gem", [81, 82, 84])]

    def renamed(run: Run) -> Run:
        config = run.config
        components = [("mine", {"share": 0.5}), *config.components[1:]]
        method = config.method.replace("er", "mine(share=0.5)")
        return replace(run, config=replace(config, method=method, components=components))

    results = verdicts(grouped(*([renamed(run) for run in own] for own in runs)))
    assert [(v.objective, v.routine) for v in results] == [("mine(share=0.5)", "gem")] * 2


def test_exploratory_comparisons_of_a_hypothesis_and_profile_are_one_family() -> None:
    methods = ("er+agem(reference=frozen)", "er+gem(gamma=0.1)", "er+gem(gamma=1)")
    paper = [seeded("er", PLAIN), *(seeded(m, [81, 82, 84]) for m in methods)]
    one = {"benchmark": "domain-cifar100", "profile": "published"}
    published = [seeded("er", PLAIN, **one), seeded("er+clip", [81, 82, 84], **one)]
    results = verdicts(grouped(*paper, *published))
    assert {v.study for v in results} == {""}
    assert {(v.hypothesis, v.profile): v.family for v in results} == {
        ("H1", "paper"): 3,
        ("H1", "published"): 1,
        ("H3", "paper"): 3,
        ("H3", "published"): 1,
    }
    first = next(v for v in results if v.profile == "paper")
    alone = next(v for v in results if v.profile == "published")
    assert first.p == pytest.approx(alone.p)
    assert first.p_corrected == pytest.approx(3 * alone.p)
    assert first.interval[0] < alone.interval[0]
    assert first.uncorrected == pytest.approx(alone.uncorrected)


def test_exploratory_comparisons_with_too_few_seeds_are_none() -> None:
    runs = [seeded("er", PLAIN), seeded("er+clip", [81, 82, 84]), seeded("er+sam", [81, 82])]
    results = [v for v in verdicts(grouped(*runs)) if v.hypothesis == "H1"]
    assert {v.routine: v.family for v in results} == {"clip": 1, "sam": 1}


def test_an_effect_that_shows() -> None:
    # 2.0, 2.1, 2.2, 2.1, 2.1: mean 2.1, deviation sqrt(0.02 / 4) = 0.0707, error 0.0316. With 4
    # degrees of freedom, the quantile of 0.975 is 2.776, and that of 1 - 0.025 / 4 is 4.315.
    verdict = against([2.0, 2.1, 2.2, 2.1, 2.1])
    assert verdict.uncorrected == pytest.approx((2.0122, 2.1878), abs=1e-3)
    assert verdict.interval == pytest.approx((1.9635, 2.2365), abs=1e-3)
    assert (verdict.study, verdict.outcome, verdict.evidence) == ("main", "effect", "for")
    assert verdict.sentence == (
        "gem raises er's MIN: +2.1 points on average over 5 seeds, and +2.0 to +2.2 are compatible "
        "with the data. This is evidence for H1 here."
    )


def test_an_effect_the_other_way() -> None:
    verdict = against([-20, -21, -22, -21, -21])
    assert verdict.sentence.startswith("gem lowers er's MIN: −21.0 points on average over 5 seeds")
    assert verdict.sentence.endswith("This is evidence against H1 here.")
    assert verdict.evidence == "against"


def test_an_exploratory_effect_is_no_evidence() -> None:
    verdict = against([2.0, 2.1, 2.2, 2.1, 2.1], "clip")
    assert (verdict.study, verdict.outcome, verdict.evidence) == ("", "effect", "")
    assert verdict.sentence.endswith("It is exploratory, and no evidence.")


def test_an_effect_below_the_margin_is_reported_as_such() -> None:
    verdict = against([0.2, 0.21, 0.22, 0.21, 0.21])
    assert verdict.outcome == "effect"
    assert "This is less than the margin of 1 point." in verdict.sentence


def test_no_effect_is_claimed_within_a_margin_only() -> None:
    primary, exploratory = (
        against([0.1, -0.1, 0.0, 0.2, -0.1], routine) for routine in ("gem", "clip")
    )
    assert (primary.outcome, primary.margin) == ("equivalent", 1.0)
    assert primary.sentence == (
        "gem leaves er's MIN as it is, within 1 point: 0.0 points on average over 5 seeds, and "
        "−0.2 to +0.3 are compatible with the data."
    )
    assert (exploratory.outcome, exploratory.margin) == ("undecided", None)


def test_an_undecided_verdict_says_what_would_decide() -> None:
    verdict = against([3.6, 1.5, 1.5, 0.4, -2.0])
    assert (verdict.outcome, verdict.evidence) == ("undecided", "")
    assert verdict.sentence == (
        "Undecided: the effect of gem on er's MIN is +1.0 points on average over 5 seeds, and "
        "−2.9 to +4.9 are compatible with the data. These seeds detect 5.0 points with 80% power. "
        "With the same power, 49 new seeds would decide if the effect is as it looks, and "
        "119 new seeds whatever it is."
    )
    without = against([3.6, 1.5, 1.5, 0.4, -2.0], "clip")
    assert without.sentence.endswith("35 new seeds would show an effect as large as it looks.")
    hopeless = against([3.6, -3.5, 1.5, 0.4, -2.0], "clip")
    assert "more than 1,000 new seeds would show" in hopeless.sentence


# H2 and H3 need H1


ON_AVG = {  # a hypothesis on AVG, and where it is looked at
    "H2": {"mode": "online", "lr": 0.01, "batch_size": 10},
    "H3": {"mode": "offline"},
}


def results_of(what: str, lows: list[float], avgs: list[float], **place: Any) -> list[Verdict]:
    """The verdicts on what+gem, whose MIN is 80 and whose AVG is 90 without GEM."""
    method = "gem" if what == "finetune" else f"{what}+gem"
    plain = seeded(what, [80.0] * 5, [90.0] * 5, **place)
    return verdicts(grouped(plain, seeded(method, lows, avgs, **place)))


HIGHER = [82.0, 82.1, 82.2, 82.1, 82.0]


SAME = [80.1, 79.9, 80.0, 80.1, 79.9]


ENDS = [91.0, 91.1, 91.2, 91.1, 91.0]


@pytest.mark.parametrize(
    ("lows", "avgs", "evidence"),
    [
        (HIGHER, ENDS, "for"),
        (HIGHER, [180 - avg for avg in ENDS], "against"),
        (SAME, ENDS, ""),
        ([160 - low for low in HIGHER], ENDS, ""),
    ],
    ids=["for", "against", "the same gap", "a larger gap"],
)
@pytest.mark.parametrize("name", ON_AVG)
def test_h2_and_h3_follow_from_a_smaller_gap_only(
    name: str, lows: list[float], avgs: list[float], evidence: str
) -> None:
    _, verdict = results_of("er", lows, avgs, **ON_AVG[name])
    assert (verdict.hypothesis, verdict.study) == (name, "main")
    assert (verdict.outcome, verdict.evidence) == ("effect", evidence)
    nothing = f"Nothing follows for {name} without evidence for H1 from the same methods."
    assert (nothing in verdict.sentence) == (not evidence)


@pytest.mark.parametrize("name", ON_AVG)
def test_nothing_follows_from_finetune(name: str) -> None:
    for verdict, hypothesis in zip(
        results_of("finetune", HIGHER, ENDS, **ON_AVG[name]), ("H1", name), strict=True
    ):
        assert (verdict.hypothesis, verdict.outcome, verdict.evidence) == (hypothesis, "effect", "")
        assert f"Nothing follows for {hypothesis} from finetune." in verdict.sentence


# Simulation


DRAWN = 120  # families
SPREADS = (1.0, 3.0, 0.1, 2.0)  # of the primary comparisons


def evidence_rate(hypothesis: str, true: dict[str, float], of_avg: float = 0.0) -> dict[str, float]:
    """The share of simulated families with evidence, by method; five seeds, unlike spreads.

    true: the effect on MIN of each primary method of the study `main`
    of_avg: the effect of all of them on AVG
    """
    random = np.random.default_rng(0)
    compared = [seeded(method, [0.0] * 5) for method in ("er", "joint", *true)]
    found = dict.fromkeys([*true, "any"], 0)
    for _ in range(DRAWN):
        for runs, effect, spread in zip(compared[2:], true.values(), SPREADS, strict=True):
            lows, avgs = random.normal(effect, spread, 5), random.normal(of_avg, spread, 5)
            for run, low, avg in zip(runs, lows, avgs, strict=True):
                run.summary.update(min=low, avg=10 + avg)
        found_now = verdicts(grouped(*compared), study="main")
        results = [verdict for verdict in found_now if verdict.hypothesis == hypothesis]
        assert [(v.study, v.family) for v in results] == [("main", 4)] * 4
        shown = {f"{v.objective}+{v.routine}" for v in results if v.evidence}
        for name in [*shown, *(["any"] if shown else [])]:
            found[name] += 1
    return {name: number / DRAWN for name, number in found.items()}


METHODS = ("er+gem", "er+agem", "joint+gem", "joint+agem")


@pytest.mark.parametrize(("hypothesis", "of_min"), [("H1", 0.0), ("H3", 20.0)])
def test_false_evidence_of_simulated_runs_stays_at_5_percent(
    hypothesis: str, of_min: float
) -> None:
    """For H3, all gaps are truly smaller, so that its evidence depends on AVG alone.

    `test_statistics.py` simulates many more families, of numbers alone.
    """
    rate = evidence_rate(hypothesis, dict.fromkeys(METHODS, of_min))
    assert rate["any"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / DRAWN)


def test_evidence_of_simulated_runs_has_the_stated_power() -> None:
    true = dict(zip(METHODS, (4.0, 4.0, 0.25, 8.0), strict=True))
    rate = evidence_rate("H1", true)
    for (method, effect), spread in zip(true.items(), SPREADS, strict=True):
        stated = chance(effect, spread, 5, 4)
        assert rate[method] == pytest.approx(stated, abs=4 * np.sqrt(0.25 / DRAWN)), method


def test_evidence_of_simulated_runs_for_h3_needs_a_smaller_gap() -> None:
    """All methods have an effect on AVG that shows, so evidence for H1 decides about H3."""
    true = dict(zip(METHODS, (4.0, 4.0, 0.25, 8.0), strict=True))
    assert evidence_rate("H3", true, 40.0) == evidence_rate("H1", true, 40.0)


# Which weights


def averaged(run: Run, low: float, avg: float) -> Run:
    """The run with a routine that has different weights evaluated; its trained ones have these."""
    run.summary["raw_accuracy_after_task"] = [[90.0]]
    return_value = {"min": low, "avg": avg}
    object.__setattr__(run, "raw_measures", return_value)
    return run


def test_verdicts_are_about_the_trained_weights() -> None:
    """`joint+ema` trains bitwise like `joint`, and counted as evidence for H1 and H3."""
    ema = [averaged(run, 80.0, 90.0) for run in seeded("er+ema", [85.0, 86.0, 87.0])]
    low, avg = verdicts(grouped(seeded("er", PLAIN), ema))
    assert (low.outcome, low.effect, low.evaluated) == ("equivalent", 0.0, 6.0)
    assert avg.evaluated == 6.0
    assert low.sentence.startswith("ema left er's MIN exactly as it was with each of 3 seeds.")
    assert "for the evaluated ones, which ema puts in their place, the difference is +6.0 " in (
        low.sentence
    )
    assert against([1, 2, 4]).evaluated is None


@pytest.mark.parametrize(
    ("values", "said"),
    [([5.0], "1 seed in common: too few to show"), ([5.0, 5.1], "2 seeds in")],
)
def test_fewer_than_three_pairs_tell_nothing(values: list[float], said: str) -> None:
    verdict = against(values)
    assert verdict.sentence.startswith(said)
    assert (verdict.interval, verdict.p, verdict.p_corrected) == (None, None, None)
    assert verdict.effect == pytest.approx(sum(values) / len(values))


def test_a_routine_that_changes_nothing_is_reported_as_such() -> None:
    verdict = against([0.0, 0.0, 0.0])
    assert verdict.sentence == "gem left er's MIN exactly as it was with each of 3 seeds."
    assert (verdict.effect, verdict.interval, verdict.p) == (0, None, None)


def test_differences_without_a_spread_are_no_certainty() -> None:
    verdict = against([1.0, 1.0 + 1e-13, 1.0])  # but for rounding
    assert (
        "differs by +1.0 points with each of 3 seeds: there is no spread to test it by"
        in verdict.sentence
    )
    assert verdict.p is None


def test_min_of_a_thinned_evaluation_is_reported_as_rough() -> None:
    low, avg = verdicts(
        grouped(
            seeded("er", PLAIN, eval_schedule="every:10"),
            seeded("er+gem", [81, 82, 84], eval_schedule="every:10"),
        )
    )
    assert "Both MINs are upper bounds (evaluated every 10 iterations" in low.sentence
    assert "upper bound" not in avg.sentence


def test_shortened_runs_are_reported() -> None:
    verdict = against([1, 2, 4], iterations=20)
    assert "From smaller runs: at most 20 iterations per task." in verdict.sentence


@pytest.mark.parametrize(("routine", "reported"), [("gem", True), ("clip+gem", False)])
def test_pairs_that_differ_before_the_first_switch_are_counted(
    routine: str, reported: bool
) -> None:
    """24 runs of an Intel processor and 24 of AMD's were taken for pairs: 23 had parted by then."""
    plain, changed = seeded("er", PLAIN), seeded(f"er+{routine}", [81.0, 82.0, 84.0])
    for run in (*plain, *changed):
        run.summary["accuracy_after_task"] = [[97.0]]
    changed[1].summary["accuracy_after_task"] = [[97.01]]
    (verdict, _) = verdicts(grouped(plain, changed))
    assert ("1 of 3 pairs differ before the first switch" in verdict.sentence) == reported
    assert "before the first switch" not in against([1, 2, 4]).sentence


def test_diverged_runs_are_counted() -> None:
    runs = seeded("er", PLAIN) + seeded("er+gem", [81, 82, 9.8], diverged=True)
    assert "3 of the 6 runs diverged." in verdicts(groups(runs))[0].sentence
