"""Predictions from images: exact ones, and faster ones in which close calls are recomputed.

A faster computation of the same logits rounds differently. This can change a prediction only if
the two largest logits are close. A slower predictor recomputes the predictions of such images.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from twofold.choices import Precision
from twofold.models import FlatModel, View
from twofold.models.inference import ChangedError, Inference
from twofold.models.precision import bf16_works
from twofold.models.task_ids import chunks

Scores = Callable[[Tensor], Tensor]  # from logits to scores; the largest is the prediction

CLOSE_FP32 = 1e-5  # folding changes logits by about 1e-6 of the largest
CLOSE_BF16 = 0.01  # about ten times the median error on trained networks
FAR = 30  # margins: more than rounding in the package's networks, even on blank images
AUDIT_EVERY = 100  # evaluations
TRIALS = 3  # of each precision, of which the shortest time counts
PIXELS = 50 * 32 * 32  # in a chunk in fp32


class Predictor(Protocol):
    """A function that predicts the classes of images with the network's current weights.

    With scenario task it gets the ids of the images' tasks, and predicts among their own classes.
    """

    def __call__(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Plain:
    """The predictions of the network itself, computed in chunks."""

    net: View
    chunk: int

    def __call__(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor:
        with self.net.evaluating():
            return self.predicted(x, scores, tasks)

    def predicted(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor:
        """Predict in the mode that is in force."""
        logits = torch.cat([self.net(*part) for part in chunks(x, tasks, self.chunk)])
        return self.net.among_own(scores(logits), tasks).argmax(1)


@dataclass
class Checked:
    """The predictions of a faster copy of the network, and of a sure predictor for close images.

    margin: an image is close if its two largest logits differ by at most this share of the logit
        with the largest absolute value.
    """

    quick: Inference
    sure: Predictor
    chunk: int
    margin: float

    def __call__(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor:
        try:
            self.quick.follow()
        except ChangedError:
            return self.sure(x, scores, tasks)
        return self.predicted(x, scores, tasks)

    @torch.inference_mode()
    def predicted(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor:
        """Predict with the weights that the copy followed last."""
        logits = scores(torch.cat([self.quick(part) for part in x.split(self.chunk)]))
        if logits.shape[1] < 2:
            return logits.argmax(1)
        own = self.quick.net.among_own(logits, tasks)
        (first, second), (predicted, _) = (top.unbind(1) for top in own.topk(2))
        # Negated, so that images with NaN logits are close as well.
        close = (~(first - second > self.margin * logits.abs().amax(1))).nonzero().flatten()
        if len(close):
            predicted[close] = self.sure(x[close], scores, None if tasks is None else tasks[close])
        return predicted


@dataclass
class Confirmed:
    """A copy of a stranger's network, compared with the network itself at every evaluation.

    A network may change in ways that its weights do not show, such as the head that it uses: a copy
    knows nothing of that. Two images show whether it still computes the same.

    current: whether it was compared, and the network has not been trained since.
    """

    checked: Checked
    plain: Plain
    agrees: bool = True
    current: bool = False

    def __call__(self, x: Tensor, scores: Scores, tasks: Tensor | None = None) -> Tensor:
        if not self.current:
            self.agrees, self.current = self.agrees and self._compared(x[:2]), True
        return (self.checked.predicted if self.agrees else self.plain)(x, scores, tasks)

    def _compared(self, few: Tensor) -> bool:
        with self.plain.net.evaluating():
            logits = self.plain.net(few)
            try:
                self.checked.quick.follow()
                return _near(self.checked.quick(few), logits, CLOSE_FP32)
            except Exception:  # the network's weights may have new shapes by now
                return False


@dataclass
class Audit:
    """The number of comparisons of quick with sure predictions, and their differences."""

    evaluations: int = 0
    audits: int = 0
    images: int = 0  # compared
    differences: int = 0  # images with different predictions
    margin: float = CLOSE_BF16  # doubled after an audit that finds a difference

    @property
    def due(self) -> bool:
        """Whether to audit this evaluation: the first, and every hundredth after it."""
        return self.evaluations % AUDIT_EVERY == 0

    def finish(self, compared: list[tuple[Tensor, Tensor]]) -> None:
        """Count an evaluation, with the pairs of predictions that were compared in it."""
        self.evaluations += 1
        if compared:
            different = sum(int((quick != sure).sum()) for quick, sure in compared)
            self.audits += 1
            self.images += sum(len(quick) for quick, _ in compared)
            self.differences += different
            self.margin *= 2 if different else 1


def exact(net: View, sample: Tensor) -> Predictor:
    """Return the fastest predictor that equals the network. `sample` has a few of its inputs."""
    chunk = chunk_size(net, sample)
    plain = Plain(net, chunk)
    if not net.has_batch_norm or net.device.type != "cpu":  # folding is not faster
        return plain
    if net.keeps_state or net.told:  # a copy would follow neither
        return plain
    if not _agree(net, sample, torch.float32, CLOSE_FP32):
        return plain
    return Checked(Inference(net), plain, chunk, CLOSE_FP32)


def confirmed(net: View, sample: Tensor) -> Predictor:
    """Return what `exact` does, for a network that anybody may change at any time."""
    predictor = None if net.has_hooks else exact(net, sample)
    if isinstance(predictor, Checked) and isinstance(predictor.sure, Plain):
        return Confirmed(predictor, predictor.sure)
    return Plain(net, chunk_size(net, sample))


def rounded(net: View, sample: Tensor, sure: Predictor) -> Checked | None:
    """Return a predictor in bf16 that leaves close images to a sure predictor.

    It is None for a network that cannot be computed in bf16, and on a processor that cannot.
    """
    if net.device.type == "cpu" and not bf16_works():
        return None
    dtype = torch.bfloat16
    # A misread network is wrong in fp32 as well, where rounding errors hide less.
    followed = not net.keeps_state and not net.told
    read = followed and _agree(net, sample, torch.float32, CLOSE_FP32)
    if not read or not _agree(net, sample, dtype, CLOSE_BF16):
        return None
    return Checked(Inference(net, dtype), sure, chunk_size(net, sample, dtype), CLOSE_BF16)


def times(
    quick: Checked, sure: Predictor, x: Tensor, tasks: Tensor | None = None
) -> dict[Precision, float]:
    """Return the seconds of both precisions on images; nothing if their predictions differ."""

    def timed(predict: Predictor) -> tuple[float, Tensor]:
        best = math.inf
        for _ in range(TRIALS):
            start = time.perf_counter()
            predicted = predict(x, lambda logits: logits, tasks)
            best = min(best, time.perf_counter() - start)
        return best, predicted

    (bf16, rounded), (fp32, exact) = timed(quick), timed(sure)
    return {"fp32": fp32, "bf16": bf16} if torch.equal(rounded, exact) else {}


def chunk_size(net: View, sample: Tensor, dtype: torch.dtype = torch.float32) -> int:
    """Return how many images to compute at once.

    Convolutions are fastest if their activations fit into the processor's cache.
    """
    if sample.dim() == 4 and net.has_convolutions and sample.device.type == "cpu":
        pixels = PIXELS * torch.float32.itemsize // dtype.itemsize
        return max(1, pixels // sample[0, 0].numel())
    return 1000


@torch.no_grad()
def _agree(net: View, sample: Tensor, dtype: torch.dtype, margin: float) -> bool:
    """Tell whether `Inference`, which may misread a network, agrees with it on a sample."""
    try:
        other = FlatModel(net.copy(), net.device)
        inference = Inference(other, dtype)
        _move(other, sample)
        inference.follow()
        logits = other(sample)
        return _near(inference(sample), logits, margin)
    except Exception:  # the user's network may raise any error
        return False


def _near(quick: Tensor, logits: Tensor, margin: float) -> bool:
    return bool((quick - logits).abs().max() <= FAR * margin * logits.abs().max())


def _move(net: FlatModel, sample: Tensor) -> None:
    """Change weights and statistics as training may do, and switch to evaluation mode.

    Before training, every batch norm is nearly the identity, so a copy without it would agree.
    """
    random = torch.Generator(net.values.device).manual_seed(0)
    for tensor in (net.values, *net.buffers()):
        if tensor.is_floating_point():
            tensor.mul_(torch.empty_like(tensor).uniform_(0.5, 1.5, generator=random))
    noise = torch.empty_like(net.values).normal_(std=0.01, generator=random)
    net.values.add_(noise)  # a layer of zeros would hide the layers before it
    net.module.eval()  # dropout must not draw
    momenta = [norm.momentum for norm in net.batch_norms]
    for norm in net.batch_norms:
        norm.train()
        norm.momentum = 1.0  # use the sample's statistics: random ones could silence the network
    net(sample)
    net.module.eval()
    for norm, momentum in zip(net.batch_norms, momenta, strict=True):
        norm.momentum = momentum
