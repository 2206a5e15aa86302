"""Memory maps: the same runs as from memory, without reading what is not needed."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import three_channel_images
from torch import Tensor

import twofold
from twofold import Benchmark
from twofold.benchmarks import maps
from twofold.benchmarks.maps import Mapped, file_of
from twofold.experiments import digests
from twofold.experiments.digests import benchmark_digest

Y = torch.arange(50) % 2


@pytest.fixture(autouse=True)
def all_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "LEAST", 1)


def stored(folder: Path, name: str, array: np.ndarray) -> np.ndarray:
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


INPUTS = {
    "float32": torch.randn(50, 4).numpy(),
    "float16": torch.randn(50, 4).half().numpy(),
    "images": three_channel_images().numpy(),
    "images, channels first": three_channel_images().permute(0, 3, 1, 2).contiguous().numpy(),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_a_run_from_a_map_is_that_from_memory(kind, tmp_path):
    array = INPUTS[kind]
    mapped = stored(tmp_path, "x", array)

    def benchmark(x) -> Benchmark:
        parts = [(x[10:40], Y[:30], x[:10], Y[:10]), (x[25:], Y[:25] + 2, x[:20], Y[:20] + 2)]
        return Benchmark.from_tensors("mine", parts)

    one, other = benchmark(mapped), benchmark(array)
    assert isinstance(one.train.images, Mapped)
    assert isinstance(other.train.images, Tensor)
    rows = np.array([3, 54, 30, 29, 3])
    torch.testing.assert_close(one.train.batch(rows).x, other.train.batch(rows).x)
    given = {"batch_size": 5, "iterations": 3}
    runs = [twofold.run(each, "er", **given) for each in (one, other)]
    np.testing.assert_allclose(*(run.columns["loss"] for run in runs), rtol=1e-5)


def test_small_maps_are_read_into_memory(tmp_path, monkeypatch):
    x = stored(tmp_path, "x", INPUTS["float32"])
    for least, kind in ((x.nbytes * 7 // 5, Mapped), (x.nbytes * 7 // 5 + 1, Tensor)):
        monkeypatch.setattr(maps, "LEAST", least)
        parts = [(x, Y, x[:10], Y[:10]), (x[:20], Y[:20], x[:10], Y[:10])]
        assert isinstance(Benchmark.from_tensors("mine", parts).train.images, kind)


def test_tensors_of_files_are_recognised(tmp_path):
    array = stored(tmp_path, "x", np.arange(12, dtype=np.float32).reshape(4, 3))
    file = tmp_path / "x.npy"
    offset = file.stat().st_size - 48
    for shared in (True, False):
        whole = torch.from_file(str(file), shared, size=offset // 4 + 12, dtype=torch.float32)
        found = file_of(whole[offset // 4 + 3 :])
        assert (found.path, found.offset, found.current) == (file, offset + 12, shared)
    found = file_of(torch.from_numpy(np.load(file, mmap_mode="c"))[2:])
    assert (found.path, found.offset, found.current) == (file, offset + 24, False)
    assert file_of(torch.from_numpy(np.array(array))) is None
    assert file_of(torch.zeros(1000).share_memory_()) is None


def test_a_file_is_read_again_only_if_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    read: list[Path] = []
    sha256_of = digests.sha256_of
    monkeypatch.setattr(digests, "sha256_of", lambda file: (read.append(file), sha256_of(file))[1])

    def digest(start: int = 0) -> str:
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        task = (x[start : start + 20], Y[:20], x[:10], Y[:10])
        return benchmark_digest(Benchmark.from_tensors("mine", [task]))

    stored(tmp_path, "x", INPUTS["float32"])
    first = digest()
    assert digest() == first
    assert len(read) == 1
    assert digest(start=5) != first  # different rows of the same file
    stored(tmp_path, "x", INPUTS["float32"] + 1)
    assert digest() != first
    assert len(read) == 2


def test_what_was_written_to_a_private_map_counts(tmp_path):
    stored(tmp_path, "x", INPUTS["float32"])
    x = np.load(tmp_path / "x.npy", mmap_mode="c")
    before, after = (
        (x.__setitem__((7, 2), value), benchmark_digest(Benchmark.from_tensors("mine", [task])))[1]
        for value in (1.0, 2.0)
        for task in [(x[:20], Y[:20], x[20:30], Y[:10])]
    )
    assert before != after


def peak() -> float:
    """Return the most memory that this process has had since `clear_refs`, in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def test_a_run_needs_little_memory(tmp_path, monkeypatch):
    """A run reads a few megabytes of a sparse file of 200 MB."""
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "cache"))
    with (tmp_path / "large").open("wb") as file:
        file.truncate(50_000 * 4000)
    Path("/proc/self/clear_refs").write_text("5")  # which resets the peak
    before = peak()
    x = np.memmap(tmp_path / "large", np.float32, "r", shape=(50_000, 1000))
    y = torch.arange(25_000) % 2
    parts = [(x[:25_000], y, x[:500], y[:500]), (x[25_000:], y + 2, x[-500:], y[:500] + 2)]
    model = functools.partial(torch.nn.Linear, 1000, 4)
    benchmark = Benchmark.from_tensors("large", parts, model=model)
    twofold.run(benchmark, "er", batch_size=10, iterations=20, eval_size=50)
    assert peak() - before < 100  # it is above 180 if pages are not given back
