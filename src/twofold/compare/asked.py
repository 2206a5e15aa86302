"""Comparisons that a user asks for: any methods or settings, each with the first, paired by seed.

twofold.comparison(runs, "er", "er+gem")
twofold.comparison(runs, "sgd", "adam", by="optimizer", may_differ=["lr"])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twofold.benchmarks import Recipe
from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions, changed_plugins
from twofold.compare.shared import shared_words
from twofold.compare.sides import Axis, Side, sides
from twofold.compare.statistics import NOTHING, Interval, Outcome, compare, detectable
from twofold.compare.words import needed_words, undecided_words
from twofold.component import plain
from twofold.curves import ACCURACY
from twofold.errors import UserError, unknown
from twofold.evaluation.measures import MEASURES, Measure
from twofold.experiments import notebook
from twofold.experiments.config import varying
from twofold.experiments.runs import Run
from twofold.statistics import FEWEST
from twofold.text import EMPTY, counted, interval_text, p_text, signed, value_text

if TYPE_CHECKING:
    import pandas as pd

USUAL = ("min", "avg")
RAW = "raw_"
SIGNS = {"upper bound": "≤ ", "lower bound": "≥ ", "approximate": "≈ ", "unaffected": ""}


@dataclass(frozen=True)
class Difference:
    """The difference of one method or setting from the baseline, in one metric."""

    compared: str
    baseline: str
    metric: str
    unit: str  # of the difference: points, iterations, or what a user's function measures
    seeds: tuple[int, ...]  # that both have
    compared_mean: float  # over these seeds
    baseline_mean: float
    compared_bound: str  # `≤` and so on, if evaluations were left out
    baseline_bound: str
    differences: tuple[float, ...]  # compared minus baseline, by seed
    family: int  # the number of differences that the correction is for
    effect: float
    outcome: Outcome
    interval: Interval | None  # simultaneous
    uncorrected: Interval | None
    p: float | None
    p_corrected: float | None
    detectable: float | None  # the effect that as many seeds show with 80% power
    seeds_needed: int | None  # to decide, if it is undecided and effect and spread are as they look
    sentence: str
    commands: tuple[str | None, str | None]  # of the baseline's runs, and of the compared ones

    seeds_at_most = None  # there is no margin

    @property
    def title(self) -> str:
        """The metric's name for people."""
        return _title(self.metric)

    @property
    def decimals(self) -> int:
        return 0 if self.unit == "iterations" else 1

    @property
    def result(self) -> str:
        """The outcome in a word or two."""
        if self.outcome == "effect":
            return "higher" if self.effect > 0 else "lower"
        return "equal" if self.outcome == "equivalent" else undecided_words(self)


@dataclass(frozen=True, repr=False)
class Compared:
    """Differences from one baseline. Its text has a sentence for each; `frame` is a DataFrame."""

    by: str  # what was compared: method, or the name of a setting
    baseline: str
    place: str  # the benchmark, and all settings that both sides have
    rows: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        names = list(dict.fromkeys(row.compared for row in self.rows))
        return f"{_and(names)} compared with {self.baseline}"

    @property
    def frame(self) -> pd.DataFrame:
        """A row per difference, with the columns of `Difference`."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows])

    @property
    def header(self) -> list[str]:
        """The columns of `cells`: names, then numbers."""
        head = [self.by, "metric", *(["seeds"] if self._counts else []), self.baseline, "compared"]
        tests = ["difference", "interval", "simultaneous", "p", "corrected p", "detectable"]
        return [*head, *tests, "result"]

    @property
    def cells(self) -> list[list[str]]:
        """A line of texts per difference."""
        return [
            [
                row.compared,
                row.title,
                *([f"{len(row.seeds)}"] if self._counts else []),
                row.baseline_bound + value_text(row.baseline_mean, None, row.decimals),
                row.compared_bound + value_text(row.compared_mean, None, row.decimals),
                signed(row.effect, row.decimals),
                interval_text(row.uncorrected, row.decimals),
                interval_text(row.interval, row.decimals),
                p_text(row.p),
                p_text(row.p_corrected),
                EMPTY if row.detectable is None else f"{row.detectable:.{row.decimals}f}",
                row.result,
            ]
            for row in self.rows
        ]

    @property
    def sentences(self) -> list[str]:
        return [row.sentence for row in self.rows]

    @property
    def _counts(self) -> bool:
        """Whether the numbers of seeds differ; otherwise the place states them."""
        return len({row.seeds for row in self.rows}) > 1

    def __repr__(self) -> str:
        return "\n".join(
            [f"{self.title} ({self.place})", *(f"  {text}" for text in self.sentences)]
        )

    def _repr_html_(self) -> str:
        below = notebook.html_list([*self.sentences, *self.notes])
        title = f"{self.title} ({self.place})"
        return notebook.html_table(self.header, self.cells, below, title)


def comparison(
    runs: Iterable[Run],
    baseline: Any,
    *others: Any,
    by: str = "method",
    metrics: Sequence[str] = USUAL,
    may_differ: Sequence[str] = (),
) -> Compared:
    """Compare methods, or values of a setting, with a baseline over the seeds that both have.

    runs: of a store or of `run_all`; `Runs.where` selects some of them.
    by: what `baseline` and `others` are values of, such as `optimizer` or a setting of your own.
    metrics: names of measures, such as `min` or `forgetting`; `raw_min` is MIN of the trained
        weights, where a routine has different ones evaluated.
    may_differ: settings that need not be equal, such as `lr`.
    """
    chosen, names = list(runs), list(metrics or USUAL)
    if not chosen:
        raise UserError("there are no runs to compare")
    measures = {name: _measure(name) for name in names}
    curves = any(each.needs_curve and not each.whole for each in measures.values())
    first, *rest = sides(chosen, (baseline, *others), by, may_differ, curves)
    family = len(rest) * len(names)
    rows = tuple(_difference(first, side, name, family) for side in rest for name in names)
    axis = Axis(by, chosen).option
    place = _place((first, *rest), axis.name, rows)
    notes = tuple(_notes((first, *rest), axis.name, rows))
    return Compared(axis.column, first.name, place, rows, notes)


def _measure(name: str) -> Measure:
    key = name.removeprefix(RAW)
    if key not in MEASURES:
        raise unknown("metric", name, MEASURES)
    return MEASURES[key]


def _title(metric: str) -> str:
    raw = "raw " if metric.startswith(RAW) else ""
    return f"{raw}{_measure(metric).title}"


def _values(group: Group, metric: str) -> dict[int, float]:
    """Return a metric by seed; `raw_` ones are of the trained weights, evaluated or not."""
    key = metric.removeprefix(RAW)
    if metric.startswith(RAW) and group.replaces_evaluated:
        return group.by_seed(f"raw_measures.{key}")
    return group.by_seed(key if key in USUAL else f"measures.{key}")


def _difference(one: Side, other: Side, metric: str, family: int) -> Difference:
    values = [_values(side.group, metric) for side in (one, other)]
    seeds = [seed for seed in one.common(other) if all(seed in each for each in values)]
    if not seeds:
        raise UserError(
            f"{_title(metric)} is not defined for the runs of {one.name} and {other.name}: "
            "docs/measures.md states when"
        )
    base, compared = ([each[seed] for seed in seeds] for each in values)
    differences = [b - a for a, b in zip(base, compared, strict=True)]
    (result,) = compare([differences], size=family)
    row = Difference(
        other.name,
        one.name,
        metric,
        _unit(one.group.runs[0], _measure(metric)),
        tuple(seeds),
        sum(compared) / len(seeds),
        sum(base) / len(seeds),
        _bound(other.group, metric),
        _bound(one.group, metric),
        tuple(differences),
        family,
        result.effect,
        result.outcome,
        result.interval,
        result.uncorrected,
        result.p,
        result.p_corrected,
        detectable(differences, family),
        result.seeds_needed,
        "",
        (one.group.command(), other.group.command()),
    )
    return dataclasses.replace(row, sentence=_sentence(row))


def _unit(run: Run, measure: Measure) -> str:
    if measure.unit == "iterations":
        return measure.unit
    quantity = run.quantity(1)
    return "points" if quantity == ACCURACY else quantity


def _bound(group: Group, metric: str) -> str:
    bound = Reductions.of(group).bound(metric.removeprefix(RAW))
    return SIGNS[_measure(metric).thinned] if bound else ""


def _sentence(row: Difference) -> str:
    """Return what the data allow to say, in plain words."""
    seeds, effect = (
        counted(len(row.seeds), "seed"),
        f"{signed(row.effect, row.decimals)} {row.unit}",
    )
    if len(row.seeds) < FEWEST:
        return (
            f"{seeds} in common: too few to show that {row.title} of {row.compared} differs from "
            f"{row.baseline} (so far {effect})."
        )
    if row.interval is None and abs(row.effect) < NOTHING:
        return f"{row.compared} and {row.baseline} have the same {row.title} with each of {seeds}."
    if row.interval is None:
        return (
            f"{row.title} of {row.compared} and {row.baseline} differs by {effect} with each of "
            f"{seeds}: there is no spread to test it by."
        )
    allowed = interval_text(row.interval, row.decimals)
    average = f"{effect} on average over {seeds}, and {allowed} are compatible"
    if row.outcome == "effect":
        higher = "higher" if row.effect > 0 else "lower"
        return (
            f"{row.compared} has a {higher} {row.title} than {row.baseline}: {average} with the "
            "data."
        )
    return (
        f"Undecided: {row.title} of {row.compared} minus {row.baseline} is {average} with the "
        f"data. {needed_words(row, row.unit, row.decimals)}"
    )


def _place(found: Sequence[Side], by: str, rows: Sequence[Difference]) -> str:
    """Return the benchmark and the settings that all sides have, and the seeds if all have them."""
    configs = [side.group.config for side in found]
    benchmark = configs[0].benchmark
    title = Recipe.known[benchmark].title if benchmark in Recipe.known else benchmark
    words = [title, configs[0].mode, *shared_words(configs, ("benchmark", "mode", by))]
    if len({row.seeds for row in rows}) == 1:
        words.append(counted(len(rows[0].seeds), "seed"))
    return ", ".join(words)


def _notes(found: Sequence[Side], by: str, rows: Sequence[Difference]) -> Iterator[str]:
    """Yield how to read the numbers, and the reasons not to rely on them."""
    count = rows[0].family
    together = (
        f" The {count} differences are one family: the simultaneous intervals hold together with "
        f"95% (Bonferroni), and p is corrected in the same way."
        if count > 1
        else ""
    )
    yield (
        "You chose what to compare, so this is exploratory: it suggests what to test with new "
        f"seeds.{together}"
    )
    yield (
        "difference: compared minus baseline, the mean over the seeds that both have. interval: "
        "95%, of one difference alone (paired t). detectable: the difference that as many seeds "
        "show with 80% power, after the correction."
    )
    yield from _about_settings(found, by)
    yield from _about_evaluation(found, rows)
    diverged = {side.name: side.group.diverged for side in found if side.group.diverged}
    if diverged:
        listed = ", ".join(f"{count} of {name}" for name, count in diverged.items())
        yield f"Runs that diverged count as they ended: {listed}."
    for metric in dict.fromkeys(row.metric for row in rows):
        if metric not in USUAL:
            measure = _measure(metric)
            about = f"{measure.explanation} In {measure.unit}; {measure.better} is better."
            yield f"{_title(metric)}: {about}"


def _about_settings(found: Sequence[Side], by: str) -> Iterator[str]:
    """Yield the settings that differ all the same, so that the difference may be theirs."""
    configs = [side.group.config for side in found]
    for each in varying(configs, (by, "method", "seed", "own", "profile", "eval_precision")):
        values = [f"{side.name} {plain(side.group.config.value(each.name))}" for side in found]
        yield f"They also differ in {each.words}: {', '.join(values)}."
    for side in found:
        for words in changed_plugins(side.group.runs[0]):
            yield f"{side.name}: {words}."


def _about_evaluation(found: Sequence[Side], rows: Sequence[Difference]) -> Iterator[str]:
    if any(row.compared_bound or row.baseline_bound for row in rows):
        signs = dict.fromkeys(
            f"{row.compared_bound or row.baseline_bound}{_measure(row.metric).thinned}"
            for row in rows
            if row.compared_bound or row.baseline_bound
        )
        yield (
            f"{', '.join(signs)}: the model was not evaluated after every iteration. The "
            "difference of two bounds is not a bound."
        )
    precision = dict.fromkeys(Reductions.of(side.group).precision for side in found)
    yield from (f"{words[0].upper()}{words[1:]}." for words in precision if words)
    replaced = [side.name for side in found if side.group.replaces_evaluated]
    if replaced and not all(row.metric.startswith(RAW) for row in rows):
        yield (
            f"{_and(replaced)}: the evaluated weights are not the trained ones, which raw_min and "
            "raw_avg compare."
        )


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
