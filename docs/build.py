"""Make the tables and pictures of README.md and docs/*.md again, from the runs in results/.

They stand between two lines, which a reader of the page does not see:

    <!-- made by: twofold table main --runs results -->

    <!-- end -->

A script of ours may stand there, too: `python docs/longest_steps.py`.

`make documents` puts there what the command prints or, if it writes a picture (--output), that
picture, with the description that is there already. `--check` changes nothing, and fails if a
command prints something else by now or a picture is not there.
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

from twofold.cli import main as twofold

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^<!-- made by: ((?:twofold|python docs/)[^\n]+) -->$(.*?)^<!-- end -->$", re.M | re.S
)
EDGE = re.compile(r"^<!-- *(?:made by|end)\b", re.M)


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of date")
    check: bool = parser.parse_args(argv).check
    documents = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    with contextlib.chdir(root):  # commands name files and folders as seen from there
        outdated = [place for document in documents for place in renew(document, check)]
    for place in outdated:
        print(f"{place} {'is out of date' if check else 'was made again'}")
    return 1 if check and outdated else 0


def renew(document: Path, check: bool) -> list[str]:
    """The blocks of a document that were out of date, and still are after a check."""
    outdated: list[str] = []

    def renewed(block: re.Match[str]) -> str:
        command, body = block[1], block[2].strip()
        made = content(command, body, document.parent, check)
        if made != body:
            line = text.count("\n", 0, block.start()) + 1
            outdated.append(f"{document.relative_to(Path.cwd())}:{line}: `{command}`")
        return f"<!-- made by: {command} -->\n\n{made}\n\n<!-- end -->"

    text = document.read_text("utf-8")
    if len(EDGE.findall(text)) != 2 * len(BLOCK.findall(text)):
        sys.exit(f"{document}: each <!-- made by: twofold ... --> needs its <!-- end -->")
    new = BLOCK.sub(renewed, text)
    if not check and new != text:
        document.write_text(new, "utf-8")
    return outdated


def content(command: str, body: str, folder: Path, check: bool) -> str:
    """What a document in `folder` is to show of a command; `body` is what it shows now."""
    picture = output_of(command)
    if picture is None:
        shown = printed(command).strip()
    else:
        if not check:  # not drawn for a check: it would differ where fonts do
            printed(command)
        description = re.match(r"!\[(.*?)\]", body)
        link = Path(os.path.relpath(picture, folder)).as_posix()
        shown = f"![{description[1] if description else picture.stem}]({link})"
        shown += "" if picture.exists() else " is missing"
    return f"{shown}\n\n<sub>Made by `{command}`.</sub>"


def output_of(command: str) -> Path | None:
    """The file that a command writes."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output", type=Path)
    output: Path | None = parser.parse_known_args(shlex.split(command))[0].output
    return output


@cache
def printed(command: str) -> str:
    """What a command prints when it is carried out here."""
    program, *words = shlex.split(command)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if program == "python":
            runpy.run_path(words[0])
        elif twofold(words):
            sys.exit(f"`{command}` failed")
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
