"""One convention for all that becomes text."""

from __future__ import annotations

import pytest

from twofold.errors import UserError
from twofold.report import departures, tables, verdicts
from twofold.report.rendering import Renderer


def test_a_format_is_found_by_its_name() -> None:
    render = Renderer({"md": str.lower, "csv": str.upper})
    assert render.formats == ["md", "csv"]
    assert (render("Text"), render("Text", "csv")) == ("text", "TEXT")
    with pytest.raises(UserError, match="unknown format 'cvs': did you mean 'csv'"):
        render("Text", "cvs")


def test_tables_verdicts_and_departures_follow_it() -> None:
    assert tables.render.formats == ["md", "latex", "csv", "json", "html"]
    assert verdicts.render.formats == departures.render.formats == ["md", "csv", "json"]
