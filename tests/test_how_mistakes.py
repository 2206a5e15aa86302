"""Mistakes with `How`: each is answered in one line, and the step can be repeated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.how import batch, loss_of, tiny
from helpers.loops import everything
from torch import Tensor, nn
from torch.nn import functional as F

from twofold import How, UserError
from twofold.method import Method


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


def another_how():
    model, optimizer, _ = tiny("clip")
    How("warmup", optimizer, model)


def closure_without_backward():
    model, optimizer, _ = tiny("sam")
    optimizer.step(lambda: loss_of(model, 0))


def per_example(model: nn.Module) -> Tensor:
    x, y = batch(0)
    return F.cross_entropy(model(x), y, reduction="none")


def state_of_another_chain(chain: str) -> Callable[[], None]:
    return lambda: tiny("ema")[2].load_state_dict(tiny(chain)[2].state_dict())


def weighted(weight: object) -> Callable[[], None]:
    return lambda: second_step(
        "agem", lambda how, model: how.old(lambda: (loss_of(model, 1), weight))
    )


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
    "a past task without memory: no key": (
        lambda: second_step("gem", lambda how, model: how.references(lambda k: {}[k])),
        r"references\(0\) has no loss \(KeyError: 0\): does past task 0 have a memory\?",
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
    "old data without examples": (
        lambda: second_step("agem", lambda how, model: how.old(lambda: loss_of(model, 0, 0))),
        r"old\(\) is not a number: is its memory empty\?",
    ),
    "a weight of zero": (weighted(0.0), r"old\(\) must return a weight above 0, not 0"),
    "a weight that is text": (
        weighted("much"),
        r"old\(\) must return a weight above 0, not 'much'",
    ),
    "more than a weight": (
        lambda: second_step("agem", lambda how, model: how.old(lambda: (1, 2, 3))),
        r"old\(\) must return a loss, or a loss and its weight, not 3 values",
    ),
    "a loss per example": (
        lambda: second_step("gem", lambda how, model: how.references(lambda k: per_example(model))),
        r"references\(0\) must be one number, not of shape \[6\]",
    ),
    "a loss of a different model": (
        lambda: second_step(
            "gem", lambda how, model: how.references(lambda k: loss_of(nn.Linear(3, 2), 1))
        ),
        r"references\(0\) does not depend on the parameters of the model that How was given",
    ),
    "a loss instead of a function": (
        lambda: second_step("agem", lambda how, model: how.old(loss_of(model, 1))),
        r"how\.old takes a function, not a tensor",
    ),
    "a list instead of a function": (
        lambda: second_step("gem", lambda how, model: how.references([])),
        r"how\.references takes a function, not a list",
    ),
    "a closure without a backward pass": (
        closure_without_backward,
        r"the closure has left no gradients: let it call loss\.backward\(\)",
    ),
    "two of them": (
        another_how,
        r"the optimiser has a How already: call its remove\(\), or write one",
    ),
    "the state of a longer chain": (
        state_of_another_chain("ema+clip"),
        "the state belongs to a different chain",
    ),
    "the state of another chain": (
        state_of_another_chain("warmup"),
        "the state belongs to a different chain",
    ),
    "a broken state": (
        lambda: tiny("ema")[2].load_state_dict({"task": 1}),
        "the state belongs to a different chain",
    ),
    "no model": (
        lambda: How("clip", torch.optim.SGD([torch.ones(1)], lr=0.1), [1]),
        "How takes a model of torch, not a list",
    ),
    "a task without iterations": (
        lambda: tiny("cosine", iterations=0),
        "iterations must be at least 1, not 0",
    ),
    "iterations as text": (
        lambda: tiny("cosine", iterations="5"),
        "iterations must be a whole number, not '5'",
    ),
    "a seed as text": (lambda: tiny("pcgrad", seed="x"), "seed must be a whole number, not 'x'"),
    "sparse Adam": (
        lambda: tiny("clip", torch.optim.SparseAdam),
        "How can't change SparseAdam: it takes only sparse gradients",
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


@pytest.mark.parametrize("chain", ["gem", "agem", "lpr"])
def test_after_a_refused_step_nothing_is_lost(chain):
    """What is missing is given, and the same step is done as if it had been there."""

    def given(how: How, model: nn.Module) -> None:
        how.references(lambda k: loss_of(model, 10))
        how.old(lambda: loss_of(model, 10))
        how.memory(lambda n: batch(10)[0])

    results = []
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
        results.append(everything(model))
    assert torch.equal(*results)
