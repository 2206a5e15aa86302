"""The effects of departures as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from twofold.compare.departures import LIMITS, Effect, explained
from twofold.report.rendering import Renderer
from twofold.report.text import csv_text, inert_markdown, markdown_table
from twofold.text import interval_text, p_text, signed, value_text


def _markdown(effects: Sequence[Effect]) -> str:
    head = ["departures", "benchmark", "mode", "LR", "BS", "method", "metric", "text", "code"]
    lines = [[*head, "seeds", "effect"]]
    lines[0] += ["interval", "simultaneous", "p", "corrected p"]
    for each in effects:
        sign = "≤ " if each.bound else ""
        means = [f"{sign}{value_text(mean, None)}" for mean in (each.text, each.code)]
        intervals = [interval_text(interval) for interval in (each.uncorrected, each.interval)]
        place = [", ".join(each.departures), each.benchmark, each.mode]
        place += [f"{each.lr:g}", f"{each.batch_size}", each.method]
        result = [*means, f"{len(each.seeds)}", signed(each.effect), *intervals]
        ps = [p_text(each.p), p_text(each.p_corrected)]
        lines.append([*place, each.metric.upper(), *result, *ps])
    below = "\n".join(f"- {text}" for text in (*explained(effects), *LIMITS))
    return inert_markdown(f"{markdown_table(lines, left=7)}\n\n{below}\n")


def _csv(effects: Sequence[Effect]) -> str:
    return csv_text(Effect, effects)


def _json(effects: Sequence[Effect]) -> str:
    return json.dumps([dataclasses.asdict(each) for each in effects], indent=2) + "\n"


render: Renderer[Sequence[Effect]] = Renderer({"md": _markdown, "csv": _csv, "json": _json})
