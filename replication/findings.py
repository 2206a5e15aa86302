"""The statements of the paper, what the runs decide about each, and the numbers, as a table.

python replication/findings.py           every statement
python replication/findings.py --short   those that the README shows
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cost import measured, paper_ratio
from decisions import (
    DOMAIN,
    MARGINS,
    SPLIT,
    Claim,
    Difference,
    Place,
    explored,
    means,
    primary,
    projections,
)

from twofold.compare.groups import Group

ALWAYS = {  # GEM at every iteration by its γ, which is 0.5 by default
    gamma: "er+gem(when=always)" if gamma == 0.5 else f"er+gem(gamma={gamma},when=always)"
    for gamma in (0.0, 0.05, 0.1, 0.5, 0.8, 1.0)
}
DEPTH = "measures.gap_depth"

# The store that decides each question. New seeds decide where there are any: the seeds that
# suggested how many are needed must not count again.
OFFLINE = Place("confirmation")
ER_MIN = Place("confirmation_er")  # a second round for what the first left undecided
ONLINE = Place("confirmation", mode="online")
ON_DOMAIN = Place("replication", DOMAIN, "online")
ON_SPLIT = Place("replication", SPLIT, "online")
DER = Place("confirmation")
GAMMA = Place("confirmation_gamma")
GAMMA_ON_DOMAIN = Place("gamma", DOMAIN)
GAMMA_SMALL = Place("confirmation_gamma_small")  # a second round for the MIN of γ = 0 and 0.05
COMPLETE = Place("replication")  # evaluated after every iteration, so that gap depths are exact
CODE = Place("replication", profile="published")
CODE_ONLINE = CODE._replace(mode="online")
CODE_ON_DOMAIN = CODE_ONLINE._replace(benchmark=DOMAIN)
CODE_ON_SPLIT = CODE_ONLINE._replace(benchmark=SPLIT)
NATURAL = Place("natural", mode="online")  # evaluated densely after the first switch


class Finding(NamedTuple):
    claim: str
    shown: str
    numbers: str
    section: str  # of replication/README.md or the appendix, with its page
    short: bool = False  # whether the README shows it


def exploratory() -> dict[str, Difference]:
    """Return all exploratory comparisons of the table, by name."""

    def by_the_code(claim: Claim, place: Place, method: str, where: str) -> Difference:
        one, other = place.group(method), place.group(f"{method}+gem")
        return Difference(claim, "avg", f"AVG {where}", one, other)

    larger, heavier = "with γ = 1 instead of 0", "with GEM instead of that loss"
    zero, full, weighted = gammas()
    return {
        "er": by_the_code("raises", CODE, "er", "with the memories of the code"),
        "joint": by_the_code("raises", CODE, "joint", "with the memories of the code"),
        "er online": by_the_code("raises", CODE_ONLINE, "er", "with the memories of the code"),
        "er split": by_the_code("lowers", CODE_ON_SPLIT, "er", "with the code"),
        "er domain": by_the_code("lowers", CODE_ON_DOMAIN, "er", "with the code"),
        "γ min": Difference("raises", "min", f"MIN {larger}", zero, full),
        "γ avg": Difference("raises", "avg", f"AVG {larger}", zero, full),
        "heavier min": Difference("nothing", "min", f"MIN {heavier}", weighted, full),
        "heavier avg": Difference("nothing", "avg", f"AVG {heavier}", weighted, full),
        "violated": Difference(
            "raises",
            "min",
            "MIN with γ = 0.5 where a constraint is violated, instead of γ = 0 at every iteration,",
            GAMMA_SMALL.group(ALWAYS[0.0]),
            ER_MIN.group("er+gem"),
        ),
    }


def gammas() -> Sequence[Group]:
    """Return GEM at every iteration with γ = 0 and with γ = 1, and the weighted loss."""
    return GAMMA.group(ALWAYS[0.0]), GAMMA.group(ALWAYS[1.0]), GAMMA.group("heavier-er")


def findings() -> list[Finding]:
    suggested = explored(exploratory())
    return [
        *_of_gem(suggested),
        *_of_agem(),
        *_of_gamma(suggested),
        *_online(suggested),
        *_on_natural_images(suggested),
        *_of_other_methods(),
    ]


def _of_gem(suggested: Mapping[str, str]) -> Iterable[Finding]:
    yield Finding(
        "The stability gap occurs even with full replay.",
        "**Holds**: old tasks fall far after a switch, and recover",
        f"Gap depth of Joint, in points: {COMPLETE.means(DEPTH, 'joint')}. "
        f"MIN: {COMPLETE.means('min', 'joint')}. AVG: {COMPLETE.means('avg', 'joint')}",
        "appendix.md#by-the-papers-text",
        short=True,
    )
    yield Finding(
        "On Rotated MNIST, GEM's routine clearly improves ER's final accuracy.",
        f"{primary('raises', 'avg', 'er+gem', OFFLINE, ' with equal memory')}. "
        "The authors' code gives ER half the memory of ER+GEM by the third task. "
        f"{suggested['er']}",
        f"AVG of ER and ER+GEM: {OFFLINE.means('avg', 'er', 'er+gem')} with equal memory, "
        f"{CODE.means('avg', 'er', 'er+gem')} with the code. "
        f"{CODE.paper('avg', 'er', 'er+gem')}",
        "README.md#equal-memory",
        short=True,
    )
    yield Finding(
        "On Rotated MNIST, GEM's routine modestly reduces ER's gap.",
        primary("raises", "min", "er+gem", ER_MIN),
        f"MIN of ER and ER+GEM: {ER_MIN.means('min', 'er', 'er+gem')}",
        ER_MIN.table,
        short=True,
    )
    yield Finding(
        "On full replay, GEM's routine improves the final accuracy.",
        f"{primary('raises', 'avg', 'joint+gem', OFFLINE, ' with equal memory')}. "
        "The authors' code gives Joint a third of the examples of Joint+GEM. "
        f"{suggested['joint']}",
        f"AVG of Joint and Joint+GEM: {OFFLINE.means('avg', 'joint', 'joint+gem')} with equal "
        f"memory, {CODE.means('avg', 'joint', 'joint+gem')} with the code. "
        f"{CODE.paper('avg', 'joint', 'joint+gem')}",
        "README.md#equal-memory",
    )
    yield Finding(
        "On full replay, GEM's routine leaves the gap alone.",
        primary("nothing", "min", "joint+gem", OFFLINE),
        f"MIN of Joint and Joint+GEM: {OFFLINE.means('min', 'joint', 'joint+gem')}",
        OFFLINE.table,
    )


def _min_and_avg(
    claim: str,
    what: str,
    routine: str,
    low: Place,
    final: Place,
    short: bool = False,
) -> Finding:
    """Return what a routine that should change nothing does to MIN and AVG, each in its place."""
    method = f"{what}+{routine}"
    names = {"er": "ER", "joint": "Joint", "agem": "A-GEM", "gem": "GEM"}
    return Finding(
        claim,
        f"{primary('nothing', 'min', method, low)}. {primary('nothing', 'avg', method, final)}",
        f"MIN of {names[what]} and {names[what]}+{names[routine]}: "
        f"{low.means('min', what, method)}. AVG: {final.means('avg', what, method)}",
        low.table,
        short,
    )


def _of_agem() -> Iterable[Finding]:
    claim = "A-GEM's routine changes neither ER's gap nor its final accuracy."
    yield _min_and_avg(claim, "er", "agem", ER_MIN, OFFLINE, short=True)
    claim = "A-GEM's routine changes neither the gap nor the final accuracy of full replay."
    yield _min_and_avg(claim, "joint", "agem", OFFLINE, OFFLINE)


def _of_gamma(suggested: Mapping[str, str]) -> Iterable[Finding]:
    places = {gamma: GAMMA_SMALL if gamma < 0.1 else GAMMA for gamma in ALWAYS}
    yield Finding(
        "At every iteration, GEM reduces ER's gap with each γ of the study.",
        ". ".join(
            primary("raises", "min", ALWAYS[gamma], place, f" with γ = {gamma:g}")
            for gamma, place in places.items()
        ),
        "MIN: "
        + ". ".join(
            f"{place.means('min', ALWAYS[gamma])} with γ = {gamma:g}"
            for gamma, place in places.items()
        ),
        GAMMA.table,
    )
    yield Finding(
        "A larger γ reduces the gap and raises the final accuracy.",
        f"{suggested['γ min']}. {suggested['γ avg']}. Plain SGD on a loss with the same weight on "
        "old tasks may do the same. "
        f"{suggested['heavier avg']}. {suggested['heavier min']}",
        "MIN with γ = 0, with γ = 1 and with the weighted loss: "
        f"{means('min', *gammas())}. AVG: {means('avg', *gammas())}",
        "README.md#the-γ-study",
        short=True,
    )
    yield Finding(
        "γ explains part of the difference between ER+GEM and ER+A-GEM.",
        "With equal memory, most of the difference in AVG disappears. " + suggested["violated"],
        "MIN with γ = 0 at every iteration, and with γ = 0.5 where a constraint is violated: "
        + means("min", GAMMA_SMALL.group(ALWAYS[0.0]), ER_MIN.group("er+gem")),
        "README.md#the-γ-study",
    )


def _online(suggested: Mapping[str, str]) -> Iterable[Finding]:
    on = "On online Rotated MNIST,"
    yield Finding(
        f"{on} GEM's routine improves ER, as offline.",
        f"{primary('raises', 'min', 'er+gem', ONLINE)}. "
        f"{primary('raises', 'avg', 'er+gem', ONLINE, ' with equal memory')}. "
        f"{suggested['er online']}",
        f"MIN of ER and ER+GEM: {ONLINE.means('min', 'er', 'er+gem')}. "
        f"AVG: {ONLINE.means('avg', 'er', 'er+gem')} with equal memory, "
        f"{CODE_ONLINE.means('avg', 'er', 'er+gem')} with the code. "
        f"{CODE_ONLINE.paper('avg', 'er', 'er+gem')}",
        "README.md#equal-memory",
    )
    claim = f"{on} A-GEM's routine changes neither ER's gap nor its final accuracy."
    yield _min_and_avg(claim, "er", "agem", ONLINE, ONLINE)
    claim = f"{on} A-GEM's routine changes neither the gap nor the final accuracy of full replay."
    yield _min_and_avg(claim, "joint", "agem", ONLINE, ONLINE)
    claim = f"{on} the table shows no effect of GEM's routine on full replay."
    yield _min_and_avg(claim, "joint", "gem", ONLINE, ONLINE)


def _on_natural_images(suggested: Mapping[str, str]) -> Iterable[Finding]:
    def collapse(title: str, text: Place, code: Place, name: str, remark: str = "") -> Finding:
        by_the_text = primary("lowers", "avg", "er+gem", text, " by the text")
        return Finding(
            f"On online {title}, GEM's routine impairs ER, up to collapse.",
            f"{remark}{suggested[name]}. {by_the_text}",
            f"AVG of ER and ER+GEM: {code.means('avg', 'er', 'er+gem')} with the code, "
            f"{text.means('avg', 'er', 'er+gem')} by the text. "
            f"{text.paper('avg', 'er', 'er+gem')}",
            "README.md#the-collapse-on-natural-images",
            short=bool(remark),
        )

    remark = (
        "Online, a collapse that lasts was seen only where reference gradients add up over tasks, "
        "as in the authors' code. "
    )
    yield collapse("Split CIFAR-100", ON_SPLIT, CODE_ON_SPLIT, "er split", remark)
    yield collapse("Domain CIFAR-100", ON_DOMAIN, CODE_ON_DOMAIN, "er domain")
    yield Finding(
        "On offline Domain CIFAR-100, a lower γ collapses later, and γ ≤ 0.05 does not.",
        "**Seen in part**, with one seed and three tasks: with γ = 0.5, the third task begins "
        "with a collapse, and with γ = 0.05 there is none.",
        "AVG after three tasks: "
        f"{GAMMA_ON_DOMAIN.means('avg', ALWAYS[0.05])} with γ = 0.05, "
        f"{GAMMA_ON_DOMAIN.means('avg', ALWAYS[0.5])} with γ = 0.5",
        "appendix.md#steps-by-task",
    )
    yield Finding(
        "On online Domain CIFAR-100, A-GEM projects no gradient.",
        "**Holds** for the seeds that were run.",
        f"Runs with a projection: {projections('er+agem', ON_DOMAIN)} by the text, "
        f"{projections('er+agem', CODE_ON_DOMAIN)} with the code",
        "appendix.md#a-gem-on-natural-images",
    )
    yield Finding(
        "On online Split CIFAR-100, A-GEM projects a few gradients after the first switch only.",
        "**Seen in part with the code**: three runs of two tasks project once each, after the "
        "switch, and two full runs project none. By the text, none projects.",
        f"Runs with a projection: {projections('er+agem', ON_SPLIT)} by the text, "
        f"{projections('er+agem', CODE_ON_SPLIT)} with the code",
        "appendix.md#a-gem-on-natural-images",
    )
    on_domain, on_split = (NATURAL._replace(benchmark=name) for name in (DOMAIN, SPLIT))
    yield Finding(
        "Online natural images show no clear gap with plain ER (Split CIFAR-100: a small one).",
        "On Split CIFAR-100, a gap is seen. On Domain CIFAR-100, three seeds do not tell the fall "
        "of the first task from noise.",
        "Gap depth of ER after the first switch, in points on 250 images: "
        f"{on_split.means(DEPTH, 'er')} on Split CIFAR-100, "
        f"{on_domain.means(DEPTH, 'er')} on Domain CIFAR-100",
        "../docs/closing-the-gap.md#natural-images",
    )


def _of_other_methods() -> Iterable[Finding]:
    yield Finding(
        "A-GEM does not help DER.",
        ". ".join(primary("not raises", metric, "der+agem", DER) for metric in MARGINS),
        f"MIN of DER and DER+A-GEM: {DER.means('min', 'der', 'der+agem')}. "
        f"AVG: {DER.means('avg', 'der', 'der+agem')}",
        DER.table,
    )
    yield Finding("A-GEM does not help BiC.", "Not run.", "–", "README.md#what-was-run")
    ratios = [ratio for _, ratio in measured().values()]
    yield Finding(
        "A-GEM costs 4% more time than ER.",
        "**Does not hold on CPU.** The timed ER of the authors' code makes two backward passes "
        "already.",
        f"Training time of ER+A-GEM over that of ER: {paper_ratio():.2f} in the paper, for whole "
        f"runs. A training step in the last task: {min(ratios):.2f} to {max(ratios):.2f} here, "
        "on CPU",
        "appendix.md#the-cost-of-a-gem",
        short=True,
    )


def link(section: str, short: bool) -> str:
    page, _, title = section.partition("#")
    target = f"replication/{section}" if short else section.removeprefix("README.md")
    return f"[{'the appendix' if page == 'appendix.md' else title.replace('-', ' ')}]({target})"


def main(arguments: Sequence[str]) -> None:
    """Print the table; the short one leaves out the numbers behind the decisions."""
    short = "--short" in arguments
    rows = [["the paper states", "the runs show", *["numbers"] * (not short), "more"]]
    rows.append(["---"] * len(rows[0]))
    for each in findings():
        if each.short or not short:
            numbers = [] if short else [each.numbers]
            rows.append([each.claim, each.shown, *numbers, link(each.section, short)])
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
