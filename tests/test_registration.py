"""What a user's file may define: names that are free, and routines that do something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from twofold import Objective, Recipe, Routine, UserError
from twofold.discovery import import_file

HALF = """
from twofold import Routine
class Half(Routine, name="half-of-it"):
    def direct(self, g, step):
        return {share} * g
"""


def plugin(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        (Routine, "gem", "there is a routine 'gem' already: choose another name"),
        (Objective, "er", "there is an objective 'er' already: choose another name"),
        (Recipe, "rotated-mnist", "there is a benchmark 'rotated-mnist' already: choose another"),
    ],
)
def test_a_plugin_takes_no_name_that_is_taken(tmp_path, registries, kind, name, told):
    there = kind.known[name]
    text = f"""
        from twofold import {kind.__name__}
        class Mine({kind.__name__}, name="{name}"):
            def direct(self, g, step):
                return g
    """.replace("\n        ", "\n")
    with pytest.raises(UserError, match=told):
        import_file(plugin(tmp_path / "mine.py", text))
    assert kind.known[name] is there


def test_nor_one_of_another_plugin(tmp_path, registries):
    import_file(plugin(tmp_path / "one.py", HALF.format(share=0.5)))
    with pytest.raises(UserError, match="there is a routine 'half-of-it' already"):
        import_file(plugin(tmp_path / "other.py", HALF.format(share=0.4)))


def test_a_file_may_be_executed_anew(tmp_path, registries):
    file = plugin(tmp_path / "half.py", HALF.format(share=0.5))
    import_file(file)
    before = Routine.known["half-of-it"]
    del sys.modules[before.__module__]
    plugin(tmp_path / "half.py", HALF.format(share=0.4))
    import_file(file)
    assert Routine.known["half-of-it"] is not before


def test_the_same_text_may_come_from_two_folders(tmp_path, registries):
    """So it does on the nodes of a cluster, once a run."""
    for folder in ("one", "other"):
        import_file(plugin(tmp_path / folder / "half.py", HALF.format(share=0.5)))


def test_a_script_may_be_its_own_plugin(tmp_path):
    script = """
if __name__ == "__main__":
    import twofold
    twofold.configure("rotated-mnist", "er+half-of-it", plugins=[__file__])
"""
    plugin(tmp_path / "script.py", HALF.format(share=0.5) + script)
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)


def test_a_cell_of_a_notebook_may_be_run_again(registries):
    for _ in range(2):

        class Again(Routine, name="again"):
            def direct(self, g, step):
                return g

    assert Routine.known["again"] is Again


def test_a_misspelt_hook_is_named(registries):
    told = r"routine 'mine' overrides none of direct, .*: did you mean direct\?$"
    with pytest.raises(UserError, match=told):

        class Mine(Routine, name="mine"):
            def direkt(self, g, step):
                return 0 * g

    assert "mine" not in Routine.known


def test_a_routine_that_does_nothing_is_refused(registries):
    with pytest.raises(UserError, match=r"routine 'mine' overrides none of direct, .*, evaluated$"):

        class Mine(Routine, name="mine"):
            def __post_init__(self):
                pass


@pytest.mark.parametrize(
    "hook", ["direct", "step_size", "momentum", "after_step", "start", "start_task", "evaluated"]
)
def test_any_hook_will_do_also_an_inherited_one(registries, hook):
    class Mine(Routine, name="mine"):
        locals()[hook] = lambda self, *given: None

    class More(Mine, name="more"):
        pass

    class Gem(Routine.known["gem"], name="gem-of-mine"):
        scale = 2.0

    assert {"mine", "more", "gem-of-mine"} <= set(Routine.known)
