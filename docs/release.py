"""Write the changelog section and the tag message of a release into dist/, beside its packages.

`make release` calls it after the packages were built and checked. The version is the one of
pyproject.toml, and nothing else in the repository states it but the headings of CHANGELOG.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TITLE = re.compile(r"^## (?P<version>\S+)(?: \((?P<state>[^)]*)\))?\n", re.MULTILINE)


def main(root: Path = ROOT) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    state, section = section_of((root / "CHANGELOG.md").read_text("utf-8"), version)
    packages = sorted((root / "dist").glob(f"twofold-{version}[-.]*"))
    if len(packages) != 2:
        sys.exit(f"dist/ has {len(packages)} packages of {version}, not a wheel and an sdist")
    notes, tag = (root / "dist" / f"{name}-{version}" for name in ("changelog", "tag"))
    notes.with_name(f"{notes.name}.md").write_text(f"# twofold {version}\n\n{section}\n", "utf-8")
    tag.with_name(f"{tag.name}.txt").write_text(tag_message(version, section), "utf-8")
    for file in packages:
        print(f"{file.relative_to(root)}: {file.stat().st_size / 1e3:,.0f} KB")
    if state == "unreleased":
        print(f"CHANGELOG.md calls {version} unreleased: write the date there first")
    print(f"git tag --annotate v{version} --file dist/tag-{version}.txt --cleanup=whitespace")


def section_of(changelog: str, version: str) -> tuple[str, str]:
    """Return the state of a version, such as its date, and its section without the title."""
    titles = list(TITLE.finditer(changelog))
    for number, title in enumerate(titles):
        if title["version"] == version:
            end = titles[number + 1].start() if number + 1 < len(titles) else len(changelog)
            return title["state"] or "", changelog[title.end() : end].strip()
    sys.exit(f"CHANGELOG.md has no section of {version}")


def tag_message(version: str, section: str) -> str:
    """Return the message of a tag: a title, and the section as plain text."""
    links = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", section)
    plain = re.sub(r"\*\*|`", "", re.sub(r"^#+ ", "", links, flags=re.MULTILINE))
    return f"twofold {version}\n\n{plain}\n"


if __name__ == "__main__":
    main()
