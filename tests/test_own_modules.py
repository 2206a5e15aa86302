"""Users' own modules: which there are, as they were executed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from twofold import UserError
from twofold.discovery import import_file, with_neighbours
from twofold.own_modules import imported, text_digest


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose modules are forgotten afterwards."""
    path, modules = [*sys.path], {*sys.modules}
    yield tmp_path
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        del sys.modules[name]


def write(folder: Path, **texts: str) -> str:
    for name, text in texts.items():
        file = folder / f"{name.replace('__in__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    importlib.invalidate_caches()
    return str(folder / "plugin.py")


def test_a_plugin_imports_its_neighbours_and_theirs(folder: Path) -> None:
    plugin = write(
        folder,
        plugin="import numpy, json, om_one\nfrom om_pack import part\ndef later(): import om_late",
        om_one="from om_two import X",
        om_two="X = 1",
        om_late="",
        om_pack__in____init__="",
        om_pack__in__part="from . import other",
        om_pack__in__other="",
    )
    import_file(plugin)
    names = ["om_late", "om_one", "om_pack", "om_pack.other", "om_pack.part", "om_two"]
    assert imported(Path(plugin)) == names
    files = {"plugin", "om_late", "om_one", "om_pack/__init__", "om_pack/other", "om_pack/part"}
    assert {*with_neighbours(plugin)} == {f"{name}.py" for name in {*files, "om_two"}}


def test_two_neighbours_of_one_name_are_not_confused(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        write(folder / name, plugin="import om_same", om_same=f"X = {name!r}")
    import_file(str(folder / "a" / "plugin.py"))
    with pytest.raises(
        UserError, match=r"it imports om_same from .*a/om_same.py, not from .*b/om_"
    ):
        import_file(str(folder / "b" / "plugin.py"))


def test_equal_copies_are_one_module(folder: Path) -> None:
    """A node of a cluster gets a copy with every run."""
    for name in ("a", "b"):
        (folder / name).mkdir()
        import_file(write(folder / name, plugin="import om_copy", om_copy="X = 1"))


def test_a_neighbour_with_the_name_of_an_installed_module_is_refused(folder: Path) -> None:
    plugin = write(folder, plugin="import colorsys", colorsys="X = 1")
    with pytest.raises(UserError, match=r"plugin .* it imports colorsys from .*: rename"):
        import_file(plugin)


def test_a_module_that_changes_after_its_import_is_refused(folder: Path) -> None:
    import_file(write(folder, plugin="import om_old", om_old="X = 1"))
    first = text_digest("om_old")
    write(folder, om_old="X = 22")
    with pytest.raises(UserError, match="module 'om_old' was changed after it was imported"):
        text_digest("om_old")
    importlib.reload(sys.modules["om_old"])
    assert text_digest("om_old") != first
