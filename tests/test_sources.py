"""The digest of the package's sources: the same version may be different code."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from helpers.benchmarks import class_benchmark

import twofold
from twofold import UserError
from twofold.discovery import sources_digest
from twofold.experiments.config import configure

PACKAGE = Path(twofold.__file__).parent


def test_any_change_of_a_source_changes_the_digest(tmp_path):
    copies = [tmp_path / name for name in ("same", "changed", "renamed")]
    for copy in copies:
        shutil.copytree(PACKAGE / "routines", copy, ignore=shutil.ignore_patterns("__pycache__"))
    same, changed, renamed = copies
    (changed / "gem.py").write_text((changed / "gem.py").read_text() + "#\n")
    (renamed / "gem.py").rename(renamed / "gem2.py")
    (same / "notes.txt").write_text("no source")
    result = {sources_digest(folder) for folder in (PACKAGE / "routines", *copies)}
    assert len(result) == 3
    assert sources_digest(same) == sources_digest(PACKAGE / "routines")


def test_a_node_with_different_sources_is_refused_by_name():
    ray_engine = pytest.importorskip(
        "twofold.experiments.ray_engine", reason="with Ray (pip install ray)"
    )
    errand = ray_engine._Errand(Path("store"), Path("no-token"), None, {}, 30.0)
    other = dataclasses.replace(errand, twofold=errand.twofold.replace(sources_digest(), "0" * 10))
    config = configure(class_benchmark(), "er", batch_size=16, iterations=1)
    with pytest.raises(UserError, match=r"^node .* has twofold .* but this is .*0000000000"):
        other.train(config, config.identity(), lambda progress: None)


def test_the_summary_records_the_digest():
    run = twofold.run(class_benchmark(), "er", batch_size=16, iterations=1, memory_per_class=2)
    assert run.summary["made_with"]["sources"] == sources_digest()
