"""Build the site: `make site`.

The documents of the repository are copied as they lie, so that their links stay true, together
with the notebooks, the pages of this folder, and a page to explore the shipped runs. Sphinx then
builds the site, and every warning is an error: a link that leads nowhere, a document that no list
of contents has. So are a public name that has no page, and an example that fails.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import examples

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
COPIED = ("docs/**/*.md", "docs/*.png", "replication/*.md", "replication/*.png", "replication/*.py")
COPIED += ("examples/*", "notebooks/*.ipynb", "CONTRIBUTING.md", "CHANGELOG.md")
RUNS = "replication/runs/trajectories"  # those of the page to explore


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path, nargs="?", default=ROOT / "build" / "site")
    parser.add_argument(
        "--quick", action="store_true", help="no page of the runs; no notebook or example is run"
    )
    args = parser.parse_args()
    if missing := examples.without_page():
        sys.exit(f"without a page in docs/reference: {', '.join(missing)}")
    if bare := examples.undocumented():
        sys.exit(f"without a docstring: {', '.join(bare)}")
    if not args.quick and (wrong := examples.failures()):
        sys.exit("".join(wrong))
    source = args.output.parent / f"{args.output.name}-source"
    shutil.rmtree(source, ignore_errors=True)
    stage(source)
    words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(source / ".doctrees")]
    if args.quick:
        words += ["-D", "nb_execution_mode=off"]
    else:
        explore(source / "extra" / "runs.html")
    return subprocess.call([sys.executable, "-m", "sphinx", *words, source, args.output])


def stage(source: Path) -> None:
    """Copy the documents, and put the pages of this folder at the top."""
    for pattern in COPIED:
        for file in ROOT.glob(pattern):
            copy(file, source / file.relative_to(ROOT))
    shutil.rmtree(source / "docs" / "site")
    for file in HERE.iterdir():
        if file.suffix in (".md", ".css") or file.name == "conf.py":
            copy(file, source / file.name)
    (source / "extra").mkdir()


def copy(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


def explore(page: Path) -> None:
    """Write the page with which readers explore the shipped runs."""
    words = ["report", RUNS, "--output", page.resolve()]  # its title is the path as given
    subprocess.run([sys.executable, "-m", "twofold", *words], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
