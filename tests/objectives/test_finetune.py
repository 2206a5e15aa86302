"""Finetuning: the loss on the new task alone."""

from __future__ import annotations

from helpers.benchmarks import class_benchmark
from helpers.objectives import drawn

from twofold.objectives.finetune import Finetune


def test_finetuning_is_blind_to_the_past():
    benchmark = class_benchmark()
    draw = drawn(benchmark, 3, benchmark.tasks[0].train)
    ((only,),) = Finetune().passes(draw)
    assert (only.role, only.weight) == ("new", 1.0)
    assert only.x is draw.new.x
