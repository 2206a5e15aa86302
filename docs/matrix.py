"""Run the fast part of the tests in several Pythons, and with the lowest permitted versions.

`make test-matrix` calls it. Each entry has an environment of its own in .venv/matrix/. A Python
that is neither here nor can be fetched is reported, and is no failure.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".venv" / "matrix"
EXTRAS = "figures,report,images,frames,tensorboard,torchjd"
TOOLS = ("pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "quadprog>=0.1.12")
FAST = ("-q", "--fast", "--ignore=tests/adapters", "--ignore=tests/experiments/ray")
PINNED, LOWEST = ("-c", "constraints.txt"), ("--resolution", "lowest-direct")


@dataclass(frozen=True)
class Entry:
    """A Python, and the versions of the packages in its environment."""

    name: str
    python: str
    versions: tuple[str, ...] = PINNED


MATRIX = (
    Entry("lowest", "3.11", LOWEST),
    *(Entry(version, version) for version in ("3.11", "3.12", "3.13", "3.14")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--uv", default="uv", help="the program")
    parser.add_argument("--only", action="append", help="such as 3.13, or lowest")
    parser.add_argument("--strict", action="store_true", help="fail if a Python is unavailable")
    parser.add_argument("--place", type=Path, default=PLACE, help="of the environments")
    args, words = parser.parse_known_args()
    known = [entry.name for entry in MATRIX]
    for name in args.only or ():
        if name not in known:
            sys.exit(f"there is no {name!r} in the matrix: there are {', '.join(known)}")
    chosen = [entry for entry in MATRIX if entry.name in (args.only or known)]
    results = {entry.name: tried(entry, args.uv, args.place, words) for entry in chosen}
    for name, result in results.items():
        print(f"{name:8}{result}")
    wrong = ("failed", "unavailable") if args.strict else ("failed",)
    if any(result.startswith(wrong) for result in results.values()):
        sys.exit(1)


def tried(entry: Entry, uv: str, place: Path, words: list[str]) -> str:
    """Return `passed: ...`, `failed: ...` or `unavailable: ...`."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    python = place / entry.name / folder / "python"
    create = ["venv", "--quiet", "--allow-existing", "--python", entry.python, place / entry.name]
    install = ["pip", "install", "--quiet", "--python", python, *entry.versions]
    for command in ([uv, *create], [uv, *install, "-e", f".[{EXTRAS}]", *TOOLS]):
        done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return f"unavailable: {_reason(done.stderr)}"
    command = [python, "-m", "pytest", *FAST, *words]
    print(f"{entry.name}: {' '.join(map(str, command))}", flush=True)
    done = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    return f"{'failed' if done.returncode else 'passed'}: {counts(done.stdout)}"


def counts(printed: str) -> str:
    """Return pytest's line of counts, or its last line if it printed none."""
    lines = [line.strip("= ") for line in printed.splitlines() if line.strip("= ")]
    counted = [line for line in lines if re.match(r"\d+ (passed|failed|skipped|error)", line)]
    return (counted or lines or ["no output"])[-1]


def _reason(error: str) -> str:
    """Return uv's error and its last cause in one line."""
    lines = [line.strip(" ╰─▶×│") for line in error.splitlines() if line.strip(" ╰─▶×│")]
    return "; ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))


if __name__ == "__main__":
    main()
