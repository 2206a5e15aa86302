"""Weights as safetensors: every bit, one-line errors, and a network ready to predict."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.runs import curve_run, gap_accuracies
from torch import nn

import twofold
from twofold import Run, Store, UserError
from twofold.experiments import weights
from twofold.experiments.start import Start
from twofold.models.flat import load_weights


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


STATES = {
    "a network": network().state_dict(),
    "all kinds of numbers": {
        "half": torch.randn(3, 2).bfloat16(),
        "double": torch.tensor([float("nan"), -0.0, float("inf")], dtype=torch.float64),
        "count": torch.tensor(7),
        "flags": torch.tensor([True, False]),
        "none": torch.zeros(0, 3),
    },
    "views": dict(zip("ab", [torch.arange(6.0).reshape(2, 3).T] * 2, strict=True)),
}


@pytest.mark.parametrize("kind", STATES)
def test_every_bit_comes_back(kind: str, tmp_path: Path) -> None:
    path, state = tmp_path / "end.safetensors", STATES[kind]
    weights.write(path, state)
    result = weights.read(path)
    assert result.keys() == state.keys()
    for name, value in state.items():
        assert result[name].dtype == value.dtype
        assert result[name].shape == value.shape
    assert weights.digest(path) == weights.digest(result) == weights.digest(state)
    assert [file.name for file in tmp_path.iterdir()] == ["end.safetensors"]


def test_the_digest_sees_names_shapes_and_bits() -> None:
    state = {"a": torch.zeros(2), "b": torch.ones(1)}
    others = (
        {"a": torch.zeros(2), "c": torch.ones(1)},
        {"a": torch.zeros(2, 1), "b": torch.ones(1)},
        {"a": torch.zeros(2).double(), "b": torch.ones(1)},
        {"a": -torch.zeros(2), "b": torch.ones(1)},
    )
    assert weights.digest(dict(reversed(state.items()))) == weights.digest(state)
    assert len({weights.digest(state), *map(weights.digest, others)}) == 5


@pytest.mark.parametrize("content", [b"", b"no weights", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0[]"])
def test_a_file_that_is_not_one_is_told_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=r"file is not a file of weights \(safetensors\)$"):
        weights.read(tmp_path / "file")


def test_so_are_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"can't read the weights .*none: No such file"):
        weights.read(tmp_path / "none")
    with pytest.raises(UserError, match="is not a file of weights"):
        weights.read(tmp_path)


def test_a_file_of_terabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UserError, match="file is larger than 17,179,869,184 bytes"):
        weights.read(tmp_path / "file")


@pytest.mark.parametrize("kind", ["damaged", "link", "pipe"])
def test_a_run_to_start_from_holds_its_own_weights(kind: str, tmp_path: Path) -> None:
    folder = Store(tmp_path / "runs").save(mnist_run(end=network().state_dict()))
    file = folder / "weights" / "end.safetensors"
    assert Start.read(folder).digest == weights.digest(network().state_dict())
    content = bytearray(file.read_bytes())
    file.unlink()
    if kind == "damaged":
        content[-1] ^= 1
        file.write_bytes(content)
    elif kind == "link":
        (tmp_path / "outside").write_bytes(content)
        file.symlink_to(tmp_path / "outside")
    else:
        os.mkfifo(file)
    with pytest.raises(UserError, match=r"end\.safetensors (is|has)"):
        Start.read(folder)


@pytest.mark.parametrize("kind", ["pipe", "nested"])
def test_odd_checksums_are_answered_at_once(kind: str, tmp_path: Path) -> None:
    folder = Store(tmp_path / "runs").save(mnist_run(end=network().state_dict()))
    run = Run.load(folder)
    (folder / "checksums.json").unlink()
    if kind == "pipe":
        os.mkfifo(folder / "checksums.json")
    else:
        (folder / "checksums.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"end\.safetensors has no checksum"):
        run.weights()


ODD: dict[str, torch.Tensor] = {
    "sparse": torch.zeros(3, 8).to_sparse(),
    "meta": torch.zeros(3, 8, device="meta"),
    "complex": torch.zeros(3, 8, dtype=torch.complex64),
    "flags": torch.zeros(3, 8, dtype=torch.bool),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors_to_start_from_are_refused(kind: str) -> None:
    state = {"weight": ODD[kind], "bias": torch.zeros(3)}
    with pytest.raises(UserError, match="'weight' is"):
        load_weights(nn.Linear(8, 3), Start.read(state).weights() or {})


def test_a_state_of_more_than_tensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'extra' of the network's state is a dict"):
        weights.write(tmp_path / "file", {"extra": {}})
    assert list(tmp_path.iterdir()) == []


# The network of a run


def mnist_run(**states: weights.State) -> Run:
    run = curve_run("er+gem", gap_accuracies(60, 3, 1))
    return dataclasses.replace(run, states={k.replace("_", "-"): v for k, v in states.items()})


def test_the_model_of_a_run_predicts_as_it_was_trained(tmp_path: Path) -> None:
    trained = twofold.Recipe.find("rotated-mnist").model()
    Store(tmp_path).save(mnist_run(), {"end": trained.state_dict()})
    (run,) = Store(tmp_path).runs()
    before = torch.get_rng_state()
    model = run.model()
    assert torch.equal(torch.get_rng_state(), before)
    assert not model.training
    images = torch.randn(5, 1, 28, 28)
    with torch.no_grad():
        assert torch.equal(model(images), trained.eval()(images))


def test_the_model_after_each_task() -> None:
    models = [twofold.Recipe.find("rotated-mnist").model() for _ in range(3)]
    run = mnist_run(**{f"task_{k + 1}": model.state_dict() for k, model in enumerate(models)})
    for task, model in ((1, models[0]), (2, models[1]), (3, models[2]), (None, models[2])):
        expected = weights.digest(model.state_dict())
        assert weights.digest(run.weights(task)) == expected
        assert weights.digest(run.model(task).state_dict()) == expected


def test_the_weights_at_the_end_are_those_after_the_last_task() -> None:
    run = mnist_run(end={"a": torch.ones(1)})
    assert run.weights(3) == run.weights() == run.states["end"]
    with pytest.raises(UserError, match="kept no weights of task 2: there are end"):
        run.weights(2)


def test_a_run_without_weights_tells_how_to_keep_them(tmp_path: Path) -> None:
    Store(tmp_path).save(mnist_run())
    for run in (mnist_run(), *Store(tmp_path).runs()):
        for ask in (run.weights, run.model):
            with pytest.raises(
                UserError, match='kept no weights: train it with keep_weights="end"'
            ):
                ask()


def test_a_run_on_a_users_tensors_needs_the_network() -> None:
    benchmark = class_benchmark()
    run = twofold.run(benchmark, "er", batch_size=10, iterations=2, tasks=2)
    trained = benchmark.model()
    run = dataclasses.replace(run, states={"end": trained.state_dict()})
    with pytest.raises(UserError, match=r"your own tensors: pass its network, run\.model\(model="):
        run.model()
    for given in (benchmark.model, benchmark.model()):
        assert weights.digest(run.model(model=given).state_dict()) == (
            weights.digest(trained.state_dict())
        )
    with pytest.raises(UserError, match="weights of a different network: they lack 'weight'"):
        run.model(model=lambda: nn.Linear(2, 2))
