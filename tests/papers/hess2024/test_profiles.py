"""Profiles and configurations: what `published` changes, what wins, and when two runs are one."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import Config, configure
from twofold.cli import _parser
from twofold.errors import UserError

# The departures of the authors' code, as what they set in a configuration.
D1 = {"memory_grouping": "class"}
D2 = {"gem.references": "cumulative"}
D4 = {"joint.keep": 20_000}
D5 = {"agem.reference": "frozen"}
D6 = {"whitening": "published"}
D7_DER, D7_BIC = {"der.augment": "pad"}, {"bic.augment": "pad"}


def flat(config: Config) -> dict[str, object]:
    """All that decides a result, with components' options as `gem.gamma`."""
    values = dataclasses.asdict(config)
    components = values.pop("components")
    for name in ("method", "profile", "plugins"):
        del values[name]
    return values | {f"{name}.{k}": v for name, options in components for k, v in options.items()}


def changes(benchmark: str, method: str) -> dict[str, object]:
    """What the published profile changes."""
    paper = flat(configure(benchmark, method))
    published = flat(configure(benchmark, method, profile="published"))
    assert paper.keys() == published.keys()
    return {key: value for key, value in published.items() if value != paper[key]}


@pytest.mark.parametrize(
    ("benchmark", "method", "expected"),
    [
        ("rotated-mnist", "er", D1 | D6),
        ("rotated-mnist", "er+agem", D1 | D5 | D6),
        ("rotated-mnist", "agem", D1 | D5 | D6),
        ("rotated-mnist", "der", D1 | D6 | D7_DER),
        ("rotated-mnist", "der+agem", D1 | D5 | D6 | D7_DER),
        ("rotated-mnist", "er+gem", D2 | D6),  # GEM has a buffer a task
        ("rotated-mnist", "gem", D2 | D6),
        ("rotated-mnist", "joint+gem", D2 | D6),  # and stores everything
        ("domain-cifar100", "er", D6),
        ("domain-cifar100", "er+agem", D5 | D6),
        ("domain-cifar100", "er+gem", D2 | D6),
        ("domain-cifar100", "joint", D6),
        ("domain-cifar100", "joint+agem", D5 | D6),
        ("domain-cifar100", "der", D6 | D7_DER),
        ("split-cifar100", "er", D6),
        ("split-cifar100", "bic", D6 | D7_BIC),
        ("split-cifar100", "bic+agem", D6 | D7_BIC),  # its reference is the same pass
        ("split-cifar100", "der+agem", D5 | D6 | D7_DER),
        ("split-mini-imagenet", "joint+gem", D2 | D6),
        ("split-mini-imagenet", "finetune", D6),
    ],
)
def test_what_published_changes(benchmark, method, expected):
    assert changes(benchmark, method) == expected


@pytest.mark.parametrize("method", ["joint", "joint+agem"])
def test_published_joint_keeps_a_third_of_rotated_mnist(method):
    changed = changes("rotated-mnist", method)
    changed.pop("memory_grouping", None)  # says nothing where the quota does not count
    assert changed == D4 | D6 | (D5 if "agem" in method else {})


def test_the_paper_is_the_default():
    for method in ("er+gem", "er+agem", "der", "joint"):
        assert flat(configure("rotated-mnist", method)) == flat(
            configure("rotated-mnist", method, profile="paper")
        )
    config = flat(configure("rotated-mnist", "er+gem"))
    assert (config["lr"], config["batch_size"], config["momentum"]) == (0.1, 128, 0.9)
    assert config["memory_per_class"] == 100
    assert config["memory_grouping"] == "class-task"
    assert config["whitening"] == "train"
    assert config["gem.references"] == "independent"
    assert config["gem.gamma"] == 0.5
    assert (config["eval_every"], config["eval_size"]) == (1, 1000)


@pytest.mark.parametrize(
    ("benchmark", "batch_size"),
    [("rotated-mnist", 10), ("split-cifar100", 10), ("split-mini-imagenet", 64)],
)
def test_online_defaults_are_the_main_tables(benchmark, batch_size):
    config = configure(benchmark, "er", mode="online")
    assert (config.lr, config.batch_size) == (0.01, batch_size)
    assert config.settings().online


@pytest.mark.parametrize(
    ("method", "options", "key", "value"),
    [
        ("er", {"memory_grouping": "class-task"}, "memory_grouping", "class-task"),
        ("er+gem(references=independent)", {}, "gem.references", "independent"),
        ("joint(keep=none)", {}, "joint.keep", None),
        ("joint(keep=7)", {}, "joint.keep", 7),
        ("er+agem(objective)", {}, "agem.reference", "objective"),
        ("er", {"whitening": "train"}, "whitening", "train"),
        ("der(augment=crop)", {}, "der.augment", "crop"),
    ],
)
def test_what_is_given_wins_over_the_profile(method, options, key, value):
    published = configure("rotated-mnist", method, profile="published", **options)
    assert flat(published)[key] == value
    silent = configure("rotated-mnist", method.split("(")[0], profile="published")
    assert flat(silent)[key] != value


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        ("er", {"memory_grouping": "class"}, D1),
        ("er+gem(references=cumulative)", {}, D2),
        ("joint(keep=20000)", {}, D4),
        ("er+agem(reference=frozen)", {}, D5),
        ("er", {"whitening": "published"}, D6),
        ("der(augment=pad)", {}, D7_DER),
    ],
)
def test_each_departure_can_be_set_alone_and_is_recorded(method, options, expected):
    usual = flat(configure("rotated-mnist", method.split("(")[0]))
    config = flat(configure("rotated-mnist", method, **options))
    assert {key: value for key, value in config.items() if value != usual[key]} == expected


@pytest.mark.parametrize("method", ["er", "er+gem", "er+agem", "joint", "der+agem"])
def test_a_profile_is_the_sum_of_its_departures(method):
    """Published, spelled out with the paper's profile, is the same run."""
    published = configure("rotated-mnist", method, profile="published")
    parts = [
        f"{name}({','.join(f'{key}={str(value).lower()}' for key, value in options.items())})"
        for name, options in published.components
    ]
    spelled = configure(
        "rotated-mnist",
        "+".join(parts),
        memory_grouping=published.memory_grouping,
        whitening=published.whitening,
    )
    assert spelled.identity() == published.identity()
    paper = configure("rotated-mnist", method)
    assert paper.identity() != published.identity()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("er", {}), ("er+sgd", {})),
        (("gem", {}), ("finetune+gem(0.5)", {})),
        (("er+gem(gamma=1)", {}), ("er + gem( gamma = 1.0 )", {})),
        (("er", {}), ("er", {"lr": 0.1, "batch_size": 128, "momentum": 0.9, "mode": "offline"})),
        (("er", {"lr": 1}), ("er", {"lr": 1.0})),
        (("er", {"momentum": 0}), ("er", {"momentum": 0.0})),
        (("er", {"seed": 7}), ("er", {"seed": np.int64(7)})),
        (("er", {}), ("er", {"whitening": "train", "memory_grouping": "class-task"})),
        (("joint(none)", {}), ("joint", {})),
    ],
    ids=str,
)
def test_spellings_that_make_the_same_run(one, other):
    (a, options), (b, more) = one, other
    first = configure("rotated-mnist", a, **options)
    assert first.identity() == configure("rotated-mnist", b, **more).identity()


DIFFERENT = {
    "mode": "online",
    "lr": 0.2,
    "batch_size": 64,
    "seed": 152,
    "iterations": 5,
    "tasks": 2,
    "eval_schedule": "every:2",
    "eval_schedule": "dense:20:5",
    "eval_size": 500,
    "eval_precision": "bf16",
    "memory_per_class": 50,
    "memory_grouping": "class",
    "whitening": "published",
    "momentum": 0.8,
    "reset_momentum": True,
}


def test_whatever_decides_the_result_makes_another_run():
    fixed = {"lr": 0.1, "batch_size": 128}  # so that the mode alone makes a difference
    configs = [configure("rotated-mnist", "er+gem", **fixed)]
    configs += [
        configure("rotated-mnist", "er+gem", **fixed | {key: value})
        for key, value in DIFFERENT.items()
    ]
    configs.append(configure("domain-cifar100", "er+gem"))
    configs += [
        configure("rotated-mnist", method)
        for method in (
            "er",
            "gem",
            "joint+gem",
            "er+agem",
            "er+gem+gem",
            "er+agem+gem",
            "er+gem+agem",
            "er+gem(gamma=0.1)",
            "er+gem(when=always)",
            "er+gem(rule=added)",
            "er+gem(references=cumulative)",
            "er+gem(ridge=0.1)",
        )
    ]
    assert len({config.identity() for config in configs}) == len(configs)
    assert len({config.folder_name() for config in configs}) == len(configs)


def test_every_setting_is_in_that_list():
    """A setting added later must be shown to make a difference, too."""
    said_elsewhere = {"benchmark", "method", "profile", "device", "plugins"}
    assert set(inspect.signature(configure).parameters) - said_elsewhere == set(DIFFERENT)


def from_command(command: str) -> Config:
    """The configuration that the command line makes of a command."""
    program, *words = shlex.split(command)
    assert program == "twofold"
    args = _parser().parse_args(words)
    names = set(inspect.signature(configure).parameters) & set(vars(args))
    options = {name: getattr(args, name) for name in names - {"benchmark", "seed"}}
    return configure(args.benchmark, *args.methods, seed=args.seed[0], **options)


options = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["offline", "online"]),
        "profile": st.sampled_from(["paper", "published"]),
        "lr": st.floats(1e-8, 1e3),
        "batch_size": st.integers(1, 500),
        "seed": st.integers(0, 2**32 - 1),
        "iterations": st.integers(1, 5000),
        "tasks": st.integers(1, 3),
        "eval_schedule": "every:st".integers(1, 50),
        "eval_size": st.integers(1, 5000),
        "memory_per_class": st.integers(1, 500),
        "memory_grouping": st.sampled_from(["class-task", "class"]),
        "whitening": st.sampled_from(["train", "published"]),
        "momentum": st.one_of(st.just(0.0), st.floats(0, 0.999)),
        "reset_momentum": st.booleans(),
    },
)
some_methods = st.sampled_from(
    [
        "er",
        "er+gem(gamma=0.1,when=always)",
        "joint(keep=none)+agem",
        "der(beta=0.5)",
        "gem(references=independent,ridge=1e+20)",
        "er+agem(objective)",
        "joint(20000)",
    ]
)


@given(method=some_methods, given_options=options)
@settings(max_examples=120, deadline=None, derandomize=True)
def test_a_runs_command_makes_the_same_run(method, given_options):
    config = configure("rotated-mnist", method, **given_options)
    again = from_command(config.command())
    assert again.identity() == config.identity()
    assert again == config


@given(method=some_methods, given_options=options)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_configuration_survives_json(method, given_options):
    config = configure("rotated-mnist", method, **given_options)
    again = Config(**json.loads(json.dumps(dataclasses.asdict(config))))
    assert again.identity() == config.identity()
    assert again.folder_name() == config.folder_name()
    assert again.make_components() == config.make_components()
    assert again.settings() == config.settings()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "publishd"}, "did you mean 'published'"),
        ({"mode": "onlin"}, "did you mean 'online'"),
        ({"memory_grouping": "clas"}, "did you mean 'class'"),
        ({"whitening": "none"}, "unknown whitening 'none'"),
        ({"lr": 0.0}, "learning rate must be above 0"),
        ({"lr": float("nan")}, "learning rate must be above 0"),
        ({"lr": float("inf")}, "learning rate must be above 0"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1"),
        ({"momentum": float("nan")}, "momentum must be at least 0 and below 1"),
        ({"batch_size": 0}, "batch size must be at least 1"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"tasks": 4}, "rotated-mnist has 3 tasks, not 4"),
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"eval_schedule": "every:0"}, "eval every must be at least 1"),
        ({"eval_size": 0}, "eval size must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"memory_per_class": -1}, "memory per class must be at least 0"),
        ({"device": "gpu"}, "no device 'gpu' here"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        configure("rotated-mnist", "er", **options)
