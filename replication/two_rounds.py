"""Print the effects on the MIN of ER in both rounds of new seeds, and in all of them together."""

from __future__ import annotations

from decisions import Place

from twofold.compare.groups import paired_differences
from twofold.compare.statistics import compare
from twofold.report.text import markdown_table
from twofold.text import interval_text, signed

ROUNDS = {"first": Place("confirmation"), "second": Place("confirmation_er")}

rows = []
for method in ("er+gem", "er+agem"):
    found = {
        name: paired_differences(place.group("er"), place.group(method), "min")
        for name, place in ROUNDS.items()
    }
    both = {seed: value for differences in found.values() for seed, value in differences.items()}
    for name, differences in (*found.items(), ("both", both)):
        (result,) = compare([[*differences.values()]])
        assert result.uncorrected is not None
        numbers = [signed(result.effect, 2), interval_text(result.uncorrected, 2)]
        rows.append([method, name, str(len(differences)), *numbers])
print(markdown_table([["method", "round", "seeds", "effect on MIN", "interval"], *rows], left=2))
print("\n- interval: 95%, of one difference alone (paired t). Both rounds together decide nothing:")
print("  the first is why there was a second.")
