"""Verdicts on the paper's hypotheses: each routine against plain SGD, paired by seed.

    H1  better routines reduce the stability gap          MIN, both modes
    H2  reducing it makes learning more efficient         AVG, online
    H3  reducing it improves the final outcome            AVG, offline

Two methods with one seed share their weights at the start, their batches and their memory, so
what is judged is the difference seed by seed: its mean, with Student's t interval. The more
comparisons, the more of them look like something by chance, so all of one hypothesis (and profile)
are one family: p values are corrected by Holm's method, and intervals by Bonferroni's, so that they
all hold together with 95%.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from scipy import stats

from twofold.errors import unknown
from twofold.experiments.config import Config
from twofold.experiments.naming import name_of
from twofold.experiments.runs import Run
from twofold.method import Method
from twofold.objectives import Objective
from twofold.report.cells import Cell, mean_and_error, paired_differences, what_and_how
from twofold.report.selection import (
    Reductions,
    Setting,
    Shelf,
    essence,
    preference,
    remarks_on,
)
from twofold.report.text import EMPTY, csv_text, markdown_table, p_text, signed

LEVEL = 0.95
FEWEST = 3  # pairs: with fewer, any spread is compatible with them
UNSAID = ("memory_per_class", "memory_grouping", "whitening", "momentum", "reset_momentum")
NOTHING = 1e-6  # points: far below one image, so rounding

Hypothesis = Literal["H1", "H2", "H3"]


class Claim(NamedTuple):
    """What a hypothesis says, in the paper's words, and where it is looked at."""

    words: str
    metric: str
    modes: tuple[str, ...]


CLAIMS: dict[Hypothesis, Claim] = {
    "H1": Claim("better routines reduce the stability gap", "min", ("offline", "online")),
    "H2": Claim("reducing the gap increases learning efficiency", "avg", ("online",)),
    "H3": Claim("reducing the gap improves the final learning outcome", "avg", ("offline",)),
}
LIMITS = (
    "Effects are routine minus plain SGD in points, the mean over seeds that both have. All "
    "comparisons of a hypothesis and profile are one family: p is corrected by Holm's method, and "
    "the intervals, by Bonferroni's, hold all together with 95%.",
    "Five seeds are few: only effects that are large beside their spread can show, and the "
    "t interval takes the differences to be about normal, which so few cannot check.",
    "The seeds vary initial weights, order, memory and division into tasks. Nothing follows for "
    "other benchmarks or settings.",
    "H2 and H3 are about what a smaller gap brings: read each beside the H1 of the same methods.",
)


class Comparison(NamedTuple):
    """The differences of one comparison, judged as one of a family."""

    effect: float  # their mean
    interval: tuple[float, float] | None  # None where there is nothing to work it out from
    p: float | None
    p_corrected: float | None


@dataclass(frozen=True)
class Verdict:
    """What the runs allow to say of one routine on one objective."""

    hypothesis: Hypothesis
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
    family: int  # comparisons that the correction is for
    effect: float
    interval: tuple[float, float] | None
    p: float | None
    p_corrected: float | None
    sentence: str
    commands: tuple[str | None, str | None]  # of plain SGD's runs, and of the routine's


class Pair(NamedTuple):
    """Two cells that differ in nothing but the routine."""

    plain: Cell
    routine: Cell

    def differences(self, metric: str) -> dict[int, float]:
        return paired_differences(self.plain, self.routine, metric)


def verdicts(cells: Sequence[Cell], all_settings: bool = False) -> list[Verdict]:
    """On all hypotheses that the cells have something to say about.

    Of several learning rates and batch sizes, that at which the plain objective ends highest
    counts; with `all_settings` each is a comparison of its own. Runs judged or trained less are
    only taken where there are no others.
    """
    chosen = _chosen(_pairs(Shelf(cells)), all_settings)
    families: dict[tuple[Hypothesis, str], list[Pair]] = {}
    for hypothesis, claim in CLAIMS.items():
        for pair in chosen:
            config = pair.routine.config
            if config.mode in claim.modes and pair.differences(claim.metric):
                families.setdefault((hypothesis, config.profile), []).append(pair)
    return [v for (hypothesis, _), pairs in families.items() for v in _family(hypothesis, pairs)]


def unpaired(cells: Sequence[Cell]) -> list[str]:
    """For each method that has nothing to be compared with: what is missing, in a sentence."""
    shelf = Shelf(cells)
    pairs = [pair for pair in _pairs(shelf) if pair.differences("avg")]
    paired = {essence(pair.routine.config) for pair in pairs}
    alone = {essence(c.config): c for c in _routines(shelf) if essence(c.config) not in paired}
    return [_missing(cell) for cell in alone.values()]


def compare(family: Sequence[Sequence[float]]) -> list[Comparison]:
    """Paired t tests and intervals for all comparisons of a family together."""
    told = [values for values in family if len(values) >= FEWEST]
    tests = [_test(values, len(told)) for values in family]
    corrected = holm([test.p for test in tests if test.p is not None], len(told))
    left = iter(corrected)
    return [t if t.p is None else t._replace(p_corrected=next(left)) for t in tests]


def _test(values: Sequence[float], family: int) -> Comparison:
    count = len(values)
    mean, error = mean_and_error(values)
    if count < FEWEST or not error or error < NOTHING:  # no spread: nothing to measure by
        return Comparison(mean, None, None, None)
    p = 2 * float(stats.t.sf(abs(mean) / error, count - 1))
    reach = error * float(stats.t.ppf(1 - (1 - LEVEL) / 2 / family, count - 1))
    return Comparison(mean, (mean - reach, mean + reach), p, None)


def holm(ps: Sequence[float], family: int) -> list[float]:
    """Holm's correction: the k-th smallest times what is left, and never below a smaller one."""
    corrected, highest = [1.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda k: ps[k])):
        highest = max(highest, min(1.0, (family - rank) * ps[place]))
        corrected[place] = highest
    return corrected


def _routines(shelf: Shelf) -> list[Cell]:
    return [cell for cell in shelf.cells() if len(cell.config.components) > 1]


def _pairs(shelf: Shelf) -> list[Pair]:
    """All cells of a routine that have a partner: the same in everything else."""
    # A file that defines the routine does nothing to plain SGD; bf16 is audited against fp32.
    own = ("plugins", "eval_precision")
    by_seeds = sorted(shelf.cells(), key=lambda cell: len(cell.runs))
    there = {essence(cell.config, apart=own): cell for cell in by_seeds}
    partners = [(there.get(essence(_plain(c.config), apart=own)), c) for c in _routines(shelf)]
    return [Pair(plain, routine) for plain, routine in partners if plain is not None]


def _plain(config: Config) -> Config:
    """The same without the routines. Its profile may have other defaults, so options are said."""
    (name, options), text = config.components[0], what_and_how(config)[0]
    if Objective.knows(name):
        method = Method((Objective.find(name), options), ())
        text = name_of(method, config.benchmark, config.profile)
    return dataclasses.replace(config, method=text, components=config.components[:1])


def _chosen(pairs: Sequence[Pair], all_settings: bool) -> list[Pair]:
    """One pair a method; or one a method and setting."""
    groups: dict[tuple[str, Setting | None], list[Pair]] = {}
    for pair in pairs:
        setting = Setting.of(pair.routine.config) if all_settings else None
        groups.setdefault((essence(pair.routine.config), setting), []).append(pair)
    return [_best(group) for group in groups.values()]


def _best(group: Sequence[Pair]) -> Pair:
    full = [p for p in group if not Reductions.of(p.routine).training] or list(group)
    finals = {Setting.of(p.plain.config): p.plain.mean("avg") or 0.0 for p in full}
    setting = max(finals, key=lambda s: (finals[s], s))
    rivals = [pair for pair in full if Setting.of(pair.plain.config) == setting]
    return min(rivals, key=lambda pair: preference(pair.routine))


def _family(hypothesis: Hypothesis, pairs: Sequence[Pair]) -> Iterator[Verdict]:
    metric = CLAIMS[hypothesis].metric
    family = [pair.differences(metric) for pair in pairs]
    told = sum(len(differences) >= FEWEST for differences in family)
    results = compare([list(differences.values()) for differences in family])
    varying = _varying([pair.routine.config for pair in pairs])
    for pair, differences, result in zip(pairs, family, results, strict=True):
        config = pair.routine.config
        verdict = Verdict(
            hypothesis,
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
            told,
            **result._asdict(),
            sentence="",
            commands=(pair.plain.command(), pair.routine.command()),
        )
        with_what = [f"{name.replace('_', ' ')} {getattr(config, name)}" for name in varying]
        said = [f"With {', '.join(with_what)}."] if with_what else []
        sentence = " ".join([_finding(verdict), *said, *_reservations(verdict, pair)])
        yield dataclasses.replace(verdict, sentence=sentence)


def _varying(configs: Sequence[Config]) -> list[str]:
    """What else tells the comparisons of a family apart, beside what has a column."""
    return [name for name in UNSAID if len({getattr(config, name) for config in configs}) > 1]


def _finding(verdict: Verdict) -> str:
    """What the data allow, in plain words."""
    metric, seeds = verdict.metric.upper(), len(verdict.seeds)
    what = f"{verdict.objective}'s {metric}"
    effect = f"{signed(verdict.effect)} points"
    if seeds < FEWEST:
        return (
            f"{_seeds(seeds)} in common: nothing can be told of {verdict.routine} on {what} "
            f"(so far {effect})."
        )
    if verdict.interval is None or verdict.p_corrected is None:
        if abs(verdict.effect) < NOTHING:
            return f"{verdict.routine} left {what} exactly as it was with each of {_seeds(seeds)}."
        return f"{what} differs by {effect} with each of {_seeds(seeds)}: no spread to judge it by."
    low, high = verdict.interval
    allowed = f"{signed(low)} to {signed(high)} points"
    if verdict.p_corrected >= 1 - LEVEL:
        return (
            f"{_seeds(seeds)} show no effect of {verdict.routine} on {what}: {effect} on average, "
            f"and anything from {allowed} is compatible with the data. That is no proof of none: "
            f"with this spread, an average below {(high - low) / 2:.1f} points does not show."
        )
    verb, side = ("raises", "for") if verdict.effect > 0 else ("lowers", "against")
    text = (
        f"{verdict.routine} {verb} {what}: {effect} on average over {_seeds(seeds)}, which is "
        f"evidence {side} {verdict.hypothesis} here; {allowed} are compatible with the data."
    )
    if low <= 0 <= high:
        text += " (Holm's test shows the effect; the interval, which is stricter, still holds 0.)"
    return text


def _reservations(verdict: Verdict, pair: Pair) -> Iterator[str]:
    """What speaks against leaning on it."""
    less = Reductions.of(pair.routine)
    remarks = remarks_on(pair, verdict.metric)
    if remarks:
        yield f"From smaller runs: {', '.join(remarks)}."
    if verdict.metric == "min" and less.schedule:
        yield f"Both MINs are upper bounds, {less.schedule} only, and so their difference is rough."
    diverged = sum(
        bool(run.summary["diverged"])
        for cell in pair
        for run in cell.runs
        if run.config.seed in verdict.seeds
    )
    if diverged:
        yield f"{diverged} of the {2 * len(verdict.seeds)} runs diverged."


def _seeds(count: int) -> str:
    return f"{count} seed" + ("s" if count != 1 else "")


def _missing(cell: Cell) -> str:
    plain = Cell(tuple(Run(_plain(run.config), {}, {}) for run in cell.runs))
    config, command = cell.config, plain.command()
    text = (
        f"{config.method} on {config.benchmark} {config.mode} ({Setting.of(config)}, profile "
        f"{config.profile}) has no plain {cell.objective} beside it that is the same in all else"
    )
    return f"{text}: `{command}` makes it." if command else f"{text}."


def render(found: Sequence[Verdict], missing: Sequence[str] = (), format: str = "md") -> str:
    """As text: md, csv or json."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](found, missing)


def _markdown(found: Sequence[Verdict], missing: Sequence[str]) -> str:
    families: dict[tuple[Hypothesis, str], list[Verdict]] = {}
    for verdict in found:
        families.setdefault((verdict.hypothesis, verdict.profile), []).append(verdict)
    parts = [_markdown_family(own) for own in families.values()]
    parts.append("\n".join(f"- {text}" for text in (*LIMITS, *missing)))
    return "\n\n".join(parts) + "\n"


def _markdown_family(own: Sequence[Verdict]) -> str:
    first = own[0]
    claim = CLAIMS[first.hypothesis].words
    title = f"**{first.hypothesis}: {claim}** ({first.metric.upper()}, profile {first.profile})"
    head = ["", "benchmark", "mode", "LR", "BS", "what", "how", "seeds", "effect", "interval", "p"]
    lines = [[*head, "corrected p"]]
    for number, verdict in enumerate(own, 1):
        where = [verdict.benchmark, verdict.mode, f"{verdict.lr:g}", f"{verdict.batch_size}"]
        low_high = [signed(end) for end in verdict.interval or ()]
        ps = [p_text(p) for p in (verdict.p, verdict.p_corrected)]
        counted = [f"{len(verdict.seeds)}", signed(verdict.effect), " to ".join(low_high) or EMPTY]
        lines.append([f"{number}", *where, verdict.objective, verdict.routine, *counted, *ps])
    sentences = [f"{number}. {verdict.sentence}" for number, verdict in enumerate(own, 1)]
    return "\n\n".join([title, markdown_table(lines, left=7), "\n".join(sentences)])


def _json(found: Sequence[Verdict], missing: Sequence[str]) -> str:
    reached = [dataclasses.asdict(verdict) for verdict in found]
    whole = {"verdicts": reached, "unpaired": missing, "limits": LIMITS}
    return json.dumps(whole, indent=2) + "\n"


def _csv(found: Sequence[Verdict], missing: Sequence[str]) -> str:
    return csv_text(Verdict, found)


FORMATS: dict[str, Callable[[Sequence[Verdict], Sequence[str]], str]] = {
    "md": _markdown,
    "csv": _csv,
    "json": _json,
}
