"""Print what `twofold runs show` answers to each run that a stranger has written."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.runs import curve_run  # noqa: E402

from torture.hostile import HOSTILE, Change, seal  # noqa: E402
from twofold.cli import main as twofold  # noqa: E402
from twofold.experiments.store import Store  # noqa: E402
from twofold.report.text import markdown_table  # noqa: E402

ACCURACIES = [[80.0, 90.0, 40.0, 85.0], [float("nan"), float("nan"), 70.0, 88.0]]
LONGEST = 110  # letters of an answer that are shown


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sound = Store(Path(folder) / "sound")
        sound.prepare()
        for method in ("er", "er+gem"):
            sound.save(curve_run(method, ACCURACIES, tasks=2, iterations=2))
        lines = [["the run", "the answer"]]
        for kind, spoil in HOSTILE.items():
            store = Path(shutil.copytree(sound.folder, Path(folder) / "store"))
            lines.append([kind, answer(spoil, store)])
            shutil.rmtree(store)
    print(markdown_table(lines, left=2))


def answer(spoil: Change, store: Path) -> str:
    """Spoil one of two runs, and return what is said about it."""
    victim = Store(store).folders()[0]
    spoil(victim)
    seal(victim)
    said, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
        code = twofold(["runs", "show", "--runs", str(store)])
    (line,) = said.getvalue().splitlines()
    text = (line.partition(f"{victim.name}: ")[2] or line).replace(f"{victim}/", "")
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    return short.replace("|", "\\|") if code == 0 else f"exit code {code}: {short}"


main()
