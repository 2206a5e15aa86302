"""Curves for TensorBoard."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from twofold.curves import RECORDED
from twofold.experiments.runs import Run
from twofold.extras import need


def check_installed() -> None:
    need("tensorboard", "the option tensorboard")


def write_curves(run: Run, folder: Path) -> None:
    """Write all curves of a run as scalars, into a folder of its own below `folder`."""
    from torch.utils.tensorboard import SummaryWriter

    missing = [name for name in RECORDED if name not in run.columns]
    if missing:  # of a run that was exported
        print(f"{run.config.folder_name()} has no {', '.join(missing)}", file=sys.stderr)
    with SummaryWriter(str(folder / run.config.folder_name())) as writer:
        for name, column in run.columns.items():
            if name in ("iteration", "task"):
                continue
            values = column.astype(float)
            tag = name.replace("accuracy_", "accuracy/task ")
            for step, value in zip(run.columns["iteration"], values, strict=True):
                if not np.isnan(value):
                    writer.add_scalar(tag, value, int(step))
