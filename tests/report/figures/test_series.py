"""Series from groups of runs."""

from __future__ import annotations

import pytest
from helpers.figures import two_tasks

from twofold import UserError
from twofold.report.figures import KINDS, gap_figure


def test_runs_of_different_length_or_mode_do_not_mix():
    short = two_tasks("er", [50, 60, 70, 80], iterations=2)
    other = two_tasks("joint", [50, 60, 70, 80, 90, 90])
    with pytest.raises(UserError, match=r"differ in length \(er 4, joint 6\): choose with the"):
        gap_figure([short, other])
    with pytest.raises(UserError, match=r"the runs differ in mode \(offline, online\)"):
        gap_figure([short, two_tasks("joint", [50, 60, 70, 80], mode="online")])
    for kind in KINDS.values():
        with pytest.raises(UserError, match="at least one run"):
            kind.draw([])
