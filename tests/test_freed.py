"""What a run leaves behind in its process: nothing, so that a worker can train many runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.benchmarks import class_benchmark

from twofold import Method
from twofold.settings import Settings
from twofold.training import Training


@pytest.fixture
def no_search() -> Iterator[None]:
    """Python looks for cycles of references now and then, which may be many runs later."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("er", {}),
        ("er", {"memory": "herding"}),
        ("er", {"memory": "reservoir(40)"}),
        ("er", {"diagnose": True}),
        ("er+ewc", {}),
        ("er+gem", {}),
        ("er+hold", {}),
        ("er+lpr", {}),
        ("er+sam+ema", {}),
        ("bic", {}),
        ("der+agem", {}),
        ("joint", {}),
    ],
)
def test_the_images_of_a_run_are_freed_with_it(
    method: str, options: dict[str, Any], no_search: None
) -> None:
    benchmark = class_benchmark(norm=True)
    images = [weakref.ref(pool) for pool in (benchmark.train, benchmark.test)]
    settings = Settings(lr=0.05, batch_size=10, seed=0, iterations=2, **options)
    training = Training(benchmark, *Method.parse(method).make(), settings)
    training.run()
    del benchmark, training
    assert [image() for image in images] == [None, None]
