"""The paper's hypotheses, in its words."""

from __future__ import annotations

from twofold.compare.hypotheses import Hypothesis

NO_GAP = (
    "Nothing follows for any hypothesis from finetune, whose low accuracies are forgetting rather "
    "than a gap."
)
GIVEN_H1 = (
    "H2 and H3 are about the benefit of a smaller gap. Evidence for or against them also needs "
    "evidence for H1 from the same methods."
)

H1 = Hypothesis(
    "H1",
    "better routines reduce the stability gap",
    "min",
    ("offline", "online"),
    without=("finetune",),
    remark=NO_GAP,
)
H2 = Hypothesis(
    "H2",
    "reducing the gap increases learning efficiency",
    "avg",
    ("online",),
    given=H1,
    without=("finetune",),
    remark=GIVEN_H1,
)
H3 = Hypothesis(
    "H3",
    "reducing the gap improves the final learning outcome",
    "avg",
    ("offline",),
    given=H1,
    without=("finetune",),
    remark=GIVEN_H1,
)

HYPOTHESES = (H1, H2, H3)
