"""Split CIFAR-100: 10 tasks of 10 classes; class-incremental."""

from __future__ import annotations

from torch import nn

from twofold.benchmarks.base import Sizes
from twofold.benchmarks.splitting import ClassSplit
from twofold.models import reduced_resnet18


class SplitCifar100(ClassSplit, name="split-cifar100"):
    title = "Split CIFAR-100"
    about = "10 tasks of 10 classes; reduced ResNet-18"
    dataset = "cifar100"
    tasks = 10
    offline_iterations = 400
    augmentation = "crop"
    tuned_lr = {"der": 0.1, "derpp": 0.1, "bic": 0.1}  # noqa: RUF012 (the class attribute is annotated)
    published_sizes = Sizes(train=5_000, test=1_000, classes=10, image=(3, 32, 32))
    checked_share = 0.35
    published_whitening = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # ImageNet's

    @classmethod
    def model(cls) -> nn.Module:
        return reduced_resnet18(100)
