"""Layouts of tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.measures import measured_run

from twofold import UserError
from twofold.compare.groups import groups
from twofold.evaluation.measures import MEASURES
from twofold.report.tables import store_table, study_table


def test_only_some_of_the_metrics() -> None:
    chosen = ["raw_avg", "min", "gap_depth"]
    result = study_table("trajectories", groups([measured_run()]), metrics=chosen)
    assert result.blocks[0].columns == ("raw AVG", "MIN", "gap depth")
    with pytest.raises(UserError, match="unknown metric 'gap_dept': did you mean 'gap_depth'"):
        study_table("trajectories", [], metrics=["gap_dept"])


def documented_measures() -> list[str]:
    """The keys in the table of docs/measures.md."""
    text = (Path(__file__).parents[3] / "docs" / "measures.md").read_text()
    return re.findall(r"^\| [^|]+ \| `(\w+)` \|", text, re.M)


@pytest.mark.parametrize("name", ["main", "trajectories", ""])
def test_every_documented_measure_is_a_metric_of_every_table(name: str) -> None:
    expected, keys = measured_run().measures, documented_measures()
    found = groups([measured_run(low=expected["min"], avg=expected["avg"])])
    assert len(keys) == len(MEASURES)
    table = study_table(name, found, metrics=keys) if name else store_table(found, keys)
    numbers = [n for n in table.numbers() if n.method == "er"]
    assert [n.metric.short for n in numbers] == keys
    assert [n.value and n.value[0] for n in numbers] == [expected[key] for key in keys]
