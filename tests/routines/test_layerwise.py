"""Hold and LPR per layer, against scipy on inputs that numpy cuts out, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy import linalg
from torch import Tensor, nn

from twofold.benchmarks import Batch
from twofold.models import FlatModel
from twofold.routines.base import Routine, Step
from twofold.routines.hold import LEAST, Hold
from twofold.routines.lpr import Lpr

OLD = 0.75  # the weight of old data
ENDLESS = 1e4  # a larger one would hold the rounding errors of M, too


def directed(routine: Routine, net: FlatModel, x: Tensor, g: Tensor, old: Tensor) -> Tensor:
    routine.start(net)

    def memory(count: int) -> Batch:
        return Batch(x, torch.zeros(len(x), dtype=torch.long), torch.arange(len(x)))

    return routine.direct(g, Step(3, 1, net, g, old, old_weight=OLD, memory=memory))


@dataclass
class Case:
    """A network of one layer, and images."""

    net: FlatModel
    x: Tensor

    def matrix(self, vector: Tensor) -> np.ndarray:
        """The layer's part of a vector in the parameters' own layout: a row per output."""
        self.net.gradient.copy_(vector)
        parts = [p.grad.flatten(1) if p.dim() > 1 else p.grad[:, None] for p in self.parameters()]
        return torch.cat(parts, 1).double().numpy()

    def parameters(self) -> list[nn.Parameter]:
        return list(self.net.module.parameters())

    @property
    def rows(self) -> np.ndarray:
        """The inputs of the layer, with ones for its bias."""
        module, x = self.net.module, self.x.double().numpy()
        if isinstance(module, nn.Conv2d):
            (pad, _), (stride, _), size = module.padding, module.stride, module.kernel_size
            x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
            windows = sliding_window_view(x, size, (2, 3))[:, :, ::stride, ::stride]
            x = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, x.shape[1] * size[0] * size[1])
        ones = [] if module.bias is None else [np.ones((len(x), 1))]
        return np.concatenate([x, *ones], 1)


def case(kind: str, images: int = 12, size: int = 5) -> Case:
    random = torch.Generator().manual_seed(3)
    made = {
        "linear": lambda: nn.Linear(6, 6),  # square: a wrong transpose fits as well
        "linear without bias": lambda: nn.Linear(7, 4, bias=False),
        "convolution": lambda: nn.Conv2d(2, 5, 3, padding=1, stride=2),
        "convolution without bias": lambda: nn.Conv2d(2, 4, 2, bias=False),
    }
    net = FlatModel(made[kind]())
    shape = (2, size, size) if isinstance(net.module, nn.Conv2d) else (net.module.in_features,)
    # Inputs that depend on each other and have a mean, so that M is far from diagonal.
    x = torch.randn(images, *shape, generator=random)
    x = 0.4 + 1.7 * x + 0.6 * x.roll(1, -1)
    return Case(net, x)


KINDS = ["linear", "linear without bias", "convolution", "convolution without bias"]


def vectors(net: FlatModel) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(4)
    return torch.randn(net.size, generator=random), torch.randn(net.size, generator=random)


def solved(G: np.ndarray, M: np.ndarray, strength: float) -> np.ndarray:
    """G P^-1 with P = I + strength M, by scipy: P D' = G'."""
    return linalg.solve(np.eye(len(M)) + strength * M, G.T, assume_a="pos").T


@pytest.mark.parametrize("images", [1, 12])  # fewer rows than columns, and more
@pytest.mark.parametrize("kind", KINDS)
def test_lpr_is_the_solution_of_its_equation(kind, images):
    one = case(kind, images, size=4)
    g, old = vectors(one.net)
    result = directed(Lpr(omega=2.5), one.net, one.x, g, old)
    Z = one.rows
    expected = solved(one.matrix(g), Z.T @ Z / len(Z), 2.5)
    np.testing.assert_allclose(one.matrix(result), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_hold_is_the_solution_of_both_its_equations(kind):
    one = case(kind, images=60)
    g, old = vectors(one.net)
    omega, gain, damping = 3.0, 1.5, 20.0
    routine = Hold(omega=omega, gain=gain, damping=damping, share=1.0)
    result = directed(routine, one.net, one.x, g, old)
    Z = one.rows
    M = Z.T @ Z / len(Z)
    m = np.mean(linalg.eigvalsh(M))
    weakest = damping / m * linalg.eigvalsh(M)[0]
    assert weakest / (1 + weakest) > LEAST  # so that no direction is left out
    new = one.matrix(g - OLD * old)
    expected = gain * solved(new, M, omega / m) + OLD * solved(one.matrix(old), M, damping / m)
    np.testing.assert_allclose(one.matrix(result), expected, rtol=1e-3, atol=1e-4)


NOT_AT_ALL = [Hold(omega=0.0, gain=1.0, damping=0.0), Lpr(omega=1e-9)]


@pytest.mark.parametrize("routine", NOT_AT_ALL, ids=["hold", "lpr"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_strength_it_is_the_gradient(kind, routine):
    one = case(kind)
    g, old = vectors(one.net)
    result = directed(routine, one.net, one.x, g, old)
    np.testing.assert_allclose(one.matrix(result), one.matrix(g), rtol=1e-5, atol=1e-5)


HELD = [Hold(omega=ENDLESS, gain=1.0, damping=ENDLESS, share=1.0), Lpr(omega=ENDLESS)]


@pytest.mark.parametrize("routine", HELD, ids=["hold", "lpr"])
@pytest.mark.parametrize("kind", KINDS)
def test_with_endless_strength_it_is_the_projection_onto_what_no_old_input_uses(kind, routine):
    one = case(kind, images=1 if "conv" in kind else 3, size=3)
    g, old = vectors(one.net)
    result = one.matrix(directed(routine, one.net, one.x, g, old))
    N = linalg.null_space(one.rows)
    assert N.shape[1] > 0
    G = one.matrix(g)
    np.testing.assert_allclose(result, G @ N @ N.T, rtol=1e-2, atol=1e-2)
    assert np.abs(one.rows @ result.T).max() < 1e-2 * np.abs(one.rows @ G.T).max()


@pytest.mark.parametrize("routine", HELD, ids=["hold", "lpr"])
def test_with_endless_strength_no_output_of_a_network_changes_to_first_order(routine):
    """The derivative of all old logits along the direction, by forward-mode autograd."""
    torch.manual_seed(5)
    network = nn.Sequential(
        *(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(24, 20), nn.Tanh(), nn.Linear(20, 3)),
    )
    net, x = FlatModel(network), torch.randn(2, 3, 4, 4)
    g, old = vectors(net)
    held = directed(routine, net, x, g, old)
    assert held.norm() > 0.3 * g.norm()  # there are more weights than old outputs

    def slope(d: Tensor) -> float:
        net.gradient.copy_(d)
        names = {name: p.detach() for name, p in network.named_parameters()}
        tangents = {name: p.grad.clone() for name, p in network.named_parameters()}
        network.eval()
        outputs = partial(torch.func.functional_call, network, args=(x,))
        result = torch.func.jvp(outputs, (names,), (tangents,))[1]
        network.train()
        return float(result.norm() / d.norm())

    assert slope(held) < 1e-2 * slope(g)
