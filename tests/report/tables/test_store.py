"""The table of a store: columns for what varies, and everything else stated once."""

from __future__ import annotations

import dataclasses
import json

import pytest
from helpers.measures import measured_run
from helpers.runs import grouped, scored_run, seeded
from helpers.tables import rows

from twofold import Run, UserError
from twofold.compare.groups import groups
from twofold.report.tables import StudyTable, notes, render, store_table
from twofold.report.tables.store import natural


def table(*runs: list[Run], sort: str = "") -> StudyTable:
    return store_table(grouped(*runs), ("min", "avg"), sort.split(",") if sort else ())


def heads(result: StudyTable) -> list[tuple[str, ...]]:
    return [row.heads for row in result.blocks[0].rows]


def test_a_row_per_method_and_what_they_share_is_stated_once() -> None:
    # Both: deviations -1, -1, 2; variance 6 / 2 = 3; error sqrt(3 / 3).
    result = table(seeded("er", [80, 80, 83]), seeded("er+gem", [84, 84, 87]))
    (block,) = result.blocks
    assert (block.title, block.about) == ("Rotated MNIST, offline", "lr 0.1, batch 128, 3 seeds")
    assert rows(render(result)) == [
        ["method", "MIN", "AVG"],
        ["er", "81.0 ± 1.0", "91.0 ± 1.0"],
        ["er+gem", "85.0 ± 1.0", "95.0 ± 1.0"],
    ]


def test_what_varies_has_a_column_and_the_one_method_has_none() -> None:
    memories = ("reservoir(2000)", "reservoir(200)", "per-class(50)")
    runs = [seeded("er", [80], memory=memory, momentum=0.5) for memory in memories]
    runs.append(seeded("er", [70, 72], optimizer="adam(lr=0.001)", momentum=0.5))
    result = table(*runs)
    (block,) = result.blocks
    assert block.heads == ("lr", "optimizer", "memory", "seeds")
    assert block.about == "er, batch 128, momentum 0.5"
    assert heads(result) == [  # numbers within texts are in their order
        ("0.001", "adam", "per-class-task(100)", "2"),
        ("0.1", "sgd", "per-class(50)", "1"),
        ("0.1", "sgd", "reservoir(200)", "1"),
        ("0.1", "sgd", "reservoir(2000)", "1"),
    ]


def test_a_method_without_a_memory_has_none() -> None:
    runs = [seeded(method, [80]) for method in ("finetune", "joint", "gem")]
    result = table(*runs, seeded("er", [80], memory="ring(100)"), sort="method")
    assert heads(result) == [
        ("er", "ring(100)"),
        ("finetune", "–"),
        ("gem", "per-class-task(100)"),  # which stores examples for its references
        ("joint", "–"),
    ]


def test_a_block_per_benchmark_and_mode_with_columns_of_its_own() -> None:
    runs = [seeded("er", [80]), seeded("er", [60], lr=0.01), seeded("er", [70], mode="online")]
    runs.append(seeded("er", [50], benchmark="split-cifar100", tasks=2))
    blocks = table(*runs).blocks
    assert [(block.title, block.heads) for block in blocks] == [
        ("Rotated MNIST, offline", ("lr",)),
        ("Rotated MNIST, online", ("method",)),
        ("Split CIFAR-100, offline", ("method",)),
    ]
    assert "tasks 2" in blocks[2].about


@pytest.mark.parametrize(
    ("sort", "methods"),
    [
        ("", ["er", "er+agem", "er+gem"]),
        ("avg", ["er+gem", "er", "er+agem"]),  # the best first
        ("-avg", ["er+agem", "er", "er+gem"]),
        ("forgetting", ["er+agem", "er", "er+gem"]),  # for which lower is better
        ("-method", ["er+gem", "er+agem", "er"]),
        ("-batch-size,avg", ["er+agem", "er+gem", "er"]),
    ],
)
def test_rows_are_sorted_by_any_column(sort: str, methods: list[str]) -> None:
    runs = [
        measured_run("er+gem", avg=90, lower=-3),
        measured_run("er", avg=80, lower=0),
        measured_run("er+agem", avg=70, batch_size=256),
    ]
    worse = {"er+gem": 9.0, "er": 5.0, "er+agem": 1.0}  # points that the first task forgets
    for run in runs:
        ends = run.summary["accuracy_after_task"] = [[91.0], [91.0, 80.0], [91.0, 80.0, 70.0]]
        ends[-1][0] -= worse[run.config.method]
    result = store_table(groups(runs), ["avg"], sort.split(",") if sort else ())
    assert [number.method for number in result.numbers()] == methods


def test_rows_without_the_value_come_last_in_both_directions() -> None:
    runs = [scored_run("er", None), scored_run("joint", 50), scored_run("finetune", 40)]
    for sort, methods in (("min", ["joint", "finetune"]), ("-min", ["finetune", "joint"])):
        result = store_table(groups(runs), ["min"], [sort])
        assert [number.method for number in result.numbers()] == [*methods, "er"]
    with pytest.raises(UserError, match="unknown column 'averge': did you mean 'avg'"):
        store_table(groups(runs), ["min"], ["averge"])


def test_natural_order() -> None:
    texts = ["ring(1000)", "ring(200)", "ring", 3, 0.5, "herding(5)"]
    assert sorted(texts, key=natural) == [0.5, 3, "herding(5)", "ring", "ring(200)", "ring(1000)"]


def test_bounds_are_marked_and_reductions_are_stated_with_the_settings() -> None:
    runs = seeded("er", [80, 80, 83], eval_schedule="every:10", tasks=2, validation=0.1)
    result = table(runs)
    text = render(result)
    assert "tasks 2, eval schedule every:10, validation 0.1, 3 seeds" in text
    assert "| er     | ≤ 81.0 ± 1.0 | 91.0 ± 1.0 |" in text
    assert "≤ an upper bound: the model was not evaluated after every iteration." in notes(result)
    assert any(note.startswith("validation: evaluated on this share") for note in notes(result))


def test_a_measure_that_some_runs_lack_states_how_many_have_it() -> None:
    result = table([scored_run("er", None), scored_run("er", 80, seed=152)])
    assert rows(render(result))[1] == ["er", "80.0 (n=1)", "90.0"]
    assert result.blocks[0].rows[0].numbers[0].seeds == [152]  # type: ignore[union-attr]


def test_versions_of_ones_own_code_are_told_apart_by_their_runs() -> None:
    runs = [scored_run("er", 80), scored_run("er", 70, seed=152)]
    for run, text in zip(runs, ("one", "two"), strict=True):
        run.summary.update(plugins=[text], identity=f"identity-{text}")
    result = store_table(groups(runs), ["min"])
    assert result.blocks[0].heads == ("method", "run")
    assert heads(result) == [("er", "identity-one"), ("er", "identity-two")]


def test_data_that_depend_on_the_seed_are_one_row() -> None:
    def drawn(run: Run, own: str) -> Run:
        return dataclasses.replace(run, config=dataclasses.replace(run.config, own=own))

    runs = seeded("er", [80, 82])
    result = store_table(groups([drawn(runs[0], "a"), drawn(runs[1], "b")]), ["min"])
    assert heads(result) == [("er",)]
    assert "Each seed has data of its own." in notes(result)
    other = seeded("er", [70, 72])  # the same seeds, so these data are different ones
    both = [drawn(run, "a") for run in runs] + [drawn(run, "b") for run in other]
    result = store_table(groups(both), ["min"])
    assert result.blocks[0].heads == ("data",)


def test_every_format_has_every_number() -> None:
    # 60, 60, 69: deviations -3, -3, 6; variance 54 / 2 = 27; error sqrt(27 / 3).
    result = table(seeded("er", [80, 80, 83]), seeded("er", [60, 60, 69], lr=0.01), sort="avg")
    numbers = json.loads(render(result, "json"))["numbers"]
    assert [(n["lr"], n["metric"], n["mean"]) for n in numbers] == [
        (0.1, "min", 81),
        (0.1, "avg", 91),
        (0.01, "min", 63),
        (0.01, "avg", 73),
    ]
    assert render(result, "csv").count("\n") == 5
    latex = render(result, "latex")
    assert latex.count(r"\midrule") == 1  # no rule between rows
    assert r"0.01 & 63.0 $\pm$ 3.0 & 73.0 $\pm$ 3.0 \\" in latex
    assert 'rowspan="' not in render(result, "html")
    assert '<th scope="row">0.01</th>' in render(result, "html")


def test_settings_that_vary_are_in_the_records() -> None:
    result = table(seeded("er", [80], memory="ring(100)"), seeded("er", [81], profile="published"))
    records = json.loads(render(result, "json"))["numbers"]
    assert {(n["memory"], n["profile"]) for n in records} == {
        ("ring(100)", "paper"),
        ("per-class(100)", "published"),
    }
