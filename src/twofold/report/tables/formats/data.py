"""Tables for programs: CSV and JSON, in full precision."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from twofold.experiments.config import own_settings, varying
from twofold.report.tables.model import Number, StudyTable
from twofold.report.tables.notes import notes
from twofold.report.text import inert_cell


def records(table: StudyTable) -> list[dict[str, Any]]:
    """Return a flat record per number, in full precision."""
    numbers = list(table.numbers())
    configs = [group.config for number in numbers for group in number.groups[:1]]
    settings = list(own_settings(configs))
    if not table.layout.study:  # a study fixes all other settings
        settings += [each.name for each in varying(configs, (*settings, "seed"))]
    return [_with_settings(number, settings, _record(table, number)) for number in numbers]


def _with_settings(number: Number, names: list[str], record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with these settings, which replace nothing in it."""
    config = number.groups[0].config if number.groups else None
    return {**record, **{name: config and config.value(name) for name in names}, **record}


def _record(table: StudyTable, number: Number) -> dict[str, Any]:
    mean, error = number.value or (None, None)
    reference, reference_error = number.printed or (None, None)
    setting = number.section.setting
    return {
        "table": table.name,
        "profile": table.profile or (number.groups[0].config.profile if number.groups else ""),
        "benchmark": number.section.place.benchmark,
        "mode": number.section.place.mode,
        "lr": setting.lr,
        "batch_size": setting.batch_size,
        "method": number.method,
        "metric": number.metric.short,
        "mean": mean,
        "sem": error,
        "seeds": number.seeds,
        "diverged": number.diverged,
        "bound": number.sign.strip(),
        "reduced": "; ".join(filter(None, (*number.remarks, number.bound))),
        "bold": number.bold,
        "used": number.used,
        "reference_mean": reference,
        "reference_sem": reference_error,
        "difference": number.difference,
        "errors_apart": number.errors_apart,
        "command": number.command,
    }


def json_table(table: StudyTable) -> str:
    whole = {"table": table.name, "title": table.title, "profile": table.profile}
    return json.dumps({**whole, "notes": notes(table), "numbers": records(table)}, indent=2) + "\n"


def csv_table(table: StudyTable) -> str:
    file = io.StringIO()
    rows = [{**record, "seeds": " ".join(map(str, record["seeds"]))} for record in records(table)]
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writerow({name: inert_cell(name) for name in writer.fieldnames})
    writer.writerows({name: inert_cell(value) for name, value in row.items()} for row in rows)
    return file.getvalue()
