"""notebooks/: their cells run in order, here with a few iterations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from twofold import Routine

FOLDER = Path(__file__).parents[2] / "notebooks"
SHORT = {"iterations": 4, "seed": 142, "tasks": 2, "eval_size": 50}


def cells(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / name).read_text("utf-8"))["cells"]


@pytest.fixture
def run_cells(monkeypatch: pytest.MonkeyPatch):
    """Run the cells of a notebook, and return its names."""
    monkeypatch.setattr(Routine, "known", dict(Routine.known))

    def run(name: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "__main__"}
        with mpl.rc_context({"backend": "agg"}):
            for number, cell in enumerate(cells(name), 1):
                if cell["cell_type"] == "code":
                    exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), names)
                if "parameters" in cell["metadata"].get("tags", ()):
                    names["settings"].update(SHORT)
        return names

    return run


@pytest.mark.real_data
def test_see_the_gap(run_cells, need) -> None:
    need("mnist")
    names = run_cells("see-the-gap.ipynb")
    assert list(names["runs"].measures["method"]) == ["er", "er+gem", "er+hold"]


@pytest.mark.real_data
def test_your_own_routine(run_cells, need) -> None:
    need("mnist")
    names = run_cells("your-own-routine.ipynb")
    assert len(names["runs"]) == 4


def test_your_own_loop(run_cells) -> None:
    assert len(run_cells("your-own-loop.ipynb")["runs"]) == 2


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_is_stored_without_results(name: str) -> None:
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells(name))
