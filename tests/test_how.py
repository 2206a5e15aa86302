"""`How`: a plain script with a torch optimiser follows the same directions as a run."""

from __future__ import annotations

import pytest
import torch
from helpers.benchmarks import domain_benchmark
from helpers.how import loss_of, tiny
from helpers.loops import ITERATIONS, SETTINGS, TASKS, Script, everything
from torch import Tensor, nn

from twofold import UserError
from twofold.method import Method
from twofold.routines import Clip, Gem, Needs, Routine, Warmup
from twofold.settings import Settings
from twofold.training import Training


def weights_of_a_run(method: str, norm: bool, **options: object) -> tuple[list[Tensor], Training]:
    """The weights, and the buffers of batch norm, after every iteration of a run."""
    settings = Settings(**{**vars(SETTINGS), **options})  # type: ignore[arg-type]
    training = Training(domain_benchmark(TASKS, norm), *Method.parse(method).make(), settings)
    results: list[Tensor] = []
    training.run(lambda: results.append(everything(training.net.module)))
    return results, training


BITWISE = [
    "sgd",
    "agem",
    "gem",
    "lpr",
    "hold",
    "warmup(3)+ema(0.9)",
    "momentum-reset",
    "momentum-warmup(3)",
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
        result = losses()
        for loss in result:
            loss.backward(retain_graph=script.retain)
        return sum(result, torch.zeros(()))

    script.optimizer.step = lambda: step(closure)  # type: ignore[method-assign]
    return script


@pytest.mark.parametrize("name", sorted(Routine.known))
def test_every_routine_works_or_says_in_one_line_why_not(name):
    chain = f"gem+{name}" if name in ("rescale", "fade") else name
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


def test_a_chain_of_values_is_a_chain_of_text():
    results = []
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
        results.append(everything(model))
        assert optimizer.param_groups[0]["lr"] == 0.1  # after the step it is the user's own
    assert torch.equal(*results)


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
    records = []

    def reference(k: int) -> Tensor:
        records.append((model[1].training, model[1].weight.requires_grad))
        return loss_of(model, 10)

    how.references(reference)
    how.switch()
    loss_of(model, 0).backward()
    statistics = model[1].running_mean.clone()
    optimizer.step()
    assert records == [(False, False)]
    assert torch.equal(model[1].running_mean, statistics)
    assert model[1].training
    assert model[1].weight.requires_grad


def test_without_a_past_nothing_is_asked_for():
    model, optimizer, how = tiny("gem")
    loss_of(model, 0).backward()
    optimizer.step()
    assert how.log == {"projected": 0.0, "norm_ratio": 1.0, "unsolved": 0.0}
    assert (how.task, how.iteration) == (1, 1)


def test_the_average_is_evaluated_and_training_goes_on():
    model, optimizer, how = tiny("ema(0.5)")
    records = []
    for n in range(3):
        optimizer.zero_grad()
        loss_of(model, n).backward()
        optimizer.step()
        records.append(everything(model))
    with how.evaluated():
        average = everything(model)
    assert torch.equal(everything(model), records[-1])
    expected = sum(0.5 ** (2 - n) * records[n] for n in range(3)) / 1.75
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
