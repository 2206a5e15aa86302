"""Gradients of objectives and references against plain autograd."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.passes import BENCHMARKS, batch, joint_passes, network, with_and_without_norm
from helpers.training import trained
from torch import Tensor, nn
from torch.nn import functional as F

from twofold.benchmarks import Batch
from twofold.gradients import frozen_gradient, objective_gradient
from twofold.method import Method
from twofold.models import FlatModel
from twofold.objectives import Draw, Term
from twofold.objectives.base import cross_entropy
from twofold.objectives.er import Er
from twofold.objectives.finetune import Finetune
from twofold.objectives.joint import Joint
from twofold.routines import Needs, Routine, Step
from twofold.settings import Settings
from twofold.training import Training


def vector(plain: nn.Module, loss: Tensor) -> Tensor:
    """Autograd's gradient of a loss, with entries in FlatModel's order."""
    gradients = torch.autograd.grad(loss, list(plain.parameters()), retain_graph=True)
    carrier = FlatModel(copy.deepcopy(plain))
    for p, gradient in zip(carrier.module.parameters(), gradients, strict=True):
        p.grad.copy_(gradient)
    return carrier.gradient


def assert_same_state(net: FlatModel, plain: nn.Module) -> None:
    theirs = plain.state_dict()
    for key, value in net.module.state_dict().items():
        torch.testing.assert_close(value, theirs[key], msg=key)


@with_and_without_norm
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("task", [2, 3])
def test_er_weighs_new_by_1_over_t_and_old_by_the_rest(norm, apart, task):
    net, plain = network(norm)
    new, old = batch(norm, task, 10), batch(norm, 1, 7)
    g, g_old, losses = objective_gradient(net, Er().passes(Draw(task, 1, new, old)), apart)

    logits = plain(torch.cat([new.x, old.x]))  # one pass in train mode: shared statistics
    l_new, l_old = F.cross_entropy(logits[:10], new.y), F.cross_entropy(logits[10:], old.y)
    expected = vector(plain, l_new) / task + (1 - 1 / task) * vector(plain, l_old)
    torch.testing.assert_close(g, expected, rtol=1e-4, atol=1e-6)
    if apart:
        torch.testing.assert_close(g_old, vector(plain, l_old), rtol=1e-4, atol=1e-6)
    else:
        assert g_old is None
    torch.testing.assert_close(losses["new"], l_new.detach())
    torch.testing.assert_close(losses["old"], l_old.detach())
    total = l_new.detach() / task + (1 - 1 / task) * l_old.detach()
    torch.testing.assert_close(losses["total"], total)
    assert_same_state(net, plain)  # and the statistics were updated once, by both together


@with_and_without_norm
@pytest.mark.parametrize("objective", [Er, Finetune, Joint])
def test_the_first_task_is_learned_from_its_own_loss(norm, objective):
    net, plain = network(norm)
    new = batch(norm, 1, 10)
    g, old, losses = objective_gradient(net, objective().passes(Draw(1, 1, new)), apart=True)
    loss = F.cross_entropy(plain(new.x), new.y)
    torch.testing.assert_close(g, vector(plain, loss), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(losses["total"], loss.detach())
    assert old is None
    assert "old" not in losses


@pytest.mark.parametrize("apart", [False, True])
def test_joint_without_batch_norm_is_the_mean_over_tasks(apart):
    net, plain = network(norm=False)
    batches, passes = joint_passes(False, net)
    g, g_old, losses = objective_gradient(net, passes, apart)
    per_task = torch.stack([F.cross_entropy(plain(b.x), b.y) for b in batches])
    torch.testing.assert_close(g, vector(plain, per_task.mean()), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(losses["total"], per_task.mean().detach())
    if apart:
        expected = vector(plain, per_task[:2].mean())
        torch.testing.assert_close(g_old, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("apart", [False, True])
def test_joint_with_batch_norm_sums_over_mixed_passes(apart):
    net, plain = network(norm=True)
    _, passes = joint_passes(True, net)
    g, g_old, _ = objective_gradient(net, passes, apart)
    expected, expected_old, old_weight = 0, 0, 0
    for terms in passes:
        logits = plain(torch.cat([term.x for term in terms]))  # statistics of this pass alone
        for term, z in zip(terms, logits.split([len(t.x) for t in terms]), strict=True):
            gradient = term.weight * vector(plain, term.loss(z))
            expected += gradient
            if term.role == "old":
                expected_old += gradient
                old_weight += term.weight
    torch.testing.assert_close(g, expected, rtol=1e-3, atol=1e-6)
    if apart:
        torch.testing.assert_close(g_old, expected_old / old_weight, rtol=1e-3, atol=1e-6)
    assert_same_state(net, plain)


@with_and_without_norm
def test_roles_may_have_several_terms(norm):
    net, plain = network(norm)
    parts = [batch(norm, task, 4 + task) for task in (1, 2, 3)]
    terms = [
        Term("old", 0.2, parts[0].x, cross_entropy(parts[0].y)),
        Term("new", 0.5, parts[1].x, cross_entropy(parts[1].y)),
        Term("old", 0.7, parts[2].x, cross_entropy(parts[2].y)),
    ]
    g, g_old, losses = objective_gradient(net, [terms], apart=True)
    logits = plain(torch.cat([part.x for part in parts])).split([len(p.x) for p in parts])
    a, b, c = (F.cross_entropy(z, p.y) for z, p in zip(logits, parts, strict=True))
    torch.testing.assert_close(g, vector(plain, 0.2 * a + 0.5 * b + 0.7 * c), rtol=1e-4, atol=1e-6)
    old = (0.2 * a + 0.7 * c) / 0.9
    torch.testing.assert_close(g_old, vector(plain, old), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(losses["old"], old.detach())


def affine_entries(net: FlatModel) -> Tensor:
    """Return which entries of the vector are batch-norm scales and shifts."""
    net.gradient.zero_()
    for m in net.module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.weight.grad.fill_(1)
            m.bias.grad.fill_(1)
    places = net.gradient != 0
    net.gradient.zero_()
    return places


@with_and_without_norm
@pytest.mark.parametrize("affine", [False, True])
def test_a_frozen_gradient_is_autograds_in_eval_mode(norm, affine):
    net, plain = network(norm)
    one = batch(norm, 2, 12)
    plain.eval()
    expected = vector(plain, F.cross_entropy(plain(one.x), one.y))
    places = affine_entries(net)
    assert int(places.sum()) == (8 if norm else 0)
    if norm:
        assert expected[places].abs().min() > 0
    if not affine:
        expected[places] = 0
    net.gradient.fill_(7)  # what is left of an earlier pass must not count
    actual, _ = frozen_gradient(net, [one], affine=affine)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)
    assert affine or not actual[places].any()


@with_and_without_norm
def test_a_frozen_gradient_is_the_mean_over_unequal_batches(norm):
    net, _ = network(norm)
    parts = [batch(norm, 1, 9), batch(norm, 2, 4)]
    split, loss = frozen_gradient(net, parts, affine=True)
    split = split.clone()
    whole, same = frozen_gradient(net, [Batch.joined(parts)], affine=True)
    torch.testing.assert_close(loss, same)
    torch.testing.assert_close(split, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("affine", [False, True])
def test_a_frozen_gradient_leaves_the_network_as_it_was(affine):
    net, _ = network(norm=True)
    before = copy.deepcopy(net.module.state_dict())
    assert any("num_batches_tracked" in key for key in before)
    frozen_gradient(net, [batch(True, 1, 10)], affine=affine)
    for key, value in net.module.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert all(m.training for m in net.module.modules())
    assert all(p.requires_grad for p in net.module.parameters())


def test_a_frozen_gradient_leaves_the_network_as_it_was_after_an_error():
    net, _ = network(norm=True)
    one = batch(True, 1, 10)
    with pytest.raises(IndexError):
        frozen_gradient(net, [one._replace(y=one.y + 100)], affine=False)
    assert all(m.training for m in net.module.modules())
    assert all(p.requires_grad for p in net.module.parameters())


def test_a_frozen_gradient_does_not_thaw_what_the_user_froze():
    net, _ = network(norm=True)
    layer = next(m for m in net.module.modules() if isinstance(m, nn.BatchNorm2d)).eval()
    layer.weight.requires_grad_(False)
    frozen_gradient(net, [batch(True, 1, 10)], affine=True)
    assert not layer.weight.requires_grad
    assert layer.bias.requires_grad
    assert not layer.training


@dataclass
class Seen:
    """One iteration: its draw, its gradients, and a module that equals the network then."""

    draw: Draw
    step: Step
    plain: nn.Module


def watched(method: str, needs: Needs, norm: bool) -> list[Seen]:
    """What a routine with these needs is handed in tasks 2 and 3."""
    objective, _ = Method.parse(method).make()
    draws, records, passes = [], [], objective.passes
    objective.passes = lambda draw: (draws.append(draw), passes(draw))[1]

    class Watch(Routine):
        def direct(self, g, step):
            if step.task > 1:
                step.references = None if step.references is None else step.references.clone()
                records.append(Seen(draws[-1], step, step.net.copy().requires_grad_(True)))
            return g

    Watch.needs = needs
    settings = Settings(lr=0.05, batch_size=5, seed=0, iterations=3, eval_schedule="every:3")
    Training(BENCHMARKS[norm], objective, [Watch()], settings).run()
    assert len(records) == 6
    return records


@with_and_without_norm
@pytest.mark.parametrize("method", ["finetune", "er", "joint"])
def test_a_routine_gets_one_frozen_gradient_a_past_task(method, norm):
    places = affine_entries(network(norm)[0])
    for one in watched(method, Needs.PER_TASK, norm):
        assert len(one.step.references) == one.step.task - 1
        for row, reference in zip(one.step.references, one.draw.references, strict=True):
            loss = F.cross_entropy(one.plain(reference.x), reference.y)
            expected = vector(one.plain, loss)
            expected[places] = 0
            torch.testing.assert_close(row, expected, rtol=1e-3, atol=1e-5)


@with_and_without_norm
@pytest.mark.parametrize(
    ("method", "needs"),
    [
        ("finetune", Needs.OLD),  # an objective without old data
        ("finetune", Needs.FROZEN_OLD),
        ("er", Needs.FROZEN_OLD),
        ("joint", Needs.FROZEN_OLD),  # more than a batch
        ("der", Needs.FROZEN_OLD),  # the labels' loss, not the logits'
    ],
)
def test_a_routine_gets_the_frozen_gradient_of_the_replay_batch(method, needs, norm):
    places = affine_entries(network(norm)[0])
    for one in watched(method, needs, norm):
        old = one.draw.old
        expected = vector(one.plain, F.cross_entropy(one.plain(old.x), old.y))
        if method == "joint":  # the authors' Joint+A-GEM leaves them out, their ER+A-GEM does not
            expected[places] = 0
        torch.testing.assert_close(one.step.old, expected, rtol=1e-3, atol=1e-5)


class Asking(Routine):
    """Asks for the gradient on old data and follows g, as A-GEM does without violations."""

    def asks(self) -> Needs:
        return Needs.OLD

    def direct(self, g: Tensor, step: Step) -> Tensor:
        assert (step.old is not None) == (step.task > 1)
        return g


@pytest.mark.parametrize("objective", ["er", "joint", "der(beta=0.5)", "bic"])
def test_with_batch_norm_a_reference_that_nobody_uses_changes_no_bit(objective):
    """The sum in a different order moved AVG on online CIFAR-100 by up to 1.4 points."""
    (plain, _), (asking, _) = trained(objective), trained(objective, Asking())
    assert torch.equal(plain.net.values, asking.net.values)


@pytest.mark.parametrize(("objective", "lr"), [("er", 0.001), ("der", 0.05)])
def test_agem_that_never_projects_is_its_objective_bit_by_bit(objective, lr):
    benchmark = domain_benchmark(norm=True)
    (plain, _), (agem, result) = (
        trained(method, benchmark=benchmark, lr=lr) for method in (objective, f"{objective}+agem")
    )
    assert not np.nansum(result.curves["projected"])
    assert torch.equal(plain.net.values, agem.net.values)
