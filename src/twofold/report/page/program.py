"""The page's program: the modules in `scripts/`, assembled into one script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

# The modules use these two forms only, each at the start of a line.
IMPORT = re.compile(r'^import \{\s*\w+(?:,\s*\w+)*,?\s*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let)\b)", re.MULTILINE)
TYPES = re.compile(r"^(?:// @ts-check|/\*\* @import .*\*/)\n", re.MULTILINE)  # for tsc alone
REMAINDER = re.compile(r"^\s*(?:import|export)\b.*", re.MULTILINE)
NAME = re.compile(r"^(?:async function|function|class|const|let) (\w+)", re.MULTILINE)


@cache
def program() -> str:
    """Return the page's program."""
    folder = files(__package__) / "scripts"
    modules = [file for file in folder.iterdir() if file.name.endswith(".js")]
    return assemble({file.name: file.read_text("utf-8") for file in modules})


def assemble(modules: Mapping[str, str]) -> str:
    """Return one script in which every module follows the modules that it imports.

    modules: the text of each module, by file name.

    The modules share one scope, so `ValueError` is raised for a name that two of them declare. It
    is also raised for modules that import each other, and for any other form of import or export.
    """
    needs = {name: IMPORT.findall(modules[name]) for name in sorted(modules)}
    order = TopologicalSorter(needs).static_order()
    script = "\n".join(['"use strict";', *(_plain(modules[name]) for name in order)])
    if remainder := REMAINDER.search(script):
        raise ValueError(f"can't assemble this line: {remainder[0].strip()}")
    repeated = [name for name, count in Counter(NAME.findall(script)).items() if count > 1]
    if repeated:
        raise ValueError(f"several modules declare {', '.join(repeated)}")
    return script


def _plain(module: str) -> str:
    return EXPORT.sub("", IMPORT.sub("", TYPES.sub("", module)))
