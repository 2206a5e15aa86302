"""The built packages: what they hold, and that they work where the repository is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from twofold.extras import EXTRAS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
# For checking the types of the page's scripts, in the repository.
LEFT_OUT = re.compile(r"__pycache__|\.egg-info|/jsconfig\.json$|/scripts/types/")
SMALL = ("--iterations", "20", "--eval-size", "100", "--tasks", "2", "--workers", "1")
BLOCKER = """
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A wheel and an sdist, built from a copy of the repository without build isolation."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(SOURCE, copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = "from setuptools import build_meta as b; b.build_wheel('dist'); b.build_sdist('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (wheel,), (sdist,) = (copy.glob(f"dist/*{suffix}") for suffix in (".whl", ".tar.gz"))
    return {"wheel": wheel, "sdist": sdist}


def test_the_wheel_holds_all_of_the_package_and_nothing_else(packages):
    with zipfile.ZipFile(packages["wheel"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (path for path in SOURCE.rglob("*") if path.is_file())
    expected = {path.relative_to(SOURCE).as_posix() for path in files}
    assert names == {name for name in expected if not LEFT_OUT.search(name)}


def test_the_wheel_is_small_and_names_its_licence_and_python(packages):
    assert packages["wheel"].stat().st_size < 1e6
    with zipfile.ZipFile(packages["wheel"]) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        lines = wheel.read(metadata).decode().splitlines()
    assert {"License-Expression: MIT", "Requires-Python: >=3.11"} <= {*lines}
    assert "Requires-Dist: torch>=2.10" in lines
    assert {f"Provides-Extra: {name}" for name in EXTRAS} <= {*lines}


class Environment:
    """A virtual environment outside of the repository that sees installed packages, not twofold."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder, self.bin = folder, folder / "env" / "bin"
        run([sys.executable, "-m", "venv", "--without-pip", folder / "env"])
        purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.site = Path(run([self.bin / "python", "-c", purelib]).stdout.strip())
        # A plain path: the .pth files there, such as those of an editable twofold, do not count.
        (self.site / "torch.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python", "install"]
        run([*pip, "--no-deps", "--no-index", "--no-build-isolation", package])

    def block(self) -> None:
        """Refuse the packages of all extras."""
        packages = {package for names in EXTRAS.values() for package in names}
        (self.site / "sitecustomize.py").write_text(BLOCKER.format(packages=packages))

    def unblock(self) -> None:
        (self.site / "sitecustomize.py").unlink()

    def twofold(self, *words: str, code: int = 0) -> str:
        """Return what a command printed, on either stream."""
        done = run([self.bin / "twofold", *words], self.folder, code)
        return done.stdout + done.stderr

    def python(self, code: str) -> str:
        (self.folder / "example.py").write_text(code)
        return run([self.bin / "python", "example.py"], self.folder).stdout


def run(
    command: Sequence[str | Path], folder: Path | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def examples() -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(sys.platform == "win32", reason="environments have other folders there")
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_an_installed_package_works_anywhere(kind, packages, need, tmp_path):
    need("mnist")
    env = Environment(tmp_path, packages[kind])
    env.block()
    where = env.python("import twofold; print(twofold.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path)
    env.twofold("run", "rotated-mnist", "er", "er+gem", *SMALL)
    assert "240 runs" in env.twofold("study", "run", "main", "--dry-run")
    assert "er+gem" in env.twofold("table")
    missing = env.twofold("figure", "gap", "rotated-mnist", code=2)
    assert missing == "twofold: a figure needs matplotlib: pip install 'twofold[figures]'\n"
    missing = env.twofold("report", code=2)
    assert missing.endswith("pip install 'twofold[report]'\n")
    env.unblock()
    env.twofold("figure", "gap", "rotated-mnist", "--output", "gap.png")
    assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
    env.twofold("report", "runs")
    assert "er+gem" in (tmp_path / "report.html").read_text("utf-8")
    if kind == "wheel":
        for example in examples():
            env.python(example)
        assert (tmp_path / "halved.png").exists()
