"""Verdicts on hypotheses: each routine against plain SGD on the same objective, paired by seed.

Two methods with one seed share their initial weights, their batches and their memory. What is
tested is therefore the difference seed by seed: its mean, with Student's t interval. All
comparisons of a hypothesis and profile are one family, corrected together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from twofold.compare.groups import Group, paired_differences, what_and_how
from twofold.compare.hypotheses import Hypothesis, hypotheses
from twofold.compare.reductions import Reductions, remarks_on
from twofold.compare.selection import Setting, Shelf, essence, preference
from twofold.compare.statistics import FEWEST, LEVEL, NOTHING, compare
from twofold.errors import UserError
from twofold.experiments.config import Config, varying
from twofold.experiments.naming import name_of
from twofold.method import Method
from twofold.objectives import Objective
from twofold.text import counted, signed

LIMITS = (
    "Effects are routine minus plain SGD in points, the mean over the seeds that both have. All "
    "comparisons of a hypothesis and profile are one family. p is corrected by Holm's method; the "
    "intervals, corrected by Bonferroni's, hold all together with 95%.",
    "Five seeds are few: only effects that are large compared with their spread can show. The "
    "t interval assumes that the differences are about normal, which so few cannot confirm.",
    "The seeds vary initial weights, order, memory and division into tasks. Nothing follows for "
    "different benchmarks or settings.",
)


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
    seeds: tuple[int, ...]  # that both methods have
    differences: tuple[float, ...]  # routine minus plain SGD, in points, by seed
    family: int  # the number of comparisons that the correction is for
    effect: float
    interval: tuple[float, float] | None
    p: float | None
    p_corrected: float | None
    sentence: str
    commands: tuple[str | None, str | None]  # of plain SGD's runs, and of the routine's


@dataclass(frozen=True)
class Findings:
    """Verdicts, and a sentence for each method that has nothing to be compared with."""

    verdicts: Sequence[Verdict]
    unpaired: Sequence[str] = ()

    @property
    def limits(self) -> list[str]:
        """What these verdicts can't show, and how to read them."""
        named = dict.fromkeys(verdict.hypothesis for verdict in self.verdicts)
        remarks = dict.fromkeys(hypotheses().find(name).remark for name in named)
        return [*LIMITS, *filter(None, remarks)]


class Pair(NamedTuple):
    """Two groups that differ only in the routine."""

    plain: Group
    routine: Group

    def differences(self, metric: str) -> dict[int, float]:
        return paired_differences(self.plain, self.routine, metric)


def findings(groups: Sequence[Group], all_settings: bool = False) -> Findings:
    """Return the verdicts on these groups, and what is missing for further ones."""
    return Findings(verdicts(groups, all_settings), unpaired(groups))


def verdicts(groups: Sequence[Group], all_settings: bool = False) -> list[Verdict]:
    """Return verdicts on all hypotheses that the groups have something to say about.

    Of several learning rates and batch sizes, the one at which the plain objective ends highest
    counts; with `all_settings` each is a comparison of its own. Smaller runs count only if there
    are no full ones.
    """
    chosen = _chosen(_pairs(Shelf(groups)), all_settings)
    families: dict[tuple[str, str], list[Pair]] = {}
    for name, hypothesis in hypotheses().items():
        for pair in chosen:
            config = pair.routine.config
            if config.mode in hypothesis.modes and pair.differences(hypothesis.metric):
                families.setdefault((name, config.profile), []).append(pair)
    return [
        verdict
        for (name, _), pairs in families.items()
        for verdict in _family(name, hypotheses().find(name), pairs)
    ]


def unpaired(groups: Sequence[Group]) -> list[str]:
    """Return a sentence on what is missing for each method that has no partner."""
    shelf = Shelf(groups)
    pairs = [pair for pair in _pairs(shelf) if pair.differences("avg")]
    paired = {essence(pair.routine.config) for pair in pairs}
    alone = {essence(g.config): g for g in _routines(shelf) if essence(g.config) not in paired}
    return [_missing(group) for group in alone.values()]


def _routines(shelf: Shelf) -> list[Group]:
    return [group for group in shelf.groups() if len(group.config.components) > 1]


def _pairs(shelf: Shelf) -> list[Pair]:
    """Return all groups with a routine that have a partner that is the same otherwise."""
    # A file that defines the routine does nothing to plain SGD; bf16 is audited against fp32.
    own = ("plugins", "eval_precision")
    by_seeds = sorted(shelf.groups(), key=lambda group: len(group.runs))
    there = {essence(group.config, apart=own): group for group in by_seeds}
    partners = [(there.get(essence(_plain(g.config), apart=own)), g) for g in _routines(shelf)]
    return [Pair(plain, routine) for plain, routine in partners if plain is not None]


def _plain(config: Config) -> Config:
    """Return the same without routines, with all options: the profile's defaults may differ."""
    (name, options), text = config.components[0], what_and_how(config)[0]
    if Objective.knows(name):
        method = Method((Objective.find(name), options), ())
        text = name_of(method, config.benchmark, config.profile)
    return dataclasses.replace(config, method=text, components=config.components[:1])


def _chosen(pairs: Sequence[Pair], all_settings: bool) -> list[Pair]:
    """Return a pair per method, or per method and setting."""
    rivals: dict[tuple[str, Setting | None], list[Pair]] = {}
    for pair in pairs:
        setting = Setting.of(pair.routine.config) if all_settings else None
        rivals.setdefault((essence(pair.routine.config), setting), []).append(pair)
    return [_best(own) for own in rivals.values()]


def _best(pairs: Sequence[Pair]) -> Pair:
    full = [p for p in pairs if not Reductions.of(p.routine).training] or list(pairs)
    finals = {Setting.of(p.plain.config): p.plain.mean("avg") or 0.0 for p in full}
    setting = max(finals, key=lambda s: (finals[s], s))
    rivals = [pair for pair in full if Setting.of(pair.plain.config) == setting]
    return min(rivals, key=lambda pair: preference(pair.routine))


def _family(name: str, hypothesis: Hypothesis, pairs: Sequence[Pair]) -> Iterator[Verdict]:
    metric = hypothesis.metric
    family = [pair.differences(metric) for pair in pairs]
    testable = sum(len(differences) >= FEWEST for differences in family)
    results = compare([list(differences.values()) for differences in family])
    differing = [
        each
        for each in varying([pair.routine.config for pair in pairs])
        if not each.axis and each.role == "result" and not each.reduces
    ]
    for pair, differences, result in zip(pairs, family, results, strict=True):
        config = pair.routine.config
        verdict = Verdict(
            name,
            metric,
            config.benchmark,
            config.mode,
            config.profile,
            pair.routine.objective,
            pair.routine.routines,
            config.lr,
            config.batch_size,
            tuple(differences),
            tuple(differences.values()),
            testable,
            **result._asdict(),
            sentence="",
            commands=(pair.plain.command(), pair.routine.command()),
        )
        settings = [f"{each.words} {config.value(each.name)}" for each in differing]
        apart = [f"With {', '.join(settings)}."] if settings else []
        sentence = " ".join([_finding(verdict), *apart, *_reservations(verdict, pair)])
        yield dataclasses.replace(verdict, sentence=sentence)


def _finding(verdict: Verdict) -> str:
    """Return what the data allow to say, in plain words."""
    metric, seeds = verdict.metric.upper(), counted(len(verdict.seeds), "seed")
    what = f"{verdict.objective}'s {metric}"
    effect = f"{signed(verdict.effect)} points"
    if len(verdict.seeds) < FEWEST:
        return (
            f"{seeds} in common: too few to show an effect of {verdict.routine} on {what} "
            f"(so far {effect})."
        )
    if verdict.interval is None or verdict.p_corrected is None:
        if abs(verdict.effect) < NOTHING:
            return f"{verdict.routine} left {what} exactly as it was with each of {seeds}."
        return f"{what} differs by {effect} with each of {seeds}: there is no spread to test it by."
    low, high = verdict.interval
    allowed = f"{signed(low)} to {signed(high)} points"
    if verdict.p_corrected >= 1 - LEVEL:
        return (
            f"{seeds} show no effect of {verdict.routine} on {what}: {effect} on average, and "
            f"anything from {allowed} is compatible with the data. This does not prove that there "
            f"is none: with this spread, an average below {(high - low) / 2:.1f} points does not "
            "show."
        )
    verb, side = ("raises", "for") if verdict.effect > 0 else ("lowers", "against")
    text = (
        f"{verdict.routine} {verb} {what}: {effect} on average over {seeds}, which is "
        f"evidence {side} {verdict.hypothesis} here; {allowed} are compatible with the data."
    )
    if low <= 0 <= high:
        text += " (Holm's test shows the effect; the interval, which is stricter, includes 0.)"
    return text


def _reservations(verdict: Verdict, pair: Pair) -> Iterator[str]:
    """Yield the reasons not to rely on it."""
    less = Reductions.of(pair.routine)
    remarks = remarks_on(pair, verdict.metric)
    if remarks:
        yield f"From smaller runs: {', '.join(remarks)}."
    if bound := less.bound(verdict.metric):
        yield f"Both MINs are upper bounds ({bound} only), so their difference is rough."
    diverged = sum(
        bool(run.summary["diverged"])
        for group in pair
        for run in group.runs
        if run.config.seed in verdict.seeds
    )
    if diverged:
        yield f"{diverged} of the {2 * len(verdict.seeds)} runs diverged."


def _missing(group: Group) -> str:
    config = group.config
    text = (
        f"{config.method} on {config.benchmark} {config.mode} ({Setting.of(config)}, profile "
        f"{config.profile}) has no plain {group.objective} that is the same in everything else"
    )
    try:
        command = _plain(config).command(group.seeds)
    except UserError:  # a component that is not available here
        command = None
    return f"{text}: `{command}` trains it." if command else f"{text}."
