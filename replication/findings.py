"""The statements of the paper, what the runs decide about each, and the numbers, as a table.

python replication/findings.py           every statement
python replication/findings.py --short   five of them, for the README
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from cost import measured, paper_ratio

from twofold import Run, Store
from twofold.compare.groups import groups
from twofold.compare.statistics import FEWEST, MOST, Comparison, compare
from twofold.compare.verdicts import Verdict, verdicts
from twofold.statistics import mean_and_error
from twofold.text import counted, interval_text, signed, value_text

MNIST, DOMAIN, SPLIT = "rotated-mnist", "domain-cifar100", "split-cifar100"
GAMMA_0, GAMMA_1 = (f"er+gem(gamma={gamma},when=always)" for gamma in ("0.0", "1.0"))
MARGINS = {"min": 1.0, "avg": 0.5}  # of the studies
CONFIRMED = {(MNIST, "offline", "paper")}  # what the new seeds of confirmation.toml decide

Claim = Literal["raises", "lowers", "nothing"]  # what the paper states of a difference


class Finding(NamedTuple):
    claim: str
    shown: str
    numbers: str
    section: str  # of replication/README.md or the appendix, with its page
    short: bool = False  # whether the README shows it


@cache
def stored(store: str) -> Sequence[Run]:
    return Store(f"replication/runs/{store}").runs()


def deciding(benchmark: str, mode: str, profile: str = "paper") -> str:
    """Return the store whose runs decide: never the seeds that suggested how many are needed."""
    return "confirmation" if (benchmark, mode, profile) in CONFIRMED else "replication"


def runs(
    method: str,
    benchmark: str = MNIST,
    mode: str = "offline",
    profile: str = "paper",
    store: str | None = None,
) -> list[Run]:
    """Return the runs of a method in a store, one per seed; in the one that decides by default."""
    key = (benchmark, mode, method, profile)
    return [
        run
        for run in stored(store or deciding(benchmark, mode, profile))
        if (run.config.benchmark, run.config.mode, run.config.method, run.config.profile) == key
    ]


def value(metric: str, group: list[Run]) -> str:
    """Return a metric's mean ± standard error; the mean alone for one run."""
    return mean([getattr(run, metric) for run in group])


def mean(values: Sequence[float]) -> str:
    if not values:
        raise SystemExit("no runs for a number")
    return value_text(*mean_and_error(values))


def avg(*where: str, store: str | None = None) -> str:
    return value("avg", runs(*where, store=store))


def avgs(what: str, *where: str) -> str:
    """Return the AVG of an objective without and with GEM's routine."""
    return f"{avg(what, *where)} and {avg(f'{what}+gem', *where)}"


def low(*where: str, store: str | None = None) -> str:
    return value("min", runs(*where, store=store))


def projections(method: str, benchmark: str, profile: str) -> str:
    """Return in how many of the runs a gradient was projected."""
    candidates = [
        run
        for store in ("replication", "checks")
        for run in runs(method, benchmark, "online", profile, store)
    ]
    acted = sum(bool(run.columns["projected"].any()) for run in candidates)
    return f"{acted} of {len(candidates)}"


# Decisions


@cache
def reached(store: str) -> list[Verdict]:
    return [verdict for verdict in verdicts(groups(stored(store))) if verdict.study]


def primary(
    claim: Claim,
    metric: str,
    what: str,
    how: str,
    mode: str = "offline",
    benchmark: str = MNIST,
    store: str | None = None,
) -> str:
    """Return what a primary comparison by the text decides."""
    key = (metric, what, how, mode, benchmark, "paper")
    (verdict,) = [
        v
        for v in reached(store or deciding(benchmark, mode))
        if (v.metric, v.objective, v.routine, v.mode, v.benchmark, v.profile) == key
    ]
    result = Comparison(**{name: getattr(verdict, name) for name in Comparison._fields})
    return f"{metric.upper()}, {mode}: {decided(claim, result, len(verdict.seeds), verdict.margin)}"


def differing(
    claim: Claim, metric: str, one: Sequence[Run], other: Sequence[Run], family: int = 1
) -> str:
    """Return what `other` minus `one`, paired by seed, decides."""
    ones, others = ({r.config.seed: getattr(r, metric) for r in group} for group in (one, other))
    differences = [others[seed] - ones[seed] for seed in others if seed in ones]
    (result,) = compare([differences], MARGINS[metric], family)
    return f"{metric.upper()}: {decided(claim, result, len(differences), MARGINS[metric])}"


def gem_by_the_code(claim: Claim, what: str, benchmark: str = MNIST, mode: str = "offline") -> str:
    """Return what GEM's routine does to an objective's AVG in runs of the authors' code."""
    place = (benchmark, mode, "published")
    return differing(claim, "avg", runs(what, *place), runs(f"{what}+gem", *place))


def decided(claim: Claim, result: Comparison, seeds: int, margin: float | None) -> str:
    """Return an effect, an equivalence or the seeds needed, with the difference behind it."""
    count = counted(seeds, "seed")
    effect = f"{signed(result.effect, 2)} ({interval_text(result.interval)}), {count}"
    if seeds < FEWEST:
        return f"**{count}, at least {FEWEST} needed** ({signed(result.effect)})"
    if result.outcome == "equivalent":
        holds = "holds" if claim == "nothing" else "does not hold"
        return f"**{holds}, equivalence** within {margin:g}: {effect}"
    if result.outcome == "effect":
        sign = "raises" if result.effect > 0 else "lowers"
        holds = "holds" if claim == sign else "does not hold"
        if margin and max(map(abs, result.interval or ())) <= margin:
            effect += f", less than {margin:g} points"
        return f"**{holds}, effect** of {effect}"
    needed = result.seeds_needed or MOST + 1
    more = f"more than {MOST:,}" if needed > MOST else f"{needed}"
    return f"**{more} seeds needed**: {effect}"


def depths(group: Sequence[Run]) -> list[float]:
    return [depth for run in group if (depth := run.measures["gap_depth"]) is not None]


def gap_depth(claim: Claim, group: Sequence[Run], mode: str) -> str:
    """Return whether a gap is deeper than nothing."""
    found = depths(group)
    (result,) = compare([found])
    return f"gap depth, {mode}: {decided(claim, result, len(found), None)}"


def joint_gap() -> str:
    complete = [run for run in runs("joint", store="replication") if run.config.schedule.complete]
    return gap_depth("raises", complete, "offline")


def natural(benchmark: str) -> list[Run]:
    """Return the online runs of ER that were evaluated densely after their first switch."""
    return runs("er", benchmark, "online", store="natural")


def _gamma(metric: str) -> str:
    return primary("raises", metric, "er", "gem(gamma=1.0,when=always)", store="gamma")


def _heavier(metric: str) -> str:
    groups = (runs(method, store="gamma") for method in ("heavier-er", GAMMA_1))
    return differing("nothing", metric, *groups, family=2)


ratios = [ratio for _, ratio in measured().values()]
FINDINGS = (
    Finding(
        "The stability gap occurs even with full replay.",
        joint_gap(),
        f"Joint, offline: MIN {low('joint')}, AVG {avg('joint')}",
        "appendix.md#by-the-papers-text",
        short=True,
    ),
    Finding(
        "On Rotated MNIST, GEM's routine improves ER's final accuracy.",
        f"{primary('raises', 'avg', 'er', 'gem')}, with equal memory. The authors' code gives ER "
        "half the memory of ER+GEM by the third task: " + gem_by_the_code("raises", "er"),
        f"AVG of ER and ER+GEM, offline: {avgs('er')} with equal memory, "
        f"{avgs('er', MNIST, 'offline', 'published')} with the code's "
        "(the paper: 91.9 ± 0.1 and 93.7 ± 0.1)",
        "README.md#equal-memory",
        short=True,
    ),
    Finding(
        "GEM's routine also modestly reduces ER's gap there.",
        primary("raises", "min", "er", "gem"),
        f"MIN of ER and ER+GEM: {low('er')} and {low('er+gem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
    ),
    Finding(
        "On full replay, GEM's routine improves the final accuracy.",
        f"{primary('raises', 'avg', 'joint', 'gem')}, with equal memory. With the code's smaller "
        "memory for Joint: " + gem_by_the_code("raises", "joint"),
        f"AVG of Joint and Joint+GEM: {avgs('joint')} by the text, "
        f"{avgs('joint', MNIST, 'offline', 'published')} with the code "
        "(the paper: 97.5 and 97.8)",
        "README.md#equal-memory",
    ),
    Finding(
        "On full replay, GEM's routine leaves the gap alone.",
        primary("nothing", "min", "joint", "gem"),
        f"MIN of Joint and Joint+GEM: {low('joint')} and {low('joint+gem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
    ),
    Finding(
        "A-GEM's routine changes neither ER's gap nor its final accuracy.",
        f"{primary('nothing', 'min', 'er', 'agem')}. {primary('nothing', 'avg', 'er', 'agem')}",
        f"ER and ER+A-GEM, offline: MIN {low('er')} and {low('er+agem')}, "
        f"AVG {avg('er')} and {avg('er+agem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
        short=True,
    ),
    Finding(
        "A-GEM's routine changes neither the gap nor the final accuracy of full replay.",
        f"{primary('nothing', 'min', 'joint', 'agem')}. "
        f"{primary('nothing', 'avg', 'joint', 'agem')}",
        f"Joint and Joint+A-GEM, offline: MIN {low('joint')} and {low('joint+agem')}, "
        f"AVG {avg('joint')} and {avg('joint+agem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
    ),
    Finding(
        "A larger γ reduces the gap and raises the final accuracy.",
        f"γ = 1: {_gamma('min')}. {_gamma('avg')}. "
        'But it is a "what", not a "how": beside plain SGD on a loss with the same weight on old '
        f"tasks, GEM adds nothing. {_heavier('min')}. {_heavier('avg')}",
        f"MIN, offline Rotated MNIST: ER {low('er')}, "
        f"GEM with γ = 1 at every iteration {low(GAMMA_1, store='gamma')}, "
        f"weighted loss {low('heavier-er', store='gamma')}",
        "README.md#the-γ-study",
        short=True,
    ),
    Finding(
        "γ explains part of the difference between ER+GEM and ER+A-GEM.",
        "Not in the main tables, where the difference in AVG comes from the memory. γ = 0.5 where "
        "a constraint is violated, against γ = 0 at every iteration: "
        + differing(
            "raises", "min", runs(GAMMA_0, store="gamma"), runs("er+gem", store="replication")
        ),
        f"ER+GEM, γ = 0 at every iteration: MIN {low(GAMMA_0, store='gamma')}; "
        f"γ = 0.5 only where a constraint is violated: {low('er+gem')}",
        "README.md#the-γ-study",
    ),
    Finding(
        "On online Rotated MNIST, GEM's routine improves ER, as offline.",
        f"{primary('raises', 'min', 'er', 'gem', 'online')} (upper bounds of MIN). "
        f"{primary('raises', 'avg', 'er', 'gem', 'online')}, with equal memory. With the code's: "
        + gem_by_the_code("raises", "er", MNIST, "online"),
        f"AVG of ER and ER+GEM, online: {avgs('er', MNIST, 'online')} with equal memory, "
        f"{avgs('er', MNIST, 'online', 'published')} with the code's",
        "README.md#equal-memory",
    ),
    Finding(
        "On online Rotated MNIST, A-GEM changes nothing, and GEM leaves full replay alone.",
        ". ".join(
            primary("nothing", metric, what, how, "online")
            + f" (A-GEM on {what})" * (how == "agem")
            + " (GEM on joint)" * (how == "gem")
            for what, how in (("er", "agem"), ("joint", "agem"), ("joint", "gem"))
            for metric in ("min", "avg")
        ),
        f"AVG, online: ER {avg('er', MNIST, 'online')}, ER+A-GEM {avg('er+agem', MNIST, 'online')},"
        f" Joint {avg('joint', MNIST, 'online')}, Joint+GEM {avg('joint+gem', MNIST, 'online')}, "
        f"Joint+A-GEM {avg('joint+agem', MNIST, 'online')}",
        "appendix.md#the-hypotheses-with-equal-memory",
    ),
    Finding(
        "On natural images, GEM's routine impairs ER, up to collapse.",
        "A collapse that lasts was seen only where reference gradients add up over tasks, as in "
        "the authors' code: " + gem_by_the_code("lowers", "er", SPLIT, "online"),
        f"AVG of ER+GEM, online Split CIFAR-100, two seeds: "
        f"{avg('er+gem', SPLIT, 'online', 'published')} with the code (the paper: 8.5 ± 0.9), "
        f"{avg('er+gem', SPLIT, 'online')} by the text (ER: {avg('er', SPLIT, 'online')})",
        "README.md#the-collapse-on-natural-images",
        short=True,
    ),
    Finding(
        "The same with independent reference gradients, as in the text.",
        f"Domain CIFAR-100: {primary('lowers', 'avg', 'er', 'gem', 'online', DOMAIN)}. "
        f"Split CIFAR-100: {primary('lowers', 'avg', 'er', 'gem', 'online', SPLIT)}",
        f"AVG of ER and ER+GEM, online Domain CIFAR-100: {avg('er', DOMAIN, 'online')} and "
        f"{avg('er+gem', DOMAIN, 'online')}",
        "README.md#the-collapse-on-natural-images",
    ),
    Finding(
        "On offline Domain CIFAR-100, a lower γ collapses later, and γ ≤ 0.05 does not.",
        "Not run.",
        "–",
        "README.md#what-was-run",
    ),
    Finding(
        "On online Domain CIFAR-100, A-GEM projects no gradient.",
        "**Holds** for the seeds that were run.",
        f"runs with a projection: {projections('er+agem', DOMAIN, 'paper')} by the text, "
        f"{projections('er+agem', DOMAIN, 'published')} with the code",
        "appendix.md#a-gem-on-natural-images",
    ),
    Finding(
        "On online Split CIFAR-100, A-GEM projects a few gradients after the first switch only.",
        "**Holds with the code.** By the text, it projects none.",
        f"runs with a projection: {projections('er+agem', SPLIT, 'paper')} by the text, "
        f"{projections('er+agem', SPLIT, 'published')} with the code",
        "appendix.md#a-gem-on-natural-images",
    ),
    Finding(
        "Online natural images show no clear gap with plain ER.",
        "After the first switch, on 250 images. Domain CIFAR-100: "
        f"{gap_depth('nothing', natural(DOMAIN), 'online')}. Split CIFAR-100: "
        f"{gap_depth('nothing', natural(SPLIT), 'online')}",
        "lower bounds of the depth: "
        f"Domain CIFAR-100 {mean(depths(natural(DOMAIN)))}, "
        f"Split CIFAR-100 {mean(depths(natural(SPLIT)))}",
        "../docs/closing-the-gap.md#natural-images",
    ),
    Finding(
        "A-GEM does not help DER.",
        ". ".join(
            primary("nothing", metric, "der", "agem", store="replication")
            for metric in ("min", "avg")
        ),
        f"AVG of DER and DER+A-GEM: {avg('der', store='replication')} and "
        f"{avg('der+agem', store='replication')}",
        "appendix.md#the-other-methods",
    ),
    Finding("A-GEM does not help BiC.", "Not run.", "–", "README.md#what-was-run"),
    Finding(
        "A-GEM costs 4% more time than ER.",
        "**Does not hold.** The timed ER of the authors' code makes two backward passes, and its "
        "timed A-GEM never projects.",
        f"a training step of ER+A-GEM over one of ER: {paper_ratio():.2f} in the paper, and "
        f"{min(ratios):.2f} to {max(ratios):.2f} here",
        "appendix.md#the-cost-of-a-gem",
        short=True,
    ),
)


def link(section: str, short: bool) -> str:
    page, _, title = section.partition("#")
    target = f"replication/{section}" if short else section.removeprefix("README.md")
    return f"[{'the appendix' if page == 'appendix.md' else title.replace('-', ' ')}]({target})"


short = "--short" in sys.argv
print("| the paper states | the runs show | numbers | more |")
print("| --- | --- | --- | --- |")
for finding in FINDINGS:
    if finding.short or not short:
        cells = (*finding[:3], link(finding.section, short))
        print(f"| {' | '.join(cells)} |")
