"""The callback for Lightning, with the real package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.guide import run_script
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import twofold
from twofold import How, UserError, Watch

lightning = pytest.importorskip("lightning", reason="of the adapters (make test-adapters)")
from twofold.adapters.lightning import TwofoldCallback  # noqa: E402

X = torch.randn(96, 6, generator=torch.Generator().manual_seed(0))
TASKS = [TensorDataset(X.roll(2 * k, 1), (X[:, 0] > 0).long()) for k in range(2)]
TESTS = {str(k): task for k, task in enumerate(TASKS)}


class Module(lightning.LightningModule):
    """A network with batch norm, which `Watch` folds."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: Tensor) -> Any:
        return self.net(x)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        return cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def gem(optimizer: torch.optim.Optimizer, model: nn.Module) -> How:
    how = How("gem(when=always)+ema(0.9)", optimizer, model)
    how.references(lambda k: cross_entropy(model(TASKS[k][:20][0]), TASKS[k][:20][1]))
    return how


def watched(**given: Any) -> Watch:
    return Watch(TESTS, benchmark="toy", method="gem", **given)


def trainer(callback: Any, folder: Path, **given: Any) -> Any:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    own = {"max_epochs": 1, "enable_checkpointing": False, "accelerator": "cpu", **given}
    callbacks = [callback] if callback else []
    return lightning.Trainer(callbacks=callbacks, default_root_dir=folder, **quiet, **own)


def fit(callback: Any, folder: Path, tasks: Any = TASKS, **given: Any) -> Module:
    module = Module()
    for task in tasks:
        trainer(callback, folder, **given).fit(module, DataLoader(task, 16))
    return module


def weights(module: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in module.state_dict().values()])


def plain(watch: Watch) -> Module:
    """The same in a plain loop, with a new optimiser for each task as Lightning has it."""
    module, how = Module(), None
    for number, task in enumerate(TASKS):
        optimizer = module.configure_optimizers()
        how = how or gem(optimizer, module)
        how.use(optimizer)
        if number:
            how.switch()
        watch.task(number)
        for batch in DataLoader(task, 16):
            optimizer.zero_grad()
            loss = module.training_step(batch)
            loss.backward()
            optimizer.step()
            watch.log(loss=loss)
            watch(module, how=how)
    return module


def test_it_is_a_plain_loop_with_both(tmp_path):
    watch, other = watched(), watched()
    module = fit(TwofoldCallback(watch, gem), tmp_path)
    assert torch.equal(weights(module), weights(plain(other)))
    run, expected = watch.finish(), other.finish()
    assert run.columns.keys() == expected.columns.keys()
    for name, column in expected.columns.items():
        assert np.array_equal(run.columns[name], column, equal_nan=True), name
    assert run.columns["projected"].any()
    assert run.raw_measures is not None


def test_watching_changes_nothing(tmp_path):
    watch = watched()
    assert torch.equal(weights(fit(TwofoldCallback(watch), tmp_path)), weights(fit(None, tmp_path)))
    assert len(watch.finish().accuracy) == 12


def test_accumulated_gradients_are_one_iteration(tmp_path):
    watch = watched()
    fit(TwofoldCallback(watch), tmp_path, accumulate_grad_batches=3)
    assert watch.finish().columns["task"].tolist() == [1, 1, 2, 2]


def test_it_continues_within_a_task_from_a_checkpoint(tmp_path):
    whole = watched()
    expected = fit(TwofoldCallback(whole, gem), tmp_path, max_epochs=2)
    watch, module, file = watched(out=tmp_path / "runs"), Module(), tmp_path / "half.ckpt"
    callback = TwofoldCallback(watch, gem)
    trainer(callback, tmp_path, max_epochs=2).fit(module, DataLoader(TASKS[0], 16))
    first = trainer(callback, tmp_path, max_epochs=1)
    first.fit(module, DataLoader(TASKS[1], 16))
    first.save_checkpoint(file)
    watch.close()
    watch = watched(out=tmp_path / "runs", resume=True)
    callback = TwofoldCallback(watch, gem, task=1)
    module = Module()
    second = trainer(callback, tmp_path, max_epochs=2)
    second.fit(module, DataLoader(TASKS[1], 16), ckpt_path=file)
    assert torch.equal(weights(module), weights(expected))
    run, uninterrupted = watch.finish(), whole.finish()
    assert np.array_equal(run.accuracy, uninterrupted.accuracy, equal_nan=True)


def test_several_optimisers_are_refused(tmp_path):
    class Two(Module):
        def configure_optimizers(self) -> Any:
            self.automatic_optimization = False
            return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(2)]

    with pytest.raises(UserError, match="twofold needs one optimiser, not 2"):
        trainer(TwofoldCallback(watched()), tmp_path).fit(Two(), DataLoader(TASKS[0], 16))


def test_the_guides_script_runs(tmp_path):
    assert run_script("Lightning", tmp_path) > 0
    (run,) = twofold.Store(tmp_path / "runs").runs()
    assert run.columns["projected"].any()
    assert len(run.accuracy) == 3 * 2 * 32
