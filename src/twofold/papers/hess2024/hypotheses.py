"""The paper's hypotheses, in its words."""

from __future__ import annotations

from twofold.compare.hypotheses import Hypothesis

BESIDE_H1 = (
    "H2 and H3 are about the benefit of a smaller gap: read each beside the H1 of the same methods."
)

HYPOTHESES = (
    Hypothesis("H1", "better routines reduce the stability gap", "min", ("offline", "online")),
    Hypothesis(
        "H2",
        "reducing the gap increases learning efficiency",
        "avg",
        ("online",),
        remark=BESIDE_H1,
    ),
    Hypothesis(
        "H3",
        "reducing the gap improves the final learning outcome",
        "avg",
        ("offline",),
        remark=BESIDE_H1,
    ),
)
