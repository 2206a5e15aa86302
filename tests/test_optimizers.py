"""The optimiser as an option of a run: by name, checkpointed, and SGD as it always was."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers.benchmarks import class_benchmark, domain_benchmark
from helpers.training import run_and_resume
from torch import Tensor, nn
from torch.nn import functional as F

import twofold
from twofold import UserError
from twofold.experiments import studies
from twofold.method import Method
from twofold.models import FlatModel
from twofold.optimizers import read
from twofold.settings import Settings
from twofold.streams import seeded, stream
from twofold.training import Training
from twofold.updates import Momentum, TorchUpdate

SMALL = {"lr": 0.02, "batch_size": 8, "seed": 3, "iterations": 4, "memory_per_class": 10}
NAMES = ["nesterov", "adam", "adam(route=first)", "adamw(weight_decay=0.1)", "rmsprop"]
NAMES += ["rmsprop(momentum=0.5,route=first)", "sgd(weight_decay=0.01)", "adagrad", "nadam"]


def made(optimizer: str, method: str = "er+gem", norm: bool = True, **options) -> Training:
    settings = Settings(**{**SMALL, "optimizer": optimizer, **options})
    return Training(domain_benchmark(norm=norm), *Method.parse(method).make(), settings)


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
def test_the_default_is_bitwise_torchs_sgd(norm):
    """The loop's own update of one vector, and torch's of every layer."""
    method = "er+gem+warmup(2)+momentum-reset+momentum-warmup(3)"
    default, torchs = made("sgd", method, norm), made("sgd", method, norm)
    torchs.update = TorchUpdate(torchs.net, read("sgd"), torchs.lr, torchs.momentum)
    assert isinstance(default.update, Momentum)
    results = [training.run() for training in (default, torchs)]
    assert torch.equal(default.net.values, torchs.net.values)
    for name, column in results[0].curves.items():
        np.testing.assert_array_equal(column, results[1].curves[name], err_msg=name)


@pytest.mark.parametrize("optimizer", NAMES)
def test_a_run_is_a_plain_script_with_that_optimiser(optimizer):
    """Finetuning on the batches of a run, weights bit for bit."""
    training = made(optimizer, "finetune")
    training.run()
    assert torch.equal(training.net.values, by_script(optimizer))


def by_script(optimizer: str) -> Tensor:
    benchmark, settings = domain_benchmark(norm=True), Settings(**SMALL)
    with seeded(stream(3, "initialisation"), torch.device("cpu")):
        model = benchmark.model().to(memory_format=torch.channels_last)
    choice = read(optimizer)
    lr, momentum = choice.base(settings.lr, settings.momentum)
    torchs = choice.make(list(model.parameters()), lr, momentum)
    training = made(optimizer, "finetune")
    sampler = training.sampler
    for task in (1, 2, 3):
        for n in range(1, SMALL["iterations"] + 1):
            batch = sampler.draw(task, n, benchmark.tasks[task - 1].train).new
            torchs.zero_grad()
            F.cross_entropy(model(batch.x), batch.y).backward()
            torchs.step()
    return FlatModel(model).values


def test_the_class_and_its_options_are_torchs():
    weight = nn.Parameter(torch.zeros(2, 2))
    adam = read("adam(beta2=0.99,eps=1e-6,amsgrad=true)").make([weight], 0.01, 0.8)
    assert type(adam) is torch.optim.Adam
    (group,) = adam.param_groups
    assert (group["lr"], group["betas"], group["eps"]) == (0.01, (0.8, 0.99), 1e-6)
    assert group["amsgrad"] is True
    nesterov = read("nesterov(weight_decay=0.1)").make([weight], 0.01, 0.8)
    assert type(nesterov) is torch.optim.SGD
    (group,) = nesterov.param_groups
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.8, True, 0.1)
    rprop = read("rprop(eta1=0.4,step_size2=40)").make([weight], 0.01, 0.0)
    assert rprop.param_groups[0]["etas"] == (0.4, 1.2)
    assert rprop.param_groups[0]["step_sizes"] == (1e-6, 40.0)


@pytest.mark.parametrize("optimizer", NAMES)
def test_a_run_goes_on_bitwise_from_its_checkpoint(optimizer, tmp_path):
    method = "er+gem(when=always)+clip(0.5)+momentum-reset"
    if optimizer in ("adagrad", "rmsprop"):
        method = "er+gem(when=always)+clip(0.5)"
    options = {"momentum": 0.0} if optimizer in ("adagrad", "rmsprop") else {}
    untouched, resumed = (made(optimizer, method, **options) for _ in range(2))
    first, second = run_and_resume(untouched, resumed, tmp_path / "checkpoint.pt")
    assert torch.equal(untouched.net.values, resumed.net.values)
    assert first.curves.keys() == second.curves.keys()
    for name, column in first.curves.items():
        np.testing.assert_array_equal(column, second.curves[name], err_msg=name)


def test_routes_differ_only_where_a_routine_acts():
    def weights(optimizer: str, method: str) -> Tensor:
        training = made(optimizer, method)
        training.run()
        return training.net.values

    plain = [weights(name, "er") for name in ("adam", "adam(route=first)")]
    assert torch.equal(*plain)
    routed = [weights(name, "er+gem(when=always)") for name in ("adam", "adam(route=first)")]
    assert not torch.equal(*routed)


def test_resetting_momentum_forgets_the_first_moment_of_adam():
    training = made("adam", "er+momentum-reset", iterations=2)
    moments: list[tuple[Tensor, Tensor]] = []

    def every() -> None:
        p = next(training.net.module.parameters())
        state = training.update.optimizer.state[p]
        moments.append((state["exp_avg"].clone(), p.grad.clone()))
        assert training.update.optimizer.param_groups[0]["betas"] == (0.9, 0.999)

    training.run(every)
    reset = [torch.equal(m, g) for m, g in moments]
    assert reset == [False, False, True, False, True, False]


def test_frozen_parameters_are_not_decayed():
    training = made("adamw(weight_decay=0.5)", "er")
    benchmark = domain_benchmark(norm=True)

    def model() -> nn.Module:
        network = benchmark.model()
        network[0].requires_grad_(False)
        return network

    frozen = twofold.Benchmark(**{**vars(benchmark), "model": model})
    settings = Settings(**SMALL, optimizer="adamw(weight_decay=0.5)")
    training = Training(frozen, *Method.parse("er").make(), settings)
    before = training.net.module[0].weight.detach().clone()
    training.run()
    assert torch.equal(training.net.module[0].weight, before)


def settled(optimizer: str, **options) -> tuple[str, float, float]:
    config = twofold.configure("rotated-mnist", "er", optimizer=optimizer, **options)
    return config.optimizer, config.lr, config.momentum


def test_learning_rate_and_momentum_are_settled_before_a_run():
    assert settled("sgd") == ("sgd", 0.1, 0.9)
    assert settled("sgd(lr=0.3,momentum=0.5)") == ("sgd", 0.3, 0.5)
    assert settled("nesterov") == ("nesterov", 0.1, 0.9)
    assert settled("SGD(nesterov=true)") == ("nesterov", 0.1, 0.9)
    assert settled("adam") == ("adam", 0.001, 0.9)
    assert settled("Adam(lr=0.01, beta1=0.5)") == ("adam", 0.01, 0.5)
    assert settled("adam", lr=0.1, momentum=0.0) == ("adam", 0.1, 0.0)
    assert settled("adam(beta2=0.999)") == ("adam", 0.001, 0.9)  # what holds anyway
    assert settled("rmsprop") == ("rmsprop", 0.01, 0.0)
    assert settled("adagrad(lr=0.1)", lr=0.1) == ("adagrad", 0.1, 0.0)


def test_the_command_of_a_run_gives_the_same_run():
    for text in ("adam(lr=0.01,route=first)", "rmsprop", "nesterov", "sgd(weight_decay=0.001)"):
        config = twofold.configure("rotated-mnist", "er", optimizer=text)
        command = config.command()
        assert command is not None
        second = twofold.configure(
            "rotated-mnist",
            "er",
            optimizer=config.optimizer,
            lr=config.lr,
            momentum=config.momentum,
        )
        assert second.identity() == config.identity()
        assert "--optimizer" in command
    assert "--optimizer" not in twofold.configure("rotated-mnist", "er").command()


def test_the_optimiser_makes_a_different_run_and_sgd_the_same_as_before():
    default = twofold.configure("rotated-mnist", "er")
    assert default.identity() == "8f77e28d19"  # the one that published archives have
    stored = {name: value for name, value in vars(default).items() if name != "optimizer"}
    assert twofold.Config.stored(stored).identity() == default.identity()
    others = [twofold.configure("rotated-mnist", "er", optimizer=name) for name in NAMES]
    assert len({config.identity() for config in (default, *others)}) == len(NAMES) + 1


def test_a_run_can_be_asked_for_with_any_optimiser(tmp_path):
    run = twofold.run(class_benchmark(), "er", optimizer="adam", out=tmp_path, **SMALL)
    assert run.config.optimizer == "adam"
    assert set(twofold.Store(tmp_path).frame()["optimizer"]) == {"adam"}


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("adan", "unknown optimizer 'adan': did you mean 'adam'"),
        ("adma", "unknown optimizer 'adma': did you mean 'adam'"),
        ("adam(lr=fast)", "adam's lr must be a finite number, not 'fast'"),
        ("adam(0.1)", r"optimizer 'adam\(0.1\)': name its options; write adam\(lr=0.001\)"),
        ("adam(beta3=1)", "unknown option of adam 'beta3': did you mean 'beta"),
        ("adam(beta2=3)", r"optimizer 'adam\(beta2=3.0\)': Invalid beta parameter"),
        ("adam(lr", r"optimizer 'adam\(lr': brackets don't match"),
        ("", "optimizer ''"),
        ("adam+sgd", r"optimizer 'adam\+sgd': a run has one optimiser"),
        ("lbfgs", "optimizer 'lbfgs' evaluates the loss several times per step"),
        ("sgd(route=first)", "route='first' needs an optimiser with a second moment"),
        ("adam(route=second)", "unknown value of adam's route 'second'"),
        ("nesterov(nesterov=true)", "unknown option of nesterov 'nesterov'"),
        ("adam(lr=0)", "lr must be above 0 and at most 1e.30, not 0"),
        ("sgd(momentum=1.5)", "momentum must be at least 0 and below 1, not 1.5"),
    ],
)
def test_a_mistake_is_answered_in_one_line(optimizer, message):
    with pytest.raises(UserError, match=message) as error:
        twofold.configure("rotated-mnist", "er", optimizer=optimizer)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adam(lr=0.1)", "lr": 0.2}, "the lr is set twice: 0.1 in .* and 0.2"),
        ({"optimizer": "adam(beta1=0.5)", "momentum": 0.9}, "the momentum is set twice"),
        ({"optimizer": "adagrad", "momentum": 0.9}, "adagrad has no momentum: leave it out"),
        ({"optimizer": "nesterov", "momentum": 0.0}, "nesterov needs a momentum above 0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        twofold.configure("rotated-mnist", "er", **options)


def test_an_optimiser_that_refuses_the_network_says_so():
    with pytest.raises(UserError, match=r"optimizer 'muon'.*2D"):
        made("muon", "er")


def test_the_study_has_every_method_with_every_optimiser():
    study = studies.load("optimisers")
    configs = study.configs()
    assert len(study.seeds) == 5
    assert len(configs) == 5 * (4 * 4 + 2)
    assert {config.optimizer for config in configs} == {
        "sgd",
        "adam",
        "adam(route=first)",
        "adamw",
        "rmsprop",
    }
    assert {config.lr for config in configs if config.optimizer != "sgd"} == {0.001}
    main = {config.identity() for config in studies.load("main").configs()}
    assert all(c.identity() in main for c in configs if c.optimizer == "sgd")


@pytest.mark.parametrize("optimizer", ["sgd", "adam(beta2=0.9,route=first)"])
def test_a_configuration_does_not_import_torchs_compiler(optimizer: str) -> None:
    """It takes two seconds, which every command and every worker would pay."""
    code = (
        f"import sys, twofold; twofold.configure('rotated-mnist', 'er+gem', optimizer='{optimizer}'"
        "); print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
