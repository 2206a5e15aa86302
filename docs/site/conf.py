"""Sphinx's settings for the site."""

from __future__ import annotations

import re
from typing import Any

project, author, copyright = "twofold", "The twofold developers", "The twofold developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["extra", ".doctrees", "README.md"]
html_theme = "furo"
html_title = "twofold"
html_extra_path = ["extra"]
html_copy_source = html_show_sourcelink = False
html_static_path = html_css_files = ["site.css"]
smartquotes = False  # equations have apostrophes
default_role = "literal"  # docstrings write names as Markdown does

myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}  # else the page shows what it consists of
python_maximum_signature_line_length = 88
nitpicky = False

ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
PARAMETER = re.compile(r"(\w+(?:, \w+)*): \S")


def with_arguments(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Turn lines such as `seed: of routines that draw` into a list."""
    new: list[str] = []
    listed = False
    for line in lines:
        if PARAMETER.match(line):
            head, _, rest = line.partition(": ")
            new += [f"* `{head}`: {rest}"] if listed else ["", f"* `{head}`: {rest}"]
            listed = True
        elif listed and line.startswith("    "):
            new.append(f"  {line.strip()}")
        else:
            listed = False
            new.append(line)
    lines[:] = new


def readable(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str
) -> tuple[str | None, str]:
    """Replace what Sphinx cannot parse or shows as it stores it: defaults, and names of aliases."""
    if signature is not None:
        signature = ALIAS.sub(r"\1", signature.replace("<factory>", "..."))
    return signature, returned


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", with_arguments, priority=1000)
    app.connect("autodoc-process-signature", readable)
