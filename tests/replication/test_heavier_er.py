"""replication/heavier_er.py: plain SGD on its loss is what GEM does where no constraint binds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.benchmarks import domain_benchmark

from twofold.discovery import import_file
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

PLUGIN = Path(__file__).parents[2] / "replication" / "heavier_er.py"


def weights(method: str) -> torch.Tensor:
    """After ten iterations of each of two tasks."""
    objective, routines = Method.parse(method).make()
    settings = Settings(lr=0.05, batch_size=5, seed=0, iterations=10, eval_schedule="every:10")
    training = Training(domain_benchmark(tasks=2), objective, routines, settings)
    training.run()
    return training.net.values.clone()


@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_it_is_gem_with_its_dual_variables_at_their_bound(gamma: float) -> None:
    """The dual is at its bound: the past gradient is part of g, and g_new is not far away."""
    import_file(str(PLUGIN))
    heavier = weights(f"heavier-er(gamma={gamma})")
    torch.testing.assert_close(heavier, weights(f"er+gem(gamma={gamma},when=always)"))
    assert not torch.allclose(heavier, weights("er"), atol=1e-3)


def test_without_gamma_it_is_er() -> None:
    import_file(str(PLUGIN))
    torch.testing.assert_close(weights("heavier-er(gamma=0)"), weights("er"))
