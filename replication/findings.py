"""Print the statements of the paper, what the runs show of each, and the numbers, as a table.

python replication/findings.py           every statement
python replication/findings.py --short   five of them, for the README
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from twofold import Run, Store

MNIST, DOMAIN, SPLIT = "rotated-mnist", "domain-cifar100", "split-cifar100"
GAMMA_1 = "er+gem(gamma=1.0,when=always)"


class Finding(NamedTuple):
    claim: str
    verdict: str
    numbers: str
    section: str  # of replication/README.md or the appendix, with its page
    short: bool = False  # whether the README shows it


def runs(
    method: str,
    benchmark: str = MNIST,
    mode: str = "offline",
    profile: str = "paper",
    store: str = "replication",
) -> list[Run]:
    """Return the runs of a method in a store, one per seed."""
    wanted = (benchmark, mode, method, profile)
    found = Store(f"replication/runs/{store}").runs()
    return [
        run
        for run in found
        if (run.config.benchmark, run.config.mode, run.config.method, run.config.profile) == wanted
    ]


def value(metric: str, found: list[Run]) -> str:
    """Return a metric's mean ± standard error; the mean alone for one run."""
    values = np.array([getattr(run, metric) for run in found])
    if not len(values):
        raise SystemExit(f"no runs for {metric}")
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def avg(*where: str, store: str = "replication") -> str:
    return value("avg", runs(*where, store=store))


def low(*where: str, store: str = "replication") -> str:
    return value("min", runs(*where, store=store))


def projections(method: str, benchmark: str, profile: str) -> str:
    """Return in how many of the runs a gradient was projected."""
    found = [
        run
        for store in ("replication", "checks")
        for run in runs(method, benchmark, "online", profile, store)
    ]
    acted = sum(bool(run.columns["projected"].any()) for run in found)
    return f"{acted} of {len(found)}"


FINDINGS = (
    Finding(
        "The stability gap occurs even with full replay.",
        "**Holds** on Rotated MNIST.",
        f"Joint, offline: MIN {low('joint')}, AVG {avg('joint')}",
        "appendix.md#by-the-papers-text",
        short=True,
    ),
    Finding(
        "On Rotated MNIST, GEM's routine improves ER's final accuracy.",
        "**Does not hold with equal memory.** "
        "The authors' code gives ER half the memory of ER+GEM by the third task.",
        f"AVG of ER and ER+GEM, offline: {avg('er')} and {avg('er+gem')} with equal memory, "
        f"{avg('er', MNIST, 'offline', 'published')} and "
        f"{avg('er+gem', MNIST, 'offline', 'published')} with the code's "
        "(the paper: 91.9 ± 0.1 and 93.7 ± 0.1)",
        "README.md#equal-memory",
        short=True,
    ),
    Finding(
        "GEM's routine also modestly reduces ER's gap there.",
        "**Undecided** with five seeds.",
        f"MIN of ER and ER+GEM: {low('er')} and {low('er+gem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
    ),
    Finding(
        "On full replay, GEM's routine improves the final accuracy and leaves the gap alone.",
        "**Improves only with the code's smaller memory for Joint.** "
        "No change of the gap shows either way.",
        f"AVG of Joint and Joint+GEM: {avg('joint')} and {avg('joint+gem')} by the text, "
        f"{avg('joint', MNIST, 'offline', 'published')} and "
        f"{avg('joint+gem', MNIST, 'offline', 'published')} with the code "
        "(the paper: 97.5 and 97.8)",
        "README.md#equal-memory",
    ),
    Finding(
        "A-GEM's routine changes neither the gap nor the final accuracy.",
        "**Nothing contradicts it** on Rotated MNIST; the intervals for MIN are wide.",
        f"ER and ER+A-GEM, offline: MIN {low('er')} and {low('er+agem')}, "
        f"AVG {avg('er')} and {avg('er+agem')}",
        "appendix.md#the-hypotheses-with-equal-memory",
        short=True,
    ),
    Finding(
        "A larger γ reduces the gap and raises the final accuracy.",
        '**Holds, but it is a "what", not a "how".** '
        "Plain SGD on a loss with the same weight on old tasks does the same.",
        f"MIN, offline Rotated MNIST: ER {low('er')}, "
        f"GEM with γ = 1 at every iteration {low(GAMMA_1, store='gamma')}, "
        f"weighted loss {low('heavier-er', store='gamma')}",
        "README.md#the-γ-study",
        short=True,
    ),
    Finding(
        "γ explains part of the difference between ER+GEM and ER+A-GEM.",
        "**Not in the main tables.** There the difference in AVG comes from the memory.",
        f"ER+GEM, γ = 0 at every iteration: MIN "
        f"{low('er+gem(gamma=0.0,when=always)', store='gamma')}; "
        f"γ = 0.5 only where a constraint is violated: {low('er+gem')}",
        "README.md#the-γ-study",
    ),
    Finding(
        "Online Rotated MNIST behaves like offline Rotated MNIST.",
        "**Holds**, also in what the memory does.",
        f"AVG of ER and ER+GEM, online: {avg('er', MNIST, 'online')} and "
        f"{avg('er+gem', MNIST, 'online')} with equal memory, "
        f"{avg('er', MNIST, 'online', 'published')} and "
        f"{avg('er+gem', MNIST, 'online', 'published')} with the code's",
        "README.md#equal-memory",
    ),
    Finding(
        "On natural images, GEM's routine impairs ER, up to collapse.",
        "**A collapse that lasts was seen only where reference gradients add up over tasks**, "
        "as in the authors' code.",
        f"AVG of ER+GEM, online Split CIFAR-100, two seeds: "
        f"{avg('er+gem', SPLIT, 'online', 'published')} with the code (the paper: 8.5 ± 0.9), "
        f"{avg('er+gem', SPLIT, 'online')} by the text (ER: {avg('er', SPLIT, 'online')})",
        "README.md#the-collapse-on-natural-images",
        short=True,
    ),
    Finding(
        "The same with independent reference gradients, as in the text.",
        "**Two seeds of ER suggest it** on Domain CIFAR-100, and not at the end of Split "
        "CIFAR-100.",
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
        "**Undecided**: the model was evaluated too rarely.",
        "–",
        "README.md#what-was-run",
    ),
    Finding(
        "A-GEM does not help DER.",
        "**Nothing contradicts it** on offline Rotated MNIST, three seeds.",
        f"AVG of DER and DER+A-GEM: {avg('der')} and {avg('der+agem')}",
        "appendix.md#the-other-methods",
    ),
    Finding("A-GEM does not help BiC.", "Not run.", "–", "README.md#what-was-run"),
)


def link(section: str, short: bool) -> str:
    page, _, title = section.partition("#")
    where = f"replication/{section}" if short else section.removeprefix("README.md")
    return f"[{'the appendix' if page == 'appendix.md' else title.replace('-', ' ')}]({where})"


short = "--short" in sys.argv
print("| the paper states | the runs show | numbers | more |")
print("| --- | --- | --- | --- |")
for finding in FINDINGS:
    if finding.short or not short:
        cells = (*finding[:3], link(finding.section, short))
        print(f"| {' | '.join(cells)} |")
