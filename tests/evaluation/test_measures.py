"""Measures: each worked by hand, against brute force, on thinned curves, and on runs."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from helpers.benchmarks import class_benchmark
from helpers.measures import FINAL, hand
from hypothesis import given
from hypothesis import strategies as st

from twofold import Routine, Run, run
from twofold.evaluation.measures import MEASURES, _largest_falls, measures
from twofold.evaluation.metrics import average_minimum_accuracy
from twofold.evaluation.trajectory import Gap, gaps

NAN = np.nan


DOCUMENT = Path(__file__).parents[2] / "docs" / "measures.md"


# By hand


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # Task 1 is lowest with 50, task 2 (from iteration 9 on) with 60.
        ("min", (50 + 60) / 2),
        ("avg", (85 + 83 + 71) / 3),
        # They end with 86 and 82.
        ("residual", ((86 - 50) + (82 - 60)) / 2),
        # Task 3 ends with 70.
        ("wc_acc", 70 / 3 + (2 / 3) * 55),
        # Switch 4: task 1 from 90 to 50. Switch 8: task 1 from 89 to 80, task 2 from 80 to 60.
        ("gap_depth", (40 + 9 + 20) / 3),
        # Below 90: 20, 40, 5, 1. Below 89: 1, 9, 5, 3. Below 80: 20, 0.5, 2, and 82 is not.
        ("gap_area", (66 / 4 + 18 / 4 + 22.5 / 4) / 3),
        # At 89 or more after 4; at 88 or more not again (88 was before the lowest): all 4; at 79
        # or more after 2.
        ("recovery", (4 + 4 + 2) / 3),
        ("recovered", 200 / 3),
        # 90 to 50, 80 to 60, 63 to 50; all are near enough.
        ("wf10", (40 + 20 + 13) / 3),
        ("wf100", (40 + 20 + 13) / 3),
        # 20 to 90, 10 to 82, 30 to 70.
        ("wp10", (70 + 72 + 40) / 3),
        ("wp100", (70 + 72 + 40) / 3),
        # One line a task: of one task seen, of two, of three.
        (
            "aaa",
            ((20 + 60 + 80 + 90) + (80 + 90 + 161 + 169) / 2 + (178 + 222.5 + 212 + 238) / 3) / 12,
        ),
        # No task has ten iterations.
        ("lca", None),
        # Task 1 had 93 after task 2; task 2 had 81.
        ("forgetting", ((93 - 85) + (81 - 83)) / 2),
        # Task 1 had 91 after itself.
        ("bwt", ((85 - 91) + (83 - 81)) / 2),
        # 72 of 80 are reached with 76, the third; 63 of 70 with 63, the second.
        ("new_speed", (3 + 2) / 2),
        ("new_accuracy", (81 + 71) / 2),
    ],
)
def test_by_hand(key: str, value: float | None) -> None:
    assert measures(*hand(), FINAL)[key] == pytest.approx(value)


def test_every_measure_is_worked_by_hand() -> None:
    (mark,) = test_by_hand.pytestmark
    assert [key for key, _ in mark.args[1]] == list(MEASURES)


def test_the_learning_curve_area_is_over_the_first_ten_iterations_of_each_task() -> None:
    first = [(1, n, NAN) for n in range(1, 11)] + [(1, 99.0, NAN)] * 2  # 1 to 10: 5.5
    second = [(2, 50.0, 20.0)] * 5 + [(2, 50.0, 30.0)] * 5 + [(2, 50.0, 99.0)]  # 25
    assert measures(*hand(first + second), [[99.0], [50.0, 99.0]])["lca"] == (5.5 + 25) / 2


def test_a_single_task_has_only_what_needs_no_other() -> None:
    values = measures([1] * 3, [[10.0], [30.0], [20.0]], [[25.0]])
    present = {key: value for key, value in values.items() if value is not None}
    expected = {
        "avg": 25,
        "wc_acc": 20,
        "wf10": 10,
        "wf100": 10,
        "wp10": 20,
        "wp100": 20,
        "aaa": 20,
    }
    assert present == expected
    assert gaps([1] * 3, [[10.0], [30.0], [20.0]]) == []


def test_a_method_that_does_not_learn_looks_bad() -> None:
    """No gap, but no new task either: in the same table."""
    frozen = [(1, 90.0, NAN)] * 2 + [(2, 90.0, 10.0)] * 2
    learner = [(1, 90.0, NAN)] * 2 + [(2, 80.0, 50.0), (2, 88.0, 90.0)]
    one = measures(*hand(frozen), [[90.0], [90.0, 10.0]])
    other = measures(*hand(learner), [[90.0], [88.0, 90.0]])
    for key in ("min", "residual", "gap_depth", "recovery", "wf10", "bwt"):
        assert _better(key, one, other)
    for key in ("avg", "wc_acc", "wp10", "new_accuracy"):
        assert _better(key, other, one)


def _better(key: str, one: dict[str, float | None], other: dict[str, float | None]) -> bool:
    a, b = one[key], other[key]
    assert a is not None
    assert b is not None
    return a > b if MEASURES[key].better == "higher" else a < b


# Against brute force


@st.composite
def trajectories(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[list[float]]]:
    """Any curves, some with holes; the end of each task is always evaluated, as in a run."""
    tasks = draw(st.integers(1, 4))
    lengths = [draw(st.integers(1, 15)) for _ in range(tasks)]
    task = np.repeat(np.arange(1, tasks + 1), lengths)
    values = st.integers(0, 40).map(lambda v: 2.5 * v)
    n = len(task)
    table = np.array([[draw(values) for _ in range(tasks)] for _ in range(n)])
    share = draw(st.sampled_from([0.0, 0.3, 0.8]))
    holes = np.random.default_rng(draw(st.integers(0, 99))).random(n) < share
    holes[np.cumsum(lengths) - 1] = False
    table[holes] = NAN
    table[task[:, None] < np.arange(1, tasks + 1)] = NAN
    final = [[draw(values) for _ in range(k + 1)] for k in range(tasks)]
    return task, table, final


def brute_fall(curve: Sequence[float], window: int) -> float:
    pairs = [
        curve[m] - curve[n]
        for n in range(len(curve))
        for m in range(max(0, n - window + 1), n)
        if not math.isnan(curve[m] - curve[n])
    ]
    return max(0.0, *pairs) if pairs else NAN


def brute_gaps(task: Sequence[int], accuracy: np.ndarray) -> list[Gap]:
    """An iteration at a time."""
    results = []
    for switch in (n for n in range(1, len(task)) if task[n] != task[n - 1]):
        length = sum(t == task[switch] for t in task)
        for i in range(task[switch - 1]):
            before, lowest, recovery, fell = accuracy[switch - 1, i], 0, 0, False
            low = before
            for n in range(1, length + 1):
                now = accuracy[switch + n - 1, i]
                if now < low:
                    low, lowest, fell = now, n, now < before - 1
                    recovery = None if fell else 0
                elif fell and recovery is None and now >= before - 1:
                    recovery = n
            results.append(Gap(switch, i + 1, before - low, lowest, recovery, before, length))
    return results


def brute_anytime(task: np.ndarray, accuracy: np.ndarray) -> float:
    """Only of curves without holes."""
    means = [sum(accuracy[n, i] for i in range(k)) / k for n, k in enumerate(int(t) for t in task)]
    return sum(means) / len(means)


def mean(values: Sequence[float]) -> float | None:
    missing = not len(values) or any(map(math.isnan, values))
    return None if missing else sum(values) / len(values)


def same(value: float | None, expected: float | None) -> bool:
    return value is None if expected is None else value == pytest.approx(expected)


@given(trajectories())
def test_against_brute_force(case: tuple[np.ndarray, np.ndarray, list[list[float]]]) -> None:
    task, accuracy, final = case
    values, tasks = measures(*case), accuracy.shape[1]
    assert list(values) == list(MEASURES)
    columns = [accuracy[:, i].tolist() for i in range(tasks)]
    for window in (10, 100):
        falls = [brute_fall(column, window) for column in columns]
        rises = [brute_fall([-a for a in column], window) for column in columns]
        assert same(values[f"wf{window}"], mean(falls))
        assert same(values[f"wp{window}"], mean(rises))

    expected = brute_gaps(task.tolist(), accuracy)
    assert gaps(task, accuracy) == expected
    assert same(values["gap_depth"], mean([gap.depth for gap in expected]))
    back = [gap.length if gap.recovery is None else gap.recovery for gap in expected]
    assert same(values["recovery"], mean(back))

    assert same(values["min"], average_minimum_accuracy(task, accuracy))
    if tasks > 1:
        old = accuracy[-1, :-1].mean()
        assert values["residual"] == pytest.approx(old - values["min"])
        combined = accuracy[-1, -1] / tasks + (1 - 1 / tasks) * values["min"]
        assert values["wc_acc"] == pytest.approx(combined)
        # A-GEM's code takes the largest of a column without its last.
        table = np.array([after + [-NAN] * (tasks - len(after)) for after in final])
        assert values["forgetting"] == pytest.approx(
            np.mean(np.nanmax(table[:-1, :-1], axis=0) - table[-1, :-1])
        )
        assert values["forgetting"] >= -values["bwt"] - 1e-9
    evaluated = ~np.isnan(accuracy[:, 0])
    if evaluated.all():
        assert values["aaa"] == pytest.approx(brute_anytime(task, accuracy))


@given(st.lists(st.one_of(st.just(NAN), st.integers(0, 9).map(float)), max_size=30), st.data())
def test_the_largest_fall_within_any_window(curve: list[float], data: st.DataObject) -> None:
    window = data.draw(st.integers(2, 12))
    columns = np.array([curve, curve[::-1]], float).T
    falls = [brute_fall(curve, window), brute_fall(curve[::-1], window)]
    assert _largest_falls(columns, window) == pytest.approx(falls, nan_ok=True)


def test_two_evaluations_are_near_if_less_than_a_window_apart() -> None:
    curve = np.array([50.0, NAN, NAN, 20.0])  # iterations 1 and 4: among 4 in a row, not among 3
    assert _largest_falls(curve[:, None], 4) == 30
    assert np.isnan(_largest_falls(curve[:, None], 3))


# Where not every iteration was evaluated


@given(trajectories(), st.integers(2, 5), st.integers(0, 3))
def test_thinned_evaluation_bounds_each_measure_as_stated(
    case: tuple[np.ndarray, np.ndarray, list[list[float]]], every: int, dense: int
) -> None:
    task, accuracy, final = case
    thin = accuracy.copy()
    for k in np.unique(task):
        rows = np.flatnonzero(task == k)
        n = np.arange(1, len(rows) + 1)
        thin[rows[(n > dense) & (n % every != 0) & (n < len(rows))]] = NAN
    whole, thinned = measures(*case), measures(task, thin, final)
    for key, measure in MEASURES.items():
        a, b = whole[key], thinned[key]
        if a is None:
            assert b is None
        elif b is None:  # too little is left
            assert key in ("wf10", "wf100", "wp10", "wp100", "lca")
        elif measure.thinned == "unaffected":
            assert b == a
        elif measure.thinned == "upper bound":
            assert b >= a - 1e-9
        elif measure.thinned == "lower bound":
            assert b <= a + 1e-9
        assert not measure.whole or a == b


def test_averages_are_over_iterations_and_not_over_evaluations() -> None:
    """Dense after the switch, sparse later: the densely evaluated part does not weigh more."""
    #   90, then 50, 60, 80 after iterations 2, 3 and 7 (70 in iteration 5)
    rows = [(1, 90.0, NAN), (2, 50.0, 50.0), (2, 60.0, 60.0)]
    rows += [(2, NAN, NAN)] * 3 + [(2, 80.0, 80.0)]
    values = measures(*hand(rows), [[90.0], [80.0, 80.0]])
    assert values["aaa"] == pytest.approx((90 + 50 + 60 + 65 + 70 + 75 + 80) / 7)
    assert values["gap_area"] == pytest.approx((40 + 30 + 25 + 20 + 15 + 10) / 6)


def test_without_the_first_ten_there_is_no_learning_curve_area() -> None:
    rows = [(1, float(n), NAN) for n in range(1, 11)] + [(2, 5.0, 5.0)] * 10
    final = [[10.0], [5.0, 5.0]]
    assert measures(*hand(rows), final)["lca"] == (5.5 + 5) / 2
    rows[3] = (1, NAN, NAN)
    assert measures(*hand(rows), final)["lca"] is None


# Runs


@pytest.fixture(scope="module")
def finished() -> Run:
    return run(class_benchmark(), "er", batch_size=10)


def test_a_run_has_its_measures(finished: Run) -> None:
    values = finished.measures
    assert list(values) == list(MEASURES)
    assert None not in values.values()  # three tasks of twelve iterations
    assert (values["min"], values["avg"]) == pytest.approx((finished.min, finished.avg))
    assert [(gap.switch, gap.task) for gap in finished.gaps] == [(12, 1), (24, 1), (24, 2)]
    json.dumps([values, [dataclasses.asdict(gap) for gap in finished.gaps]])  # plain numbers


def test_a_run_made_earlier_has_them_too(finished: Run, tmp_path: Path) -> None:
    finished.write(tmp_path)
    assert not any("measures" in path.read_text("latin-1") for path in tmp_path.glob("*.json"))
    assert Run.load(tmp_path).measures == finished.measures
    assert Run.load(tmp_path).gaps == finished.gaps


def test_a_routine_that_stops_learning_shows(finished: Run) -> None:
    class Stopped(Routine, name="stopped"):
        def step_size(self, lr, step):
            return lr if step.task == 1 else 0.0

    stopped = run(class_benchmark(), "er+stopped", batch_size=10)
    assert stopped.measures["gap_depth"] == stopped.measures["residual"] == 0
    assert finished.measures["gap_depth"] > 0
    assert stopped.measures["new_accuracy"] == 0
    assert finished.measures["new_accuracy"] > 90


def test_a_thinned_run(finished: Run) -> None:
    seldom = run(class_benchmark(), "er", batch_size=10, eval_schedule="every:4").measures
    for key in ("avg", "forgetting", "bwt", "new_accuracy"):
        assert seldom[key] == pytest.approx(finished.measures[key])
    assert seldom["min"] >= finished.measures["min"]
    assert seldom["lca"] is None


# What is said of them


def test_each_is_explained() -> None:
    for key, measure in MEASURES.items():
        assert re.fullmatch(r"[A-Z].{20,}\.", measure.explanation), key
        assert "\n" not in measure.explanation
    assert len({measure.title for measure in MEASURES.values()}) == len(MEASURES)


def test_the_document_tells_of_each() -> None:
    rows = re.findall(r"^\| (.*?) \| `(\w+)` \| (\w+) \| (\w+) \|", DOCUMENT.read_text(), re.M)
    expected = [(m.title, key, m.unit, m.better) for key, m in MEASURES.items()]
    assert rows == expected
