"""Write requirements.lock and requirements-dev.lock: the tested versions, with the hashes of files.

`make lock` calls it after a change of constraints.txt. It needs uv, and an environment in which
twofold[dev] is installed, since that decides which packages belong to which file.

torch comes in more builds than the index lists. `--wheel FILE` adds the hash of such a build, for
example of one for processors only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Made by `make lock` from constraints.txt.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--uv", default="uv", help="the program")
    parser.add_argument("--wheel", type=Path, action="append", default=[], help="one more file")
    args = parser.parse_args()
    pins = {_name(line): line for line in (ROOT / "constraints.txt").read_text().splitlines()}
    package = needed("twofold", frozenset())
    tools = needed("twofold", frozenset({"dev"})) - package
    for file, names in (("requirements.lock", package), ("requirements-dev.lock", tools)):
        text = locked(args.uv, sorted(pins[name] for name in names & {*pins}))
        for wheel in args.wheel:
            text = with_wheel(text, wheel)
        (ROOT / file).write_text(HEAD + text)


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


def with_wheel(text: str, wheel: Path) -> str:
    """Add the hash of one more file of a package, if the text has that package."""
    name, digest = _name(wheel.name.split("-")[0]), hashlib.sha256(wheel.read_bytes()).hexdigest()
    return re.sub(
        rf"^({name}==\S+) \\$", rf"\1 \\\n    --hash=sha256:{digest} \\", text, flags=re.M
    )


if __name__ == "__main__":
    main()
