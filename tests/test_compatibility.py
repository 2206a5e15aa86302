"""Which methods make sense: chains, memories, scenarios."""

from __future__ import annotations

import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.training import trained

import twofold
from twofold.errors import UserError
from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

LONG_CHAIN = "er+gem(gamma=0.1)+clip(1.0)+warmup(500)+ema(0.999)"


REFUSED = {
    "er+ema+ema(0.9)": "ema: a different routine already sets the evaluated weights",
    "er+warmup+gem+warmup(100)": "warmup is there twice",
    "er+clip+clip(0.5)": "clip is there twice",
    "er+clip+warmup+clip": "clip is there twice",
    "er+agem+agem": "agem is there twice",
    "er+rescale": "rescale has nothing to undo: write it after a routine such as gem",
    "er+rescale+gem": "rescale has nothing to undo",
    "er+warmup+ema+rescale": "rescale has nothing to undo",
    "er+gem+clip+rescale": "rescale would undo clip: write it before",
    "er+gem+rescale+rescale": "rescale is there twice",
    "er+momentum-reset+gem+momentum-reset": "momentum-reset is there twice",
}


@pytest.mark.parametrize("method", REFUSED)
def test_a_chain_that_makes_no_sense_is_refused_with_a_reason(method):
    with pytest.raises(UserError) as caught:
        twofold.configure("rotated-mnist", method)
    assert str(caught.value).startswith(REFUSED[method])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "method",
    [
        LONG_CHAIN,
        "er+clip+gem+clip",
        "er+agem+gem+agem",
        "er+gem+rescale+clip",
        "er+gem+rescale+warmup+gem+rescale",
        "er+clip+gem+rescale",
        "er+gem+gem(gamma=0)",
        "ema+warmup+momentum-reset+clip+gem",
    ],
)
def test_a_chain_that_makes_sense_is_taken(method):
    config = twofold.configure("rotated-mnist", method)
    assert len(config.components) == method.count("+") + 1 + (not method.startswith("er"))


def references_seen(method: str) -> list[torch.Tensor]:
    """`step.old` as each routine of the chain sees it in the first iteration of task 2."""
    objective, routines = Method.parse(method).make()
    records: list[torch.Tensor] = []

    def noted(direct):
        def call(g, step):
            if (step.task, step.iteration) == (2, 1):
                records.append(step.old.clone())
            return direct(g, step)

        return call

    for routine in routines:
        routine.direct = noted(routine.direct)
    settings = Settings(lr=0.02, batch_size=8, seed=0, iterations=2, tasks=2)
    Training(class_benchmark(norm=True), objective, routines, settings).run()
    return records


def test_routines_that_ask_for_different_old_gradients_get_them_or_are_refused():
    """The objective's own g_old and the frozen one differ with batch norm."""
    (own,), (frozen,) = references_seen("er+agem"), references_seen("er+agem(frozen)")
    assert not torch.allclose(own, frozen)
    try:
        seen = references_seen("er+agem+agem(frozen)")
    except UserError:
        return
    torch.testing.assert_close(seen[0], own)
    torch.testing.assert_close(seen[1], frozen)


@pytest.mark.parametrize("method", ["er", "gem", "agem", "der+agem"])
def test_replay_without_a_memory_is_refused(method):
    with pytest.raises(UserError, match="memory"):
        trained(method, iterations=2, memory_per_class=0)


@pytest.mark.parametrize("method", ["finetune", "joint", "joint+gem"])
def test_methods_that_need_no_quota_run_without_one(method):
    trained(method, iterations=2, memory_per_class=0)


def test_without_replay_no_memory_is_needed():
    twofold.configure("rotated-mnist", "sam", memory_per_class=0)
    with pytest.raises(UserError, match="memory stays empty"):
        twofold.configure("rotated-mnist", "lpr", memory_per_class=0)
