"""The paper's own figures, and the methods that its figures of stability gaps show."""

from twofold.papers.hess2024.figures.gamma import gamma_figure
from twofold.papers.hess2024.figures.joint import joint_figure
from twofold.papers.hess2024.figures.projection_rule import projection_rule_figure
from twofold.report.figures.base import prefer

prefer("gap", ["er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem"])

__all__ = ["gamma_figure", "joint_figure", "projection_rule_figure"]
