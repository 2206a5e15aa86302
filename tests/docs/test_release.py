"""Releases: the changelog section, the tag message, and one place for the version."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## 0.2.0 (unreleased)

### Added

- **More** of [it](docs/it.md), with `twofold more`.

## 0.1.0 (2026-11-17)

### Added

- All.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "docs" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "dist").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for name in ("twofold-0.2.0.tar.gz", "twofold-0.2.0-py3-none-any.whl"):
        (tmp_path / "dist" / name).write_bytes(bytes(2000))
    return tmp_path


def test_the_section_of_the_version_is_written(release, root, capsys):
    release.main(root)
    notes = (root / "dist" / "changelog-0.2.0.md").read_text()
    assert notes == (
        "# twofold 0.2.0\n\n### Added\n\n- **More** of [it](docs/it.md), with `twofold more`.\n"
    )
    tag = (root / "dist" / "tag-0.2.0.txt").read_text()
    assert tag == "twofold 0.2.0\n\nAdded\n\n- More of it, with twofold more.\n"
    said = capsys.readouterr().out
    assert "dist/twofold-0.2.0.tar.gz: 2 KB" in said
    assert "CHANGELOG.md calls 0.2.0 unreleased" in said


def test_a_released_section_is_the_last_one(release):
    assert release.section_of(CHANGELOG, "0.1.0") == ("2026-11-17", "### Added\n\n- All.")


def test_a_version_without_a_section_or_packages_is_refused(release, root):
    with pytest.raises(SystemExit, match=r"no section of 0\.3\.0"):
        release.section_of(CHANGELOG, "0.3.0")
    (root / "dist" / "twofold-0.2.0.tar.gz").unlink()
    with pytest.raises(SystemExit, match="not a wheel and an sdist"):
        release.main(root)


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = re.compile(rf"version\W+{re.escape(project['version'])}\b", re.IGNORECASE)
    files = [*ROOT.glob("*.*"), *(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    texts = {file.name for file in files if file.is_file() and stated.search(file.read_text())}
    assert texts == {"pyproject.toml"}
