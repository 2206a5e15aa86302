"""The image datasets: found or fetched, verified, decoded once, then mapped from a cache."""

from twofold.datasets.dataset import Dataset, Split
from twofold.datasets.library import check, get, load, names

__all__ = ["Dataset", "Split", "check", "get", "load", "names"]
