"""Packages that only some commands need. They come as extras: `pip install 'twofold[figures]'`."""

from __future__ import annotations

from importlib.util import find_spec

from twofold.errors import UserError

EXTRAS = {  # the packages that an extra brings, by the names under which they are imported
    "figures": ("matplotlib",),
    "report": ("matplotlib", "plotly"),
    "images": ("PIL",),
    "frames": ("pandas",),
    "tensorboard": ("tensorboard",),
    "trackio": ("trackio",),
    "wandb": ("wandb",),
    "torchjd": ("torchjd",),
    "ray": ("ray",),
    "lightning": ("lightning",),
    "huggingface": ("transformers", "accelerate"),
    "avalanche": ("avalanche",),
}


def need(extra: str, what: str) -> None:
    """Raise UserError with the command that installs an extra, unless its packages are there.

    what: the name of what needs it, for the error.
    """
    missing = [package for package in EXTRAS[extra] if not _is_installed(package)]
    if missing:
        names = " and ".join(missing)
        raise UserError(f"{what} needs {names}: pip install 'twofold[{extra}]'")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # such as a stub without a specification
        return False
