"""What training costs: images counted in real iterations, and what components state."""

from __future__ import annotations

import pytest
from helpers.benchmarks import class_benchmark
from torch import Tensor, nn

from twofold.method import Method
from twofold.settings import Settings
from twofold.training import Training

BENCHMARKS = {norm: class_benchmark(norm=norm) for norm in (False, True)}


with_and_without_norm = pytest.mark.parametrize("norm", [False, True], ids=["plain", "norm"])


class Meter:
    """Counts the images of every training pass, forward and backward."""

    def __init__(self, module: nn.Module) -> None:
        self.forward: list[int] = []
        self.backward: list[int] = []
        self._own = module
        module.register_forward_hook(self._count)

    def _count(self, module: nn.Module, _, logits: Tensor) -> None:
        if module is self._own and logits.requires_grad:
            self.forward.append(len(logits))
            logits.register_hook(lambda gradient: self.backward.append(len(gradient)))


def cost(method: str, norm: bool) -> Meter:
    """Of three tasks with three iterations of batch size 5."""
    objective, routines = Method.parse(method).make()
    settings = Settings(lr=0.05, batch_size=5, seed=0, iterations=3, eval_schedule="every:3")
    training = Training(BENCHMARKS[norm], objective, routines, settings)
    meter = Meter(training.net.module)
    training.run()
    return meter


@with_and_without_norm
def test_agem_on_er_costs_no_image_more(norm):
    er, agem = cost("er", norm), cost("er+agem", norm)
    assert er.forward == er.backward == 3 * [5] + 6 * [10]
    assert sum(agem.forward) == sum(er.forward)
    if norm:  # one forward pass, and a second backward pass through its graph for g_old
        assert agem.forward == er.forward
        assert agem.backward == 3 * [5] + 12 * [10]
    else:
        assert sum(agem.backward) == sum(er.backward)


@pytest.mark.parametrize(
    ("method", "images"),  # of an iteration, in multiples of b, in tasks 1, 2 and 3
    [
        ("finetune", [1, 1, 1]),
        ("er", [1, 2, 2]),
        ("joint", [1, 2, 3]),
        ("joint+agem", [1, 2, 3]),
        ("agem", [1, 2, 2]),
        ("gem", [1, 2, 3]),
        ("er+gem", [1, 3, 4]),
        ("joint+gem", [1, 3, 5]),
        ("er+agem(reference=frozen)", [1, 3, 3]),
        ("der+agem", [1, 2, 2]),
        ("bic+agem", [1, 2, 2]),
    ],
)
@with_and_without_norm
def test_a_run_pays_only_for_what_its_method_asks(method, images, norm):
    assert sum(cost(method, norm).forward) == 3 * 5 * sum(images)
