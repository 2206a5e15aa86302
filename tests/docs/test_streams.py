"""The example of the guide on streams."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "streams.md"


def test_the_example_of_a_stream_in_a_given_order_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert 0 <= float(capsys.readouterr().out) <= 100
    assert names["drifting"].ordered  # type: ignore[attr-defined]
    assert len(names["run"].columns["task"]) == 60  # type: ignore[attr-defined]
