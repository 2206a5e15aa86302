"""A plain loop of experience replay with `How`, on the batches of a run of twofold."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.benchmarks import domain_benchmark
from twofold import How, Watch
from twofold.course import Course
from twofold.memories import PerClassTask
from twofold.method import Method
from twofold.routines.base import needs_of
from twofold.sampling import Sampler
from twofold.settings import Settings
from twofold.streams import seeded, stream

TASKS, ITERATIONS, LR, MU = 3, 5, 0.05, 0.9
SETTINGS = Settings(
    lr=LR, momentum=MU, batch_size=8, seed=3, iterations=ITERATIONS, memory_per_class=10
)
CPU = torch.device("cpu")


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
        retain: bool = False,
        **how: object,
    ) -> None:
        self.norm, self.benchmark = norm, domain_benchmark(TASKS, norm)
        with seeded(stream(SETTINGS.seed, "initialisation"), CPU):
            model = self.benchmark.model()
        self.model = model.to(memory_format=torch.channels_last)  # as in a run
        make = make or (lambda p: torch.optim.SGD(p, lr=LR, momentum=MU))
        self.optimizer = make(model.parameters())
        self.how = How(chain, self.optimizer, model, seed=SETTINGS.seed, **how)  # type: ignore[arg-type]
        self.apart = apart  # whether replayed and new data have a backward pass each
        self.retain = apart or retain  # whether the graph is there at the step
        objective, routines = Method.parse(f"er+{chain}").make()
        self.storage = PerClassTask(SETTINGS.memory_per_class)
        self.storage.start(self.benchmark.train.labels.numpy())
        needs = needs_of(routines)
        course = Course(self.benchmark, objective, self.storage, SETTINGS)
        self.sampler = Sampler(self.benchmark, objective, needs, self.storage, SETTINGS, course)
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
        if self.apart and not self.norm:
            old, new = self.model(draw.old.x), self.model(draw.new.x)
        else:
            logits = self.model(torch.cat([draw.old.x, draw.new.x]))
            old, new = logits.split([len(draw.old.y), len(draw.new.y)])
        self.old_part = self.old_weight * F.cross_entropy(old, draw.old.y)
        new_part = 1 / t * F.cross_entropy(new, draw.new.y)
        return [self.old_part, new_part] if self.apart else [self.old_part + new_part]

    def run(self, watch: Watch | None = None) -> Script:
        for task in range(1, TASKS + 1):
            if task > 1:
                self.how.switch()
            if watch is not None:
                watch.task(task - 1)
            chosen = self.storage.choose(
                self.benchmark.tasks[task - 1], stream(SETTINGS.seed, "memory", task)
            )
            for n in range(1, ITERATIONS + 1):
                rows = self.benchmark.tasks[task - 1].train
                self.draw = self.sampler.draw(task, n, rows)
                self.optimizer.zero_grad()
                losses = self.losses()
                for loss in losses:
                    loss.backward(retain_graph=self.retain)
                self.optimizer.step()
                if watch is not None:
                    watch.log(loss=sum(losses, torch.zeros(())))
                    watch(self.model, how=self.how)
                self.weights.append(everything(self.model))
                with self.how.evaluated():
                    self.evaluated.append(everything(self.model))
            self.storage.add(task, torch.cat([torch.from_numpy(c) for c in chosen]).numpy())
        return self
