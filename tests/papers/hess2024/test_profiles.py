"""The profile `published`: what it changes, what wins over it, and each departure alone."""

from __future__ import annotations

import dataclasses

import pytest

from twofold import Config, configure

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
        ("rotated-mnist", "er+gem", D2 | D6),  # GEM has a buffer per task
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
    assert (config["eval_schedule"], config["eval_size"]) == ("every", 1000)


@pytest.mark.parametrize(
    ("benchmark", "batch_size"),
    [("rotated-mnist", 10), ("split-cifar100", 10), ("split-mini-imagenet", 64)],
)
def test_online_defaults_are_the_main_tables(benchmark, batch_size):
    config = configure(benchmark, "er", mode="online")
    assert (config.lr, config.batch_size) == (0.01, batch_size)


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
    default = flat(configure("rotated-mnist", method.split("(")[0]))
    config = flat(configure("rotated-mnist", method, **options))
    assert {key: value for key, value in config.items() if value != default[key]} == expected


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
