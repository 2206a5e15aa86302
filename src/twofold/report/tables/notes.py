"""Notes below a table: only those that it gives occasion for. `Code` is between backticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold import papers
from twofold.compare.reference import Block, slips
from twofold.experiments import profiles
from twofold.report.tables.layouts import tables
from twofold.report.tables.model import Number, Place, StudyTable, title_of
from twofold.statistics import FEWEST
from twofold.text import counted

BOLD = (
    "Bold: the highest of its group, and those whose means lie within its standard error. "
    "Nothing is bold if the runs of a group were not all trained and evaluated alike, if numbers "
    "are bounds, or if one method has fewer than three seeds."
)
SIGNS = {"≤": "an upper bound", "≥": "a lower bound", "≈": "approximate"}


def notes(table: StudyTable) -> list[str]:
    """Return the notes below a table."""
    numbers = [number for number in table.numbers() if number.value]
    if not table.layout.study:
        return list(_notes_on_a_store(table, numbers))
    return list(_notes(table, numbers)) if numbers else list(_about_missing(table))


def study_command(table: StudyTable) -> str:
    """Return the command that trains the table's runs."""
    command = f"twofold study run {table.layout.study}"
    profile = f" --profile {table.profile}" if table.profile != profiles.DEFAULT else ""
    return command + profile


def _mean(numbers: Sequence[Number]) -> str:
    enough = {len(number.seeds) >= FEWEST for number in numbers}
    few = " (from three seeds on)" if False in enough else ""
    return f"Mean ± standard error{few}" if True in enough else "Mean"


def _notes(table: StudyTable, numbers: Sequence[Number]) -> Iterator[str]:
    unit = "" if table.layout.transposed else ", in percent"
    incomplete = any(len(number.seeds) != number.wanted for number in numbers)
    count = " unless marked (n=)" if incomplete else ""
    yield f"{_mean(numbers)} over {counted(len(table.seeds), 'seed')}{count}{unit}."
    if any(number.bold for number in numbers):
        yield BOLD
    if any(number.used for number in numbers):
        yield f"Italic: the settings that the tables {' and '.join(_chosen(table))} show."
    if any(number.printed for number in numbers):
        yield (
            f"reference: the number in {papers.paper(table.layout.paper)} for the same LR and BS. "
            "difference: the runs' mean minus the reference, with the number of standard errors "
            "(of both together) in brackets, from three seeds on."
        )
    if about := profiles.note(table.layout.paper, table.profile):
        yield about
    yield from _about_bounds([number for number in numbers if number.bound])
    for remarks, mark in table.marks().items():
        yield f"[{mark}] differs from the reference runs: {', '.join(remarks)}."
    yield from _about_metrics(table)
    if table.layout.remark:
        yield table.layout.remark
    yield from _about_settings(table)
    yield from _about_slips(table, numbers)
    yield from _about_machines(numbers)
    yield from _about_missing(table)


def _notes_on_a_store(table: StudyTable, numbers: Sequence[Number]) -> Iterator[str]:
    missing = any(len(number.seeds) != number.wanted for number in numbers)
    count = "; (n=) marks a measure that some runs do not have" if missing else ""
    yield f"{_mean(numbers)} over seeds{count}."
    signs = dict.fromkeys(number.metric.thinned for number in numbers if number.bound)
    if signs:
        words = ", ".join(f"{sign} {SIGNS[sign]}" for sign in signs)
        yield f"{words}: the model was not evaluated after every iteration."
    groups = [group for number in numbers for group in number.groups]
    if any(group.config.validation for group in groups):
        yield "validation: evaluated on this share of the training images, which were held out."
    if any(len({run.config.own for run in group.runs}) > 1 for group in groups):
        yield "Each seed has data of its own."
    for remarks, mark in table.marks().items():
        yield f"[{mark}] {', '.join(remarks)}."
    yield from _about_metrics(table)


def _about_metrics(table: StudyTable) -> Iterator[str]:
    for metric in table.layout.metrics:
        if metric.about:
            yield f"{metric.label}: {metric.about}"


def _chosen(table: StudyTable) -> list[str]:
    """Return the paper's tables with chosen settings."""
    layouts = {name: each for name, each in tables().items() if each.paper == table.layout.paper}
    return [name for name, layout in layouts.items() if layout.setting == "chosen"]


def _about_bounds(numbers: Sequence[Number]) -> Iterator[str]:
    """Explain signs; name the numbers if those with one sign have different explanations."""
    signed: dict[str, dict[str, list[Number]]] = {}
    for number in numbers:
        signed.setdefault(number.metric.thinned, {}).setdefault(number.bound, []).append(number)
    for sign, schedules in signed.items():
        places = [
            {number.section.place for number in numbers_of_schedule}
            for numbers_of_schedule in schedules.values()
        ]
        disjoint = sum(map(len, places)) == len(set().union(*places))
        for schedule, numbers_of_schedule in schedules.items():
            subject = (
                f"{sign} of {_whose(numbers_of_schedule, disjoint)}" if len(schedules) > 1 else sign
            )
            yield f"{subject}: {SIGNS[sign]}, since the model was {schedule} only."


def _whose(numbers: Sequence[Number], apart: bool) -> str:
    """Return `Rotated MNIST (offline)`, with the methods if places do not tell numbers apart."""
    places: dict[str, list[Place]] = {}  # by methods
    for place in dict.fromkeys(number.section.place for number in numbers):
        names = dict.fromkeys(n.method for n in numbers if n.section.place == place)
        places.setdefault("" if apart else f"{', '.join(names)} on ", []).append(place)
    return "; ".join(f"{methods}{_listed(names)}" for methods, names in places.items())


def _about_settings(table: StudyTable) -> Iterator[str]:
    """Explain how the learning rate and batch size of each place were chosen."""
    if table.layout.setting == "all":
        return
    reasons: dict[str, list[Place]] = {}
    for place, choice in table.choices.items():
        reasons.setdefault(choice.why, []).append(place)
    for why, places in reasons.items():
        yield f"LR and BS of {_listed(places)}: {why}."


def _about_slips(table: StudyTable, numbers: Sequence[Number]) -> Iterator[str]:
    wrong = slips(table.layout.paper)
    shown = {Block(*n.section.place, n.section.setting.batch_size) for n in numbers}
    for block in sorted(shown & wrong.keys()):
        yield (
            f"The printed numbers for {block.benchmark} {block.mode} with BS {block.batch_size} "
            f"are not used: {wrong[block]}."
        )


def _about_machines(numbers: Sequence[Number]) -> Iterator[str]:
    runs = [
        run
        for number in numbers
        if number.metric.name.startswith("seconds")
        for group in number.groups
        for run in group.runs
    ]
    machines = {str(run.summary.get("made_with", {}).get("processor")) for run in runs}
    if len(machines) > 1:
        yield f"These times come from different machines: {', '.join(sorted(machines))}."


def _about_missing(table: StudyTable) -> Iterator[str]:
    if table.empty:
        yield f"No runs yet: {_listed(table.empty)}. `{study_command(table)}` trains them."


def _listed(places: Sequence[Place]) -> str:
    """Return `Rotated MNIST (offline, online), Domain CIFAR-100 (online)`."""
    modes: dict[str, list[str]] = {}
    for place in places:
        modes.setdefault(title_of(place.benchmark), []).append(place.mode)
    return ", ".join(f"{benchmark} ({', '.join(names)})" for benchmark, names in modes.items())
