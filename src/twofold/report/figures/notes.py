"""Notes below a figure: the setting, the seeds, and how runs are smaller than full ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from twofold.compare.groups import Group
from twofold.compare.reductions import Reductions
from twofold.experiments.plotting import seed_words
from twofold.experiments.profiles import DEFAULT
from twofold.experiments.start import PER_SEED
from twofold.text import stated

STARTS = "every seed starts from trained weights of its own"
MISSED = "the deepest drop may be missed, and MIN is an upper bound"


def notes(groups: Sequence[Group], labels: Mapping[str, str]) -> list[str]:
    """Return the notes on these groups.

    labels: what methods are called.
    """
    return [
        *training_notes(groups, labels, "min"),
        *_remarks(groups, labels, lambda less: less.schedule and f"{less.schedule} only: {MISSED}"),
    ]


def training_notes(
    groups: Sequence[Group], labels: Mapping[str, str], metric: str = ""
) -> list[str]:
    """Return the notes that do not depend on when the model was evaluated.

    metric: what is shown, unless it does not depend on the evaluation at all.
    """
    seeds = {labels[group.config.method]: len(group.seeds) for group in groups}
    return [
        f"{_setting(groups, labels)}: {seed_words(seeds)}",
        *_remarks(groups, labels, lambda less: ", ".join(less.remarks(metric))),
        *[STARTS] * (groups[0].config.start_from == PER_SEED),
    ]


def _setting(groups: Sequence[Group], labels: Mapping[str, str]) -> str:
    """Return what all have in common, with exceptions in brackets: `lr 0.1 (der 0.01)`."""
    config = groups[0].config
    parts = [config.benchmark, config.mode]
    for name in ("lr", "batch_size"):
        values = {labels[group.config.method]: getattr(group.config, name) for group in groups}
        (most_common, _), *_ = Counter(values.values()).most_common()
        if not any(values.values()):  # of loops that did not state it
            continue
        others = [
            f"{label} {stated(value)}" for label, value in values.items() if value != most_common
        ]
        exceptions = f" ({', '.join(others)})" if others else ""
        parts.append(f"{name.replace('_', ' ')} {stated(most_common)}{exceptions}")
    return ", ".join(parts + [f"profile {config.profile}"] * (config.profile != DEFAULT))


def _remarks(
    groups: Sequence[Group], labels: Mapping[str, str], words: Callable[[Reductions], str]
) -> list[str]:
    """Return each remark once, with the methods that it is about unless it is about all."""
    remarks: dict[str, list[str]] = {}
    for group in groups:
        remarks.setdefault(words(Reductions.of(group)), []).append(labels[group.config.method])
    return [
        text if len(methods) == len(groups) else f"{', '.join(methods)}: {text}"
        for text, methods in remarks.items()
        if text
    ]
