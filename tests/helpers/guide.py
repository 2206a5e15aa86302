"""The scripts of docs/your-own-loop.md."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_script(title: str, folder: Path) -> float:
    """Run the script below a title in a folder, and return the last number that it prints."""
    text = (ROOT / "docs" / "your-own-loop.md").read_text()
    code = re.findall(rf"^## {title}\n.*?^```python\n(.*?)^```", text, re.M | re.S)[0]
    assert len(code.splitlines()) < 40
    (folder / "script.py").write_text(code)
    output = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(output):
        runpy.run_path("script.py", run_name="__main__")
    return float(output.getvalue().split()[-1])
