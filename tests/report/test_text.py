"""Text for Markdown and LaTeX."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from twofold.report.text import latex_text, markdown_table


def test_a_column_of_one_letter_has_a_rule() -> None:
    """Without `-` in it, GitHub shows no table at all."""
    assert markdown_table([["", "p"], ["1", "–"]], 1) == "|   |  p |\n| - | -: |\n| 1 |  – |"


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
