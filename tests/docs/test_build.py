"""docs/build.py: tables and pictures in documents are what their commands make."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from helpers.commandline import Command
from helpers.runs import curve_run, gap_accuracies

from twofold import Store

SCRIPT = Path(__file__).parents[2] / "docs" / "build.py"
RUNS = "twofold runs show --json --runs out --method er"
TABLE = "twofold table main --runs replication/runs"
FIGURE = "twofold figure gap rotated-mnist --runs replication/runs --output docs/pictures/gap.png"


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("documents_build", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with runs of the paper's methods, and documents without blocks."""
    (tmp_path / "replication").mkdir()
    store = Store(tmp_path / "replication" / "runs")
    store.prepare()
    for method in ("er", "er+gem"):
        store.save(curve_run(method, gap_accuracies(60, 3, 1)))
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Title\n")
    return tmp_path


def block(command: str, body: str = "") -> str:
    return f"<!-- made by: {command} -->\n{body}\n<!-- end -->\n"


def test_the_projects_own_documents_are_up_to_date(
    build: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (build.main(["--check"]), capsys.readouterr().out) == (0, "")


def test_a_table_is_what_its_command_prints(
    build: ModuleType, root: Path, twofold: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    page = root / "docs" / "page.md"
    page.write_text(f"# Page\n\nBefore.\n\n{block(TABLE, 'typed in')}\nAfter.\n")
    assert build.main(["--check"], root) == 1
    assert capsys.readouterr().out == f"docs/page.md:5: `{TABLE}` is out of date\n"
    assert "typed in" in page.read_text()

    assert build.main([], root) == 0
    assert capsys.readouterr().out == f"docs/page.md:5: `{TABLE}` was rebuilt\n"
    table = twofold("table", "main", "--runs", root / "replication" / "runs").out
    assert table.startswith("**ER")
    table = table.replace(str(root / "replication" / "runs"), "replication/runs").strip()
    result = f"\n{table}\n\n<sub>Made by `{TABLE}`.</sub>\n"
    assert page.read_text() == f"# Page\n\nBefore.\n\n{block(TABLE, result)}\nAfter.\n"
    assert build.main(["--check"], root) == 0
    assert build.main([], root) == 0
    assert capsys.readouterr().out == ""


def test_a_number_that_was_changed_is_found(
    build: ModuleType, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = root / "README.md"
    page.write_text(block(TABLE) + block(TABLE.replace("main", "gamma")))
    build.main([], root)
    right = page.read_text()
    number = f"{Store(root / 'replication' / 'runs').runs()[0].avg:.1f}"
    assert number in right
    page.write_text(right[::-1].replace(number[::-1], "1.11", 1)[::-1])  # in the second
    capsys.readouterr()
    assert build.main(["--check"], root) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "table gamma" in line
    build.main([], root)
    assert page.read_text() == right


def test_other_runs_make_a_document_out_of_date(build: ModuleType, root: Path) -> None:
    (root / "README.md").write_text(block(TABLE))
    build.main([], root)
    Store(root / "replication" / "runs").save(curve_run("er", gap_accuracies(60, 3, 2), seed=152))
    build.printed.cache_clear()
    assert build.main(["--check"], root) == 1


def test_a_picture_is_drawn_and_shown(build: ModuleType, root: Path) -> None:
    """By a document in docs/, and by one above it; a description is kept."""
    page, readme = root / "docs" / "page.md", root / "README.md"
    page.write_text(block(FIGURE))
    readme.write_text(block(FIGURE, "![What is to be seen](elsewhere.png)"))
    assert build.main(["--check"], root) == 1
    picture = root / "docs" / "pictures" / "gap.png"
    assert not picture.exists()
    build.main([], root)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "![gap](pictures/gap.png)\n" in page.read_text()
    assert "![What is to be seen](docs/pictures/gap.png)\n" in readme.read_text()
    assert f"<sub>Made by `{FIGURE}`.</sub>" in page.read_text()
    assert build.main(["--check"], root) == 0

    picture.write_bytes(b"drawn with other fonts")
    assert build.main(["--check"], root) == 0
    picture.unlink()
    assert build.main(["--check"], root) == 1
    assert not picture.exists()


def test_a_script_may_make_a_table(build: ModuleType, root: Path) -> None:
    script = (
        "import sys\nfrom twofold import Store\n"
        "print(len(Store('replication/runs').runs()), *sys.argv[1:])\n"
    )
    (root / "replication" / "count.py").write_text(script)
    page = root / "replication" / "page.md"
    page.write_text(block("python replication/count.py runs"))
    assert build.main(["--check"], root) == 1
    build.main([], root)
    assert "\n```\n2 runs\n```\n" in page.read_text()
    assert build.main(["--check"], root) == 0


def test_real_runs(build: ModuleType, run_tiny: Command, tmp_path: Path) -> None:
    run_tiny("er;er+gem")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(block(RUNS))
    build.main([], tmp_path)
    (run,) = (r for r in Store(tmp_path / "out").runs() if r.config.method == "er")
    assert f'"avg": {run.avg}' in (tmp_path / "README.md").read_text()
    assert build.main(["--check"], tmp_path) == 0


@pytest.mark.parametrize("option", [[], ["--check"]], ids=["build", "check"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"<!-- made by: {TABLE} -->\n", "README.md: each <!-- made by"),
        ("<!-- end -->\n", "README.md: each <!-- made by"),
        (f"<!-- made by {TABLE} -->\n<!-- end -->\n", "README.md: each <!-- made by"),
        (f"<!-- made by: {TABLE} -->\n\n{block(TABLE)}", "README.md: each <!-- made by"),
        (block("rm -r replication"), "README.md: each <!-- made by"),
        (block("twofold table mian --runs runs"), "`twofold table mian --runs runs` failed"),
    ],
    ids=["no end", "no beginning", "no colon", "no end before another", "no twofold", "no table"],
)
def test_a_mistake_in_a_document(
    text: str, why: str, option: list[str], build: ModuleType, root: Path
) -> None:
    (root / "README.md").write_text(text)
    with pytest.raises(SystemExit) as stopped:
        build.main(option, root)
    assert why in str(stopped.value)
    assert (root / "README.md").read_text() == text


def test_what_documents_say_of_blocks_is_none(build: ModuleType, root: Path) -> None:
    """An example, indented as code."""
    text = "    <!-- made by: twofold table main -->\n    <!-- end -->\n"
    (root / "README.md").write_text(text)
    assert build.main([], root) == 0
    assert (root / "README.md").read_text() == text


def test_the_spread_of_min_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into what runs with one seed share and a run's own, whatever methods have on average."""
    monkeypatch.chdir(SCRIPT.parent.parent)
    spread = runpy.run_path("replication/beside_the_paper.py")["spread"]
    random = np.random.default_rng(1)
    table = random.normal(0, 3, 4000) + random.normal(0, 2, (12, 4000))
    table += np.linspace(0, 50, 12)[:, None]
    shared, own = spread(table)
    assert shared == pytest.approx(9, rel=0.1)
    assert own == pytest.approx(4, rel=0.05)


def test_a_script_is_run_as_python_runs_it(build: ModuleType, root: Path) -> None:
    """It is the main program, and it can import the scripts beside it."""
    (root / "replication" / "neighbour_of_the_script.py").write_text("NUMBER = 42\n")
    script = "from neighbour_of_the_script import NUMBER\nif __name__ == '__main__':\n"
    (root / "replication" / "script.py").write_text(f"{script}    print('found', NUMBER)\n")
    (root / "README.md").write_text(block("python replication/script.py"))
    assert build.main([], root) == 0
    assert "found 42" in (root / "README.md").read_text()
