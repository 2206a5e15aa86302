"""Papers: how their things are named and found."""

from __future__ import annotations

import pytest

from twofold import papers
from twofold.errors import UserError

NAMES = papers.Catalogue("study", {"a2020": {"main": 1, "more": 2}, "b2021": {"main": 3}})


def test_only_shared_names_are_long() -> None:
    assert dict(NAMES) == {"a2020/main": 1, "more": 2, "b2021/main": 3}
    assert (NAMES.name("a2020", "more"), NAMES.name("b2021", "main")) == ("more", "b2021/main")


def test_the_long_form_of_any_name_is_found() -> None:
    assert NAMES.find("a2020/more") == NAMES.find("more") == NAMES["more"] == 2
    assert "a2020/more" in NAMES
    assert "main" not in NAMES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("main", "several papers have a study 'main': a2020/main, b2021/main"),
        ("mor", "unknown study 'mor': did you mean 'more'?"),
        ("b2021/more", "unknown study 'b2021/more'"),
    ],
)
def test_what_is_not_found_is_answered(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        NAMES.find(name)


def test_a_paper_is_cited() -> None:
    assert str(papers.paper("hess2024")) == "Hess et al. (2024)"
    assert str(papers.Paper("A title", ("Ada Lovelace",), 1843)) == "Lovelace (1843)"


def test_a_part_that_no_paper_has_is_no_module() -> None:
    assert papers.modules("nothing") == {}
    assert set(papers.modules("tables")) == set(papers.folders()) == {"hess2024"}
