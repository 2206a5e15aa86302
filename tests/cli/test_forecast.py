"""What `--dry-run` says: how many runs, how many are done, and how long the rest takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.commandline import Command

from twofold.cli import main


def test_a_dry_run_sums_up(twofold: Command, fixed_speed: None, tmp_path: Path) -> None:
    """3 tasks of 2000 iterations: 6000 s per run of ER; with A-GEM, two passes from task 2 on."""
    words = ("study", "run", "main", "--benchmark", "rotated-mnist", "--mode", "offline")
    words += ("--method", "er", "--method", "er+agem", "--out", str(tmp_path), "--dry-run")
    result = twofold(*words, "--workers", 2)
    assert result.out.splitlines() == [
        "rotated-mnist  offline  er          5 runs,    0 done, 8 h 20 min on one core",
        "rotated-mnist  offline  er+agem     5 runs,    0 done, 13 h 53 min on one core",
        "main: 10 runs, 0 done, 10 to train",
        "About 11 h 7 min on the CPU with 2 workers: an estimate, measured on this machine.",
    ]
    assert "About 2 h 47 min on the CPU with 99" in twofold(*words, "--workers", 99).out
    objects = twofold(*words, "--json").objects
    assert objects == [
        {"benchmark": "rotated-mnist", "mode": "offline", "method": method, "runs": 5, "done": 0,
         "seconds": seconds}
        for method, seconds in (("er", 30_000), ("er+agem", 50_000))
    ]  # fmt: skip
    assert json.dumps(objects)


def test_a_dry_run_of_single_runs(run_tiny: Command, fixed_speed: None, tmp_path: Path) -> None:
    """In the same words; 2 tasks of 2 iterations, and a second pass for A-GEM."""
    output = run_tiny("er;er+agem", "--seeds", 2, "--workers", 1, "--dry-run")
    assert output.out.splitlines() == [
        "tiny  offline  er          2 runs,    0 done, 8 s on one core",
        "tiny  offline  er+agem     2 runs,    0 done, 12 s on one core",
        "tiny: 4 runs, 0 done, 4 to train",
        "About 20 s on the CPU with 1 worker: an estimate, measured on this machine.",
    ]
    assert not (tmp_path / "out").exists()
    assert run_tiny("er").code == 0
    (summary,) = run_tiny("er", "--dry-run", "--json").objects
    assert (summary["runs"], summary["done"], summary["seconds"]) == (1, 1, 0)


@pytest.mark.parametrize("command", [("run",), ("study", "run")])
def test_help_says_what_to_choose_on_each_kind_of_machine(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every option that it recommends is one of the command's own."""
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    text = capsys.readouterr().out
    advice = text[text.index("what to choose") :]
    for machine in ("laptop", "server", "GPU"):
        assert f"on a {machine}" in advice
    for option in re.findall(r"--[a-z-]+", advice):
        assert f"{option} " in text[: text.index("examples:")]
