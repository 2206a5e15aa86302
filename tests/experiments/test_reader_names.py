"""Names in stores of strangers: they have no effect in any format."""

from __future__ import annotations

import csv
import dataclasses
import json

import pytest
from helpers.benchmarks import class_benchmark
from helpers.hostile import COMMANDS, accuracies, answer, victim
from helpers.runs import curve_run

import twofold
from torture.hostile import change, seal
from twofold import UserError
from twofold.experiments.foreign import describe
from twofold.experiments.runs import Run
from twofold.experiments.store import Store

NAMES_WITH_EFFECT = (
    "=HYPERLINK(1)",
    "@SUM(A1)",
    "[x](javascript:alert(1))",
    "\\<img src=x onerror=alert(1)>",
    "\\input{/etc/passwd}",
    "[/bold] [red]rich",
)


@pytest.mark.parametrize("name", NAMES_WITH_EFFECT)
def test_names_have_no_effect_in_any_format(name, tmp_path):
    store = Store(tmp_path / "store")
    run = curve_run("er", accuracies(40.0), tasks=2, iterations=2)
    for value in (name, "plain"):
        config = describe(name, name, 1, own="own", settings={name: value})
        more = {"identity": config.identity(), "command": None, "test_sets": [name, "other"]}
        store.save(Run(config, {**run.summary, **more}, run.columns))
    texts = {"rich": answer(["runs"], store.folder)[1]}
    for format in ("md", "csv", "latex", "html", "json"):
        words = ["table", "--format", format]
        code, texts[format], errors = answer(words, store.folder)
        assert (code, errors) == (0, "")
    assert "[red]" in texts["rich"] or "[red]" not in name
    cells = [cell for line in csv.reader(texts["csv"].splitlines()) for cell in line]
    assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert "](" not in texts["md"]
    assert "<img" not in texts["md"] + texts["html"]
    assert "\\input" not in texts["latex"]
    assert json.loads(texts["json"])["numbers"][0]["method"] == name
    answer(["report"], store.folder)
    assert name not in (tmp_path / "report.html").read_text() or "<" not in name


@pytest.mark.parametrize("name", ["\x1b[2J", "\u202e", "a\nb", "\udcff"])
def test_names_of_folders_are_shown_without_effect(name, store):
    folder = victim(store)
    folder.rename(folder.with_name(f"{name}{folder.name}"))
    for words in COMMANDS:
        assert name not in "".join(answer(words, store)[1:])
    assert "letters that cannot be shown" in answer(["runs"], store)[2]


@pytest.mark.parametrize("name", ["lr", "identity", "task", "accuracy_1"])
def test_a_setting_cannot_hide_what_a_run_is(name, store):
    folder = victim(store)
    change("config.json", settings={name: "x"})(folder)
    seal(folder)
    assert "a setting can't be called" in answer(["runs"], store)[2]


@pytest.mark.parametrize("name", ["-x", "a\nb", "\x1b[2J", "x" * 3000])
def test_names_that_could_not_be_read_again_are_refused_before_training(name):
    with pytest.raises(UserError, match="must"):
        describe(name, "er", 1, own="own")
    with pytest.raises(UserError, match="must"):
        twofold.run(dataclasses.replace(class_benchmark(), name=name), "er")
