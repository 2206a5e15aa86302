"""Tables as text in five formats, and the command that makes them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.commandline import Command, one_line
from helpers.runs import grouped, scored_run, seeded
from helpers.tables import PRINTED_BOLD, UNLIKE_PRINTED, number, timed
from hypothesis import given
from hypothesis import strategies as st

from twofold.compare.groups import Group, groups
from twofold.errors import UserError
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.report.tables import StudyTable, notes, render, study_table
from twofold.report.text import latex_text


@pytest.fixture(scope="module")
def small() -> StudyTable:
    runs = [
        seeded("er", [82, 84], [91, 92]),
        seeded("er+gem", [80, 90], [93, 94]),
        seeded("joint", [86, 87], eval_schedule="every:10"),
    ]
    return study_table("main", grouped(*runs))


def test_json_has_every_number_in_full(small: StudyTable) -> None:
    whole = json.loads(render(small, "json"))
    assert (whole["table"], whole["profile"]) == ("main", "paper")
    assert whole["notes"] == notes(small)
    first = whole["numbers"][0]
    assert first == {
        "table": "main",
        "profile": "paper",
        "benchmark": "rotated-mnist",
        "mode": "offline",
        "lr": 0.1,
        "batch_size": 128,
        "method": "er",
        "metric": "min",
        "mean": 83.0,
        "sem": pytest.approx(1.0),
        "seeds": [142, 152],
        "diverged": 0,
        "bound": "",
        "reduced": "",
        "bold": True,  # er+gem has 85 +- 5
        "used": False,
        "reference_mean": 83.1,
        "reference_sem": 0.5,
        "difference": pytest.approx(-0.1),
        "errors_apart": pytest.approx(0.1 / math.sqrt(1.25)),
        "command": "twofold run rotated-mnist er --mode offline --seeds 2 --profile paper",
    }
    joint = next(n for n in whole["numbers"] if n["method"] == "joint")
    assert joint["bound"] == "≤"
    assert "every 10 iterations" in joint["reduced"]
    assert [n["mean"] for n in whole["numbers"] if n["method"] == "er+agem"] == [None, None]


def test_csv_says_the_same(small: StudyTable) -> None:
    read = list(csv.DictReader(io.StringIO(render(small, "csv"))))
    whole = json.loads(render(small, "json"))["numbers"]
    assert len(read) == len(whole) == 12
    for line, one in zip(read, whole, strict=True):
        assert line["method"] == one["method"]
        assert line["seeds"] == " ".join(map(str, one["seeds"]))
        for name in ("mean", "sem", "reference_mean", "difference"):
            assert (float(line[name]) if line[name] else None) == one[name]


class Cells(HTMLParser):
    """All tags in order, and what stands in each cell; complains where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption", "li"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th", "caption", "li"} & set(self._open):
            self.texts[-1] += data


def test_html_leads_every_number_to_its_command(small: StudyTable) -> None:
    page = Cells(render(small, "html"))
    cells = [
        (attrs, text)
        for (tag, attrs), text in zip(_texted(page), page.texts, strict=True)
        if tag == "td"
    ]
    assert len(cells) == 12
    for (attrs, text), n in zip(cells, small.numbers(), strict=True):
        assert attrs.get("data-command") == n.command
        assert attrs.get("title") == n.command
        assert text.startswith("–") == (n.command is None)
    assert cells[0][1] == "83.0 ± 1.0 (n=2) reference 83.1 ± 0.5 −0.1 (0.1 se)"
    heads = [attrs for tag, attrs in page.tags if tag == "th"]
    assert all(attrs["scope"] in ("col", "row", "rowgroup") for attrs in heads)
    assert page.texts[0].startswith("ER and full replay")
    assert render(small, "html").isascii()


def test_html_marks_what_is_bold_and_what_other_tables_show(papers: list[Group]) -> None:
    main, appendix = (render(study_table(name, papers), "html") for name in ("main", "appendix"))
    bold = sum(row.count("x") for row in PRINTED_BOLD.values()) - len(UNLIKE_PRINTED)
    assert main.count("<strong>") == main.count('bold"') == bold
    assert main.count("<em>") == 0
    assert appendix.count("<em>") == appendix.count('used"') == 2 * (8 * 6 + 2 * 2 + 2 * 4)


def _texted(page: Cells) -> list[tuple[str, dict[str, str | None]]]:
    return [(tag, attrs) for tag, attrs in page.tags if tag in ("td", "th", "caption", "li")]


def test_html_rows_are_as_wide_as_their_head(papers: list[Group]) -> None:
    """With cells that span rows counted in."""
    for name in ("main", "appendix"):
        for text in render(study_table(name, papers), "html").split("</table>")[:-1]:
            head, *body = re.findall("<tr>(.*?)</tr>", text)
            width = head.count("<th")
            spans: list[int] = []
            for row in body:
                begun = [
                    int(span or 1)
                    for span in re.findall(r'<th scope="row\w*"(?: rowspan="(\d+)")?>', row)
                ]
                spans = [span - 1 for span in spans if span > 1] + begun
                assert len(spans) + row.count("<td") == width


def test_a_hostile_name_stays_text() -> None:
    """Whoever gives away a store can write any name into it."""
    run = scored_run()
    hostile = "er'\"><script>alert(1)</script>"
    command = f"twofold run rotated-mnist {shlex.quote(hostile)} --seed 142"
    config = Config(**{**vars(run.config), "method": hostile})
    table = study_table("main", groups([Run(config, {**run.summary, "command": command}, {})]))
    assert number(table, "er").value == (80, None)  # by its components, it is plain ER
    page = Cells(render(table, "html"))
    assert "script" not in {tag for tag, _ in page.tags}
    told = [attrs["data-command"] for _, attrs in page.tags if "data-command" in attrs]
    assert told == [command] * 2


def test_latex_escapes_what_it_must() -> None:
    assert latex_text("a_b & 50% of #1 {x} $y ~ ^ \\z <w>") == (
        r"a\_b \& 50\% of \#1 \{x\} \$y \textasciitilde{} \textasciicircum{} \textbackslash{}z "
        r"\textless{}w\textgreater{}"
    )
    assert latex_text("run `er_x` at 1 ± 2 ≤ 3") == r"run \texttt{er\_x} at 1 $\pm$ 2 $\leq$ 3"


@given(st.text(st.characters(codec="ascii", exclude_characters="`")))
def test_latex_shows_the_text_that_it_is_given(text: str) -> None:
    """Undone letter by letter, it is the text again, and nothing special is left bare."""
    shown = latex_text(text)
    macros = {r"\textbackslash{}": "\\", r"\textless{}": "<", r"\textgreater{}": ">"}
    macros |= {r"\textasciitilde{}": "~", r"\textasciicircum{}": "^"}
    macros |= {f"\\{letter}": letter for letter in "{}$&#%_"}
    bare = "(?P<bare>[\\\\{}$&#%_~^<>])"
    pattern = "|".join([*map(re.escape, macros), bare])

    def undo(match: re.Match[str]) -> str:
        assert match["bare"] is None, shown
        return macros[match[0]]

    assert re.sub(pattern, undo, shown) == text


def test_latex_rows_are_as_wide_as_their_head(papers: list[Group]) -> None:
    for name in ("main", "sota", "appendix"):
        text = render(study_table(name, papers), "latex")
        assert text.isascii()
        for part in text.split(r"\begin{tabular}")[1:]:
            columns = part[: part.index("\n")].strip("{}").replace(" ", "")
            lines = [
                line
                for line in part.split(r"\end{tabular}")[0].splitlines()
                if line.endswith(r"\\")
            ]
            assert {line.count(" & ") + 1 for line in lines} == {len(columns)}
            assert part.count(r"\toprule") == part.count(r"\bottomrule") == 1


LATEX = next((name for name in ("pdflatex", "tectonic", "lualatex") if shutil.which(name)), None)


@pytest.mark.skipif(LATEX is None, reason="no LaTeX is installed here")
def test_latex_compiles(papers: list[Group], tmp_path: Path) -> None:
    assert LATEX is not None
    runs = [run for cell in papers for run in cell.runs]
    found = groups([*runs, *timed("er", 10, 12), *timed("er+gem", 22, 44)])
    named = ("main", "sota", "timing", "gamma", "appendix")
    tables = "\\clearpage\n".join(render(study_table(name, found), "latex") for name in named)
    names = latex_text("er+mine(a_b=1%,c=#2&{3}) ~ ^ $ \\")
    start = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "table.tex").write_text(f"{start}{tables}{names}\n\\end{{document}}\n")
    options = [] if LATEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([LATEX, *options, "table.tex"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 0


def test_markdown_columns_are_aligned(small: StudyTable) -> None:
    lines = [line for line in render(small, "md").splitlines() if line.startswith("|")]
    assert all(len(one) == len(other) for one, other in pairwise(lines))


def test_an_unknown_format_or_table() -> None:
    table = study_table("main", [])
    with pytest.raises(UserError, match="did you mean 'latex'"):
        render(table, "latx")
    with pytest.raises(UserError, match="did you mean 'appendix'"):
        study_table("apendix", [])
    assert table.blocks == ()


# The command


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    store = Store(folder)
    store.prepare()
    for run in (*seeded("er", [82, 84]), *seeded("er+gem", [80, 90])):
        store.save(run)
    return folder


def test_the_command_prints_the_table(twofold: Command, store: Path) -> None:
    done = twofold("table", "main", "--runs", store)
    assert done.code == 0
    assert done.out == render(study_table("main", groups(Store(store).runs())), "md")


def test_the_example_of_the_guide(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "tables.md").read_text()
    (code,) = re.findall("```python\n(.*?)```", guide, re.DOTALL)
    store.rename(store.parent / "runs")
    monkeypatch.chdir(store.parent)
    exec(compile(code, "tables.md", "exec"), {})
    out = capsys.readouterr().out
    assert r"\begin{tabular}" in out
    assert "rotated-mnist offline 2 seeds in common: too few to show an effect of gem" in out


def test_the_command_writes_what_the_name_says(twofold: Command, store: Path) -> None:
    for name, start in (("a.tex", "%"), ("deep/a.csv", "table,"), ("a.json", "{"), ("a.html", "<")):
        file = store.parent / name
        assert twofold("table", "main", "--runs", store, "-o", file).code == 0
        assert file.read_text().startswith(start)
    file = store.parent / "named.txt"
    assert twofold("table", "main", "--runs", store, "-o", file, "--format", "md").code == 0
    assert file.read_text().startswith("**ER and full replay")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("apendix", "unknown table 'apendix': did you mean 'appendix'?"),
        ("main --profile publish", "unknown profile 'publish': did you mean 'published'?"),
        ("main --format latx", "did you mean 'latex'?"),
        ("sota", "belongs to this table: `twofold study run sota` trains them"),
        ("main --profile published", "`twofold study run main --profile published` trains them"),
        ("main --runs nowhere", "there is no folder nowhere: `twofold study run main` makes one"),
        ("main -o table.txt", "what format is table.txt? Set --format md|latex|csv|json|html"),
    ],
    ids=["table", "profile", "format", "others", "other-profile", "empty", "suffix"],
)
def test_mistakes_are_answered_in_one_line(
    twofold: Command, store: Path, args: str, message: str
) -> None:
    words = args.split()
    words += [] if "--runs" in words else ["--runs", str(store)]
    done = twofold("table", *words)
    assert done.code == 2
    assert message in one_line(done.err)
    assert done.out == ""
