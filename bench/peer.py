"""The peer: ER with evaluation as one writes it in PyTorch, straight from the paper.

Same network, same batches in size, same loss, same optimiser, same tasks evaluated on as many
images, after every iteration. Data are in memory, ready to use. Nothing is done to slow it down.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from twofold import Benchmark


class Peer:
    """One process with all cores. Stands in a task like `measuring.Stepper`."""

    def __init__(self, benchmark: Benchmark, batch_size: int, task: int, lr: float) -> None:
        torch.manual_seed(0)
        self.model = benchmark.model()
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.batch_size, self.task = batch_size, task
        self.new_x, self.new_y = _tensors(benchmark.train, benchmark.tasks[task - 1].train[:2000])
        old = [benchmark.tasks[k].train[:1000] for k in range(task - 1)]
        stored = [_tensors(benchmark.train, rows) for rows in old]
        self.old_x, self.old_y = (torch.cat(part) for part in zip(*stored, strict=True))
        tests = [task.test[:1000] for task in benchmark.tasks[:task]]
        self.tests = [_tensors(benchmark.test, rows) for rows in tests]

    def step(self) -> None:
        b, t = self.batch_size, self.task
        new, old = torch.randperm(len(self.new_x))[:b], torch.randperm(len(self.old_x))[:b]
        logits = self.model(torch.cat([self.new_x[new], self.old_x[old]]))
        loss_new = F.cross_entropy(logits[:b], self.new_y[new])
        loss_old = F.cross_entropy(logits[b:], self.old_y[old])
        loss = loss_new / t + (1 - 1 / t) * loss_old
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def evaluate(self) -> list[float]:
        self.model.eval()
        with torch.no_grad():
            accuracies = [
                (self.model(x).argmax(1) == y).float().mean().item() for x, y in self.tests
            ]
        self.model.train()
        return accuracies


def _tensors(pool, rows) -> tuple[torch.Tensor, torch.Tensor]:
    batch = pool.batch(rows)
    return batch.x.contiguous(), batch.y
