"""Whether this processor computes in bf16: the answer is true, and finding it harms nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from twofold.models import precision

ANSWERS = """
from twofold.models import precision
print(precision.bf16_works(), flush=True)
print(precision.layers_work(), flush=True)
"""


def test_the_answer_is_what_the_layers_do_with_all_instructions_of_the_processor() -> None:
    """Layers may raise errors or end the process, but the question does neither."""
    environment = {name: value for name, value in os.environ.items() if "ONEDNN" not in name}
    process = subprocess.run(
        [sys.executable, "-c", ANSWERS], capture_output=True, text=True, env=environment
    )
    answer, *layers = process.stdout.split()
    assert answer == "True" if layers == ["True"] else answer == "False"


def ends_by_signal() -> bool:
    os.kill(os.getpid(), signal.SIGILL)
    return True


def raises() -> bool:
    raise MemoryError


def hangs() -> bool:
    time.sleep(100)
    return True


@pytest.mark.parametrize(
    ("layers", "answer"),
    [
        (lambda: True, True),
        (lambda: False, False),
        (ends_by_signal, False),
        (raises, False),
        (hangs, False),
    ],
)
def test_a_child_process_answers_whatever_happens_to_it(
    layers: Callable[[], bool], answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "layers_work", layers)
    monkeypatch.setattr(precision, "PATIENCE", 0.5 if layers is hangs else 60.0)
    children, fork = [], os.fork

    def noted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)
    assert precision._works_in_child() is answer
    with pytest.raises(ChildProcessError):  # it is not left behind
        os.waitpid(children[0], os.WNOHANG)
