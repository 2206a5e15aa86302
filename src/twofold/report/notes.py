"""What stands below a table: only what there is occasion for. `Code` is between backticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twofold.report.paper import slips
from twofold.report.studytables import Number, Place, StudyTable, title_of

BOLD = (
    "Bold: the highest of its group, and those whose means lie within its standard error; "
    "nothing where the runs of a group were not all trained and judged alike, or the highest is "
    "of one seed."
)
PAPER = (
    "paper: the paper's number for the same LR and BS. difference: from it, with the number of "
    "standard errors (of both together) in brackets."
)
SIGNS = {"≤": "an upper bound", "≥": "a lower bound", "≈": "approximate"}
PROFILES = {
    "paper": "These runs follow the paper's text. Its numbers come from the authors' code, which "
    "departs from the text: see `--profile published`, and docs/profiles.md.",
    "published": "These runs follow the authors' code where it departs from the paper's text.",
}


def notes(table: StudyTable) -> list[str]:
    numbers = [number for number in table.numbers() if number.value]
    return list(_notes(table, numbers)) if numbers else list(_about_gaps(table))


def _notes(table: StudyTable, numbers: Sequence[Number]) -> Iterator[str]:
    unit = "" if table.layout.transposed else ", in percent"
    other = any(len(number.seeds) != number.wanted for number in numbers)
    count = "; n=: over so many instead" if other else ""
    yield f"Mean ± standard error over {len(table.seeds)} seeds{unit}{count}."
    if any(number.bold for number in numbers):
        yield BOLD
    if any(number.used for number in numbers):
        yield "Italic: the settings that the tables main and sota show."
    if any(number.printed for number in numbers):
        yield PAPER
    yield PROFILES[table.profile]
    yield from _about_bounds([number for number in numbers if number.bound])
    for remarks, mark in table.marks().items():
        yield f"[{mark}] not the paper's runs: {', '.join(remarks)}."
    yield from (
        f"{metric.label}: {metric.about}" for metric in table.layout.metrics if metric.about
    )
    if table.layout.remark:
        yield table.layout.remark
    yield from _about_settings(table)
    yield from _about_slips(numbers)
    yield from _about_machines(numbers)
    yield from _about_gaps(table)


def _about_bounds(numbers: Sequence[Number]) -> Iterator[str]:
    """Why a number has a sign; and which numbers, where those with one sign differ in why."""
    signed: dict[str, dict[str, list[Number]]] = {}
    for number in numbers:
        signed.setdefault(number.metric.thinned, {}).setdefault(number.bound, []).append(number)
    for sign, schedules in signed.items():
        places = [{number.section.place for number in own} for own in schedules.values()]
        apart = sum(map(len, places)) == len(set().union(*places))
        for schedule, own in schedules.items():
            which = f"{sign} of {_whose(own, apart)}" if len(schedules) > 1 else sign
            yield f"{which}: {SIGNS[sign]}, since the model was {schedule} only."


def _whose(numbers: Sequence[Number], apart: bool) -> str:
    """`Rotated MNIST (offline)`; with the methods where places do not tell numbers apart."""
    places: dict[str, list[Place]] = {}  # by methods
    for place in dict.fromkeys(number.section.place for number in numbers):
        own = dict.fromkeys(n.method for n in numbers if n.section.place == place)
        places.setdefault("" if apart else f"{', '.join(own)} on ", []).append(place)
    return "; ".join(f"{methods}{_listed(own)}" for methods, own in places.items())


def _about_settings(table: StudyTable) -> Iterator[str]:
    """How the learning rate and batch size of each place were found."""
    if table.layout.setting == "all":
        return
    reasons: dict[str, list[Place]] = {}
    for place, choice in table.choices.items():
        reasons.setdefault(choice.why, []).append(place)
    for why, places in reasons.items():
        yield f"LR and BS of {_listed(places)}: {why}."


def _about_slips(numbers: Sequence[Number]) -> Iterator[str]:
    shown = {(*number.section.place, number.section.setting.batch_size) for number in numbers}
    for benchmark, mode, batch_size in sorted(shown & slips()):
        yield (
            f"The paper's numbers for {benchmark} {mode} with BS {batch_size} repeat those of "
            "another batch size, a slip: nothing is compared with them."
        )


def _about_machines(numbers: Sequence[Number]) -> Iterator[str]:
    runs = [
        run
        for number in numbers
        if number.metric.name.startswith("seconds")
        for cell in number.cells
        for run in cell.runs
    ]
    machines = {str(run.summary.get("made_with", {}).get("processor")) for run in runs}
    if len(machines) > 1:
        yield f"These times come from different machines: {', '.join(sorted(machines))}."


def _about_gaps(table: StudyTable) -> Iterator[str]:
    if table.empty:
        command = f"twofold study run {table.layout.study}"
        command += f" --profile {table.profile}" if table.profile != "paper" else ""
        yield f"No runs yet: {_listed(table.empty)}. `{command}` makes them."


def _listed(places: Sequence[Place]) -> str:
    """`Rotated MNIST (offline, online), Domain CIFAR-100 (online)`."""
    modes: dict[str, list[str]] = {}
    for place in places:
        modes.setdefault(title_of(place.benchmark), []).append(place.mode)
    return ", ".join(f"{benchmark} ({', '.join(own)})" for benchmark, own in modes.items())
