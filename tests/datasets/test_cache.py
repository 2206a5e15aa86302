"""The decoded cache: fast, checked, repaired, shared between processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from twofold.datasets import cache, load, statistics
from twofold.datasets.dataset import digest
from twofold.errors import UserError


@pytest.fixture(scope="module")
def first_load(mini_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache after a first load; not to be changed."""
    folder = tmp_path_factory.mktemp("first") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWOFOLD_CACHE", str(folder))
        load("mini-imagenet", mini_folder)
    return folder


@pytest.fixture
def entry(first_load: Path, cache_folder: Path) -> Path:
    """The cache entry after a first load."""
    shutil.copytree(first_load, cache_folder)
    (path,) = (cache_folder / "decoded").iterdir()
    return path


def test_a_first_load_says_what_it_does(
    mini_folder: Path, cache_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load("mini-imagenet", mini_folder)
    assert capsys.readouterr().err.startswith("decoding mini-imagenet from ")
    assert len(list((cache_folder / "decoded").iterdir())) == 1


def test_a_second_load_only_maps(
    entry: Path, mini_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((path.name, path.stat().st_mtime_ns) for path in entry.iterdir())
    dataset = load("mini-imagenet", mini_folder)
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in entry.iterdir())
    assert capsys.readouterr().err == ""
    assert len(dataset.train.images) == 500


def test_the_images_are_not_read_again(entry: Path, mini_folder: Path, tmp_path: Path) -> None:
    """A source whose images are gone, but whose folder looks the same, still loads."""
    other = tmp_path / "mini-imagenet"
    (other / "images").mkdir(parents=True)
    source = mini_folder / "mini-imagenet"
    for image in (source / "images").iterdir():
        (other / "images" / image.name).touch()
    for table in source.glob("*.csv"):
        (other / table.name).write_bytes(table.read_bytes())
    for name in ("train.csv", "val.csv", "test.csv", "images"):
        times = (source / name).stat()
        os.utime(other / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert len(load("mini-imagenet", tmp_path).test.images) == 100


def test_arrays_are_mapped_and_read_only(entry: Path, mini_folder: Path) -> None:
    train = load("mini-imagenet", mini_folder).train
    for array in (train.images, train.labels):
        assert type(array) is np.ndarray
        assert isinstance(array.base, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "flipped pixel": lambda e: flip(e / "train-images.npy", -1000),
    "flipped header": lambda e: flip(e / "test-images.npy", 60),
    "flipped label": lambda e: flip(e / "test-labels.npy", -8),
    "flipped class name": lambda e: flip(
        e / "manifest.json", (e / "manifest.json").read_bytes().index(b"n00000042") + 3
    ),
    "truncated": lambda e: os.truncate(e / "train-images.npy", 5000),
    "emptied": lambda e: os.truncate(e / "train-labels.npy", 0),
    "missing array": lambda e: (e / "test-labels.npy").unlink(),
    "missing manifest": lambda e: (e / "manifest.json").unlink(),
    "garbage manifest": lambda e: (e / "manifest.json").write_bytes(b"\xff\0garbage"),
    "list manifest": lambda e: (e / "manifest.json").write_text("[1]"),
    "empty manifest": lambda e: (e / "manifest.json").write_text(""),
}


@pytest.mark.parametrize("way", DAMAGE)
def test_damage_is_repaired(
    way: str, entry: Path, mini_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digest(load("mini-imagenet", mini_folder))
    DAMAGE[way](entry)
    assert digest(load("mini-imagenet", mini_folder)) == before
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.endswith("the decoded copy is damaged\n")
    load("mini-imagenet", mini_folder)
    assert capsys.readouterr().err == ""


def test_another_format_version_is_decoded_again(
    entry: Path, mini_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((entry / "manifest.json").read_text())
    manifest["format"] = cache.FORMAT + 1
    (entry / "manifest.json").write_text(json.dumps(manifest))
    load("mini-imagenet", mini_folder)
    assert "decoding" in capsys.readouterr().err
    assert json.loads((entry / "manifest.json").read_text())["format"] == cache.FORMAT


def test_the_manifest_describes_the_entry(entry: Path) -> None:
    facts = json.loads((entry / "manifest.json").read_text())["facts"]
    assert facts["arrays"]["train-images"]["shape"] == [500, 84, 84, 3]
    assert sorted(facts["arrays"]) == sorted(path.stem for path in entry.glob("*.npy"))


def test_what_images_are_whitened_with_is_kept(entry: Path, mini_folder: Path) -> None:
    mean, deviation = load("mini-imagenet", mini_folder).statistics
    pixels = load("mini-imagenet", mini_folder).train.images.reshape(-1, 3) / 255.0
    np.testing.assert_allclose(mean, pixels.mean(0), rtol=1e-6)
    np.testing.assert_allclose(deviation, pixels.std(0), rtol=1e-6)
    manifest = json.loads((entry / "manifest.json").read_text())
    assert manifest["facts"]["statistics"] == [list(mean), list(deviation)]


def test_it_is_not_computed_again(
    entry: Path, mini_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(images: object) -> None:
        raise AssertionError

    monkeypatch.setattr(statistics, "channel_statistics", fail)
    assert len(load("mini-imagenet", mini_folder).statistics) == 2


def test_a_changed_source_is_decoded_again(entry: Path, mini_folder: Path, tmp_path: Path) -> None:
    table = mini_folder / "mini-imagenet" / "val.csv"
    before = table.stat()
    os.utime(table)
    load("mini-imagenet", mini_folder)
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(list(entry.parent.iterdir())) == 2


def test_what_a_killed_process_left_is_cleared(entry: Path, mini_folder: Path) -> None:
    left = entry.with_name(entry.name + ".tmp")
    entry.rename(left)
    entry.with_name(entry.name + ".lock").touch()
    load("mini-imagenet", mini_folder)
    assert list(entry.parent.iterdir()) == [entry]


def test_a_failed_decoding_leaves_nothing(cache_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for part in ("train", "val", "test"):
        (tmp_path / f"{part}.csv").write_text("filename,label\n")
    with pytest.raises(UserError, match="holds 0 classes"):
        load("mini-imagenet", tmp_path)
    assert list((cache_folder / "decoded").iterdir()) == []


def test_a_cache_that_cannot_be_written(
    mini_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match=r"cannot write to the cache folder .*\$TWOFOLD_CACHE"):
        load("mini-imagenet", mini_folder)


def test_a_full_disk(mini_folder: Path, cache_folder: Path) -> None:
    """A real limit on the size of files, in a process of its own."""
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from twofold.datasets import load; from twofold.errors import UserError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try: load('mini-imagenet', Path(sys.argv[1]))\n"
        "except UserError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(mini_folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot write to the cache folder" in process.stdout
    assert list((cache_folder / "decoded").iterdir()) == []


def test_processes_at_once_decode_once(mini_folder: Path, cache_folder: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from twofold.datasets import load; from twofold.datasets.dataset import digest\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(digest(load('mini-imagenet', Path(sys.argv[1]))))\n"
    )
    command = [sys.executable, "-c", script, str(mini_folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [process.communicate(timeout=600) for process in processes]
    assert all(process.returncode == 0 for process in processes), outcomes
    assert len({out for out, _ in outcomes}) == 1
    assert "".join(err for _, err in outcomes).count("decoding mini-imagenet") == 1
    assert len(list((cache_folder / "decoded").iterdir())) == 1


def test_loading_is_fast(entry: Path, mini_folder: Path) -> None:
    start = time.process_time()
    load("mini-imagenet", mini_folder)
    assert time.process_time() - start < 0.5


def test_importing_is_cheap() -> None:
    script = (
        "import sys, twofold.datasets\n"
        "print([name for name in ('torch', 'PIL', 'rich', 'scipy') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.stdout == "[]\n"
