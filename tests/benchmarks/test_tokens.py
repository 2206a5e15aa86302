"""Tokens: whole numbers that a network with an embedding reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import twofold
from twofold import Benchmark, UserError
from twofold.experiments.estimate import calibrate

WORDS, LENGTH = 20, 6


class Reader(nn.Module):
    """A small transformer."""

    def __init__(self, words: int = WORDS, outputs: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 16)
        self.place = nn.Parameter(torch.zeros(LENGTH, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.end = nn.Linear(16, outputs)

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.int64
        return self.end(self.layer(self.embedding(x) + self.place).mean(1))


def sentences(task: int, count: int, dtype: torch.dtype = torch.int64) -> tuple[Tensor, Tensor]:
    """Sentences that use one word of their class often."""
    random = torch.Generator().manual_seed(task + count)
    y = torch.arange(count) % 2 + 2 * task
    x = torch.randint(0, WORDS, (count, LENGTH), generator=random)
    x[:, ::2] = y[:, None]
    return x.to(dtype), y


def benchmark(dtype: torch.dtype = torch.int64, model=Reader) -> Benchmark:
    tasks = [(*sentences(k, 60, dtype), *sentences(k, 30, dtype)) for k in range(2)]
    return Benchmark.from_tensors("sentences", tasks, model=model)


SMALL = {"batch_size": 10, "eval_size": 20, "memory_per_class": 5}


def test_a_transformer_learns_sentences():
    run = twofold.run(benchmark(), "er", **SMALL, iterations=40, lr=0.05, eval_schedule="every:20")
    assert run.avg > 90


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("der", {}),
        ("er+agem+clip(1)", {}),
        ("er+lpr", {}),
        ("bic", {}),
        ("er+distil+ewc(1)", {}),
        ("er", {"memory": "herding(10)"}),
        ("er+nmc", {"memory": "reservoir(20)"}),
        ("er+gem", {"scenario": "task", "eval_precision": "bf16"}),
    ],
)
def test_everything_else_works_with_tokens(method, options):
    given = {key: value for key, value in SMALL.items() if key != "memory_per_class"} | options
    run = twofold.run(benchmark(), method, **given, iterations=3, eval_schedule="every:3")
    assert np.isfinite(run.columns["loss"]).all()


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32])
def test_smaller_numbers_reach_the_network_as_int64(dtype):
    small, usual = (
        twofold.run(benchmark(each), "er", **SMALL, iterations=2) for each in (dtype, torch.int64)
    )
    assert np.array_equal(small.columns["loss"], usual.columns["loss"])
    assert benchmark(dtype).train.images.dtype == dtype  # in memory, they stay small


def layers(*modules: nn.Module) -> nn.Module:
    return nn.Sequential(*modules)


MISTAKES = {
    "a convolution": (lambda: layers(nn.Conv1d(6, 4, 1)), "takes no tokens .* an embedding"),
    "a linear layer": (lambda: nn.Linear(LENGTH, 4), r"takes no tokens \(int64, of shape \[2, 6\]"),
    "a small embedding": (lambda: Reader(WORDS - 1), f"knows no token {WORDS - 1}, so it needs"),
    "hold": (Reader, "hold knows linear layers.* 'place'"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_network_that_cannot_read_them_is_refused_in_one_line(kind):
    model, message = MISTAKES[kind]
    with pytest.raises(UserError, match=message) as caught:
        twofold.run(benchmark(model=model), "er+hold" if kind == "hold" else "er", **SMALL)
    assert "\n" not in str(caught.value)


def test_the_usual_network_takes_no_tokens():
    with pytest.raises(UserError, match="'sentences': tokens need a network with an embedding"):
        benchmark(model=None)


def test_a_token_below_0_is_found_wherever_it_is():
    x, y = sentences(0, 60)
    test = sentences(0, 30)
    test[0][29, 3] = -1
    wrong = Benchmark.from_tensors("sentences", [(x, y, *test)], model=Reader)
    with pytest.raises(UserError, match="tokens count from 0, and there is -1"):
        twofold.run(wrong, "er", **SMALL)


def test_the_time_of_a_run_on_tokens_can_be_estimated(monkeypatch):
    monkeypatch.setattr("twofold.experiments.estimate.TIMED", 0.01)
    sizes = benchmark().sizes()
    assert sizes.tokens
    assert calibrate(Reader, sizes.image, "bf16", sizes.tokens).evaluated > 0
