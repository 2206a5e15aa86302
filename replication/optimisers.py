"""Print what the runs of the study `optimisers` show: means per optimiser, or paired differences.

python replication/optimisers.py means
python replication/optimisers.py pairs
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from twofold import Store
from twofold.compare.groups import Group, groups, paired_differences
from twofold.compare.statistics import compare
from twofold.evaluation.measures import MEASURES
from twofold.report.tables.layouts import label_of, measured
from twofold.report.text import markdown_table
from twofold.text import EMPTY, interval_text, p_text, signed, value_text

METHODS = ("er", "er+gem", "er+agem", "joint")
OPTIMISERS = {
    "sgd": "SGD",
    "adam": "Adam",
    "adam(route=first)": "Adam, route first",
    "adamw": "AdamW",
    "rmsprop": "RMSprop",
}
MEANS = ("min", "avg", "gap_depth", "residual", "new_speed", "new_accuracy")
PAIRED = ("min", "gap_depth", "avg")
SEEDS = 5
HEAD = ["comparison", "of", "measure", "seeds", "difference", "simultaneous", "corrected p"]

Place = tuple[str, str]  # method and optimiser
Cells = dict[Place, Group]


def print_means(cells: Cells) -> None:
    """Print a row per measure and method, and a column per optimiser."""
    shown = [name for name in OPTIMISERS if any(name == optimiser for _, optimiser in cells)]
    methods = [name for name in METHODS if any(name == method for method, _ in cells)]
    rows = [
        [MEASURES[key].title, label(method), *(mean(cells, (method, name), key) for name in shown)]
        for key in MEANS
        for method in methods
    ]
    head = ["measure", "method", *(OPTIMISERS[name] for name in shown)]
    print(markdown_table([head, *rows], left=2))
    print(f"\n- Offline Rotated MNIST; mean ± standard error over {SEEDS} seeds, unless (n=).")
    print(f"- Learning rates: {', '.join(rates(cells))}. None was tuned here.")
    if any(not cell.complete for cell in cells.values()):
        print("- ≤ and ≥ are bounds, ≈ is approximate: some iterations were not evaluated.")
    for key in MEANS:
        print(f"- {MEASURES[key].title}: {measured(key).about}")


def mean(cells: Cells, place: Place, key: str) -> str:
    """Return the mean of a measure with its sign."""
    method, optimiser = place
    if place not in cells:  # without a routine, both routes are the same
        routes_alike = "route=first" in optimiser and "+" not in method
        return "as Adam" if routes_alike and (method, "adam") in cells else EMPTY
    cell, metric = cells[place], measured(key)
    value = cell.mean(metric.name)
    if value is None:
        return EMPTY
    sign = "" if cell.complete or not metric.thinned else f"{metric.thinned} "
    count = "" if len(cell.runs) == SEEDS else f" (n={len(cell.runs)})"
    return f"{sign}{value_text(value, cell.error(metric.name), metric.decimals)}{count}"


def rates(cells: Cells) -> Iterator[str]:
    for optimiser, name in OPTIMISERS.items():
        known = {cell.config.lr for (_, own), cell in cells.items() if own == optimiser}
        if known:
            yield f"{name} {' and '.join(f'{lr:g}' for lr in sorted(known))}"


def print_pairs(cells: Cells) -> None:
    """Print differences, paired by seed."""
    rows = []
    for family in families():
        known = {
            names: (cells[one], cells[other])
            for names, (one, other) in family.items()
            if one in cells and other in cells
        }
        for key in PAIRED:
            pairs = [paired_differences(*each, measured(key).name) for each in known.values()]
            tested = {names: [*p.values()] for names, p in zip(known, pairs, strict=True) if p}
            for (names, values), result in zip(
                tested.items(), compare([*tested.values()]), strict=True
            ):
                numbers = [signed(result.effect), interval_text(result.interval)]
                row = [MEASURES[key].title, str(len(values)), *numbers, p_text(result.p_corrected)]
                rows.append([*names, *row])
    print(markdown_table([HEAD, *rows], left=3))
    print("\n- Differences are means over the seeds that both have, in points.")
    print(
        "- The simultaneous intervals of one measure and one kind of comparison (optimisers, "
        "routines, routes) hold together with 95% (Bonferroni); p is corrected in the same way."
    )


def families() -> Iterator[dict[tuple[str, str], tuple[Place, Place]]]:
    """Yield pairs by their names; a difference is the second place minus the first."""
    routines = METHODS[1:3]
    yield {
        (f"{name} − SGD", label(method)): ((method, "sgd"), (method, optimiser))
        for method in METHODS
        for optimiser, name in OPTIMISERS.items()
        if optimiser != "sgd"
    }
    yield {
        (f"{label(method)} − ER", name): (("er", optimiser.partition("(")[0]), (method, optimiser))
        for method in routines
        for optimiser, name in OPTIMISERS.items()
    }
    yield {
        ("route first − both", f"{label(method)}, Adam"): (
            (method, "adam"),
            (method, "adam(route=first)"),
        )
        for method in routines
    }


def label(method: str) -> str:
    return label_of(method, {"er": "ER", "joint": "Joint", "gem": "GEM", "agem": "A-GEM"})


parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
parser.add_argument("part", choices=("means", "pairs"))
parser.add_argument("--runs", type=Path, default=Path("replication/runs/optimisers"))
args = parser.parse_args()
runs = Store(args.runs).runs() if args.runs.is_dir() else []
stored = {(cell.config.method, cell.config.optimizer): cell for cell in groups(runs)}
if not stored:
    print(f"There are no runs yet in {args.runs}. `twofold study run optimisers` trains them.")
elif args.part == "means":
    print_means(stored)
else:
    print_pairs(stored)
