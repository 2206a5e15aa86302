"""Layouts of tables."""

from __future__ import annotations

import pytest
from helpers.measures import measured_run

from twofold import UserError
from twofold.compare.groups import groups
from twofold.report.tables import study_table


def test_only_some_of_the_metrics() -> None:
    chosen = ["raw_avg", "min", "gap_depth"]
    result = study_table("trajectories", groups([measured_run()]), metrics=chosen)
    assert result.blocks[0].columns == ("raw AVG", "MIN", "gap depth")
    with pytest.raises(UserError, match="unknown metric 'gap': did you mean 'gap_depth'"):
        study_table("trajectories", [], metrics=["gap"])
    with pytest.raises(UserError, match="unknown metric 'residual'"):
        study_table("main", [], metrics=["residual"])
