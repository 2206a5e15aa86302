"""What a figure says of its runs, small and below: the setting, the seeds, what is not as usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from twofold.report.cells import Cell
from twofold.report.selection import Reductions

MISSED = "the deepest drop may be missed, and MIN is an upper bound"


def notes(cells: Sequence[Cell]) -> list[str]:
    return [
        f"{_setting(cells)}: {_seeds(cells)}",
        *_said(cells, lambda less: ", ".join(less.remarks("min"))),
        *_said(cells, lambda less: less.schedule and f"{less.schedule} only: {MISSED}"),
    ]


def _setting(cells: Sequence[Cell]) -> str:
    """What all have in common, and `lr 0.1 (der 0.01)` where some have not."""
    config = cells[0].config
    parts = [config.benchmark, config.mode]
    for name in ("lr", "batch_size"):
        values = {cell.config.method: getattr(cell.config, name) for cell in cells}
        (usual, _), *_ = Counter(values.values()).most_common()
        others = [f"{method} {value:g}" for method, value in values.items() if value != usual]
        apart = f" ({', '.join(others)})" if others else ""
        parts.append(f"{name.replace('_', ' ')} {usual:g}{apart}")
    return ", ".join(parts + [f"profile {config.profile}"] * (config.profile != "paper"))


def _seeds(cells: Sequence[Cell]) -> str:
    """`mean ± standard error over 5 seeds (joint 3)`."""
    most = max(len(cell.seeds) for cell in cells)
    if most == 1:
        return "one seed"
    fewer = [f"{c.config.method} {len(c.seeds)}" for c in cells if len(c.seeds) < most]
    return f"mean ± standard error over {most} seeds" + (f" ({', '.join(fewer)})" if fewer else "")


def _said(cells: Sequence[Cell], say: Callable[[Reductions], str]) -> list[str]:
    """Each thing that there is to say, once, and of which methods if not of all."""
    whose: dict[str, list[str]] = {}
    for cell in cells:
        whose.setdefault(say(Reductions.of(cell)), []).append(cell.config.method)
    return [
        text if len(methods) == len(cells) else f"{', '.join(methods)}: {text}"
        for text, methods in whose.items()
        if text
    ]
