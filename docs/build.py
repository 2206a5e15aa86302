"""Rebuild the tables and pictures of README.md, docs/ and replication/ from their commands.

A block stands between two lines that a reader of the page does not see:

    <!-- made by: twofold table main --runs replication/runs/replication -->

    <!-- end -->

The command may also be a script of the project: `python replication/findings.py`.

`make documents` fills each block with what its command prints. If the command writes a picture
(--output), the block shows that picture and keeps its description. Output without a Markdown table
is shown as code. `--check` changes nothing, and fails if a block is out of date or a picture is
missing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from unittest import mock

from twofold.cli import main as twofold

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^<!-- made by: ((?:twofold |python (?:docs|replication)/)[^\n]+) -->$(.*?)^<!-- end -->$",
    re.M | re.S,
)
EDGE = re.compile(r"^<!-- *(?:made by|end)\b", re.M)


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of date")
    check: bool = parser.parse_args(argv).check
    folders = (root / "docs", root / "replication")
    documents = [root / "README.md", *(page for each in folders for page in pages(each))]
    with contextlib.chdir(root):  # commands name files relative to the repository
        outdated = [place for document in documents for place in renew(document, check)]
    for place in outdated:
        print(f"{place} {'is out of date' if check else 'was rebuilt'}")
    return 1 if check and outdated else 0


def pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def renew(document: Path, check: bool) -> list[str]:
    """Rebuild the blocks of a document unless `check`, and return those that were out of date."""
    outdated: list[str] = []

    def renewed(block: re.Match[str]) -> str:
        command, body = block[1], block[2].strip()
        shown = content(command, body, document.parent, check)
        if shown != body:
            line = text.count("\n", 0, block.start()) + 1
            outdated.append(f"{document.relative_to(Path.cwd())}:{line}: `{command}`")
        return f"<!-- made by: {command} -->\n\n{shown}\n\n<!-- end -->"

    text = document.read_text("utf-8")
    if len(EDGE.findall(text)) != 2 * len(BLOCK.findall(text)):
        sys.exit(f"{document}: each <!-- made by: twofold ... --> needs its <!-- end -->")
    new = BLOCK.sub(renewed, text)
    if not check and new != text:
        document.write_text(new, "utf-8")
    return outdated


def content(command: str, body: str, folder: Path, check: bool) -> str:
    """Return what a document in `folder` shows for a command, where it now shows `body`."""
    picture = output_of(command)
    if picture is None:
        shown = printed(command).strip()
        if not re.search(r"^\|", shown, re.M):
            shown = f"```\n{shown}\n```"
    else:
        if not check:  # a picture is not drawn for a check, because fonts differ between machines
            printed(command)
        description = re.match(r"!\[(.*?)\]", body)
        link = Path(os.path.relpath(picture, folder)).as_posix()
        shown = f"![{description[1] if description else picture.stem}]({link})"
        shown += "" if picture.exists() else " is missing"
    return f"{shown}\n\n<sub>Made by `{command}`.</sub>"


def output_of(command: str) -> Path | None:
    """Return the file that a command writes, or None."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output", type=Path)
    output: Path | None = parser.parse_known_args(shlex.split(command))[0].output
    return output


@cache
def printed(command: str) -> str:
    """Return what a command prints."""
    program, *words = shlex.split(command)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if program == "python":
            folder = str(Path(words[0]).resolve().parent)  # scripts import their neighbours
            with mock.patch.multiple(sys, argv=words, path=[folder, *sys.path]):
                runpy.run_path(words[0], run_name="__main__")
        elif twofold(words):
            sys.exit(f"`{command}` failed")
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
