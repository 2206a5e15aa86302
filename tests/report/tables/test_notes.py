"""Notes below tables."""

from __future__ import annotations

from helpers.runs import grouped, seeded
from helpers.tables import timed

from twofold.report.tables import notes, render, store_table, study_table

OFTEN, RARELY = "dense:300:20", "dense:10:500"
LONG = (
    "evaluated after each of a task's first 300 iterations, then every 20 iterations and at the "
    "end of each task only."
)
SHORT = LONG.replace("300", "10").replace("every 20", "every 500")


def test_errors_are_in_the_note_if_numbers_have_them() -> None:
    two, three = seeded("er", [80, 82]), seeded("er+gem", [84, 84, 87])
    for runs, words in (
        ([two], "Mean"),
        ([two, three], "Mean ± standard error (from three seeds on)"),
        ([three], "Mean ± standard error"),
    ):
        study = study_table("main", grouped(*runs))
        assert notes(study)[0] == f"{words} over 5 seeds unless marked (n=), in percent."
        store = store_table(grouped(*runs), ("min", "avg"))
        assert notes(store)[0] == f"{words} over seeds."


def bounds(*runs) -> list[str]:
    lines = render(study_table("main", grouped(*runs)), "md").splitlines()
    return [line.removeprefix("- ") for line in lines if "since the model was" in line]


def test_one_note_is_about_all_bounds() -> None:
    offline = seeded("er", [80, 82], eval_schedule=OFTEN)
    online = seeded("er", [70, 72], mode="online", eval_schedule=OFTEN)
    assert bounds(offline, online) == [f"≤: an upper bound, since the model was {LONG}"]


def test_several_notes_say_where() -> None:
    runs = [
        seeded("er", [80, 82], eval_schedule=OFTEN),
        seeded("er", [80, 82], eval_schedule=OFTEN, benchmark="domain-cifar100"),
        seeded("er", [70, 72], eval_schedule=RARELY, mode="online"),
    ]
    assert bounds(*runs) == [
        "≤ of Rotated MNIST (offline), Domain CIFAR-100 (offline): an upper bound, since the model "
        f"was {LONG}",
        f"≤ of Rotated MNIST (online): an upper bound, since the model was {SHORT}",
    ]


def test_several_notes_on_one_place_say_whose() -> None:
    runs = [
        seeded("er", [80, 82], eval_schedule=OFTEN),
        seeded("er+gem", [80, 82], eval_schedule=OFTEN),
        seeded("joint", [90, 92], eval_schedule=RARELY),
    ]
    assert bounds(*runs) == [
        f"≤ of er, er+gem on Rotated MNIST (offline): an upper bound, since the model was {LONG}",
        f"≤ of joint on Rotated MNIST (offline): an upper bound, since the model was {SHORT}",
    ]


def test_a_single_task_is_named_in_the_singular() -> None:
    text = render(study_table("main", grouped(seeded("er", [10, 12], tasks=1))), "md")
    assert "[a] differs from the reference runs: the first task only." in text
    text = render(study_table("main", grouped(seeded("er", [10, 12], eval_schedule="dense:1:5"))))
    assert "evaluated after a task's first iteration, then every 5 iterations" in text


def test_times_of_different_machines_are_reported() -> None:
    table = study_table("timing", grouped(timed("er", 1), timed("er+gem", 2, processor="another")))
    assert any("different machines: a processor, another" in note for note in notes(table))
    same = study_table("timing", grouped(timed("er", 1), timed("er+gem", 2)))
    assert not any("different machines" in note for note in notes(same))
