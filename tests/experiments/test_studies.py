"""Studies: what they hold, against the paper's tables; narrowed, mistaken, run."""

from __future__ import annotations

import csv
import functools
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import Command, one_line, process, runs_in

from twofold import Routine, Store
from twofold.cli import study as study_command
from twofold.errors import UserError
from twofold.experiments import studies
from twofold.experiments.config import Config, configure
from twofold.experiments.estimate import PAPER

PAPER_FOLDER = Path(__file__).parents[2] / "shared" / "paper"
SEEDS = [142, 152, 162, 172, 182]
DOMAIN, CLASS = ("rotated-mnist", "domain-cifar100"), ("split-cifar100", "split-mini-imagenet")

GOOD = """
title = "Two methods"
seeds = [1, 2]

[[grid]]
benchmark = "rotated-mnist"
method = ["er", "er+gem(gamma=0.5)"]
lr = [0.1, 1]
iterations = 3
"""


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """A study file with this text, by its path."""

    def write(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return str(path)

    return write


@functools.cache
def runs_of(study: str) -> list[Config]:
    return studies.load(study).configs()


def cells(study: str) -> Counter[tuple[str, str, int, float, str]]:
    """How many seeds each cell of a table has."""
    return Counter((c.benchmark, c.mode, c.batch_size, c.lr, c.method) for c in runs_of(study))


def printed(name: str, *more: str) -> set[tuple[Any, ...]]:
    """The cells of one of the paper's tables, as it was printed."""
    path = PAPER_FOLDER / name
    if not path.exists():
        pytest.skip(f"no {path}")
    with path.open() as file:
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


# What the studies hold


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
        ("trajectories", (18 * 2 * 2 + 8 * 2) * 5),  # objectives and modes; two of CIFAR-100
    ],
)
def test_the_number_of_runs(study: str, count: int) -> None:
    made = runs_of(study)
    assert len(made) == count
    assert len({config.identity() for config in made}) == count
    assert set(cells(study).values()) == {5}
    assert {config.seed for config in made} == set(SEEDS)


def test_there_are_no_others() -> None:
    paper = ["appendix", "gamma", "main", "projection-rule", "sota", "timing"]
    assert studies.names() == [*paper, "trajectories"]


def test_the_appendix_has_2880_runs_and_all_printed_cells() -> None:
    assert len(runs_of("appendix")) == 2880
    assert set(cells("appendix")) == printed("appendix_tables.csv")


def test_the_gamma_study_has_all_printed_cells() -> None:
    def method(name: str, gamma: str) -> str:
        if not gamma:
            return name
        return configure("rotated-mnist", f"{name}(gamma={gamma},when=always)").method

    wanted = {(*cell[:4], method(*cell[4:])) for cell in printed("gamma_study.csv", "gamma")}
    assert set(cells("gamma")) == wanted


def test_the_timing_study_has_all_printed_cells_and_judges_little() -> None:
    assert set(cells("timing")) == printed("timing.csv")
    iterations = PAPER["split-cifar100"].train // 10
    assert all(config.eval_every > iterations for config in runs_of("timing"))


def test_the_main_table() -> None:
    methods = ("er", "er+gem", "er+agem", "joint", "joint+gem", "joint+agem")
    online = {name: 64 if name == "split-mini-imagenet" else 10 for name in PAPER}
    wanted = {(name, "offline", 128, 0.1, method) for name in PAPER for method in methods}
    wanted |= {(name, "online", b, 0.01, m) for name, b in online.items() for m in methods}
    assert set(cells("main")) == wanted
    assert wanted < set(cells("appendix"))


def test_the_table_of_der_and_bic() -> None:
    rates = dict.fromkeys(PAPER, 0.01) | {"split-cifar100": 0.1}
    wanted = {
        (name, "offline", 128, lr, method)
        for name, lr in rates.items()
        for method in ("der", "der+agem", *(("bic", "bic+agem") if name in CLASS else ()))
    }
    assert set(cells("sota")) == wanted
    assert wanted < set(cells("appendix"))


def test_the_projection_rules() -> None:
    made = runs_of("projection-rule")
    rules = {tuple(config.components[1][1][key] for key in ("gamma", "when")) for config in made}
    assert rules == {(0.5, "violated"), (0.5, "always")}
    assert {config.benchmark for config in made} == set(DOMAIN)


def test_the_trajectories_try_every_routine_that_the_package_brings() -> None:
    made = [c for c in runs_of("trajectories") if c.benchmark == "rotated-mnist"]
    shipped = {
        name
        for name, routine in Routine.known.items()
        if routine.__module__.startswith("twofold.") and ":" not in name  # torchjd's are optional
    }
    assert len(shipped) > 10
    for objective in ("er", "joint"):
        own = [c for c in made if c.components[0][0] == objective]
        tried = {name for config in own for name, _ in config.components[1:]}
        assert {*tried, "sgd"} >= shipped
        assert {c.mode for c in own} == {"offline", "online"}
    main = {(c.lr, c.batch_size, c.mode) for c in runs_of("main") if c.benchmark == "rotated-mnist"}
    assert {(c.lr, c.batch_size, c.mode) for c in made} == main


def test_the_trajectories_on_cifar_are_reduced_where_only_evaluation_is() -> None:
    made = [c for c in runs_of("trajectories") if c.benchmark != "rotated-mnist"]
    assert {c.benchmark for c in made} == {"domain-cifar100", "split-cifar100"}
    assert {(c.eval_schedule, c.eval_size) for c in made} == {("dense:50:50", 250)}


@pytest.mark.parametrize("study", studies.names())
def test_every_run_is_as_the_text_says_and_can_be_made(study: str) -> None:
    for config in runs_of(study):
        assert config.profile == "paper"
        assert (config.iterations, config.tasks, config.memory_per_class) == (None, None, 100)
        assert config.settings().online == (config.mode == "online")
        config.make_components()


def test_studies_share_runs() -> None:
    """A run has one identity, so that what one study made is there for another."""
    identities = {name: {c.identity() for c in runs_of(name)} for name in studies.names()}
    assert identities["main"] | identities["sota"] <= identities["appendix"]
    assert len(identities["gamma"] & identities["main"]) == 2 * 5  # er
    assert len(identities["projection-rule"] & identities["gamma"]) == 2 * 5
    assert len(identities["projection-rule"] & identities["main"]) == 2 * 5
    assert len(identities["trajectories"] & identities["main"]) == 6 * 2 * 5  # MNIST's, two modes


# Files


def test_a_file_is_the_product_of_its_values(written: Any) -> None:
    study = studies.load(written(GOOD))
    made = [(c.method, c.lr, c.seed, c.iterations, c.batch_size) for c in study.configs()]
    assert made == [
        (method, lr, seed, 3, 128)
        for method in ("er", "er+gem")
        for lr in (0.1, 1.0)
        for seed in (1, 2)
    ]
    assert study.title == "Two methods"


def test_every_option_of_a_run_can_be_said(written: Any) -> None:
    text = """
    [[grid]]
    benchmark = "split-cifar100"
    method = "bic"
    mode = "online"
    profile = "published"
    tasks = 2
    eval_every = 4
    eval_size = 5
    memory_per_class = 6
    memory_grouping = "class"
    whitening = "train"
    momentum = 0
    reset_momentum = true
    device = "cpu"
    """
    (made,) = studies.load(written(text)).configs()
    assert made == configure(
        "split-cifar100", "bic", mode="online", profile="published", tasks=2, eval_schedule="every:4",
        eval_size=5, memory_per_class=6, memory_grouping="class", whitening="train", momentum=0,
        reset_momentum=True,
    )  # fmt: skip


def test_the_document_names_every_key_and_option() -> None:
    text = (Path(__file__).parent.parent / "docs" / "studies.md").read_text()
    keys = re.search(r"Further keys of a grid [^:]*: (.*?)\.", text, re.DOTALL)
    assert keys
    named = {"benchmark", "method", "lr", *re.findall(r"`(\w+)`", keys[1])}
    assert named == {*studies._kinds()}
    for option in (*study_command.NARROWING, *study_command.REPLACING, "plugin", "per_gpu"):
        assert f"`--{option.replace('_', '-')}" in text, option


def test_the_same_run_twice_is_one(written: Any) -> None:
    text = GOOD.replace('"er",', '"er", "er+sgd", "er+gem",') + GOOD.partition("[1, 2]")[2]
    assert len(studies.load(written(text)).configs()) == len(studies.load(written(GOOD)).configs())


def test_without_seeds_there_is_one(written: Any) -> None:
    study = studies.load(written(GOOD.replace("seeds = [1, 2]", "")))
    assert {config.seed for config in study.configs()} == {142}


def mistake(change: str, *named: str) -> Any:
    """A change to the good file (`this -> that`), or another file, and what the answer names."""
    return pytest.param(change, named, id=change.strip()[:60])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        mistake("", "no [[grid]]"),
        mistake("titel = 'x'", "'titel'", "did you mean 'title'"),
        mistake("title = \n", "not TOML", "line 1"),
        mistake("[[grid]]", "grid 1", "benchmark"),
        mistake("grid = 3", "[[grid]]"),
        mistake("grid = [3]", "[[grid]]"),
        mistake("[[grid]] -> [grid]", "[[grid]]"),
        mistake('title = "Two methods" -> title = 2', "title must be text, not 2"),
        mistake('title = "Two methods" -> about = []', "about must be text"),
        mistake("seeds = [1, 2] -> sede = 3", "'sede'", "did you mean 'seeds'"),
        mistake("seeds = [1, 2] -> seeds = 0", "seeds", "0"),
        mistake("seeds = [1, 2] -> seeds = []", "seeds", "[]"),
        mistake("seeds = [1, 2] -> seeds = true", "seeds must be a whole number, not True"),
        mistake("seeds = [1, 2] -> seeds = 1.5", "seeds must be a whole number, not 1.5"),
        mistake("seeds = [1, 2] -> seeds = ['a']", "seeds must be a whole number, not 'a'"),
        mistake("seeds = [1, 2] -> seeds = [-1]", "seed must be at least 0, not -1"),
        mistake("seeds = [1, 2] -> seeds = [99999999999]", "seed must be at most"),
        mistake("seeds = [1, 2] -> plugins = 3", "plugins must be text, not 3"),
        mistake("seeds = [1, 2] -> plugins = ['no.py']", "there is no file", "no.py"),
        mistake("iterations = 3 -> iteration = 3", "grid 1", "did you mean 'iterations'"),
        mistake("iterations = 3 -> batchsize = 3", "grid 1", "did you mean 'batch_size'"),
        mistake("iterations = 3 -> seed = 3", "grid 1", "unknown key 'seed'"),
        mistake("iterations = 3 -> iterations = 3.0", "iterations must be a whole number, not 3.0"),
        mistake("iterations = 3 -> iterations = true", "iterations must be a whole number"),
        mistake("iterations = 3 -> iterations = []", "grid 1", "iterations is an empty list"),
        mistake("iterations = 3 -> iterations = [[3]]", "iterations must be a whole number"),
        mistake("iterations = 3 -> iterations = 0", "grid 1", "iterations must be at least 1"),
        mistake("iterations = 3 -> reset_momentum = 1", "reset_momentum must be true or false"),
        mistake("iterations = 3 -> tasks = 4", "grid 1: rotated-mnist has 3 tasks, not 4"),
        mistake("iterations = 3 -> mode = 'offlin'", "grid 1", "did you mean 'offline'"),
        mistake("iterations = 3 -> mode = 2025-01-01", "mode must be text"),
        mistake("iterations = 3 -> profile = 'papre'", "did you mean 'paper'"),
        mistake("iterations = 3 -> device = 'cup'", "no device 'cup'"),
        mistake("iterations = 3 -> memory_per_class = 0", "memory"),
        mistake("[0.1, 1] -> 'high'", "lr must be a number, not 'high'"),
        mistake("[0.1, 1] -> [0.1, -1]", "learning rate must be above 0"),
        mistake("[0.1, 1] -> nan", "learning rate must be above 0"),
        mistake('"rotated-mnist" -> "rotated-mnits"', "grid 1", "did you mean 'rotated-mnist'"),
        mistake('benchmark = "rotated-mnist" -> #', "grid 1", "benchmark"),
        mistake('method = ["er", "er+gem(gamma=0.5)"] -> #', "grid 1", "method"),
        mistake('"er", -> "er+gme",', "grid 1", "did you mean 'gem'"),
        mistake('"er", -> 3,', "grid 1", "method must be text, not 3"),
        mistake('"er", -> "bic",', "grid 1", "class-incremental"),
    ],
)
def test_a_mistake_in_a_file_is_told_before_anything_runs(
    change: str, named: tuple[str, ...], written: Any, twofold: Command, tmp_path: Path
) -> None:
    old, arrow, new = change.partition(" -> ")
    assert not arrow or old in GOOD
    file = written(GOOD.replace(old, new) if arrow else change)
    done = twofold("study", "run", file, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    message = one_line(done.err)
    for word in (file, *named):
        assert word in message
    assert not (tmp_path / "out").exists()


def test_a_mistake_in_the_second_grid_is_found_there(written: Any) -> None:
    with pytest.raises(UserError, match="grid 2: it says no method"):
        studies.load(written(GOOD + "\n[[grid]]\nbenchmark = 'rotated-mnist'\n"))


@pytest.mark.parametrize(
    ("study", "named"),
    [
        ("mian", ("unknown study 'mian'", "did you mean 'main'")),
        ("nowhere.toml", ("can't read nowhere.toml", "No such file")),
        (".", ("unknown study '.'",)),
        ("", ("unknown study ''",)),
    ],
)
@pytest.mark.parametrize("action", ["run", "show"])
def test_a_study_that_is_not_there(
    action: str, study: str, named: tuple[str, ...], twofold: Command
) -> None:
    done = twofold("study", action, study)
    assert done.code == 2
    assert all(word in one_line(done.err) for word in named)


def test_a_file_that_is_not_text(tmp_path: Path, twofold: Command) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    assert "it is not text" in one_line(twofold("study", "run", tmp_path / "mine.toml").err)


# Narrowed and replaced


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ("main", 240),
        ("main --benchmark rotated-mnist --mode offline", 30),
        ("main --benchmark rotated-mnist,split-cifar100 --mode offline", 60),
        ("main --benchmark rotated-mnist --benchmark split-cifar100 --mode offline", 60),
        ("main --method er", 40),
        ("main --method er --method joint+sgd", 80),
        ("main --batch-size 64", 30),
        ("main --batch-size 10,64 --lr 0.01", 120),
        ("main --lr 1e-1", 120),
        ("main --seeds 2", 96),
        ("main --seed 152,182 --seed 142", 144),
        ("main --mode online --method er --seed 152 --benchmark rotated-mnist", 1),
        ("gamma --method er+gem(0.1,always) --benchmark rotated-mnist", 5),
        ("projection-rule --method er+gem", 10),
        ("appendix --method gem --lr 0.001 --batch-size 128", 4 * 2 * 5),
        # Replacing: narrowed before, so that what is left out need not agree.
        ("main --iterations 3 --eval-every 2 --eval-size 10 --memory-per-class 5", 240),
        ("main --benchmark split-mini-imagenet --tasks 11", 60),
        ("main --profile published", 240),
        ("timing --eval-schedule dense:10:500", 15),
        ("trajectories --eval-every 10 --method er", 20),
    ],
)
def test_the_runs_of_a_command(
    args: str, count: int, twofold: Command, fixed_speed: None, tmp_path: Path
) -> None:
    done = twofold("study", "run", *args.split(), "--dry-run", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    runs = "1 run" if count == 1 else f"{count} runs"
    assert f"{args.split()[0]}: {runs}, 0 done, {count} to make\n" in done.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ("--benchmark rotated-mnits", "main: unknown benchmark 'rotated-mnits': did you mean"),
        ("--benchmark rotated-mnist,", "unknown benchmark ''"),
        ("--mode both", "(there are offline, online)"),
        ("--method der", "unknown method 'der'"),
        ("--method er+gme", "did you mean 'gem'"),
        ("--method er+gem(gamma=0.1)", "unknown method 'er+gem(gamma=0.1)': did you mean 'er+gem'"),
        ("--lr 0.5", "unknown lr '0.5'"),
        ("--lr high", "--lr: must be a number, not 'high'"),
        ("--batch-size 32", "(there are 10, 128, 64)"),
        ("--seed 7", "unknown seed '7'"),
        ("--seeds 6", "main has 5 seeds, not 6"),
        ("--seeds 0", "at least 1"),
        ("--mode offline --batch-size 10", "main: no run has all of mode offline, batch_size 10"),
        ("--tasks 4", "main: rotated-mnist has 3 tasks, not 4"),
        ("--iterations 0", "main: iterations must be at least 1"),
        ("--profile papre", "main: unknown profile 'papre': did you mean 'paper'"),
        ("--memory-per-class 0", "main: "),
        ("--plugin no.py", "there is no file no.py"),
        ("--benchmrak x", "did you mean '--benchmark'"),
        ("--seed 142 152 162 --json", "'152' is out of place: write --seed 142,152,162"),
        ("--lr 0.1 0.01", "'0.01' is out of place: write --lr 0.1,0.01"),
        ("--method er er+gem", "'er+gem' is out of place: write --method er --method er+gem"),
        ("--method er,er+gem", "--method: takes one method: write --method er --method er+gem"),
        ("--method gem(1,always),er", "write --method 'gem(1,always)' --method er"),
    ],
)
def test_a_mistake_in_a_command(args: str, named: str, twofold: Command, tmp_path: Path) -> None:
    done = twofold("study", "run", "main", *args.split(), "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert named in one_line(done.err)
    assert not (tmp_path / "out").exists()


def test_what_is_replaced_holds_for_all_runs() -> None:
    study = studies.load("sota").replacing({"iterations": 3, "profile": "published", "tasks": 2})
    assert {(c.iterations, c.tasks, c.profile) for c in study.configs()} == {(3, 2, "published")}
    assert {c.components[0][1]["augment"] for c in study.configs()} == {"pad"}


def test_of_two_ways_to_say_when_to_judge_the_one_given_replaces_both() -> None:
    timing = studies.load("timing").replacing({"eval_schedule": "dense:10:500"})
    assert {(c.eval_schedule, c.eval_every) for c in timing.configs()} == {("dense:10:500", 1)}
    sparse = studies.load("trajectories").replacing({"eval_schedule": "every:10"})
    assert {(c.eval_schedule, c.eval_every) for c in sparse.configs()} == {("every", 10)}
    with pytest.raises(UserError, match="leave eval every 2 out"):
        studies.load("main").replacing({"eval_schedule": "every:2", "eval_schedule": "dense:10:5"})
    rest = studies.load("timing").replacing({"eval_size": 5})
    assert {c.eval_every for c in rest.configs()} == {1_000_000}


@pytest.mark.parametrize("example", study_command.EXAMPLES.splitlines()[1:-1])
def test_the_examples_of_the_help_are_commands(
    example: str, twofold: Command, fixed_speed: None, tmp_path: Path
) -> None:
    words = shlex.split(re.split(r" {3,}", example.strip())[0])
    assert twofold(*words[1:], "--dry-run", "--out", tmp_path).code == 0


def test_the_list_names_all_with_their_runs(twofold: Command) -> None:
    done = twofold("study", "list")
    assert done.code == 0
    assert [line.split()[:3] for line in done.out.splitlines()] == [
        [name, str(len(runs_of(name))), "runs"] for name in studies.names()
    ]


def test_what_is_shown_is_a_study(twofold: Command, written: Any) -> None:
    copy = studies.load(written(twofold("study", "show", "main").out))
    assert copy.configs() == runs_of("main")


def test_help_loads_nothing_heavy() -> None:
    code = """if True:
        import sys
        from twofold.cli import main
        try:
            main(["study", "run", "--help"])
        except SystemExit:
            print("loaded:", {"torch", "numpy", "rich"} & set(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.endswith("loaded: set()\n"), done.stdout + done.stderr


# Run


TINY_STUDY = """
seeds = 2
plugins = ["tiny.py"]

[[grid]]
benchmark = "tiny"
method = ["er", "er+agem"]
iterations = 2
tasks = 2
batch_size = 2
eval_size = 5
"""


def test_a_study_is_made_by_workers_and_then_there(
    toy: Path, tmp_path: Path, twofold: Command
) -> None:
    """The plugin lies beside the file."""
    (tmp_path / "tiny.py").write_text((toy / "tiny.py").read_text())
    (tmp_path / "mine.toml").write_text(TINY_STUDY)
    words = ("study", "run", tmp_path / "mine.toml", "--data", toy, "--out", tmp_path / "out")
    first = twofold(*words, "--method", "er", "--workers", 1)
    assert first.code == 0, first.err
    assert len(runs_in(tmp_path / "out")) == 2
    told = twofold(*words, "--dry-run").out
    assert re.search(r"^tiny +offline +er +2 runs, +2 done$", told, re.MULTILINE), told
    assert re.search(r"^tiny +offline +er\+agem +2 runs, +0 done, 1 s of", told, re.MULTILINE), told
    assert "mine.toml: 4 runs, 2 done, 2 to make\nAbout 1 s on the CPU" in told
    before = {run: (run / "summary.json").read_bytes() for run in runs_in(tmp_path / "out")}
    second = twofold(*words, "--workers", 1)
    assert second.code == 0, second.err
    assert len(runs_in(tmp_path / "out")) == 4
    assert second.err.count("was there already") == 2
    assert before == {run: (run / "summary.json").read_bytes() for run in before}
    assert re.search(r"^ +er\+agem .* 2 *$", second.out, re.MULTILINE)  # the table
    told = twofold(*words, "--dry-run").out
    assert told.endswith("mine.toml: 4 runs, 4 done, 0 to make\n")


@pytest.mark.real_data
def test_a_part_of_the_main_table_tried_small(need: Any, tmp_path: Path) -> None:
    """As a user does it: in a process of its own."""
    data = need("mnist")
    words = ("study", "run", "main", "--benchmark", "rotated-mnist", "--mode", "offline")
    words += ("--method", "er", "--seeds", 2, "--workers", 1, "--out", tmp_path / "out")
    words += ("--iterations", 2, "--tasks", 2, "--eval-size", 20)
    words += ("--data", data) if data else ()
    done = process(*words, timeout=120)
    assert done.code == 0, done.err
    frame = Store(tmp_path / "out").frame()
    assert len(frame) == 2 * 2 * 2  # seeds, tasks, iterations
    assert set(frame["seed"]) == {142, 152}
    again = process(*words, "--json", timeout=120)
    assert len(again.objects) == again.err.count("was there already") == 2
