"""The paper's tables, and two of trajectories beside them."""

from __future__ import annotations

from functools import partial

from twofold.report.tables.layouts import Column, Layout, Metric, columns, measured

LABELS = {
    "finetune": "Finetune",
    "er": "ER",
    "joint": "Joint",
    "der": "DER",
    "bic": "BiC",
    "gem": "GEM",
    "agem": "A-GEM",
}
SECONDS = Metric("seconds.training", "Time [s]", decimals=2, portable=False)
TIMES_ER = Metric("seconds.training", "Times ER", decimals=2, relative_to="er")

_columns = partial(columns, labels=LABELS)
_SHOWN = (  # the rest of MEASURES is in `twofold runs show`
    *("min", "avg", "residual", "wc_acc", "gap_depth", "recovery", "recovered"),
    *("wf10", "wf100", "wp10", "wp100", "aaa", "new_speed", "new_accuracy"),
)
_GAMMAS = tuple(
    Column(f"er+gem(gamma={gamma},when=always)", f"γ = {gamma}")
    for gamma in ("0", "0.05", "0.1", "0.5", "0.8", "1")
)


def _trajectories(study: str, title: str) -> Layout:
    """Return a table of measures, with a row per method."""
    return Layout(
        study=study,
        title=title,
        blocks=("benchmark", "mode", "LR", "BS"),
        metrics=(*map(measured, _SHOWN), measured("min", raw=True), measured("avg", raw=True)),
        transposed=True,
        labels=LABELS,
        remark="No column is enough by itself: a method that stops learning has no gap. "
        "docs/measures.md explains how to read them.",
    )


TABLES = {
    "main": Layout(
        study="main",
        title="ER and full replay, by themselves and with the routines of GEM and A-GEM",
        groups=(_columns("er", "er+gem", "er+agem"), _columns("joint", "joint+gem", "joint+agem")),
        heads=("benchmark", "mode", "LR", "BS"),
        setting="chosen",
        chosen_by=("er", "joint"),
        bold=True,
    ),
    "sota": Layout(
        study="sota",
        title="A-GEM's routine on top of DER and BiC",
        groups=(_columns("der", "der+agem"), _columns("bic", "bic+agem")),
        heads=("benchmark", "mode", "LR", "BS"),
        setting="chosen",
        chosen_by=("der", "bic"),
    ),
    "timing": Layout(
        study="timing",
        title="Training time without evaluation",
        groups=(_columns("er", "er+agem", "er+gem"),),
        blocks=("benchmark", "mode", "LR", "BS"),
        metrics=(SECONDS, TIMES_ER),
        transposed=True,
        remark="Seconds depend on the machine and its load: compare the ratios. Here they cover "
        "a whole training step; the paper's leave out sampling, projection and update.",
    ),
    "gamma": Layout(
        study="gamma",
        title="ER + GEM, projecting at every iteration, by its hyperparameter γ; and ER",
        groups=((*_GAMMAS, *_columns("er")),),
        blocks=("benchmark", "mode", "LR", "BS"),
        bold=True,
    ),
    "appendix": Layout(
        study="appendix",
        title="All methods with all learning rates (LR) and mini-batch sizes (BS)",
        groups=(
            _columns("finetune", "gem", "agem"),
            _columns("er", "er+gem", "er+agem"),
            _columns("der", "der+agem"),
            _columns("bic", "bic+agem"),
            _columns("joint", "joint+gem", "joint+agem"),
        ),
        blocks=("benchmark", "mode"),
        heads=("BS", "LR"),
        setting="all",
    ),
    "trajectories": _trajectories(
        "trajectories",
        "Routines and chains of them: what the gap costs, and what closing it costs",
    ),
    "closing": _trajectories("closing", "Closing the gap with the trained weights, and its price"),
    "natural": _trajectories("natural", "The same on natural images"),
}
