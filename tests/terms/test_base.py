"""What every term does, with every objective and kind of routine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark
from helpers.training import training_of

import twofold
from twofold import How
from twofold.errors import UserError
from twofold.experiments import checkpoints
from twofold.objectives import Objective
from twofold.terms import Addition

SMALL = {"iterations": 3, "lr": 0.001, "eval_schedule": "every:3", "eval_size": 9}
TERMS = sorted(Addition.known)
every_term = pytest.mark.parametrize("term", TERMS)


@every_term
@pytest.mark.parametrize("objective", sorted(Objective.known))
@pytest.mark.parametrize("routine", ["agem", "sam+gem"])
def test_a_term_goes_with_every_objective_and_routine(term, objective, routine):
    if (term, objective) == ("distil", "bic"):
        return
    options = {"memory": "reservoir(30)"} if objective == "er-ace" else {}
    training = training_of(f"{objective}+{term}+{routine}", **SMALL, **options)
    result = training.run()
    assert result.finite
    plain = training_of(f"{objective}+{routine}", **SMALL, **options)
    plain.run()
    assert not torch.equal(training.net.values, plain.net.values)


@every_term
def test_a_run_is_resumed_in_the_middle_of_a_task(term, tmp_path):
    untouched, resumed = (training_of(f"er+{term}", iterations=4) for _ in range(2))

    def every() -> None:
        if (untouched.task, untouched.n) == (3, 2):
            checkpoints.write(tmp_path / "checkpoint.pt", untouched.state())

    first = untouched.run(every)
    resumed.restore(checkpoints.read(tmp_path / "checkpoint.pt"))
    second = resumed.run()
    for name, column in first.curves.items():
        np.testing.assert_array_equal(column, second.curves[name], err_msg=name)
    assert torch.equal(untouched.net.values, resumed.net.values)


@pytest.mark.parametrize("norm", [False, True])
def test_the_gradient_on_old_data_does_not_contain_a_term(norm):
    def old_gradient(method: str) -> torch.Tensor:
        training = training_of(method, benchmark=class_benchmark(norm=norm), tasks=2)
        seen = []
        (routine,) = training.routines
        direct = routine.direct
        routine.direct = lambda g, step: (
            seen.append(None if step.old is None else step.old.clone()),
            direct(g, step),
        )[1]
        training.run()
        return next(each for each in seen if each is not None)

    one, other = old_gradient("er+agem"), old_gradient("er+distil+agem")
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_order_of_terms_is_no_part_of_a_run():
    texts = ["er+decay+ewc+gem+clip", "gem+ewc+clip+er+decay"]
    one, other = (twofold.configure("rotated-mnist", text) for text in texts)
    assert one == other
    assert one.method == "er+decay+ewc+gem+clip"
    assert one.identity() == other.identity()
    assert [name for name, _ in one.what] == ["er", "decay", "ewc"]
    assert [name for name, _ in one.how] == ["gem", "clip"]


def test_a_term_has_no_place_in_a_chain_of_ones_own_loop():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UserError, match="'decay' is a term, and the loss is yours: leave it out"):
        How("gem+decay", optimizer, model)
