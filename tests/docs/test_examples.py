"""Examples and links in the documents."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.figures import (
    diagnosed,
    stored,
    two_tasks,
)
from helpers.runs import curve_run, example_run, gap_accuracies, saved

import twofold
from twofold.benchmarks import Recipe
from twofold.cli import main
from twofold.discovery import import_file
from twofold.papers.hess2024.profiles import DEPARTURES
from twofold.report.figures import KINDS
from twofold.routines import Routine


def test_every_departure_is_in_the_document() -> None:
    text = (ROOT / "docs" / "profiles.md").read_text()
    assert all(f"| {each.name} |" in text for each in DEPARTURES)


ROOT = Path(__file__).parents[2]


def python_blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text()
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in blocks]


def run_block(code: str, tmp_path: Path) -> str:
    script = tmp_path / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.real_data
def test_the_readme_example_runs(need, tmp_path):
    need("mnist")
    *lines, depth = run_block(python_blocks("README.md")[0], tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == ["er", "er+gem", "er+halved"]
    assert all(float(line.split("AVG ")[1].split()[0]) > 70 for line in lines)
    assert float(depth) >= 0
    assert (tmp_path / "halved.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.real_data
def test_the_readme_example_with_several_runs_runs(need, tmp_path):
    need("mnist")
    run_block(python_blocks("README.md")[1], tmp_path)
    assert len(twofold.Store(tmp_path / "runs").runs()) == 4
    assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")


def test_the_readme_example_with_own_tensors_runs(tmp_path):
    assert 0 <= float(run_block(python_blocks("README.md")[2], tmp_path)) <= 100


def test_the_routine_of_contributing_works(tmp_path):
    (code,) = python_blocks("CONTRIBUTING.md")
    (tmp_path / "sign.py").write_text(code)
    assert "sign" not in Routine.known
    try:
        import_file(str(tmp_path / "sign.py"))
        run = twofold.run(domain_benchmark(), "er+sign(0.001)", batch_size=10)
        assert run.columns["projected"].all()
        assert run.columns["norm_ratio"].max() < 0.5
        with pytest.raises(twofold.UserError, match="sign's scale"):
            twofold.configure("rotated-mnist", "er+sign(-1)")
    finally:
        Routine.known.pop("sign", None)


def test_the_benchmark_of_the_guide_to_data_works(tmp_path):
    file = tmp_path / "blobs.py"
    file.write_text(python_blocks("docs/your-own-data.md")[-1])
    try:
        words = ("run", "blobs", "er", "er+gem", "--plugin", file, "--iterations", 5)
        done = main([*map(str, words), "--out", str(tmp_path / "runs"), "--workers", "1"])
        assert done == 0
        frame = twofold.Store(tmp_path / "runs").frame()
        assert frame.groupby("method").size().to_dict() == {"er": 15, "er+gem": 15}
    finally:
        Recipe.known.pop("blobs", None)


def test_the_guide_to_data_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # it writes a file
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    *blocks, _ = python_blocks("docs/your-own-data.md")
    for code in blocks:
        torch.manual_seed(0)
        exec(code, {})
    assert all(float(line) > 80 for line in capsys.readouterr().out.splitlines())
    assert len(blocks) == 4


def test_the_table_of_all_runs_has_each_tasks_part_of_min(tmp_path, monkeypatch):
    """The example of docs/studies.md, and what is said of it."""
    monkeypatch.chdir(tmp_path)
    run = twofold.run(domain_benchmark(), "er", batch_size=10, eval_size=7, out="runs")
    names: dict[str, Any] = {}
    code, listing = python_blocks("docs/studies.md")
    exec(code.replace("print(", "found = ("), names)
    assert names["found"].tolist() == [pytest.approx(run.summary["minimum_of_task"][0])]
    exec(listing, names)
    assert repr(names["runs"]) == "Runs(1 run: er on domain-toy)"
    assert Path("er.png").read_bytes().startswith(b"\x89PNG")


PAGES = [page for folder in ("docs", "replication") for page in (ROOT / folder).glob("*.md")]


@pytest.mark.parametrize(
    "document", ["README.md", *(page.relative_to(ROOT).as_posix() for page in sorted(PAGES))]
)
def test_links_between_documents_lead_somewhere(document):
    page = ROOT / document
    for link in re.findall(r"\]\((?!https?:)([^)]+)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the names under which GitHub finds the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_the_listed_profiles_and_methods_exist():
    for cell in re.findall(
        r"`((?:finetune|er|joint|der|bic|agem|gem)\S*?)`", (ROOT / "README.md").read_text()
    ):
        twofold.Method.parse(cell)


def test_the_guide_tells_the_truth(tmp_path, monkeypatch):
    """Its commands and its Python run, and it has every figure."""
    guide = (ROOT / "docs" / "figures.md").read_text()
    monkeypatch.chdir(tmp_path)
    runs = [two_tasks(method, [50, 60, 70, 80]) for method in ("er", "er+gem", "joint")]
    config = twofold.configure("domain-cifar100", "er", mode="online")
    online = example_run(config, [[50, 60, 70, 80], [np.nan] * 2 + [1, 1]])
    stored([*runs, online], Path("runs"))
    stored([diagnosed("er"), diagnosed("er+gem")], Path("diagnosed"))
    for command in re.findall(r"^twofold (figure .*?)(?: +#.*)?$", guide, re.MULTILINE):
        other = ["--runs", "diagnosed"] if "diagnosis" in command else []
        assert main([*shlex.split(command), *other]) == 0, command
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    exec(code, {})
    assert {path.name for path in Path().glob("*.*")} == {
        "rotated-mnist-offline-gap.png",
        "gap.pdf",
        "compare.svg",
        "joint.png",
        "compare.png",
        "rotated-mnist-offline-diagnosis.png",
    }
    assert set(re.findall(r"^\| `(.*?)` ", guide, re.MULTILINE)) == set(KINDS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    runs = [
        curve_run(method, gap_accuracies(60, 3, seed + len(method)), seed)
        for method in ("er", "er+gem")
        for seed in (142, 152)
    ]
    return saved(tmp_path / "store", runs)


def test_the_example_of_the_guide(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "docs" / "tables.md").read_text()
    (code,) = re.findall("```python\n(.*?)```", guide, re.DOTALL)
    store.rename(store.parent / "runs")
    monkeypatch.chdir(store.parent)
    exec(compile(code, "tables.md", "exec"), {})
    out = capsys.readouterr().out
    assert r"\begin{tabular}" in out
    assert "er+gem compared with er (Rotated MNIST, offline, lr 0.1, batch 128, 2 seeds)" in out
    assert (store.parent / "er-gem.csv").read_text().count("\n") == 3
    assert "rotated-mnist offline 2 seeds in common: too few to show an effect of gem" in out
