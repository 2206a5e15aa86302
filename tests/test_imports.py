"""The import graph: no cycle between modules, and nothing in the core imports what is above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
CORE = (
    "training",
    "sampling",
    "objectives",
    "routines",
    "evaluation",
    "gradients",
    "memories",
    "models",
    "benchmarks",
    "datasets",
    "drawing",
)
LAYERS = ("experiments", "compare", "report", "cli")  # each may import those before it
ABOVE = (*LAYERS, "papers")


def modules() -> dict[str, Path]:
    files = {file: ".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in FILES}
    return {name.removesuffix(".__init__"): file for file, name in files.items()}


FILES = sorted(SOURCE.rglob("*.py"))


def imports(file: Path) -> Iterator[str]:
    """All imports of a module, lazy ones included; those for type checkers alone are left out."""
    tree = ast.parse(file.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports are not used here"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    result = {name: set(imports(file)) & known.keys() - {name} for name, file in known.items()}
    # A member's package is imported with it: only what the package imports by itself counts.
    return {
        name: {other for other in others if not name.startswith(f"{other}.")}
        for name, others in result.items()
    }


def test_there_is_no_cycle_between_modules(graph):
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"cycle: {' -> '.join(error.args[1])}")


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_the_core_imports_nothing_from_above(graph):
    upward = [
        (name, other)
        for name, others in graph.items()
        for other in others
        if part(name) in CORE and part(other) in ABOVE
    ]
    assert upward == []


def test_layers_import_only_those_below_and_no_paper(graph):
    wrong = [
        (name, other)
        for name, others in graph.items()
        for other in others
        if part(name) in LAYERS and part(other) in LAYERS
        if LAYERS.index(part(other)) > LAYERS.index(part(name))
    ]
    papers = [
        (name, other)
        for name, others in graph.items()
        for other in others
        if other.startswith("twofold.papers.") and not name.startswith("twofold.papers.")
    ]
    assert wrong + papers == []


def test_the_test_can_fail():
    with pytest.raises(CycleError):
        list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
