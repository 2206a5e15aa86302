"""The studies of the paper: what they hold, beside the tables that it prints."""

from __future__ import annotations

import csv
import functools
from collections import Counter
from typing import Any

import pytest

from twofold import Routine, papers
from twofold.experiments import studies
from twofold.experiments.config import Config, configure

PRINTED = papers.folders()["hess2024"] / "reference"
SEEDS = [142, 152, 162, 172, 182]
DOMAIN, CLASS = ("rotated-mnist", "domain-cifar100"), ("split-cifar100", "split-mini-imagenet")
BENCHMARKS = (*DOMAIN, *CLASS)


@functools.cache
def runs_of(study: str) -> list[Config]:
    return studies.load(study).configs()


def cells(study: str) -> Counter[tuple[str, str, int, float, str]]:
    """How many seeds each cell of a table has."""
    return Counter((c.benchmark, c.mode, c.batch_size, c.lr, c.method) for c in runs_of(study))


def printed(name: str, *more: str) -> set[tuple[Any, ...]]:
    """The cells of one of the paper's tables, as it was printed."""
    with (PRINTED / name).open() as file:
        return {
            (
                row["benchmark"],
                row["mode"],
                int(row["batch_size"]),
                float(row["lr"]),
                row["method"],
                *(row[key] for key in more),
            )
            for row in csv.DictReader(file)
        }


@pytest.mark.parametrize(
    ("study", "count"),
    [
        ("main", 6 * 4 * 2 * 5),  # methods, benchmarks, modes, seeds
        ("sota", (2 * 4 + 2 * 2) * 5),  # DER everywhere, BiC on the class-incremental two
        ("timing", 3 * 5),
        ("gamma", (6 + 1) * 2 * 5),
        ("projection-rule", 2 * 2 * 5),
        # 3 learning rates; batch sizes: 1 offline, 3 online
        ("appendix", (11 * 2 + 13 * 2) * 3 * (1 + 3) * 5),
        ("trajectories", (21 * 2 * 2 + 8 * 2) * 5),  # objectives and modes; two of CIFAR-100
    ],
)
def test_the_number_of_runs(study: str, count: int) -> None:
    configs = runs_of(study)
    assert len(configs) == count
    assert len({config.identity() for config in configs}) == count
    assert set(cells(study).values()) == {5}
    assert {config.seed for config in configs} == set(SEEDS)


def test_each_method_of_closing_has_the_papers_seeds_once() -> None:
    """Their number is free, since this study is not the paper's."""
    configs = runs_of("closing")
    assert len({config.identity() for config in configs}) == len(configs)
    assert set(cells("closing").values()) == {5}
    assert {config.seed for config in configs} == set(SEEDS)


def test_there_are_no_others() -> None:
    paper = ["appendix", "gamma", "main", "projection-rule", "sota", "timing"]
    assert studies.names() == sorted([*paper, "closing", "natural", "optimisers", "trajectories"])


def test_the_appendix_has_2880_runs_and_all_printed_cells() -> None:
    assert len(runs_of("appendix")) == 2880
    assert set(cells("appendix")) == printed("appendix_tables.csv")


def test_the_gamma_study_has_all_printed_cells() -> None:
    def method(name: str, gamma: str) -> str:
        if not gamma:
            return name
        return configure("rotated-mnist", f"{name}(gamma={gamma},when=always)").method

    expected = {(*cell[:4], method(*cell[4:])) for cell in printed("gamma_study.csv", "gamma")}
    assert set(cells("gamma")) == expected


def test_the_timing_study_has_all_printed_cells_and_evaluates_little() -> None:
    assert set(cells("timing")) == printed("timing.csv")
    iterations = 5_000 // 10
    assert all(config.schedule.sparse > iterations for config in runs_of("timing"))


def test_the_main_table() -> None:
    methods = ("er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem")
    online = {name: 64 if name == "split-mini-imagenet" else 10 for name in BENCHMARKS}
    expected = {(name, "offline", 128, 0.1, method) for name in BENCHMARKS for method in methods}
    expected |= {(name, "online", b, 0.01, m) for name, b in online.items() for m in methods}
    assert set(cells("main")) == expected
    assert expected < set(cells("appendix"))


def test_the_table_of_der_and_bic() -> None:
    rates = dict.fromkeys(BENCHMARKS, 0.01) | {"split-cifar100": 0.1}
    expected = {
        (name, "offline", 128, lr, method)
        for name, lr in rates.items()
        for method in ("der", "der+agem", *(("bic", "bic+agem") if name in CLASS else ()))
    }
    assert set(cells("sota")) == expected
    assert expected < set(cells("appendix"))


def test_the_projection_rules() -> None:
    configs = runs_of("projection-rule")
    rules = {tuple(config.components[1][1][key] for key in ("gamma", "when")) for config in configs}
    assert rules == {(0.5, "violated"), (0.5, "always")}
    assert {config.benchmark for config in configs} == set(DOMAIN)


def test_the_trajectories_try_every_routine_that_the_package_brings() -> None:
    configs = [c for c in runs_of("trajectories") if c.benchmark == "rotated-mnist"]
    shipped = {
        name
        for name, routine in Routine.known.items()
        if routine.__module__.startswith("twofold.") and ":" not in name  # torchjd's are optional
    }
    assert len(shipped) > 10
    for objective in ("er", "joint"):
        own = [c for c in configs if c.components[0][0] == objective]
        tried = {name for config in own for name, _ in config.components[1:]}
        schedules = {"cosine", "step"}  # within every task, so not for what a switch does
        assert {*tried, "sgd", "nmc", *schedules} >= shipped  # nmc needs a different memory
        assert {c.mode for c in own} == {"offline", "online"}
    main = {(c.lr, c.batch_size, c.mode) for c in runs_of("main") if c.benchmark == "rotated-mnist"}
    assert {(c.lr, c.batch_size, c.mode) for c in configs} == main


def test_the_trajectories_on_cifar_are_reduced_where_only_evaluation_is() -> None:
    configs = [c for c in runs_of("trajectories") if c.benchmark != "rotated-mnist"]
    assert {c.benchmark for c in configs} == {"domain-cifar100", "split-cifar100"}
    assert {(c.eval_schedule, c.eval_size) for c in configs} == {("dense:50:50", 250)}


@pytest.mark.parametrize("study", studies.names())
def test_every_run_is_as_the_text_says_and_can_be_made(study: str) -> None:
    for config in runs_of(study):
        assert config.profile == "paper"
        assert config.memory_per_class == 100
        if study != "natural":  # which says that it is reduced
            assert (config.iterations, config.tasks) == (None, None)
        config.make_components()


def test_natural_images_have_three_seeds_and_the_settings_of_the_main_table() -> None:
    configs = runs_of("natural")
    assert {c.seed for c in configs} == set(SEEDS[:3])
    assert set(cells("natural").values()) == {3}
    main = {(c.benchmark, c.mode, c.lr, c.batch_size) for c in runs_of("main")}
    assert {(c.benchmark, c.mode, c.lr, c.batch_size) for c in configs} <= main


def test_studies_share_runs() -> None:
    """A run has one identity, so that what one study made is there for another."""
    identities = {name: {c.identity() for c in runs_of(name)} for name in studies.names()}
    assert identities["main"] | identities["sota"] <= identities["appendix"]
    assert len(identities["gamma"] & identities["main"]) == 2 * 5  # er
    assert len(identities["projection-rule"] & identities["gamma"]) == 2 * 5
    assert len(identities["projection-rule"] & identities["main"]) == 2 * 5
    assert len(identities["trajectories"] & identities["main"]) == 6 * 2 * 5  # MNIST's, two modes
