"""Workflows for public CI: they can be read, and run what the repository has."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml", reason="of workflow files (pip install pyyaml)")


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return content


def commands(workflow: dict[str, Any]) -> list[str]:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def test_public_ci_covers_systems_and_the_whole_matrix():
    workflow = read(".github/workflows/test.yml")
    entries = runpy.run_path(str(ROOT / "docs" / "matrix.py"))["MATRIX"]
    matrix = workflow["jobs"]["matrix"]["strategy"]["matrix"]
    assert matrix["entry"] == [entry.name for entry in entries]
    systems = [system.partition("-")[0] for system in matrix["system"]]
    assert systems == ["ubuntu", "macos", "windows"]
    targets = re.findall(r"^([\w-]+):(?! *=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(workflow):
        for target in re.findall(r"make ([\w-]+)", command):
            assert target in targets


def test_the_example_has_a_job_per_shard():
    workflow = read("examples/shards.yml")
    shards = workflow["jobs"]["shard"]["strategy"]["matrix"]["shard"]
    assert shards == list(range(1, workflow["env"]["SHARDS"] + 1))
    assert any("--shard ${{ matrix.shard }}/$SHARDS" in each for each in commands(workflow))
    assert "twofold runs merge stores/shard-* --out runs" in commands(workflow)
