"""Compare GEM at every iteration with plain SGD on a loss with the same weight on old tasks."""

from __future__ import annotations

from decisions import MARGINS, bound

from twofold import Store
from twofold.compare.groups import Group, groups, paired_differences
from twofold.compare.statistics import compare
from twofold.report.text import markdown_table
from twofold.text import interval_text, p_text, signed, value_text

HEAD = ["γ", "metric", "ER", "heavier ER", "ER + GEM", "difference", "interval", "simultaneous"]
HEAD += ["p", "corrected p", "decision"]


def options(cell: Group, component: str) -> dict[str, float]:
    return dict(cell.config.components).get(component, {})


runs = Store("replication/runs/confirmation_gamma").runs()
stored = groups(run for run in runs if run.config.eval_schedule == "dense:100:10")
er = next(cell for cell in stored if cell.config.method == "er")
heavier = {options(c, "heavier-er").get("gamma"): c for c in stored}
gem = {options(c, "gem").get("gamma"): c for c in stored}
gammas = sorted(gamma for gamma in heavier.keys() & gem.keys() if gamma is not None)

rows = []
for metric, margin in MARGINS.items():
    pairs = [paired_differences(heavier[gamma], gem[gamma], metric) for gamma in gammas]
    results = compare([[*p.values()] for p in pairs], margin)
    for gamma, result in zip(gammas, results, strict=True):
        own = [
            bound(c, metric) + value_text(c.mean(metric), c.error(metric))
            for c in (er, heavier[gamma], gem[gamma])
        ]
        numbers = [
            signed(result.effect),
            *(interval_text(each) for each in (result.uncorrected, result.interval)),
            *(p_text(p) for p in (result.p, result.p_corrected)),
        ]
        decisions = {
            "effect": "effect",
            "equivalent": f"equivalent within {margin:g}",
            "undecided": f"needs {result.seeds_needed} new seeds",
        }
        rows.append([f"{gamma:g}", metric.upper(), *own, *numbers, decisions[result.outcome]])
print(markdown_table([HEAD, *rows], left=2))
print(f"\n- Offline Rotated MNIST, mean ± standard error over {len(er.seeds)} seeds.")
print("- ≤: an upper bound, from the first 100 iterations of a task and every 10th one after them.")
print("- difference: ER + GEM minus heavier ER, paired by seed.")
print("- heavier ER: plain SGD on ER's loss plus γ times the loss on each past task.")
print("- The simultaneous intervals and p are corrected over all γ, per metric (Bonferroni).")
print("- No study declares these comparisons, so they are exploratory. The findings correct")
print("  γ = 1 together with further comparisons, so its interval is wider there.")
