"""Tables as HTML."""

from __future__ import annotations

import re
import shlex
from html.parser import HTMLParser

from helpers.runs import scored_run
from helpers.tables import PRINTED_BOLD, UNLIKE_PRINTED, number

from twofold.compare.groups import Group, groups
from twofold.experiments.config import Config
from twofold.experiments.runs import Run
from twofold.report.tables import StudyTable, render, study_table


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
    assert cells[0][1] == "83.0 ± 0.6 (n=3) reference 83.1 ± 0.5 −0.1 (0.1 se)"
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
    """Count cells that span rows in every row."""
    for name in ("main", "appendix"):
        for text in render(study_table(name, papers), "html").split("</table>")[:-1]:
            head, *body = re.findall("<tr>(.*?)</tr>", text)
            width = head.count("<th")
            spans: list[int] = []
            for row in body:
                starts = [
                    int(span or 1)
                    for span in re.findall(r'<th scope="row\w*"(?: rowspan="(\d+)")?>', row)
                ]
                spans = [span - 1 for span in spans if span > 1] + starts
                assert len(spans) + row.count("<td") == width


def test_a_hostile_name_stays_text() -> None:
    """Whoever gives away a store can write any name into it."""
    run = scored_run()
    hostile = "er'\"><script>alert(1)</script>"
    config = Config(**{**vars(run.config), "device": hostile})
    table = study_table("main", groups([Run(config, run.summary, {})]))
    assert number(table, "er").value == (80, None)  # the device decides no result
    page = Cells(render(table, "html"))
    assert "script" not in {tag for tag, _ in page.tags}
    output = [attrs["data-command"] for _, attrs in page.tags if "data-command" in attrs]
    assert [shlex.split(each)[-1] for each in output if each] == [hostile] * 2
