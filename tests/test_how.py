"""`How`: a plain script with a torch optimiser follows the same directions as a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.benchmarks import domain_benchmark
from torch import Tensor, nn
from torch.nn import functional as F

import twofold
from twofold import How, UserError
from twofold.memory import Memory
from twofold.method import Method
from twofold.models.borrowed import BorrowedModel
from twofold.routines import Clip, Gem, Needs, Routine, Step, Warmup
from twofold.sampling import Sampler
from twofold.settings import Settings
from twofold.streams import seeded, stream
from twofold.training import Training

TASKS, ITERATIONS, LR, MU = 3, 5, 0.05, 0.9
SETTINGS = Settings(
    lr=LR, momentum=MU, batch_size=8, seed=3, iterations=ITERATIONS, memory_per_class=10
)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def weights_of_a_run(method: str, norm: bool, **options: object) -> tuple[list[Tensor], Training]:
    """The weights, and the buffers of batch norm, after every iteration of a run."""
    settings = Settings(**{**vars(SETTINGS), **options})  # type: ignore[arg-type]
    training = Training(domain_benchmark(TASKS, norm), *Method.parse(method).make(), settings)
    found: list[Tensor] = []
    training.run(lambda: found.append(everything(training.net.module)))
    return found, training


def everything(module: nn.Module) -> Tensor:
    """All weights and buffers of a network as one vector."""
    return torch.cat([t.detach().double().flatten() for t in module.state_dict().values()])


class Script:
    """A plain loop of experience replay, with the batches of a run."""

    def __init__(
        self,
        chain: str,
        norm: bool,
        make: Callable[..., torch.optim.Optimizer] | None = None,
        apart: bool = False,
        **how: object,
    ) -> None:
        self.benchmark = domain_benchmark(TASKS, norm)
        with seeded(stream(SETTINGS.seed, "initialisation"), CPU):
            model = self.benchmark.model()
        self.model = model.to(memory_format=torch.channels_last)  # as in a run
        make = make or (lambda p: torch.optim.SGD(p, lr=LR, momentum=MU))
        self.optimizer = make(model.parameters())
        self.how = How(chain, self.optimizer, model, seed=SETTINGS.seed, **how)  # type: ignore[arg-type]
        self.apart = apart  # whether replayed and new data have a backward pass each
        objective, routines = Method.parse(f"er+{chain}").make()
        self.needs = self.how._chain.needs
        self.storage = Memory(self.benchmark.train.labels.numpy(), SETTINGS.memory_per_class)
        sampler_needs = self.needs
        self.sampler = Sampler(self.benchmark, objective, sampler_needs, self.storage, SETTINGS)
        self.how.references(self.reference)
        self.how.old(lambda: (self.old_part, self.old_weight))
        self.how.memory(self.inputs)
        self.weights: list[Tensor] = []
        self.evaluated: list[Tensor] = []

    def reference(self, k: int) -> Tensor:
        batch = self.draw.references[k]
        return F.cross_entropy(self.model(batch.x), batch.y)

    def inputs(self, count: int) -> Tensor:
        random = stream(SETTINGS.seed, "routine", self.draw.task, self.draw.iteration)
        return self.sampler.remembered(random, count).x

    def losses(self) -> list[Tensor]:
        draw, t = self.draw, self.draw.task
        if draw.old is None:
            return [1 / t * F.cross_entropy(self.model(draw.new.x), draw.new.y)]
        self.old_weight = 1 - 1 / t
        if self.apart and not self.how._net.has_batch_norm:
            old, new = self.model(draw.old.x), self.model(draw.new.x)
        else:
            logits = self.model(torch.cat([draw.old.x, draw.new.x]))
            old, new = logits.split([len(draw.old.y), len(draw.new.y)])
        self.old_part = self.old_weight * F.cross_entropy(old, draw.old.y)
        new_part = 1 / t * F.cross_entropy(new, draw.new.y)
        return [self.old_part, new_part] if self.apart else [self.old_part + new_part]

    def run(self) -> Script:
        for task in range(1, TASKS + 1):
            if task > 1:
                self.how.switch()
            chosen = self.storage.choose(
                self.benchmark.tasks[task - 1], stream(SETTINGS.seed, "memory", task)
            )
            for n in range(1, ITERATIONS + 1):
                rows = self.benchmark.tasks[task - 1].train
                self.draw = self.sampler.draw(task, n, rows)
                self.optimizer.zero_grad()
                for loss in self.losses():
                    loss.backward(retain_graph=self.apart)
                self.optimizer.step()
                self.weights.append(everything(self.model))
                with self.how.evaluated():
                    self.evaluated.append(everything(self.model))
            self.storage.add(torch.cat([torch.from_numpy(c) for c in chosen]).numpy())
        return self


BITWISE = ["sgd", "agem", "gem", "lpr", "warmup(3)+ema(0.9)", "momentum-reset", "pcgrad+rescale"]
BITWISE += ["gem(gamma=0.1,when=always)+clip(0.5)+warmup(3)", "soft-gem(0.5)", "cosine(iterations=5)"]


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
@pytest.mark.parametrize("chain", BITWISE)
def test_a_script_is_bitwise_the_run(chain, norm):
    """Weights and batch-norm statistics after every iteration of three tasks, bit for bit."""
    expected, training = weights_of_a_run(f"er+{chain}", norm)
    apart = Needs.OLD in training.needs
    script = Script(chain, norm, apart=apart).run()
    assert len(script.weights) == TASKS * ITERATIONS
    for n, (one, other) in enumerate(zip(expected, script.weights, strict=True)):
        assert torch.equal(one, other), n
    with training.chain.evaluated(training.net):
        assert torch.equal(everything(training.net.module), script.evaluated[-1])
