"""The paper's hypotheses."""

from __future__ import annotations

from helpers.runs import grouped, seeded

from twofold.compare.verdicts import verdicts

PLAIN = [80.0, 80.0, 80.0]


def test_min_in_both_modes_and_avg_in_each() -> None:
    online = {"mode": "online"}
    results = verdicts(
        grouped(
            seeded("er", PLAIN),
            seeded("er+gem", [81, 82, 83]),
            seeded("er", PLAIN, **online),
            seeded("er+gem", [81, 82, 83], **online),
        )
    )
    assert [(v.hypothesis, v.mode, v.metric, v.family) for v in results] == [
        ("H1", "offline", "min", 4),  # as many as the study `main` declares
        ("H1", "online", "min", 4),
        ("H2", "online", "avg", 4),
        ("H3", "offline", "avg", 4),
    ]
