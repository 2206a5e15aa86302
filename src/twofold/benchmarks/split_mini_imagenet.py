"""Split Mini-ImageNet: 100 classes at 84x84 in 20 tasks of 5; class-incremental."""

from __future__ import annotations

from torch import nn

from twofold.benchmarks.base import Sizes
from twofold.benchmarks.splitting import ClassSplit
from twofold.models import reduced_resnet18


class SplitMiniImagenet(ClassSplit, name="split-mini-imagenet"):
    title = "Split Mini-ImageNet"
    about = "20 tasks of 5 classes at 84x84; reduced ResNet-18"
    dataset = "mini-imagenet"
    tasks = 20
    offline_iterations = 200
    augmentation = "crop"
    online_batch_size = 64
    published_sizes = Sizes(train=2_500, test=500, classes=5, image=(3, 84, 84))
    # The constants of CIFAR-10. The authors' code applies them to images in the order BGR.
    published_whitening = ((0.4465, 0.4822, 0.4914), (0.2010, 0.1994, 0.2023))

    @classmethod
    def model(cls) -> nn.Module:
        return reduced_resnet18(100, size=84)
