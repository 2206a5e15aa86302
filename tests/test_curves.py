"""Curves while they grow: columns, blocks, and tensors that are read at once."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from twofold import curves as module
from twofold.curves import RECORDED, Curves


def filled(rows: int, tasks: int = 2, as_tensors: bool = True) -> Curves:
    """Rows whose values follow from their number; every third one is evaluated."""
    curves = Curves(tasks)
    for n in range(rows):
        task = 1 + n * tasks // rows
        loss = n / 7
        values = {"loss": torch.tensor(loss) if as_tensors else loss}
        if n % 2:
            values["own"] = torch.tensor(float(n))
        if task > 1:
            values["projected"] = torch.tensor(True)
        curves.add(task, values)
        if n % 3 == 0:
            accuracies = torch.arange(task) + float(n)
            curves.add_accuracies(accuracies, accuracies / 2 if n > rows // 2 else None)
    return curves


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, column in one.items():
        assert column.dtype == other[name].dtype, name
        np.testing.assert_array_equal(column, other[name], err_msg=name)


def test_columns_have_a_row_per_iteration():
    columns = filled(10).columns()
    assert {len(column) for column in columns.values()} == {10}
    assert columns["iteration"].tolist() == list(range(1, 11))
    assert columns["task"].tolist() == 5 * [1] + 5 * [2]
    np.testing.assert_allclose(columns["loss"], np.arange(10) / 7, rtol=1e-6)
    assert columns["projected"].tolist() == 5 * [0] + 5 * [1]
    assert columns["own"][1::2].tolist() == [1, 3, 5, 7, 9]
    assert np.isnan(columns["own"][::2]).all()
    assert columns["accuracy_1"][::3].tolist() == [0, 3, 6, 9]
    assert columns["accuracy_2"][6::3].tolist() == [7, 10]
    assert np.isnan(columns["accuracy_2"][:6]).all()
    assert columns["raw_accuracy_1"][6::3].tolist() == [3, 4.5]
    assert np.isnan(columns["raw_accuracy_1"][:6]).all()


def test_what_is_not_recorded_has_its_usual_value():
    curves = Curves(1)
    curves.add(1, {})
    columns = curves.columns()
    for name, default in RECORDED.items():
        np.testing.assert_array_equal(columns[name], np.float32([default]), err_msg=name)
    assert np.isnan(columns["accuracy_1"]).all()


@pytest.mark.parametrize("block", [1, 2, 7, 30])
def test_blocks_leave_the_columns_as_they_are(monkeypatch, block):
    whole = filled(23).columns()
    monkeypatch.setattr(module, "BLOCK", block)
    curves = filled(23)
    assert len(curves) == 23
    assert len(curves._open) <= block
    assert_same(curves.columns(), whole)
    assert_same(curves.columns(), whole)  # as often as you ask


def test_numbers_and_tensors_give_the_same_columns():
    assert_same(filled(9, as_tensors=False).columns(), filled(9).columns())


def test_tensors_of_the_host_are_read_at_once():
    """They are not kept, and what happens to them later does not matter."""
    curves = Curves(2)
    loss, accuracies = torch.tensor(1.5), torch.tensor([50.0, 60.0])
    curves.add(2, {"loss": loss})
    curves.add_accuracies(accuracies, accuracies)
    loss.zero_()
    accuracies.zero_()
    kept = [*curves._open, *curves._accuracies]
    assert not any(isinstance(value, torch.Tensor) for row in kept for value in row.values())
    assert not any(isinstance(o, torch.Tensor) for o in gc.get_referents(*kept))
    columns = curves.columns()
    assert columns["loss"].tolist() == [1.5]
    assert [float(columns[f"accuracy_{k}"][0]) for k in (1, 2)] == [50.0, 60.0]
    assert [float(columns[f"raw_accuracy_{k}"][0]) for k in (1, 2)] == [50.0, 60.0]


@pytest.mark.parametrize("rows", [1, 6, 11])
def test_curves_continue_after_a_checkpoint(rows):
    whole, first, resumed = filled(12), Curves(2), Curves(2)
    columns = whole.columns()

    def add(curves: Curves, n: int) -> None:
        names = ("loss", "own", "projected")
        curves.add(int(columns["task"][n]), {name: float(columns[name][n]) for name in names})
        seen = int(columns["task"][n])
        if n % 3 == 0:
            table = [[columns[f"{kind}_{k + 1}"][n] for k in range(seen)] for kind in KINDS]
            accuracies, raw = map(torch.tensor, table)
            curves.add_accuracies(accuracies, raw)

    for n in range(rows):
        add(first, n)
    resumed.restore(first.state())
    assert len(resumed) == rows
    for n in range(rows, 12):
        add(resumed, n)
    assert_same(resumed.columns(), columns)


KINDS = ("accuracy", "raw_accuracy")
