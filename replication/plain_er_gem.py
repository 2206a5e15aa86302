"""Train ER+GEM on online Domain CIFAR-100 like the authors' code, in plain PyTorch and quadprog.

    python replication/plain_er_gem.py SEED

An independent check that uses only the data reader of this package. It takes some 20 minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import quadprog
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.datasets import Split, load

LR, MOMENTUM, BATCH, MEMORY = 0.01, 0.9, 10, 100  # memory of a super-class in a task
GAMMA, RIDGE = 0.5, 1e-3
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Rows = NDArray[np.int64]


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            narrow = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(narrow, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm2(self.second(F.relu(self.norm1(self.first(x)))))
        return F.relu(inner + self.around(x))


def network() -> nn.Sequential:
    layers = [nn.Conv2d(3, 20, 3, 1, 1, bias=False), nn.BatchNorm2d(20), nn.ReLU()]
    inputs = 20
    for outputs in (20, 40, 80, 160):
        stride = 1 if outputs == 20 else 2
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(160, 20))


@contextmanager
def frozen_batch_norm(net: nn.Module) -> Iterator[None]:
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.eval().requires_grad_(False)
    yield
    for norm in norms:
        norm.train().requires_grad_(True)


def gradient(net: nn.Module) -> Tensor:
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in net.parameters()]
    return torch.cat([part.flatten() for part in parts])


def projected(g: Tensor, references: Sequence[Tensor]) -> Tensor:
    """Return the projected g; g itself if nothing is violated or quadprog gives up."""
    G = torch.stack(list(references))
    if not bool((G @ g < 0).any()):
        return g
    rows, own, n = G.double().numpy(), g.double().numpy(), len(G)
    P = rows @ rows.T + RIDGE * np.eye(n)
    try:
        v = quadprog.solve_qp(P, -(rows @ own), np.eye(n), np.full(n, GAMMA))[0]
    except ValueError as error:
        print(f"  quadprog: {error}; norms {G.norm(dim=1).tolist()}", flush=True)
        return g
    return torch.from_numpy(v @ rows + own).float()


def pixels(split: Split) -> Tensor:
    x = torch.from_numpy(np.array(split.images)).permute(0, 3, 1, 2).float() / 255
    mean, deviation = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, DEVIATION))
    return (x - mean) / deviation


def main(seed: int) -> None:
    torch.set_num_threads(1)
    np.random.seed(seed)
    torch.manual_seed(seed)
    data = load("cifar100")
    classes, groups = np.asarray(data.train.labels), np.asarray(data.train.coarse)
    task_of = np.zeros(100, np.int64)  # a class's
    for group in range(20):
        task_of[np.unique(classes[groups == group])] = np.random.permutation(5)
    x, y = pixels(data.train), torch.from_numpy(groups.astype(np.int64))
    test_x, test_y = pixels(data.test), torch.from_numpy(np.array(data.test.coarse, np.int64))
    test_task = task_of[np.asarray(data.test.labels)]

    net = network()
    net(torch.zeros(1, 3, 32, 32))  # as the authors' constructor does
    sizes = [p.numel() for p in net.parameters()]
    optimiser = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)

    @torch.no_grad()
    def accuracy(task: int) -> float:
        net.eval()
        parts = np.array_split(np.flatnonzero(test_task == task), 8)
        right = torch.cat([net(test_x[rows]).argmax(1) == test_y[rows] for rows in parts])
        net.train()
        return 100 * right.float().mean().item()

    def loss(logits: Tensor, rows: Rows) -> Tensor:
        return F.cross_entropy(logits, y[rows])

    memory: list[Rows] = []
    for task in range(5):
        examples = np.random.permutation(np.flatnonzero(task_of[classes] == task))
        projections = 0
        for new in examples.reshape(-1, BATCH):
            optimiser.zero_grad()
            if task == 0:
                loss(net(x[new]), new).backward()
                optimiser.step()
                continue
            drawn = [np.random.choice(part, BATCH, replace=False) for part in memory]
            old = np.random.choice(np.concatenate(drawn), BATCH, replace=False)
            logits, weight = net(torch.cat([x[new], x[old]])), 1 / (task + 1)
            joint = weight * loss(logits[:BATCH], new) + (1 - weight) * loss(logits[BATCH:], old)
            joint.backward()
            g = gradient(net)
            optimiser.zero_grad()
            references = []
            with frozen_batch_norm(net):
                for rows in drawn:  # without zeroing between them: they add up (D2)
                    loss(net(x[rows]), rows).backward()
                    references.append(gradient(net))
            direction = projected(g, references)
            projections += direction is not g
            for p, part in zip(net.parameters(), direction.split(sizes), strict=True):
                p.grad = part.view_as(p).clone()
            optimiser.step()
        labels = y[examples].numpy()
        parts = [np.random.choice(examples[labels == c], MEMORY, replace=False) for c in range(20)]
        memory.append(np.concatenate(parts))
        mean = np.mean([accuracy(k) for k in range(task + 1)])
        print(f"after task {task + 1}: {mean:.2f}, {projections} projected", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
