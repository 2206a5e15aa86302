"""Plans: the least that has to be left out so that runs fit into a time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from helpers.commandline import Command, wrong
from helpers.runs import example_run

from twofold.errors import UserError
from twofold.experiments import estimate
from twofold.experiments.config import Config, configure
from twofold.experiments.estimate import Estimator, Speed
from twofold.experiments.plans import Plan, fit, seconds_of
from twofold.experiments.runs import Run
from twofold.experiments.store import Store
from twofold.experiments.summary import hardware


@pytest.fixture(autouse=True)
def fixed_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that takes a millisecond per evaluated image, and no time for training."""
    monkeypatch.setattr(estimate, "calibrate", lambda *_: Speed(0, 0, 1e-3))
    monkeypatch.setattr(estimate, "start_seconds", lambda: 0.0)


def configs(**options: object) -> list[Config]:
    return [
        configure("rotated-mnist", method, seed=seed, iterations=1000, **options)
        for method in ("er", "er+gem")
        for seed in (1, 2, 3, 4)
    ]


def planned(tmp_path: Path, within: str, runs: list[Config] | None = None) -> Plan:
    return fit(runs or configs(), within, 2, Store(tmp_path), None)[-1]


def taken(config: Config, seconds: float, **where: object) -> Run:
    """A finished run that took some seconds, here or elsewhere."""
    times = {"training": 0.25 * seconds, "evaluation": 0.75 * seconds}
    accuracies = [[90.0, 90.0, 90.0], [np.nan, 90.0, 90.0], [np.nan, np.nan, 90.0]]
    kind = {**hardware("cpu"), **where}
    return example_run(config, accuracies, seconds=times, made_with=kind, unsolved=0)


def test_the_protocol_stays_where_it_fits(tmp_path: Path) -> None:
    plan = planned(tmp_path, "10h")
    assert plan.configs == configs()
    # Per run, 6 test sets: a thousand images after each of 1,000 iterations, 10,000 at the end.
    assert plan.seconds == pytest.approx(8 * 6 * (1000 + 10) / 2)
    assert str(plan.reduction) == "the protocol: MIN and AVG exact"


def test_less_time_means_a_larger_reduction(tmp_path: Path) -> None:
    protocol = planned(tmp_path, "10h").seconds
    before = None
    for share in (0.9, 0.5, 0.3, 0.1, 0.05, 0.02):
        plan = planned(tmp_path, f"{share * protocol:.0f}s")
        assert plan.seconds <= share * protocol
        assert before is None or plan.seconds <= before.seconds
        before = plan
    assert before is not None
    assert before.reduction.seeds == 3


def test_min_stays_exact_as_long_as_possible(tmp_path: Path) -> None:
    protocol = planned(tmp_path, "10h").seconds
    plan = planned(tmp_path, f"{0.55 * protocol:.0f}s")
    assert {run.eval_schedule for run in plan.configs} == {"exact-min:10"}
    assert plan.reduction.exactness == "MIN and AVG exact"
    plan = planned(tmp_path, f"{0.15 * protocol:.0f}s")
    assert plan.reduction.exactness == "MIN an upper bound, AVG exact"


def test_what_was_asked_for_is_kept(tmp_path: Path) -> None:
    plan = planned(tmp_path, "70s", configs(eval_schedule="every:50"))
    assert {run.eval_schedule for run in plan.configs} == {"every:50"}


def test_runs_that_are_there_take_no_time(tmp_path: Path) -> None:
    first = configs()[0]
    (tmp_path / first.folder_name()).mkdir()
    (tmp_path / first.folder_name() / "summary.json").write_text("{}")
    protocol = planned(tmp_path, "10h")
    assert protocol.seconds < 8 * 6 * (1000 + 10) / 2


@pytest.mark.parametrize(
    ("where", "times"), [({}, 3.0), ({"processor": "a different one"}, 1.0), ({"cores": 1000}, 1.0)]
)
def test_estimates_learn_from_what_finished_runs_took(
    where: dict[str, object], times: float, tmp_path: Path
) -> None:
    """Seconds three times the estimate's, on a kind of machine that is this one or not."""
    first = configs()[0]
    Store(tmp_path).save(taken(first, 3 * 6 * (1000 + 10), **where))
    left = 7 * 6 * (1000 + 10) / 2
    assert planned(tmp_path, "100h").seconds == pytest.approx(times * left)


def test_a_method_is_corrected_by_its_own_runs() -> None:
    """The median of er's runs is for er; er+gem was slower."""
    er, gem = configs()[:4], configs()[4:]
    alone = Estimator().seconds(er[0])
    ratios = [(er[0], 2.0), (er[1], 100.0), (er[2], 2.5), (gem[0], 7.0)]
    finished = [taken(config, ratio * alone) for config, ratio in ratios]
    estimator = Estimator(finished=finished)
    assert estimator.seconds(er[3]) == pytest.approx(2.5 * alone)
    assert estimator.seconds(gem[3]) == pytest.approx(7.0 * alone)
    other = configure("rotated-mnist", "joint", iterations=1000)
    assert estimator.seconds(other) == pytest.approx((2.5 + 7.0) / 2 * Estimator().seconds(other))


def test_the_newest_runs_are_read_and_damaged_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "NEWEST", 3)
    store = Store(tmp_path)
    folders = [store.save(taken(config, 1.0)) for config in configs()[:4]]
    for age, folder in enumerate(folders):
        os.utime(folder, (1000 - age, 1000 - age))
    (folders[0] / "summary.json").write_text("{")
    assert [run.config.seed for run in estimate.newest(store)] == [3, 2]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30min", 1800), ("1.5h", 5400), (" 2 d ", 172800)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["0", "0h", "12", "h", "-1h", "1e9h", "1h30", "nan h", 5000 * "9"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^within must be a time such as 90s, 30min, 12h or 2d"):
        seconds_of(text)


def test_a_plan_that_cannot_fit_is_refused_in_one_line(twofold: Command, tmp_path: Path) -> None:
    study = ("study", "run", "main", "--benchmark", "rotated-mnist", "--out", tmp_path)
    result = twofold(*study, "--within", "1s", "--dry-run")
    wrong(result, "nothing fits within 1s: eval_precision auto, eval_schedule", "still takes about")
    wrong(twofold(*study, "--within", "0"), "within must be a time such as 90s")


def test_a_dry_run_shows_the_plan(twofold: Command, tmp_path: Path) -> None:
    study = ("study", "run", "main", "--benchmark", "rotated-mnist", "--out", tmp_path)
    result = twofold(*study, "--within", "4h", "--dry-run")
    assert result.code == 0
    *larger, chosen = result.err.splitlines()
    assert "the protocol: MIN and AVG exact" in larger[0]
    assert chosen.startswith("->")
    assert "to train" in result.out
