"""What `--tensorboard` writes, read back with TensorBoard's own reader."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark

import twofold

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="with TensorBoard (pip install tensorboard)",
)


def test_the_curves_are_all_there(tmp_path):
    from twofold.experiments.tensorboard import write_curves

    run = twofold.run(class_benchmark(), "er", batch_size=10, eval_schedule="every:5")
    write_curves(run, tmp_path)
    (folder,) = tmp_path.iterdir()
    events = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    written = events.Scalars("accuracy/task 1")
    kept = ~np.isnan(run.columns["accuracy_1"])
    assert [event.step for event in written] == run.columns["iteration"][kept].tolist()
    assert np.allclose([event.value for event in written], run.columns["accuracy_1"][kept])
    assert len(events.Scalars("loss")) == 36
