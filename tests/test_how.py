"""`How`: a plain script with a torch optimiser follows the same directions as a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.loops import ITERATIONS, SETTINGS, TASKS, Script, everything
from torch import Tensor, nn
from torch.nn import functional as F

from twofold import How, UserError
from twofold.method import Method
from twofold.models import FlatModel
from twofold.models.borrowed import BorrowedModel
from twofold.routines import Clip, Gem, Needs, Routine, Step, Warmup
from twofold.settings import Settings
from twofold.training import Training


def weights_of_a_run(method: str, norm: bool, **options: object) -> tuple[list[Tensor], Training]:
    """The weights, and the buffers of batch norm, after every iteration of a run."""
    settings = Settings(**{**vars(SETTINGS), **options})  # type: ignore[arg-type]
    training = Training(domain_benchmark(TASKS, norm), *Method.parse(method).make(), settings)
    found: list[Tensor] = []
    training.run(lambda: found.append(everything(training.net.module)))
    return found, training


BITWISE = [
    "sgd",
    "agem",
    "gem",
    "lpr",
    "hold",
    "warmup(3)+ema(0.9)",
    "momentum-reset",
    "pcgrad+rescale",
]
BITWISE += [
    "gem(gamma=0.1,when=always)+clip(0.5)+warmup(3)",
    "soft-gem(0.5)",
    "cosine(iterations=5)",
]


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
@pytest.mark.parametrize("chain", BITWISE)
def test_a_script_is_bitwise_the_run(chain, norm):
    """Weights and batch-norm statistics after every iteration of three tasks, bit for bit."""
    expected, training = weights_of_a_run(f"er+{chain}", norm)
    old = Needs.OLD in training.needs
    script = Script(chain, norm, apart=old and not norm, retain=old).run()
    assert len(script.weights) == TASKS * ITERATIONS
    for n, (one, other) in enumerate(zip(expected, script.weights, strict=True)):
        assert torch.equal(one, other), n
    with training.chain.evaluated(training.net):
        assert torch.equal(everything(training.net.module), script.evaluated[-1])


@pytest.mark.parametrize(("norm", "apart"), [(False, False), (True, True)])
def test_a_different_number_of_backward_passes_rounds_differently(norm, apart):
    """Without batch norm, a run adds g_old and g_new; with it, g is the gradient of the sum."""
    expected, _ = weights_of_a_run("er+agem", norm)
    script = Script("agem", norm, apart=apart, retain=True).run()
    largest = max((a - b).abs().max() for a, b in zip(expected, script.weights, strict=True)).item()
    assert 0 < largest < 1e-5
    assert torch.equal(expected[ITERATIONS - 1], script.weights[ITERATIONS - 1])  # task 1


def test_sam_and_mega_with_a_closure_are_bitwise_the_run():
    for chain in ("sam", "mega", "mega(I)"):
        expected, training = weights_of_a_run(f"er+{chain}", norm=True)
        script = Script(chain, norm=True, retain=Needs.OLD in training.needs)
        with_closure(script).run()
        for one, other in zip(expected, script.weights, strict=True):
            assert torch.equal(one, other), chain


def with_closure(script: Script) -> Script:
    """The same script, with all that belongs to the loss in a closure."""
    step, losses = script.optimizer.step, script.losses
    script.losses = list  # type: ignore[assignment]

    def closure() -> Tensor:
        script.optimizer.zero_grad()
        found = losses()
        for loss in found:
            loss.backward(retain_graph=script.retain)
        return sum(found, torch.zeros(()))

    script.optimizer.step = lambda: step(closure)  # type: ignore[method-assign]
    return script


@pytest.mark.parametrize("name", sorted(Routine.known))
def test_every_routine_works_or_says_in_one_line_why_not(name):
    chain = f"gem+{name}" if name == "rescale" else name
    if name == "cosine":
        chain = "cosine(iterations=5)"
    if name == "nmc":
        with pytest.raises(UserError, match="nmc needs labelled examples of the memory"):
            Script(chain, norm=True)
        return
    script = Script(chain, norm=True, apart=True)
    if name in ("sam", "mega"):
        with pytest.raises(UserError, match=r"optimizer\.step\(closure\)") as error:
            script.run()
        assert "\n" not in str(error.value)
        script = with_closure(Script(chain, norm=True, apart=True))
    script.run()
    assert all(torch.isfinite(weights).all() for weights in script.weights)
    assert script.how.log.keys() >= {"projected", "norm_ratio", "unsolved"}


def tiny(chain: str, make=torch.optim.SGD, model: nn.Module | None = None, **options):
    """A network of two layers, its optimiser, and its routines, in a second task."""
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    how = {key: options.pop(key) for key in ("route", "seed", "iterations") if key in options}
    optimizer = make(model.parameters(), **{"lr": 0.1, **options})
    return model, optimizer, How(chain, optimizer, model, **how)


def batch(seed: int, count: int = 6) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=random), torch.arange(count) % 2


def loss_of(model: nn.Module, seed: int, count: int = 6) -> Tensor:
    x, y = batch(seed, count)
    return F.cross_entropy(model(x), y)


def test_a_chain_of_values_is_a_chain_of_text():
    found = []
    for chain in ("gem(gamma=0.1)+clip(0.01)+warmup(3)", Gem(gamma=0.1) + Clip(0.01) + Warmup(3)):
        model, optimizer, how = tiny(chain)
        how.references(lambda k, model=model: loss_of(model, 10 + k))
        for task in range(3):
            if task:
                how.switch()
            for n in range(3):
                optimizer.zero_grad()
                loss_of(model, n).backward()
                optimizer.step()
        found.append(everything(model))
        assert optimizer.param_groups[0]["lr"] == 0.1  # after the step it is the user's own
    assert torch.equal(*found)


def test_the_parameters_and_gradients_stay_where_they_are():
    model, optimizer, how = tiny("gem(when=always)+clip(0.1)")
    how.references(lambda k: loss_of(model, 10 + k))
    how.switch()
    before = [(p.data_ptr(), p.stride(), p.is_contiguous()) for p in model.parameters()]
    loss_of(model, 0).backward()
    gradients = [p.grad for p in model.parameters()]
    kept = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    assert before == [(p.data_ptr(), p.stride(), p.is_contiguous()) for p in model.parameters()]
    assert all(p.grad is g for p, g in zip(model.parameters(), gradients, strict=True))
    assert not all(torch.equal(g, k) for g, k in zip(gradients, kept, strict=True))
    assert torch.cat([g.flatten() for g in gradients]).norm() <= 0.1 * 1.0001
    assert how.log["projected"] == 1
    assert 0 < how.log["norm_ratio"] < 1
    assert how.log["unsolved"] == 0


def test_batch_norm_is_frozen_in_reference_passes():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model, optimizer, how = tiny("gem(when=always)", model=model)
    seen = []

    def reference(k: int) -> Tensor:
        seen.append((model[1].training, model[1].weight.requires_grad))
        return loss_of(model, 10)

    how.references(reference)
    how.switch()
    loss_of(model, 0).backward()
    statistics = model[1].running_mean.clone()
    optimizer.step()
    assert seen == [(False, False)]
    assert torch.equal(model[1].running_mean, statistics)
    assert model[1].training
    assert model[1].weight.requires_grad


def test_without_a_past_nothing_is_asked_for():
    model, optimizer, how = tiny("gem")
    loss_of(model, 0).backward()
    optimizer.step()
    assert how.log == {"projected": 0.0, "norm_ratio": 1.0, "unsolved": 0.0}
    assert (how.task, how.iteration) == (1, 1)


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


def test_the_average_is_evaluated_and_training_goes_on():
    model, optimizer, how = tiny("ema(0.5)")
    seen = []
    for n in range(3):
        optimizer.zero_grad()
        loss_of(model, n).backward()
        optimizer.step()
        seen.append(everything(model))
    with how.evaluated():
        average = everything(model)
    assert torch.equal(everything(model), seen[-1])
    expected = sum(0.5 ** (2 - n) * seen[n] for n in range(3)) / 1.75
    torch.testing.assert_close(average, expected, rtol=1e-5, atol=1e-6)


def test_it_continues_from_its_state():
    def go(steps: int, model, optimizer) -> None:
        for n in range(steps):
            optimizer.zero_grad()
            loss_of(model, n).backward()
            optimizer.step()

    whole, parted = tiny("warmup(5)+ema(0.9)"), tiny("warmup(5)+ema(0.9)")
    for model, optimizer, how in (whole, parted):
        how.switch()
        go(2, model, optimizer)
    model, optimizer, how = tiny("warmup(5)+ema(0.9)")
    model.load_state_dict(parted[0].state_dict())
    how.load_state_dict(parted[2].state_dict())
    go(2, *whole[:2])
    go(2, model, optimizer)
    with whole[2].evaluated(), how.evaluated():
        assert torch.equal(everything(whole[0]), everything(model))


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


def part_of_the_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    How("clip", torch.optim.SGD(model[0].parameters(), lr=0.1), model)


def part_of_the_optimizer():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    How("clip", torch.optim.SGD(model.parameters(), lr=0.1), model[0])


def unfrozen_later():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[1].requires_grad_(False)
    how = How("clip", torch.optim.SGD(model[0].parameters(), lr=0.1), model)
    model[1].requires_grad_(True)
    how.switch()


def another_head():
    model, optimizer, how = tiny("clip")
    model.append(nn.Linear(2, 3))
    optimizer.add_param_group({"params": model[-1].parameters()})
    how.switch()


def second_step(chain: str, prepare: Callable[[How, nn.Module], None] = lambda how, model: None):
    model, optimizer, how = tiny(chain)
    prepare(how, model)
    how.switch()
    loss_of(model, 0).backward()
    optimizer.step()


MISTAKES = {
    "references are missing": (
        lambda: second_step("gem"),
        r"gem needs a gradient per past task: call how\.references\(lambda k: loss\)",
    ),
    "old data are missing": (
        lambda: second_step("agem"),
        r"agem needs the gradient of old data: call how\.old\(lambda: loss\)",
    ),
    "examples are missing": (
        lambda: second_step("lpr"),
        r"lpr needs examples of the memory: call how\.memory\(lambda n: x\)",
    ),
    "a past task without memory: None": (
        lambda: second_step("gem", lambda how, model: how.references(lambda k: None)),
        r"references\(0\) has no loss \(it is None\): does past task 0 have a memory\?",
    ),
    "a past task without memory: no entry": (
        lambda: second_step("gem", lambda how, model: how.references(lambda k: [][k])),
        r"references\(0\) has no loss .*does past task 0 have a memory\?",
    ),
    "a past task without memory: no examples": (
        lambda: second_step(
            "gem", lambda how, model: how.references(lambda k: loss_of(model, 0, 0))
        ),
        r"references\(0\) is not a number: is its memory empty\?",
    ),
    "a loss without a graph": (
        lambda: second_step("agem", lambda how, model: how.old(lambda: torch.ones(()))),
        r"old\(\) has no loss \(it is a tensor without a gradient\)",
    ),
    "no inputs": (
        lambda: second_step("lpr", lambda how, model: how.memory(lambda n: None)),
        r"memory\(256\) must return inputs, not None",
    ),
    "the length of a task is missing": (
        lambda: second_step("cosine"),
        r"cosine needs the length of a task",
    ),
    "an objective": (lambda: tiny("er+gem"), r"chain 'er\+gem': 'er' is an objective"),
    "the objective that is implied": (lambda: tiny("finetune+gem"), "'finetune' is an objective"),
    "an objective as a value": (
        lambda: tiny(Method.parse("er+gem")),
        r"chain 'er\+gem': 'er' is an objective",
    ),
    "an unknown routine": (lambda: tiny("gme"), "unknown routine 'gme': did you mean 'gem'"),
    "brackets": (lambda: tiny("gem("), r"chain 'gem\(': brackets don't match"),
    "a chain without sense": (lambda: tiny("rescale"), "rescale has nothing to undo"),
    "no momentum": (lambda: tiny("momentum-reset"), "there is no momentum"),
    "a part of the model": (
        part_of_the_model,
        "the optimiser owns only a part of the model: it lacks '1.weight' and 1 more",
    ),
    "a part that is unfrozen later": (unfrozen_later, "it lacks '1.weight' and 1 more"),
    "a model that grows": (another_head, "the model has different parameters than before"),
    "more than the model": (part_of_the_optimizer, "parameters that are not in the model"),
    "no optimiser": (
        lambda: How("clip", nn.Linear(1, 1), nn.Linear(1, 1)),
        "How takes an optimiser of torch, not a Linear",
    ),
    "lbfgs": (
        lambda: tiny("clip", torch.optim.LBFGS),
        "How can't change LBFGS: it evaluates the loss several times per step",
    ),
    "a route without a second moment": (
        lambda: tiny("clip", route="first"),
        "route='first' needs an optimiser with a second moment",
    ),
    "an unknown route": (
        lambda: tiny("clip", torch.optim.Adam, route="second"),
        "route must be 'both' or 'first', not 'second'",
    ),
    "a fused route": (
        lambda: tiny("clip", torch.optim.Adam, route="first", fused=True),
        "route='first' can't look into Adam with fused=True",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_in_one_line(name):
    act, message = MISTAKES[name]
    with pytest.raises(UserError, match=message) as error:
        act()
    assert "\n" not in str(error.value)


def test_a_graph_that_is_gone_is_named():
    model, optimizer, how = tiny("agem")
    how.switch()
    loss = loss_of(model, 0)
    how.old(lambda: loss)
    loss.backward()
    with pytest.raises(
        UserError, match=r"the graph of a loss is gone: call loss\.backward\(retain"
    ):
        optimizer.step()


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


@pytest.mark.parametrize("chain", ["gem", "agem", "lpr"])
def test_after_a_refused_step_nothing_is_lost(chain):
    """What is missing is given, and the same step is done as if it had been there."""

    def given(how: How, model: nn.Module) -> None:
        how.references(lambda k: loss_of(model, 10))
        how.old(lambda: loss_of(model, 10))
        how.memory(lambda n: batch(10)[0])

    found = []
    for early in (True, False):
        model, optimizer, how = tiny(chain, momentum=0.9)
        loss_of(model, 0).backward()
        optimizer.step()
        how.switch()
        if early:
            given(how, model)
        else:
            before = everything(model)
            with pytest.raises(UserError, match=f"{chain} needs"):
                optimizer.step()
            assert torch.equal(everything(model), before)
            assert how.iteration == 0
            given(how, model)
        optimizer.step()
        found.append(everything(model))
    assert torch.equal(*found)
