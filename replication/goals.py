"""Print the goals that were set before the search for `hold`, and the method nearest to each.

A method is nearest if it misses the fewest demands, then if it misses them by the least, then if
its MIN is the highest. Its means over seeds decide.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twofold import Store
from twofold.compare.groups import Group
from twofold.compare.selection import method_groups
from twofold.report.text import markdown_table
from twofold.statistics import mean_and_error
from twofold.text import EMPTY, value_text

ROOT = Path(__file__).resolve().parent.parent
COST = "training step of er+hold / er, Rotated MNIST, batch 128, task 3"
NAMES = {"min": "MIN", "avg": "AVG", "residual": "residual", "time": "new task at 90%"}
LOWER = ("residual", "time")  # measures that are better the lower they are
ROUNDING = 1e-4  # curves are in single precision
HEAD = ["goal", "method", "measured, and what the goal demands", "result"]
NOTES = (
    "Offline Rotated MNIST, mean ± standard error over seeds; the means decide. Methods count if "
    "they were evaluated after every iteration.",
    "The named method is the one that misses its goal by the least in these runs, so its values "
    "may be favourable by chance.",
    "new task at 90%: the iterations, relative to ER's.",
    "Fast, Best and Joint are for trained weights without an average.",
    "Cost: a training step, relative to ER's, in the stored runs of `make bench`.",
)

Values = dict[str, list[float]]  # by measure, a value per seed


@dataclass(frozen=True)
class Goal:
    """What a method of an objective has to reach.

    averaged: whether an average of the weights is evaluated.
    demands: the bound of each measure; None for the mean of plain ER.
    """

    name: str
    objective: str
    averaged: bool
    demands: dict[str, float | None]


GOALS = (
    Goal("Fast", "er", False, {"residual": 0.5, "avg": None, "time": 1.2}),
    Goal("Best", "er", False, {"min": 94.5, "avg": 95.5, "residual": 0.2, "time": 2.0}),
    Goal("Joint", "joint", False, {"min": 97.0, "avg": 97.7, "residual": 0.5}),
    Goal("With an average", "er", True, {"min": 95.5, "avg": 96.0}),
)


def values(group: Group) -> Values:
    """Return the measures of a group; its time is in iterations."""
    found: Values = {}
    for key in NAMES:
        own = [run.measures["new_speed" if key == "time" else key] for run in group.runs]
        found[key] = [value for value in own if value is not None]
    return found


def shortfall(key: str, bound: float, own: Values) -> float:
    """Return by how much a measure misses its bound, 0 if it reaches it."""
    above = float(np.mean(own[key])) - bound
    missing = above if key in LOWER else -above
    return missing if missing > ROUNDING else 0.0


def row(goal: Goal, rivals: dict[str, Values], plain: Values) -> list[str]:
    """Return the row of a goal: its nearest method, what it measures, and what it misses."""
    bounds = {
        key: float(np.mean(plain[key])) if bound is None else bound
        for key, bound in goal.demands.items()
    }

    def missing(method: str) -> dict[str, float]:
        amounts = {key: shortfall(key, bound, rivals[method]) for key, bound in bounds.items()}
        return {key: amount for key, amount in amounts.items() if amount}

    def order(method: str) -> tuple[float, ...]:
        missed = missing(method)
        return len(missed), sum(missed.values()), -float(np.mean(rivals[method]["min"]))

    if not rivals:
        return [goal.name, EMPTY, EMPTY, EMPTY]
    method = min(rivals, key=order)
    measured = []
    for key, bound in bounds.items():
        sense = "at most" if key in LOWER else "at least"
        wanted = f"{bound:g}" if goal.demands[key] is not None else f"ER's {bound:.2f}"
        stated = value_text(*mean_and_error(rivals[method][key]), 2)
        measured.append(f"{NAMES[key]} {stated} ({sense} {wanted})")
    missed = ", ".join(NAMES[key] for key in missing(method))
    return [goal.name, method, "; ".join(measured), f"missed: {missed}" if missed else "reached"]


def rows(groups: list[Group]) -> list[list[str]]:
    """Return the rows of the goals for methods, one of which is plain ER."""
    found = {group.config.method: values(group) for group in groups}
    speed = float(np.mean(found["er"]["time"]))
    kinds: dict[tuple[str, bool], dict[str, Values]] = {}
    for group in groups:
        own = found[group.config.method]
        own["time"] = [iterations / speed for iterations in own["time"]]
        kind = group.objective, group.runs[0].raw_measures is not None
        kinds.setdefault(kind, {})[group.config.method] = own
    return [
        row(goal, kinds.get((goal.objective, goal.averaged), {}), found["er"]) for goal in GOALS
    ]


def cost_row(results: Path) -> list[str]:
    """Return the row of the goal for a training step, over all stored runs of the benchmark."""
    steps: list[dict[str, Any]] = []
    for file in sorted(results.glob("*.json")):
        steps += [each for each in json.loads(file.read_text())["rows"] if each["name"] == COST]
    ratios = [step["value"] for step in steps]
    bound = f"{steps[0]['bound']} {steps[0]['target']:g}"
    measured = f"training step {min(ratios):.2f} to {max(ratios):.2f} ({bound})"
    result = "reached" if all(step["reached"] for step in steps) else "missed"
    return ["Cost", "er+hold", measured, result]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=ROOT / "replication/runs/trajectories")
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results")
    parser.add_argument("--seeds", type=int, default=5, help="methods with fewer are left out")
    args = parser.parse_args()
    runs = [
        run
        for run in Store(args.runs).runs()
        if (run.config.benchmark, run.config.mode) == ("rotated-mnist", "offline")
    ]
    groups = [
        group for group in method_groups(runs) if group.complete and len(group.runs) >= args.seeds
    ]
    body = [*rows(groups), cost_row(args.results)]
    print(markdown_table([HEAD, *body], left=4))
    print("", *(f"- {note}" for note in NOTES), sep="\n")


if __name__ == "__main__":
    main()
