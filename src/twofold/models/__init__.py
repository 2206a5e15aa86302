"""The paper's two networks, and the flat view of their parameters that training works on."""

from twofold.models.flat import FlatModel
from twofold.models.mlp import mlp
from twofold.models.resnet import reduced_resnet18
from twofold.models.view import View

__all__ = ["FlatModel", "View", "mlp", "reduced_resnet18"]
