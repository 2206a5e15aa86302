"""Files that a user names are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twofold.plainfiles import write_output


@pytest.mark.parametrize("content", ["new", b"new"])
def test_it_is_written(content: str | bytes, tmp_path: Path) -> None:
    write_output(tmp_path / "a" / "b.txt", content)
    assert (tmp_path / "a" / "b.txt").read_text() == "new"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_old_file_stays_if_the_new_one_fails(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table.md"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("full")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="full"):
        write_output(file, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("table.md", "old")]


def test_a_users_own_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_output(tmp_path / "link", "new")
    assert (tmp_path / "target").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_a_device_is_written_to(capfd: pytest.CaptureFixture[str]) -> None:
    write_output(Path("/dev/null"), "new")
    assert Path("/dev/null").is_char_device()
