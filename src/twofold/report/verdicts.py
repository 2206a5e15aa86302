"""Verdicts as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from twofold.compare.hypotheses import hypotheses
from twofold.compare.verdicts import Findings, Verdict
from twofold.report.rendering import Renderer
from twofold.report.text import csv_text, inert_markdown, markdown_table
from twofold.text import EMPTY, p_text, signed, stated


def _markdown(findings: Findings) -> str:
    families: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in findings.verdicts:
        families.setdefault((verdict.hypothesis, verdict.profile), []).append(verdict)
    parts = [_family(own) for own in families.values()]
    parts.append("\n".join(f"- {text}" for text in (*findings.limits, *findings.unpaired)))
    return inert_markdown("\n\n".join(parts) + "\n")


def _family(own: Sequence[Verdict]) -> str:
    first = own[0]
    words = hypotheses().find(first.hypothesis).words
    title = f"**{first.hypothesis}: {words}** ({first.metric.upper()}, profile {first.profile})"
    head = ["", "benchmark", "mode", "LR", "BS", "what", "how", "seeds", "effect", "interval", "p"]
    lines = [[*head, "corrected p"]]
    for number, verdict in enumerate(own, 1):
        place = [verdict.benchmark, verdict.mode, stated(verdict.lr), stated(verdict.batch_size)]
        interval = " to ".join(signed(end) for end in verdict.interval or ())
        ps = [p_text(p) for p in (verdict.p, verdict.p_corrected)]
        result = [f"{len(verdict.seeds)}", signed(verdict.effect), interval or EMPTY]
        lines.append([f"{number}", *place, verdict.objective, verdict.routine, *result, *ps])
    sentences = [f"{number}. {verdict.sentence}" for number, verdict in enumerate(own, 1)]
    return "\n\n".join([title, markdown_table(lines, left=7), "\n".join(sentences)])


def _csv(findings: Findings) -> str:
    return csv_text(Verdict, findings.verdicts)


def _json(findings: Findings) -> str:
    whole = {
        "verdicts": [dataclasses.asdict(verdict) for verdict in findings.verdicts],
        "unpaired": list(findings.unpaired),
        "limits": findings.limits,
    }
    return json.dumps(whole, indent=2) + "\n"


render: Renderer[Findings] = Renderer({"md": _markdown, "csv": _csv, "json": _json})
