"""Tables as text in five formats, and the command that makes them."""

from __future__ import annotations

import pytest

from twofold.compare.verdicts import Findings
from twofold.errors import UserError
from twofold.report.tables import render, study_table
from twofold.report.verdicts import render


def test_an_unknown_format_or_table() -> None:
    table = study_table("main", [])
    with pytest.raises(UserError, match="did you mean 'latex'"):
        render(table, "latx")
    with pytest.raises(UserError, match="did you mean 'appendix'"):
        study_table("apendix", [])
    assert table.blocks == ()


def test_an_unknown_format() -> None:
    with pytest.raises(UserError, match="unknown format 'jsn': did you mean 'json'"):
        render(Findings([]), "jsn")
