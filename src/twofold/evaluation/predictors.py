"""How predictions are made from images: exactly, or faster with a check of those that are close.

A faster way of computing the same logits rounds differently, and can change a prediction only
where the two largest logits are close. Those images are looked at again by a slower predictor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from twofold.models import FlatModel
from twofold.models.inference import ChangedError, Inference

Scores = Callable[[Tensor], Tensor]  # from logits to scores; the largest is the prediction

CLOSE_FP32 = 1e-5  # folding changes logits by some 1e-6 of the largest
CLOSE_BF16 = 0.01  # some ten times the median error seen on trained networks
FAR = 30  # margins: with our networks rounding does not get there, even on blank images
AUDIT_EVERY = 100  # evaluations
PIXELS = 50 * 32 * 32  # in a chunk in fp32


class Predictor(Protocol):
    """The classes predicted for images, by the network's weights as they are now."""

    def __call__(self, x: Tensor, scores: Scores) -> Tensor: ...


@dataclass(frozen=True)
class Plain:
    """The network itself, in chunks."""

    net: FlatModel
    chunk: int

    def __call__(self, x: Tensor, scores: Scores) -> Tensor:
        with self.net.evaluating():
            logits = torch.cat([self.net(part) for part in x.split(self.chunk)])
            return scores(logits).argmax(1)


@dataclass
class Checked:
    """A copy of the network that is faster, and for close images a predictor that is sure.

    margin: images are close whose two largest logits differ by no more than this share of the
        largest (in size).
    """

    quick: Inference
    sure: Predictor
    chunk: int
    margin: float

    def __call__(self, x: Tensor, scores: Scores) -> Tensor:
        try:
            self.quick.follow()
        except ChangedError:
            return self.sure(x, scores)
        return self._predicted(x, scores)

    @torch.inference_mode()
    def _predicted(self, x: Tensor, scores: Scores) -> Tensor:
        logits = scores(torch.cat([self.quick(part) for part in x.split(self.chunk)]))
        if logits.shape[1] < 2:
            return logits.argmax(1)
        (first, second), (predicted, _) = (top.unbind(1) for top in logits.topk(2))
        # Said so that what is not a number is close, too.
        close = (~(first - second > self.margin * logits.abs().amax(1))).nonzero().flatten()
        if len(close):
            predicted[close] = self.sure(x[close], scores)
        return predicted


@dataclass
class Audit:
    """How often quick predictions were compared with sure ones, and what was found."""

    evaluations: int = 0
    audits: int = 0
    images: int = 0  # compared
    differences: int = 0  # predictions among them that were not the same
    margin: float = CLOSE_BF16  # in force; doubled after an audit that finds a difference

    @property
    def due(self) -> bool:
        """Of the first evaluation, and of every hundredth after it."""
        return self.evaluations % AUDIT_EVERY == 0

    def finish(self, compared: list[tuple[Tensor, Tensor]]) -> None:
        """An evaluation is over, and these pairs of predictions were compared in it."""
        self.evaluations += 1
        if compared:
            different = sum(int((quick != sure).sum()) for quick, sure in compared)
            self.audits += 1
            self.images += sum(len(quick) for quick, _ in compared)
            self.differences += different
            self.margin *= 2 if different else 1


def exact(net: FlatModel, sample: Tensor) -> Predictor:
    """The network's own predictions, as fast as they can be had. `sample`: a few of its inputs."""
    chunk = chunk_size(net, sample)
    plain = Plain(net, chunk)
    if not net.has_batch_norm or net.values.device.type != "cpu":  # nothing to gain
        return plain
    if net.keeps_state:  # a copy would not follow it
        return plain
    if not _agree(net, sample, torch.float32, CLOSE_FP32):
        return plain
    return Checked(Inference(net), plain, chunk, CLOSE_FP32)


def rounded(net: FlatModel, sample: Tensor, sure: Predictor) -> Checked | None:
    """Predictions in bf16; those that are close are left to a sure predictor.

    None for a network that can't be computed so.
    """
    dtype = torch.bfloat16
    # What is misread is so in fp32 as well, where it shows: rounding hides less.
    read = not net.keeps_state and _agree(net, sample, torch.float32, CLOSE_FP32)
    if not read or not _agree(net, sample, dtype, CLOSE_BF16):
        return None
    return Checked(Inference(net, dtype), sure, chunk_size(net, sample, dtype), CLOSE_BF16)


def chunk_size(net: FlatModel, sample: Tensor, dtype: torch.dtype = torch.float32) -> int:
    """How many images at once: convolutions run fastest where their activations fit the cache."""
    if sample.dim() == 4 and net.has_convolutions and sample.device.type == "cpu":
        pixels = PIXELS * torch.float32.itemsize // dtype.itemsize
        return max(1, pixels // sample[0, 0].numel())
    return 1000


@torch.no_grad()
def _agree(net: FlatModel, sample: Tensor, dtype: torch.dtype, margin: float) -> bool:
    """Whether `Inference` computes what such a network does: it may have misread it."""
    try:
        other = FlatModel(net.copy(), net.values.device)
        quick = Inference(other, dtype)
        _move(other, sample)
        quick.follow()
        logits = other(sample)
        error = (quick(sample) - logits).abs().max()
        return bool(error <= FAR * margin * logits.abs().max())
    except Exception:  # in a network of the user's, anything can happen
        return False


def _move(net: FlatModel, sample: Tensor) -> None:
    """Weights and statistics as training may leave them; and evaluation mode.

    At the start every batch norm is nearly the identity: a copy that lost one would compute the
    same.
    """
    random = torch.Generator(net.values.device).manual_seed(0)
    for tensor in (net.values, *net.buffers()):
        if tensor.is_floating_point():
            tensor.mul_(torch.empty_like(tensor).uniform_(0.5, 1.5, generator=random))
    noise = torch.empty_like(net.values).normal_(std=0.01, generator=random)
    net.values.add_(noise)  # a layer that is all 0 would hide those before it
    net.module.eval()  # for the rest of it: dropout would draw numbers
    momenta = [norm.momentum for norm in net.batch_norms]
    for norm in net.batch_norms:
        norm.train()
        norm.momentum = 1.0  # takes the sample's statistics; made up, they could silence it
    net(sample)
    net.module.eval()
    for norm, momentum in zip(net.batch_norms, momenta, strict=True):
        norm.momentum = momentum
