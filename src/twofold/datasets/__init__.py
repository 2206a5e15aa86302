"""Image datasets. They are found or fetched, verified, decoded once and mapped from a cache."""

from twofold.datasets.dataset import Dataset, Split
from twofold.datasets.library import check, get, load, names, version

__all__ = ["Dataset", "Split", "check", "get", "load", "names", "version"]
