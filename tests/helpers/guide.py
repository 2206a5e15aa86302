"""The scripts of docs/your-own-loop.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_script(title: str, folder: Path) -> float:
    """Run the script below a title in a folder, and return the last number that it prints."""
    text = (ROOT / "docs" / "your-own-loop.md").read_text()
    code = re.findall(rf"^## {title}\n.*?^```python\n(.*?)^```", text, re.M | re.S)[0]
    assert len(code.splitlines()) < 40
    (folder / "script.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])
