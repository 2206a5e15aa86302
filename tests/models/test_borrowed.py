"""A borrowed model has the vectors of a run, and returns its parameters unchanged."""

from __future__ import annotations

import torch
from helpers.benchmarks import domain_benchmark

from twofold.models import FlatModel
from twofold.models.borrowed import BorrowedModel


def test_vectors_of_a_borrowed_model_are_those_of_a_run():
    model = domain_benchmark(norm=True).model()
    net = BorrowedModel(model)
    strides = [p.stride() for p in model.parameters()]
    values = net.values
    flat = FlatModel(domain_benchmark(norm=True).model())
    flat.module.load_state_dict(model.state_dict())
    assert torch.equal(values, flat.values)
    with net.using(torch.zeros_like(values), [torch.ones_like(b) for b in net.buffers()]):
        assert not any(p.any() for p in model.parameters())
    assert torch.equal(net.values, values)
    assert strides == [p.stride() for p in model.parameters()]
