"""docs/your-own-loop.md and docs/how.md: mistakes have the lines that they name; a script runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.how import loss_of, tiny
from helpers.watching import images, network, watched
from torch import nn

from twofold import How, UserError

DOCS = Path(__file__).parents[2] / "docs"
SECTION = re.compile(r"## If something is wrong\n(.*?)\n## ", re.DOTALL)
ROW = re.compile(r"^\| (.*) \| `(.*)` \|$", re.MULTILINE)
LINES = dict(ROW.findall(SECTION.findall((DOCS / "your-own-loop.md").read_text())[0]))


def no_task(folder: Path) -> None:
    watched(out=folder)(network())


def different_shapes(folder: Path) -> None:
    watched({"0": images(0), "80": (torch.randn(5, 36), torch.zeros(5).long())}, out=folder)


def not_a_number(folder: Path) -> None:
    values = iter([1.0, 2.0, float("nan")])
    watch = watched({"reward": lambda model: next(values)}, out=folder)
    watch.task(0)
    for _ in range(3):
        watch("a policy")


def different_size(folder: Path) -> None:
    net, watch = network(), watched(out=folder)
    watch.task(0)
    watch(net)
    net[5] = nn.Linear(64, 8)
    watch(net)


def finished_twice(folder: Path) -> None:
    watch = watched(out=folder)
    watch.task(0)
    watch(network())
    watch.finish()
    watch.finish()


def watched_twice(folder: Path) -> None:
    first = watched(out=folder)
    try:
        watched(out=folder)
    finally:
        first.close()


def second_task(prepare: Callable[[How], None] = lambda how: None) -> None:
    model, optimizer, how = tiny("gem")
    prepare(how)
    how.switch()
    loss_of(model, 0).backward()
    optimizer.step()


def part_of_the_model(folder: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    How("gem", torch.optim.SGD(model[0].parameters(), lr=0.1), model)


MISTAKES: dict[str, Callable[[Path], None]] = {
    "no `watch.task` before the first call": no_task,
    "test sets of different shapes": different_shapes,
    "a measure that returns NaN": not_a_number,
    "a model that changes its size": different_size,
    "`finish` called twice": finished_twice,
    "two watchers with one name and seed": watched_twice,
    "references missing at `step`": lambda folder: second_task(),
    "a past task without memory": lambda folder: second_task(
        lambda how: how.references(lambda k: None)  # type: ignore[arg-type,return-value]
    ),
    "an optimiser that owns a part of the model": part_of_the_model,
}


def test_the_table_has_every_mistake() -> None:
    assert LINES.keys() == MISTAKES.keys()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_its_line(mistake: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        MISTAKES[mistake](tmp_path)
    assert str(raised.value) == LINES[mistake]


def test_the_script_of_the_reference_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "how.md").read_text(), re.DOTALL)
    exec(compile(code, "how.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["task 0", "task 1", "task 2"]
    shares = [int(share) for share in re.findall(r": (\d+)% of steps projected", "\n".join(lines))]
    assert shares[0] == 0 < shares[2]
