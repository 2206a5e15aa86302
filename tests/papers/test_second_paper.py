"""A second paper is a folder: with one added to a copy of the package, all commands know it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import TINY, Outcome, one_line

import twofold

TASKS, SEEDS = 2, 3
FILES = {
    "__init__.py": "",
    "paper.toml": """
title = "A toy"
authors = ["Ada Lovelace", "Charles Babbage"]
year = 2025
""",
    "studies/main.toml": f"""
title = "The toy's main table"
seeds = {SEEDS}
plugins = ["tiny.py"]

[[grid]]
benchmark = "tiny"
method = ["er", "er+agem"]
lr = 0.1
batch_size = 4
""",
    "studies/plain.toml": """
title = "The toy's second study"
plugins = ["tiny.py"]

[[grid]]
benchmark = "tiny"
method = "finetune"
""",
    "studies/tiny.py": TINY.replace("tasks = 20", f"tasks = {TASKS}"),
    "reference/numbers.csv": """
method,metric,mean,sem
er,min,12.3,0.4
er,avg,45.6,0.7
er+agem,min,11.1,0.4
er+agem,avg,44.4,0.7
""".lstrip(),
    "reference.py": """
from pathlib import Path

from twofold.compare.reference import Printed, address, read_rows


def numbers():
    rows = read_rows(Path(__file__).parent / "reference" / "numbers.csv")
    return {
        address("tiny", "offline", row["method"], row["metric"], 0.1, 4): Printed(
            float(row["mean"]), float(row["sem"])
        )
        for row in rows
    }
""",
    "tables.py": """
from twofold.report.tables.layouts import Layout, columns

TABLES = {
    "toy": Layout(
        study="main",
        title="ER with and without A-GEM, as toys",
        groups=(columns("er", "er+agem"),),
        heads=("benchmark", "mode", "LR", "BS"),
    )
}
""",
    "hypotheses.py": """
from twofold.compare.hypotheses import Hypothesis

HYPOTHESES = (Hypothesis("H1", "toys profit from routines", "avg", ("offline",)),)
""",
    "profiles.py": """
from twofold.experiments.profiles import Departure

DEPARTURES = (
    Departure("T1", "a frozen pass", "reference", "objective", "frozen", components=("agem",)),
)
PROFILES = {"toy-code": DEPARTURES}
NOTES = {"paper": "These runs follow the toy's text."}
""",
}


SCRIPT = """
import contextlib, io, json, sys

from twofold.cli import main

done = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    done.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(done))
"""


@pytest.fixture
def call(toy: Path, tmp_path: Path) -> Callable[..., list[Outcome]]:
    """Commands in a process of their own, on a copy of the package that has a second paper."""
    copy = tmp_path / "src" / "twofold"
    shutil.copytree(
        Path(twofold.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, text in FILES.items():
        file = copy / "papers" / "toy2025" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    env.setdefault("TWOFOLD_CACHE", str(tmp_path / "cache"))

    def run(*commands: str) -> list[Outcome]:
        words = json.dumps([shlex.split(command) for command in commands])
        process = subprocess.run(
            [sys.executable, "-c", SCRIPT, words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert process.returncode == 0, process.stderr
        return [Outcome(*each) for each in json.loads(process.stdout.splitlines()[-1])]

    return run


def test_a_second_paper_works_through_all_commands(
    call: Callable[..., list[Outcome]], toy: Path, tmp_path: Path
) -> None:
    run = f"study run toy2025/main --data {shlex.quote(str(toy))} --workers 1"
    listed, shared, ran = call("study list", "study show main", run)
    for name, count, title in (
        ("toy2025/main", 2 * SEEDS, "The toy's main table"),
        ("plain", 1, "The toy's second study"),
        ("hess2024/main", 240, "The main table"),
    ):
        (line,) = [line for line in listed.out.splitlines() if line.split()[0] == name]
        assert line.split()[1] == str(count)
        assert title in line
    several = "several papers have a study 'main': hess2024/main, toy2025/main"
    assert one_line(shared.err) == several
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "runs").glob("tiny-*"))) == 2 * SEEDS

    table, other, verdicts, figure, report, profile = call(
        "table toy --format json",
        "table main",
        "verdicts",
        "figure gap tiny -o gap.svg",
        "report -o page.html",
        "run rotated-mnist er+agem --profile toycode",
    )
    check_table(json.loads(table.out))
    assert "belongs to this table: `twofold study run hess2024/main`" in one_line(other.err)
    assert "**toy2025/H1: toys profit from routines** (AVG, profile paper)" in verdicts.out
    assert "**hess2024/H1: better routines reduce the stability gap**" in verdicts.out
    assert "er (3), er+agem (3)" in figure.out
    assert "<svg" in (tmp_path / "gap.svg").read_text()
    assert report.code == 0, report.err
    page = (tmp_path / "page.html").read_text()
    assert "ER with and without A-GEM, as toys" in page
    assert "toys profit from routines" in page
    assert "did you mean 'toy-code'? (there are paper, published, toy-code)" in profile.err


def check_table(table: dict[str, Any]) -> None:
    printed = {(n["method"], n["metric"]): n["reference_mean"] for n in table["numbers"]}
    assert printed["er", "min"] == 12.3
    assert printed["er+agem", "avg"] == 44.4
    for number in table["numbers"]:
        assert len(number["seeds"]) == SEEDS
        assert number["difference"] == number["mean"] - number["reference_mean"]
    notes = " ".join(table["notes"])
    assert "the number in Lovelace and Babbage (2025) for the same LR and BS" in notes
    assert "These runs follow the toy's text." in notes
