"""Chains of routines: what the order means, and which make no sense."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark

import twofold
from twofold.errors import UserError
from twofold.routines import Routine, Step

ISSUE = "er+gem(gamma=0.1)+clip(1.0)+warmup(500)+ema(0.999)"


def run(method: str, **options):
    options = {"batch_size": 8, "iterations": 6, "lr": 0.05} | options
    return twofold.run(domain_benchmark(), method, **options)


def test_a_long_chain_runs_and_is_written_as_it_is_read():
    made = twofold.run(class_benchmark(), ISSUE, batch_size=8, iterations=6)
    assert made.config.method == "er+gem(gamma=0.1)+clip+warmup+ema"
    assert twofold.configure("rotated-mnist", ISSUE).identity() == (
        twofold.configure("rotated-mnist", made.config.method).identity()
    )
    assert {"raw_accuracy_1", "projected", "norm_ratio"} <= made.columns.keys()
    assert np.isfinite(made.columns["loss"]).all()


def test_order_is_meaning():
    """A direction that is clipped and then projected is not one projected and then clipped."""
    one = twofold.configure("rotated-mnist", "er+clip(0.1)+gem")
    other = twofold.configure("rotated-mnist", "er+gem+clip(0.1)")
    assert one.identity() != other.identity()
    first, second = run("er+clip(0.05)+gem(1.0,always)"), run("er+gem(1.0,always)+clip(0.05)")
    assert (first.columns["loss"] != second.columns["loss"]).any()
    ratio = second.columns["norm_ratio"] / first.columns["norm_ratio"]
    assert ratio[12:].max() < 1  # gem after clip adds to what was clipped


REFUSED = {
    "er+ema+ema(0.9)": "ema: another routine already says which weights are judged",
    "er+warmup+gem+warmup(100)": "warmup is there twice",
    "er+clip+clip(0.5)": "clip is there twice",
    "er+clip+warmup+clip": "clip is there twice",
    "er+agem+agem": "agem is there twice",
    "er+rescale": "rescale has nothing to undo: write it after a routine such as gem",
    "er+rescale+gem": "rescale has nothing to undo",
    "er+warmup+ema+rescale": "rescale has nothing to undo",
    "er+gem+clip+rescale": "rescale would undo clip: write it before",
    "er+gem+rescale+rescale": "rescale is there twice",
    "er+momentum-reset+gem+momentum-reset": "momentum-reset is there twice",
}


@pytest.mark.parametrize("method", REFUSED)
def test_a_chain_that_makes_no_sense_is_refused_with_a_reason(method):
    with pytest.raises(UserError) as caught:
        twofold.configure("rotated-mnist", method)
    assert str(caught.value).startswith(REFUSED[method])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "method",
    [
        ISSUE,
        "er+clip+gem+clip",
        "er+agem+gem+agem",
        "er+gem+rescale+clip",
        "er+gem+rescale+warmup+gem+rescale",
        "er+clip+gem+rescale",
        "er+gem+gem(gamma=0)",
        "ema+warmup+momentum-reset+clip+gem",
    ],
)
def test_a_chain_that_makes_sense_is_taken(method):
    config = twofold.configure("rotated-mnist", method)
    assert len(config.components) == method.count("+") + 1 + (not method.startswith("er"))


def test_the_document_tells_the_truth():
    """docs/routines.md: every routine has its row, and what is said to be refused is, so."""
    text = (Path(__file__).parent.parent / "docs" / "routines.md").read_text()
    rows = re.findall(
        r"^\| `(\w+\+\S+)`(?: with `--momentum (\d)`)? \| (.+) \|$", text, re.MULTILINE
    )
    assert len(rows) == 9
    for method, momentum, why in rows:
        with pytest.raises(UserError) as caught:
            twofold.configure("rotated-mnist", method, momentum=float(momentum or 0.9))
        assert str(caught.value) == why
    listed = re.findall(r"^\| \[?`([\w-]+)(?::NAME)?`", text, re.MULTILINE)
    assert sorted(listed) == sorted([*Routine.known, *Routine.families])
    titles = re.findall(r"^### ([\w-]+)$", text, re.MULTILINE)
    assert sorted([*titles, "sgd"]) == sorted(listed)


@pytest.mark.parametrize("name", sorted(Routine.known))
def test_the_document_names_every_choice_of_an_option(name):
    text = (Path(__file__).parent.parent / "docs" / "routines.md").read_text()
    section = text.partition(f"\n### {name}\n")[2].partition("\n#")[0]
    for option, hint in typing.get_type_hints(Routine.find(name)).items():
        if typing.get_origin(hint) is typing.Literal:
            missing = [word for word in typing.get_args(hint) if f"`{word}`" not in section]
            assert not missing, option


def test_a_routine_of_ones_own_is_taken_to_turn_the_gradient():
    class Own(Routine):
        def direct(self, g, step):
            return -g

    class Judge(Routine):
        def evaluated(self, net):
            raise NotImplementedError

    rescale, ema = Routine.find("rescale")(), Routine.find("ema")()
    rescale.check([Own()], momentum=0.9)
    with pytest.raises(UserError, match="another routine"):
        ema.check([Own(), Judge()], momentum=0.9)


@pytest.mark.parametrize(
    ("first", "second", "either"),
    [(0.0, 0.0, 0), (1.0, 0.0, 1), (0.0, 1.0, 1), (1.0, 1.0, 1), (True, False, 1), (0.0, True, 1)],
)
def test_a_mark_of_an_earlier_routine_stays(first, second, either):
    as_tensor = [torch.tensor(v) if isinstance(v, bool) else v for v in (first, second)]
    step = Step(2, 1, None, torch.zeros(1))
    for value in as_tensor:
        step.mark(projected=value)
    assert float(step.log["projected"]) == either


def test_a_chain_counts_what_any_of_its_routines_projects():
    one = run("er+gem(1.0,always)", lr=0.05)
    chained = run("er+gem(1.0,always)+agem", lr=0.05)
    assert one.columns["projected"][6:].all()
    assert chained.columns["projected"][6:].all()
