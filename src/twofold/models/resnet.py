"""The reduced ResNet-18 of Lopez-Paz and Ranzato (2017): a third of the channels, 3x3 stem.

It has 20/40/80/160 channels, no max-pool, and an average pool with a fixed 4x4 window. Images of
32x32 therefore give 160 features, and images of 84x84 give 640 (an 11x11 map pools to 2x2).
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 20


def _conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm, and a shortcut, projected if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv3x3(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = _conv3x3(outputs, outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        # In place, because the gradient of batch norm needs its inputs and not its outputs.
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out, inplace=True)


class ReducedResNet18(nn.Module):
    """The reduced ResNet-18: 1,109,240 parameters for 100 classes at 32x32."""

    def __init__(self, outputs: int, size: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv3x3(3, WIDTH), nn.BatchNorm2d(WIDTH)
        blocks: list[nn.Module] = []
        inputs = WIDTH
        for stage in range(4):
            channels = WIDTH * 2**stage
            blocks.append(BasicBlock(inputs, channels, stride=1 if stage == 0 else 2))
            blocks.append(BasicBlock(channels, channels, stride=1))
            inputs = channels
        self.blocks = nn.Sequential(*blocks)
        last_map = -(-size // 8)  # three strides of 2, each rounding up
        self.linear = nn.Linear(inputs * (last_map // 4) ** 2, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out = self.blocks(F.relu(self.bn1(self.conv1(x)), inplace=True))
        features: Tensor = F.avg_pool2d(out, 4).flatten(1)
        logits: Tensor = self.linear(features)
        return logits


def reduced_resnet18(outputs: int = 100, size: int = 32) -> nn.Module:
    """Return the network for images of size x size pixels.

    The size is at least 25, since the last map of smaller images is too small to be pooled.
    """
    return ReducedResNet18(outputs, size)
