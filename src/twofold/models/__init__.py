"""The paper's two networks, and the flat view of their parameters that training works on."""

from twofold.models.flat import FlatModel
from twofold.models.mlp import mlp
from twofold.models.resnet import reduced_resnet18

__all__ = ["FlatModel", "mlp", "reduced_resnet18"]
