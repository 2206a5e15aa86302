"""`How` with what torch offers around a step: moments of Adam, groups, schedulers, scalers."""

from __future__ import annotations

import pytest
import torch
from helpers.how import batch, loss_of, tiny
from helpers.loops import everything
from torch import Tensor, nn
from torch.nn import functional as F

from twofold import How, UserError
from twofold.routines import Routine, Step


def adam_by_hand(routed: bool, steps: list[tuple[Tensor, Tensor]], w: Tensor, decay: float = 0.0):
    """Kingma and Ba's algorithm 1; of each step, the gradient and the direction to follow."""
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    for n, (g, d) in enumerate(steps, 1):
        first, second = d + decay * w, (g if routed else d) + decay * w
        m = 0.9 * m + 0.1 * first
        v = 0.999 * v + 0.001 * second**2
        w = w - 0.01 * (m / (1 - 0.9**n)) / ((v / (1 - 0.999**n)).sqrt() + 1e-8)
    return w


class Halved(Routine):
    """Follows the gradient with its first part removed."""

    name = "halved"

    def direct(self, g: Tensor, step: Step) -> Tensor:
        changed = g.clone()
        changed[: len(g) // 2] *= 0.01
        step.mark(projected=1.0)
        return changed


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("route", ["both", "first"])
def test_the_route_is_that_of_an_adam_by_hand(route, decay):
    model = nn.Linear(5, 1, bias=False).double()
    start = model.weight.detach().clone().flatten()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=decay)
    How(Halved(), optimizer, model, route=route)
    random = torch.Generator().manual_seed(0)
    steps = []
    for _ in range(20):
        g = torch.randn(5, generator=random, dtype=torch.float64)
        model.weight.grad = g.clone()[None]
        optimizer.step()
        d = g.clone()
        d[:2] *= 0.01
        steps.append((g, d))
    expected = adam_by_hand(route == "first", steps, start, decay)
    torch.testing.assert_close(model.weight.detach().flatten(), expected, rtol=1e-12, atol=1e-12)


MOMENTS = {  # of each relative, the second moment in its state and what one step puts there
    "Adam": ("exp_avg_sq", lambda g: 0.001 * g**2),
    "AdamW": ("exp_avg_sq", lambda g: 0.001 * g**2),
    "NAdam": ("exp_avg_sq", lambda g: 0.001 * g**2),
    "RAdam": ("exp_avg_sq", lambda g: 0.001 * g**2),
    "RMSprop": ("square_avg", lambda g: 0.01 * g**2),
    "Adagrad": ("sum", lambda g: g**2),
    "Adadelta": ("square_avg", lambda g: 0.1 * g**2),
    "Adamax": ("exp_inf", lambda g: g.abs() + 1e-8),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_every_relative_of_adam_has_its_moments_apart(name):
    key, square = MOMENTS[name]
    moved = {}
    for route in ("both", "first"):
        model = nn.Linear(4, 1, bias=False).double()
        model.weight.data.fill_(1.0)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        How(Halved(), optimizer, model, route=route)
        g = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
        for _ in range(2):
            model.weight.grad = g.clone()
            optimizer.step()
        seen = g.clone()
        if route == "both":
            seen[0, :2] *= 0.01
        state = optimizer.state[model.weight]
        after_one = square(seen)
        assert type(model.weight.grad) is Tensor
        ratio = state[key] / after_one
        torch.testing.assert_close(ratio, ratio[0, :1].expand_as(ratio))  # of g, all of it
        if "exp_avg" in state:
            torch.testing.assert_close(state["exp_avg"][0, 0], state["exp_avg"][0, 1] / 2)
            assert state["exp_avg"][0, 0] < 0.02
        moved[route] = (1 - model.weight.detach()[0]).abs()
    # The usual order undoes most of what the routine did to the first half; the other keeps it.
    if name != "RAdam":  # its first steps use no second moment
        assert moved["first"][0] < 0.1 * moved["both"][0]
    torch.testing.assert_close(moved["first"][2:], moved["both"][2:])


def test_groups_have_their_own_learning_rates_and_keep_them():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    groups = [
        {"params": model[0].parameters(), "lr": 0.1, "momentum": 0.9},
        {"params": model[1].parameters(), "lr": 0.01, "momentum": 0.0},
    ]
    optimizer = torch.optim.SGD(groups)
    how = How("warmup(4)", optimizer, model)
    how.switch()
    loss_of(model, 0).backward()
    before = [p.detach().clone() for p in model.parameters()]
    gradients = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    for k, p in enumerate(model.parameters()):
        lr = (0.1 if k < 2 else 0.01) / 4
        torch.testing.assert_close(p.detach(), before[k] - lr * gradients[k])
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.0]


def test_a_scheduler_of_torch_multiplies_with_the_routines():
    model, optimizer, how = tiny("warmup(2)")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    how.switch()
    sizes = []
    for n in range(3):
        before = everything(model)
        optimizer.zero_grad()
        loss_of(model, n).backward()
        length = torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm()
        optimizer.step()
        scheduler.step()
        sizes.append(((everything(model) - before).norm() / length).item())
    assert sizes == pytest.approx([0.05, 0.05, 0.025], rel=1e-4)


def test_the_scale_of_gradients_is_removed_before_the_routines_see_them():
    results = []
    for scale in (1.0, 1024.0):
        model, optimizer, how = tiny("clip(0.01)+gem")
        how.references(lambda k, model=model: loss_of(model, 10))
        how.switch()
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        for n in range(3):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, n)).backward()
            scaler.step(optimizer)
            scaler.update()
        results.append(everything(model))
    torch.testing.assert_close(*results)


def test_a_step_that_a_scaler_skips_does_not_count():
    model, optimizer, how = tiny("clip(0.01)")
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    (scaler.scale(loss_of(model, 0)) * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert how.iteration == 0


def test_accumulated_gradients_are_changed_once():
    results = []
    for parts in (1, 3):
        model, optimizer, how = tiny("gem(when=always)+clip(0.05)")
        calls = []
        how.references(lambda k, model=model, calls=calls: calls.append(k) or loss_of(model, 10))
        how.switch()
        x, y = batch(0)
        for xs, ys in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (F.cross_entropy(model(xs), ys) / parts).backward()
        optimizer.step()
        assert calls == [0]
        results.append(everything(model))
    torch.testing.assert_close(*results)


def test_frozen_parameters_stay_as_they_are():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    frozen = everything(model[0])
    for owned in (model.parameters(), model[1].parameters()):
        optimizer = torch.optim.AdamW(owned, lr=0.1)
        how = How("gem(when=always)+clip(0.1)+ema(0.9)", optimizer, model, route="first")
        how.references(lambda k: loss_of(model, 10))
        how.switch()
        before = everything(model[1])
        optimizer.zero_grad()
        loss_of(model, 0).backward()
        optimizer.step()
        assert torch.equal(everything(model[0]), frozen)
        assert not torch.equal(everything(model[1]), before)
        assert model[0].weight.grad is None


def test_half_precision_parameters_are_followed():
    model = nn.Linear(3, 2).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    How("clip(0.001)", optimizer, model)
    x, y = batch(0)
    F.cross_entropy(model(x.bfloat16()).float(), y).backward()
    optimizer.step()
    assert model.weight.grad.dtype == torch.bfloat16
    assert torch.cat([p.grad.flatten() for p in model.parameters()]).float().norm() < 0.0011


def test_removed_it_leaves_the_optimiser_alone():
    model, optimizer, how = tiny("clip(0.001)")
    how.remove()
    loss_of(model, 0).backward()
    before = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True))


def test_a_step_that_fails_leaves_the_learning_rate_as_it_was():
    class Failing(torch.optim.SGD):
        fails = True

        def step(self, closure=None):
            if self.fails:
                raise ZeroDivisionError
            return super().step(closure)

    model, optimizer, how = tiny("warmup(10)", Failing)
    how.switch()
    loss_of(model, 0).backward()
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    optimizer.fails = False
    optimizer.step()
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_it_goes_on_with_a_new_optimiser():
    """Lightning and others create one for each task; the average and the task go on."""
    model, first, how = tiny("gem+ema(0.5)")
    how.references(lambda k: loss_of(model, 10 + k))
    loss_of(model, 0).backward()
    first.step()
    second = torch.optim.SGD(model.parameters(), lr=0.1)
    how.use(second)
    how.switch()
    optimizer_alone = everything(model)
    first.step()  # its hooks are gone
    assert (how.task, how.iteration) == (2, 0)
    assert not torch.equal(everything(model), optimizer_alone)
    second.step()
    assert (how.task, how.iteration) == (2, 1)
    with pytest.raises(UserError, match="owns only a part of the model"):
        how.use(torch.optim.SGD(model[0].parameters(), lr=0.1))
    loss_of(model, 1).backward()
    second.step()
    assert how.iteration == 2
