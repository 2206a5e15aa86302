"""Write the lock files: the tested versions of packages, with the hashes of their files.

`make lock` calls it after a change of constraints.txt. It needs uv, and an environment in which
twofold[dev] is installed, since that decides which packages belong to which file.

torch comes in more builds than the index lists, such as one for processors only: `--wheel FILE`
adds its hash. pip prefers a file whose hash it knows beforehand, and would replace such a build by
a much larger one. For this reason torch has its own file, and `--check REPORT` compares pip's
report of the installation with it. Nothing of a wheel runs before that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
TORCH = "requirements-torch.lock"
SHOWN = frozenset({"figures", "report", "images", "frames"})  # the extras that `make demo` installs
HEAD = "# Made by `make lock` from constraints.txt.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--uv", default="uv", help="the program")
    parser.add_argument("--wheel", type=Path, action="append", default=[], help="one more file")
    parser.add_argument("--check", type=Path, metavar="REPORT", help="of pip; write nothing")
    args = parser.parse_args()
    if args.check:
        check(json.loads(args.check.read_text()))
        return
    pins = {_name(line): line for line in (ROOT / "constraints.txt").read_text().splitlines()}
    package = needed("twofold", SHOWN)
    tools = needed("twofold", frozenset({"dev"})) - package
    files = {"requirements.lock": package - {"torch"}, "requirements-dev.lock": tools}
    for file, names in {**files, TORCH: {"torch"}}.items():
        text = locked(args.uv, sorted(pins[name] for name in names & {*pins}))
        more = [_digest(wheel) for wheel in args.wheel] if file == TORCH else []
        lines = "".join(f" \\\n    --hash=sha256:{digest}" for digest in more)
        (ROOT / file).write_text(f"{HEAD}{text.rstrip()}{lines}\n")


def check(report: dict[str, Any]) -> None:
    """End with an error if pip has installed a file of torch that is not known."""
    known = (ROOT / TORCH).read_text()
    for each in report["install"]:
        digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
        if f"sha256:{digest}" not in known:
            sys.exit(f"{TORCH} does not have the hash of the installed torch, {digest}")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _name(requirement: str) -> str:
    return re.sub("[-_.]+", "-", re.split("[ =<>!~;[]", requirement)[0]).lower()


def needed(package: str, extras: frozenset[str]) -> set[str]:
    """Return the names of all packages that an installed package needs, directly or not."""
    found: set[tuple[str, frozenset[str]]] = set()
    left = [(package, extras)]
    while left:
        name, chosen = left.pop()
        for line in requires(name) or []:
            each = Requirement(line)
            wanted = each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in (chosen or {""})
            )
            entry = (_name(each.name), frozenset(each.extras))
            if wanted and entry not in found:
                found.add(entry)
                left.append(entry)
    return {name for name, _ in found}


def locked(uv: str, pins: list[str]) -> str:
    """Return the pins with the hashes of all their files."""
    words = ["pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-annotate"]
    done = subprocess.run(
        [uv, *words, "--no-header", "-"],
        input="\n".join(pins),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
