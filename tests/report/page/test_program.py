"""The page's program: how its modules become one script, and what they assume of Python's side."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from helpers.runs import curve_run, gap_accuracies

from twofold.report.page import page_contents
from twofold.report.page.program import NAME, assemble, program

PAGE = files("twofold.report.page")
MODULES = {
    file.name: file.read_text("utf-8")
    for file in (PAGE / "scripts").iterdir()
    if file.name.endswith(".js")
}

FIRST = "export const one = 1;\n"
SECOND = """\
// @ts-check
import { one } from "./first.js";

export function two() {
  return one + one;
}
"""
LAST = """\
import {
  one,
} from "./first.js";
import { two } from "./second.js";

/** @import { Type } from "./second.js" */

one + two();
"""


def test_a_module_follows_those_that_it_imports():
    script = assemble({"a.js": LAST, "second.js": SECOND, "first.js": FIRST})
    assert [line for line in script.splitlines() if line] == [
        '"use strict";',
        "const one = 1;",
        "function two() {",
        "  return one + one;",
        "}",
        "one + two();",
    ]


def test_the_order_does_not_depend_on_the_file_system():
    texts = {"a.js": LAST, "second.js": SECOND, "first.js": FIRST, "alone.js": "const three = 3;\n"}
    assert assemble(texts) == assemble(dict(reversed(texts.items())))


@pytest.mark.parametrize(
    "texts",
    [
        {"a.js": "export const one = 1;\n", "b.js": "let one = 2;\n"},
        {"a.js": "function one() {}\n", "b.js": "export async function one() {}\n"},
    ],
)
def test_names_are_unique_across_modules(texts):
    with pytest.raises(ValueError, match="several modules declare one"):
        assemble(texts)


@pytest.mark.parametrize(
    "line",
    [
        'import * as first from "./first.js";',
        'import "./first.js";',
        'import { one as first } from "./first.js";',
        'import { one } from "elsewhere";',
        "export default 1;",
        'export * from "./first.js";',
        "export { one };",
    ],
)
def test_other_imports_and_exports_are_refused(line):
    with pytest.raises(ValueError, match=re.escape(f"can't assemble this line: {line}")):
        assemble({"first.js": FIRST, "second.js": f"{line}\n"})


def test_modules_that_import_each_other_are_refused():
    texts = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;\n',
        "b.js": 'import { a } from "./a.js";\nexport const b = 1;\n',
    }
    with pytest.raises(ValueError, match=r"a\.js"):
        assemble(texts)


def test_the_program_has_all_modules_and_ends_with_main():
    script = program()
    assert script.endswith(MODULES["main.js"].rpartition("\nimport ")[2].partition("\n")[2])
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    names = NAME.findall(script)
    assert len(names) == len({*names}) > 100
    assert "</script" not in script
    assert "<!--" not in script


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_module_is_checked_and_says_its_job(name):
    check, job, *_ = MODULES[name].splitlines()
    assert check == "// @ts-check"
    assert re.match(r"// [A-Z].*[.:,\w]$", job)


# The types that the modules are checked against


def declared(file: str) -> dict[str, set[str]]:
    """The names of each interface's members. Those with a question mark end in one."""
    text = (PAGE / "scripts" / "types" / file).read_text("utf-8")
    interfaces = re.findall(r"^interface (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return {
        name: set(re.findall(r'^  "?([\w-]+\??)"?:', body, re.MULTILINE))
        for name, body in interfaces
    }


def test_contents_have_the_declared_names():
    methods, seeds = ("er", "er+gem"), (142, 152, 162)
    runs = [
        curve_run(method, gap_accuracies(60, 2, seed), seed) for method in methods for seed in seeds
    ]
    contents = page_contents(runs, "runs")
    group = contents["groups"][0]
    examples = {
        "Contents": contents,
        "MeasureText": contents["measures"]["min"],
        "Group": group,
        "SeedRun": group["runs"][0],
        "PackedCurve": group["runs"][0]["curves"][0],
        "Gap": group["gaps"][0],
        "Mean": group["measures"]["min"],
        "Verdicts": contents["verdicts"],
        "Verdict": contents["verdicts"]["reached"][0],
        "StudyTable": contents["tables"][0],
    }
    types = declared("contents.d.ts")
    assert types.keys() == examples.keys()
    for name, example in examples.items():
        assert example.keys() == {key for key in types[name] if not key.endswith("?")}, name
    assert group["mean"][0].keys() == {key.rstrip("?") for key in types["PackedCurve"]}


def test_the_document_has_the_declared_ids():
    ids = re.findall(r'\bid="([\w-]+)"', (PAGE / "page.html").read_text("utf-8"))
    assert len(ids) == len({*ids})
    assert declared("elements.d.ts") == {"PageElements": {*ids}}
