"""Mistakes with `How`: each is answered in one line, and the step can be repeated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.how import batch, loss_of, tiny
from helpers.loops import everything
from torch import nn

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
