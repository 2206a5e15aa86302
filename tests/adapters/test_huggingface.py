"""The callback for the Trainer of Hugging Face, with the real package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.guide import run_script
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import twofold
from twofold import How, UserError, Watch

transformers = pytest.importorskip("transformers", reason="of the adapters (make test-adapters)")
from twofold.adapters.huggingface import TwofoldCallback  # noqa: E402


@pytest.fixture(autouse=True)
def _no_datasets(monkeypatch):
    """Keep the Trainer from taking the folder tests/datasets for the package `datasets`."""
    monkeypatch.setattr(transformers.trainer, "is_datasets_available", lambda: False)


X = torch.randn(48, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()
TASKS = [
    [{"x": x, "labels": y} for x, y in zip(X.roll(2 * k, 1), Y, strict=True)] for k in range(2)
]


class Model(nn.Module):
    """A model as the Trainer wants it: it returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"loss": cross_entropy(logits, labels), "logits": logits}


def accuracy(k: int) -> Any:
    def of(model: nn.Module) -> float:
        logits = model(X.roll(2 * k, 1), Y)["logits"]
        return 100 * float((logits.argmax(1) == Y).float().mean())

    return of


def gem(optimizer: torch.optim.Optimizer, model: nn.Module) -> How:
    how = How("gem(when=always)", optimizer, model, route="first")
    how.references(lambda k: model(X[:20].roll(2 * k, 1), Y[:20])["loss"])
    return how


def watched(**given: Any) -> Watch:
    return Watch({"a": accuracy(0), "b": accuracy(1)}, benchmark="toy", method="gem", **given)


def train(callback: Any, folder: Path, **given: Any) -> Model:
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "optim": "adamw_torch"}
    own = {"max_steps": 3, "save_strategy": "no", "per_device_train_batch_size": 8, **given}
    args = transformers.TrainingArguments(str(folder), **quiet, **own)
    model, callbacks = Model(), [callback] if callback else []
    for task in TASKS:
        transformers.Trainer(model, args, train_dataset=task, callbacks=callbacks).train()
    return model


def weights(model: nn.Module) -> Tensor:
    return torch.cat([value.flatten() for value in model.state_dict().values()])


def test_watching_changes_nothing_and_routines_do(tmp_path):
    watch = watched()
    without = weights(train(None, tmp_path))
    assert torch.equal(weights(train(TwofoldCallback(watch), tmp_path)), without)
    assert watch.finish().columns["task"].tolist() == [1, 1, 1, 2, 2, 2]
    watch = watched()
    with_routines = train(TwofoldCallback(watch, gem), tmp_path)
    assert not torch.equal(weights(with_routines), without)
    run = watch.finish()
    assert run.columns["projected"].tolist() == [0, 0, 0, 1, 1, 1]
    values = [accuracy(k)(with_routines.eval()) for k in range(2)]
    assert np.allclose(run.accuracy[-1], values)


def test_accumulated_gradients_are_one_iteration(tmp_path):
    watch = watched()
    train(TwofoldCallback(watch, gem), tmp_path, gradient_accumulation_steps=2, max_steps=2)
    assert watch.finish().columns["task"].tolist() == [1, 1, 2, 2]


def test_curves_are_saved_with_the_trainers_checkpoints(tmp_path):
    watch = watched(out=tmp_path / "runs")
    options = {"save_strategy": "steps", "save_steps": 2}
    train(TwofoldCallback(watch), tmp_path / "out", **options)
    watch._close()  # as if the process had been killed
    second = watched(out=tmp_path / "runs", resume=True)
    assert second.position == (1, 2 + 1)  # the last step of a training is saved, too


def test_routines_without_their_state_are_refused(tmp_path):
    """A callback of Hugging Face is not told what a checkpoint holds."""
    args = transformers.TrainingArguments(str(tmp_path))
    state = transformers.TrainerState(global_step=5)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(UserError, match="the state of the routines is not known: start the task"):
        TwofoldCallback(how=gem).on_train_begin(args, state, None, model=model, optimizer=optimizer)


def test_the_guides_script_runs(tmp_path):
    assert run_script("Hugging Face", tmp_path) > 0
    (run,) = twofold.Store(tmp_path / "runs").runs()
    assert run.columns["projected"].any()
    assert run.quantity(1) == "−loss"
