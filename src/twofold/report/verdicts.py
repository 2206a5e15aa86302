"""Verdicts as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from twofold.compare.hypotheses import hypotheses
from twofold.compare.verdicts import Findings, Verdict
from twofold.compare.words import undecided_words
from twofold.report.rendering import Renderer
from twofold.report.text import csv_text, inert_markdown, markdown_table
from twofold.text import interval_text, p_text, signed, stated


def _markdown(findings: Findings) -> str:
    tables: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in findings.verdicts:
        place = verdict.hypothesis, verdict.profile, verdict.study
        tables.setdefault(place, []).append(verdict)
    parts = [_table(rows) for rows in tables.values()]
    parts.append("\n".join(f"- {text}" for text in (*findings.limits, *findings.unpaired)))
    return inert_markdown("\n\n".join(parts) + "\n")


def _table(own: Sequence[Verdict]) -> str:
    first = own[0]
    words = hypotheses().find(first.hypothesis).words
    kind = f"primary comparisons of the study {first.study}" if first.study else "exploratory"
    title = f"**{first.hypothesis}: {words}** ({first.metric.upper()}, profile {first.profile})"
    head = ["", "benchmark", "mode", "LR", "BS", "what", "how", "seeds", "effect"]
    head += ["interval", "simultaneous", "p", "corrected p", "of", "verdict"]
    lines = [head]
    for number, verdict in enumerate(own, 1):
        place = [verdict.benchmark, verdict.mode, stated(verdict.lr), stated(verdict.batch_size)]
        intervals = [interval_text(each) for each in (verdict.uncorrected, verdict.interval)]
        ps = [p_text(p) for p in (verdict.p, verdict.p_corrected)]
        result = [f"{len(verdict.seeds)}", signed(verdict.effect), *intervals, *ps]
        method = [verdict.objective, verdict.routine]
        ending = [f"{verdict.family}", decision(verdict)]
        lines.append([f"{number}", *place, *method, *result, *ending])
    sentences = [f"{number}. {verdict.sentence}" for number, verdict in enumerate(own, 1)]
    return "\n\n".join([f"{title}, {kind}", markdown_table(lines, left=7), "\n".join(sentences)])


def decision(verdict: Verdict) -> str:
    """Return a verdict in a word or two: an effect, an equivalence, or the seeds needed."""
    if verdict.outcome == "effect":
        evidence = f", {verdict.evidence} {verdict.hypothesis}" if verdict.evidence else ""
        return f"effect{evidence}"
    if verdict.outcome == "equivalent":
        exact = verdict.interval is None
        return "equal" if exact else f"equivalent within {verdict.margin:g}"
    return undecided_words(verdict)


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
