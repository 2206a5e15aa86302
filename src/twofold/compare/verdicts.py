"""Verdicts on hypotheses: each routine against plain SGD on the same objective, paired by seed.

Two methods with one seed share their initial weights, their batches and their memory. What is
tested is therefore the difference seed by seed, of the trained weights.

A verdict is an effect, an equivalence within the margin that a study names, or undecided
(`statistics`). Studies declare which comparisons are primary, and all others are exploratory
(`families`). Only a primary effect is evidence for or against a hypothesis. A hypothesis with an
antecedent (`given`) also needs that one to show for the same pair. An undecided verdict states the
effect that its seeds detect, and the number of seeds that would decide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from twofold.compare.families import Family, primary_families
from twofold.compare.groups import Group
from twofold.compare.hypotheses import Hypothesis, hypotheses
from twofold.compare.pairs import Pair, chosen, missing, pairs, with_routines
from twofold.compare.reductions import Reductions, remarks_on
from twofold.compare.shelf import Shelf, essence
from twofold.compare.statistics import NOTHING, Interval, Outcome, compare
from twofold.compare.words import needed_words
from twofold.evaluation.measures import MEASURES
from twofold.experiments.config import Config, varying
from twofold.routines import Routine
from twofold.statistics import FEWEST
from twofold.text import counted, interval_text, signed

LIMITS = (
    "Effects are routine minus plain SGD in points, the mean over the seeds that both have, for "
    "the trained weights. The simultaneous intervals of a family hold together with 95% "
    "(Bonferroni), and p is corrected in the same way. A verdict is an effect if this interval "
    "leaves out 0, an equivalence if it lies within the margin, and undecided otherwise.",
    "Primary comparisons are declared by a study; those of a hypothesis on a benchmark in a mode "
    "are one family, whether they were run or not. All others are exploratory, one family per "
    "hypothesis and profile: they suggest what to test, and are no evidence.",
    "Numbers of seeds are for an 80% chance of a decision by new seeds, with the spread of these. "
    "Fix the number for all comparisons before training: stopping where something shows raises the "
    "rate of false effects. The t interval assumes that the differences are about normal, which "
    "few seeds cannot confirm.",
    "The seeds vary initial weights, order, memory and division into tasks. Nothing follows for "
    "different benchmarks or settings.",
)

Evidence = Literal["for", "against", ""]


@dataclass(frozen=True)
class Verdict:
    """The verdict of the runs on one routine with one objective."""

    hypothesis: str  # its name
    metric: str
    benchmark: str
    mode: str
    profile: str
    objective: str
    routine: str
    lr: float
    batch_size: int
    study: str  # that declares the comparison as primary; none if it is exploratory
    margin: float | None  # points: an equivalence lies within it
    seeds: tuple[int, ...]  # that both methods have
    differences: tuple[float, ...]  # routine minus plain SGD, in points, by seed
    family: int  # the number of comparisons that the correction is for
    effect: float
    outcome: Outcome
    interval: Interval | None  # simultaneous
    uncorrected: Interval | None
    p: float | None
    p_corrected: float | None
    p_equivalent: float | None  # corrected
    detectable: float | None  # the effect that these seeds show with 80% power, if undecided
    seeds_needed: int | None  # to decide, if effect and spread are as they look
    seeds_at_most: int | None  # to decide, whatever the effect is
    evaluated: float | None  # the effect on the evaluated weights, if they are not the trained ones
    evidence: Evidence
    sentence: str
    commands: tuple[str | None, str | None]  # of plain SGD's runs, and of the routine's


@dataclass(frozen=True)
class Findings:
    """Verdicts, and a sentence for each method that has nothing to be compared with."""

    verdicts: Sequence[Verdict]
    unpaired: Sequence[str] = ()

    def on(self, hypothesis: str) -> Findings:
        """Return only the verdicts on one hypothesis."""
        known = hypotheses()
        wanted = known.find(hypothesis)
        found = [each for each in self.verdicts if known.find(each.hypothesis) is wanted]
        return Findings(found, self.unpaired)

    @property
    def limits(self) -> list[str]:
        """What these verdicts can't show, and how to read them."""
        named = dict.fromkeys(verdict.hypothesis for verdict in self.verdicts)
        remarks = dict.fromkeys(hypotheses().find(name).remark for name in named)
        return [*LIMITS, *filter(None, remarks)]


def findings(
    groups: Sequence[Group], all_settings: bool = False, study: str | None = None
) -> Findings:
    """Return the verdicts on these groups, and what is missing for further ones."""
    return Findings(verdicts(groups, all_settings, study), unpaired(groups))


def verdicts(
    groups: Sequence[Group], all_settings: bool = False, study: str | None = None
) -> list[Verdict]:
    """Return verdicts on all hypotheses that the groups have something to say about.

    Of several learning rates and batch sizes, the one at which the plain objective ends highest
    counts; with `all_settings` each is a comparison of its own. Smaller runs count only if there
    are no full ones.

    study: the name or file of the study whose comparisons are primary; by default those of all
        papers' studies are.
    """
    families = _families(pairs(_shelf(groups)), all_settings, study)
    all_verdicts: list[Verdict] = []
    reached: dict[tuple[Hypothesis, str, int], Verdict] = {}  # by study and pair, too
    every = [pair for _, members in families for pair in members]
    for name, hypothesis in hypotheses().items():
        for family, members in families:
            comparable = [
                pair
                for pair in members
                if pair.config.mode in hypothesis.modes and pair.differences(hypothesis.metric)
            ]
            shown = [pair.config for pair in (comparable if family.study else every)]
            for pair, verdict in _compared(name, hypothesis, family, comparable, all_settings):
                place = family.study, id(pair)
                given = reached.get((hypothesis.given, *place)) if hypothesis.given else None
                concluded = _concluded(verdict, hypothesis, given, pair, shown)
                reached[(hypothesis, *place)] = concluded
                all_verdicts.append(concluded)
    return all_verdicts


def unpaired(groups: Sequence[Group]) -> list[str]:
    """Return a sentence on what is missing for each method that has no partner."""
    shelf = _shelf(groups)
    paired = {essence(pair.config) for pair in pairs(shelf) if pair.differences("avg")}
    without_partner = {
        essence(g.config): g for g in with_routines(shelf) if essence(g.config) not in paired
    }
    return [missing(group) for group in without_partner.values()]


def _shelf(groups: Sequence[Group]) -> Shelf:
    metrics = [MEASURES[hypothesis.metric] for hypothesis in hypotheses().values()]
    curves = any(each.needs_curve and each.thinned != "unaffected" for each in metrics)
    return Shelf(groups, curves)


def _families(
    found: Sequence[Pair], all_settings: bool, study: str | None
) -> list[tuple[Family, list[Pair]]]:
    """Return the families that have runs, with their pairs; primary ones come first."""
    primary, exploratory = [], []
    for profile in dict.fromkeys(pair.config.profile for pair in found):
        rest = [pair for pair in found if pair.config.profile == profile]
        for family in primary_families(study, profile):
            members = [pair for pair in found if family.holds(pair.config)]
            primary.append((family, chosen(members, all_settings)))
            # Further settings of a primary comparison are none of their own unless asked for.
            methods = {essence(pair.config) for pair in members if not all_settings}
            rest = [
                pair
                for pair in rest
                if not family.holds(pair.config) and essence(pair.config) not in methods
            ]
        exploratory.append((Family(profile), chosen(rest, all_settings)))
    return [(family, members) for family, members in (*primary, *exploratory) if members]


def _compared(
    name: str, hypothesis: Hypothesis, family: Family, there: Sequence[Pair], all_settings: bool
) -> Iterator[tuple[Pair, Verdict]]:
    """Yield the verdicts of a family, without their conclusions."""
    metric = hypothesis.metric
    differences = [pair.differences(metric) for pair in there]
    testable = sum(len(each) >= FEWEST for each in differences)
    size = (family.settings if all_settings else family.methods) or testable
    margin = family.margins.get(metric)
    results = compare([list(each.values()) for each in differences], margin, size)
    for pair, values, result in zip(there, differences, results, strict=True):
        config = pair.config
        yield (
            pair,
            Verdict(
                name,
                metric,
                config.benchmark,
                config.mode,
                config.profile,
                pair.routine.objective,
                pair.routine.routines,
                config.lr,
                config.batch_size,
                family.study,
                margin,
                tuple(values),
                tuple(values.values()),
                size,
                **result._asdict(),
                evaluated=pair.evaluated_effect(metric),
                evidence="",
                sentence="",
                commands=(pair.plain.command(), pair.routine.command()),
            ),
        )


def _concluded(
    verdict: Verdict,
    hypothesis: Hypothesis,
    given: Verdict | None,
    pair: Pair,
    shown: Sequence[Config],
) -> Verdict:
    """Return the verdict with what follows for the hypothesis, and its sentence."""
    objection = _objection(verdict, hypothesis, given, pair.config.components[0][0])
    side: Evidence = "for" if verdict.effect > 0 else "against"
    evidence: Evidence = side if verdict.outcome == "effect" and not objection else ""
    parts = [_finding(verdict, side, objection), *_settings(pair.config, shown)]
    return dataclasses.replace(
        verdict, evidence=evidence, sentence=" ".join([*parts, *_reservations(verdict, pair)])
    )


def _objection(
    verdict: Verdict, hypothesis: Hypothesis, given: Verdict | None, objective: str
) -> str:
    """Return why nothing follows from an effect for the hypothesis, or nothing."""
    if objective in hypothesis.without:
        return f"Nothing follows for {verdict.hypothesis} from {objective}."
    shows = given is not None and given.outcome == "effect" and given.effect > 0
    if hypothesis.given and not shows:
        return (
            f"Nothing follows for {verdict.hypothesis} without evidence for "
            f"{hypothesis.given.name} from the same methods."
        )
    return "" if verdict.study else "It is exploratory, and no evidence."


def _finding(verdict: Verdict, side: str, objection: str) -> str:
    """Return what the data allow to say, in plain words."""
    metric, seeds = verdict.metric.upper(), counted(len(verdict.seeds), "seed")
    subject = f"{verdict.objective}'s {metric}"
    effect = f"{signed(verdict.effect)} points"
    if len(verdict.seeds) < FEWEST:
        return (
            f"{seeds} in common: too few to show an effect of {verdict.routine} on {subject} "
            f"(so far {effect})."
        )
    if verdict.interval is None:
        if abs(verdict.effect) < NOTHING:
            return f"{verdict.routine} left {subject} exactly as it was with each of {seeds}."
        return (
            f"{subject} differs by {effect} with each of {seeds}: there is no spread to test it by."
        )
    allowed = interval_text(verdict.interval)
    margin = counted(verdict.margin or 0, "point")
    if verdict.outcome == "equivalent":
        return (
            f"{verdict.routine} leaves {subject} as it is, within {margin}: "
            f"{effect} on average over {seeds}, and {allowed} are compatible with the data."
        )
    if verdict.outcome == "undecided":
        return (
            f"Undecided: the effect of {verdict.routine} on {subject} is {effect} on average over "
            f"{seeds}, and {allowed} are compatible with the data. {needed_words(verdict)}"
        )
    verb = "raises" if verdict.effect > 0 else "lowers"
    text = (
        f"{verdict.routine} {verb} {subject}: {effect} on average over {seeds}, and {allowed} are "
        "compatible with the data."
    )
    if verdict.margin and max(map(abs, verdict.interval)) <= verdict.margin:
        text += f" This is less than the margin of {margin}."
    return f"{text} {objection or f'This is evidence {side} {verdict.hypothesis} here.'}"


def _settings(config: Config, shown: Sequence[Config]) -> Iterator[str]:
    """Yield the settings that tell apart comparisons that look alike."""
    rivals = [each for each in shown if each.profile == config.profile]
    differing = [
        each
        for each in varying(rivals)
        if not each.axis and each.role == "result" and not each.reduces
    ]
    if differing:
        settings = [f"{each.words} {config.value(each.name)}" for each in differing]
        yield f"With {', '.join(settings)}."


def _reservations(verdict: Verdict, pair: Pair) -> Iterator[str]:
    """Yield the reasons not to rely on it."""
    if verdict.evaluated is not None:
        yield (
            f"This is about the trained weights; for the evaluated ones, which {verdict.routine} "
            f"puts in their place, the difference is {signed(verdict.evaluated)} points."
        )
    reductions = Reductions.of(pair.routine)
    remarks = remarks_on(pair, verdict.metric)
    if remarks:
        yield f"From smaller runs: {', '.join(remarks)}."
    if bound := reductions.bound(verdict.metric):
        yield f"Both MINs are upper bounds ({bound} only), so their difference is rough."
    unlike = _unlike(verdict, pair)
    if unlike:
        yield (
            f"{unlike} of {len(verdict.seeds)} pairs differ before the first switch, as on "
            "different processors, so their differences vary more."
        )
    diverged = sum(
        bool(run.summary["diverged"])
        for group in pair
        for run in group.runs
        if run.config.seed in verdict.seeds
    )
    if diverged:
        yield f"{diverged} of the {2 * len(verdict.seeds)} runs diverged."


def _unlike(verdict: Verdict, pair: Pair) -> int:
    """Return the number of pairs that differ in the first task, which the routine leaves alone.

    Processors round differently. Runs of two of them share batches and memory, but not the weights
    at the first switch.
    """
    if not all(_leaves_first_task(name) for name, _ in pair.config.how):
        return 0
    plain, routine = (group.accuracy_after_first_task() for group in pair)
    known = [seed for seed in verdict.seeds if seed in plain and seed in routine]
    return sum(plain[seed] != routine[seed] for seed in known)


def _leaves_first_task(routine: str) -> bool:
    return Routine.knows(routine) and not Routine.find(routine).first_task
