"""Other systems and Pythons, as far as they can be tried here.

Nothing needs what Windows lacks, workers are spawned there, and an old Python gets one line.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import twofold

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(sys.platform == "win32", reason="this is Windows")
def test_a_run_without_what_windows_lacks(tmp_path):
    script, plugin = ROOT / "tests" / "helpers" / "windows.py", ROOT / "torture" / "blobs.py"
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, script, plugin, "runs"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    (run,) = twofold.Store(tmp_path / "runs").runs(curves=True)
    assert run.config.method == "er"
    assert list((tmp_path / "runs" / ".work").iterdir()) == []  # no lock, log or checkpoint
    assert len(twofold.Store(tmp_path / "runs-archive").runs(curves=True)) == 1


def test_an_old_python_is_told_what_is_needed(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(ImportError, match=r"^twofold needs Python 3\.11 or later$") as error:
        runpy.run_path(twofold.__file__)
    assert error.value.name == "twofold"  # with it, `python -m twofold` prints no traceback
