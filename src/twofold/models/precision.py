"""Whether this processor computes in bf16."""

from __future__ import annotations

import faulthandler
import os
import time
import warnings
from functools import cache
from pathlib import Path

import torch
from torch.nn import functional as F

PATIENCE = 20.0  # seconds; the probe takes a tenth of one


@cache
def bf16_works() -> bool:
    """Tell whether torch computes layers in bf16 on this processor, fast or not.

    Some virtual machines promise matrix instructions (AMX) that do not work. There, torch raises
    an error for some layers, and others end the process. So a child process tries them.
    """
    return _works_in_child() if _promises_amx() and hasattr(os, "fork") else layers_work()


def layers_work() -> bool:
    """Tell whether layers of several sizes and layouts give the right numbers in bf16."""
    try:
        return all(map(_product_works, (64, 256, 784))) and all(map(_convolution_works, (16, 20)))
    except RuntimeError:
        return False


def _product_works(size: int) -> bool:
    # Sums of ones up to 256 are exact in bf16.
    rows = torch.ones(size, 256, dtype=torch.bfloat16)
    return bool((F.linear(rows, rows[:64]) == 256).all() and (rows @ rows[:64].T == 256).all())


def _convolution_works(channels: int) -> bool:
    images = torch.ones(4, channels, 8, 8, dtype=torch.bfloat16)
    weights = torch.ones(channels, channels, 3, 3, dtype=torch.bfloat16)
    layouts = torch.contiguous_format, torch.channels_last
    outputs = [F.conv2d(images.to(memory_format=x), weights.to(memory_format=x)) for x in layouts]
    return all(bool((output == 9 * channels).all()) for output in outputs)


def _promises_amx() -> bool:
    try:
        return "amx_" in Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return False  # not Linux


def _works_in_child() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which it does not use
        child = os.fork()
    if child == 0:
        _answer()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def _answer() -> None:
    """Exit with 0 if layers work, without a trace of the process that was forked."""
    import resource  # Windows lacks it, and never comes here

    code = 1
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        torch.set_num_threads(1)
        code = 0 if layers_work() else 1
    finally:
        os._exit(code)
