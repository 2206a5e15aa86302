"""Split CIFAR-100: 10 tasks of 10 classes; class-incremental."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from twofold.benchmarks.splitting import Split
from twofold.models import reduced_resnet18


class SplitCifar100(Split, name="split-cifar100"):
    title = "Split CIFAR-100"
    about = "10 tasks of 10 classes; reduced ResNet-18"
    dataset = "cifar100"
    tasks = 10
    offline_iterations = 400
    offline_lr: ClassVar[Mapping[str, float]] = {}
    published_whitening = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # ImageNet's

    @classmethod
    def model(cls) -> nn.Module:
        return reduced_resnet18(100)
