"""Mistakes: each gets one line that names it and what would be right, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.commandline import Command, leftovers, nothing_in, process, wrong

from twofold import datasets

RUN = ("run", "rotated-mnist", "er")


def case(args: str | tuple[str, ...], *named: str) -> Any:
    words = tuple(args.split()) if isinstance(args, str) else args
    return pytest.param(words, named, id=" ".join(words) or "nothing")


@pytest.mark.parametrize(
    ("args", "named"),
    [
        # Commands and arguments
        case("", "COMMAND", "run", "list", "data"),
        case("rnu rotated-mnist er", "'rnu'", "did you mean 'run'"),
        case("list everything", "'everything'"),
        case("list --plugni x.py", "'--plugni'", "did you mean '--plugin'"),
        case("run", "BENCHMARK", "METHOD"),
        case("run rotated-mnist", "METHOD"),
        case((*RUN, "--sede", "1"), "'--sede'", "did you mean '--seed'"),
        case((*RUN, "--iter", "1"), "'--iter'", "did you mean '--iterations'"),
        case((*RUN, "--batch_size", "10"), "'--batch_size'", "did you mean '--batch-size'"),
        case((*RUN, "--lr"), "--lr"),
        case("data", "get|check", "NAME"),
        case("data gte mnist", "'gte'", "did you mean 'get'"),
        case("data get mnits", "'mnits'", "did you mean 'mnist'", "cifar100", "mini-imagenet"),
        # Benchmarks and methods
        case("run rotated-mnits er", "'rotated-mnits'", "did you mean 'rotated-mnist'"),
        case("run Rotated-MNIST er", "'Rotated-MNIST'", "did you mean 'rotated-mnist'"),
        case("run mnist er", "'mnist'", "did you mean 'rotated-mnist'"),
        case(("run", "", "er"), "benchmark ''", "rotated-mnist"),
        case("run rotated-mnist err", "'err'", "did you mean 'er'", "finetune"),
        case("run rotated-mnist ER", "'ER'", "did you mean 'er'"),
        case("run rotated-mnist er+GEM", "'GEM'", "did you mean 'gem'"),
        case("run rotated-mnist er+a-gem", "'a-gem'", "did you mean 'agem'"),
        case("run rotated-mnist lwf", "'lwf'", "der", "gem"),
        case("run rotated-mnist ér", "'ér'", "did you mean 'er'"),
        case("run rotated-mnist er er+gme", "'gme'", "did you mean 'gem'"),
        case(("run", "rotated-mnist", ""), "method ''", "er+gem"),
        case(("run", "rotated-mnist", "er gem"), "'er gem'"),
        case(("run", "rotated-mnist", "er\ngem"), "er\\ngem"),
        case("run rotated-mnist er+", "'er+'", "er+gem"),
        case("run rotated-mnist +gem", "'+gem'", "er+gem"),
        case("run rotated-mnist der++", "'der++'"),
        case("run rotated-mnist er+der", "'der'", "objective"),
        case("run rotated-mnist er+gem+er", "'er'", "second objective"),
        case("run rotated-mnist er+decay+decay", "decay is there twice"),
        case("run rotated-mnist er-ace", "er-ace", "split-cifar100", "class-incremental"),
        case("run split-cifar100 er+nmc", "nmc", "such as reservoir(2000)"),
        case("run rotated-mnist er --memory reservoir(0)", "reservoir's size", "above 0"),
        case("run rotated-mnist er --memory resevoir", "did you mean 'reservoir'"),
        case("run rotated-mnist er --memory ring --memory-per-class 9", "memory is set twice"),
        case("run rotated-mnist bic", "bic", "split-cifar100", "class-incremental"),
        case("run domain-cifar100 bic+agem", "bic", "split-cifar100", "class-incremental"),
        # Options of a method
        case("run rotated-mnist er+gem(gama=1)", "'gama'", "did you mean 'gamma'", "ridge"),
        case("run rotated-mnist finetune(a=1)", "option of finetune", "'a'", "none"),
        case("run rotated-mnist er+sgd(lr=1)", "option of sgd", "'lr'"),
        case("run rotated-mnist er+gem(when=allways)", "when", "'allways'", "'always'"),
        case("run rotated-mnist er+gem(gamma=abc)", "gem's gamma", "a finite number", "'abc'"),
        case("run rotated-mnist er+gem(gamma=)", "gem's gamma", "a finite number", "''"),
        case("run rotated-mnist er+gem(gamma=nan)", "gem's gamma", "finite", "'nan'"),
        case("run rotated-mnist er+gem(gamma=1e400)", "gem's gamma", "finite", "'1e400'"),
        case("run rotated-mnist er+gem(gamma=-1)", "gem's gamma", "at least 0", "-1"),
        case("run rotated-mnist er+gem(ridge=0)", "gem's ridge", "above 0", "not 0"),
        case("run rotated-mnist der(alpha=-1)", "der's alpha", "at least 0", "-1"),
        case("run rotated-mnist der(augment=flip)", "augment", "'flip'", "crop", "pad"),
        case("run rotated-mnist joint(keep=1.5)", "joint's keep", "whole number", "'1.5'"),
        case("run rotated-mnist joint(keep=0)", "joint's keep", "above 0"),
        case("run split-cifar100 bic(validation=1)", "bic's validation", "1"),
        case("run rotated-mnist er+gem(gamma=1,gamma=2)", "'gamma'", "twice"),
        case("run rotated-mnist er+gem(1,gamma=2)", "'gamma'", "twice"),
        case("run rotated-mnist er+gem(gamma=1,always)", "'always'", "before"),
        case("run rotated-mnist er+gem(1,always,bound,independent,1,2)", "gem", "5 options"),
        case("run rotated-mnist er+gem(gamma=1", "er+gem(gamma=1", "bracket"),
        case("run rotated-mnist er+gem(gamma=1))", "er+gem(gamma=1))", "bracket"),
        # Choices
        case((*RUN, "--mode", "onlin"), "mode", "'onlin'", "did you mean 'online'"),
        case((*RUN, "--mode", ""), "mode", "''", "offline", "online"),
        case((*RUN, "--profile", "papr"), "profile", "'papr'", "did you mean 'paper'"),
        case((*RUN, "--whitening", "trian"), "whitening", "'trian'", "did you mean 'train'"),
        case((*RUN, "--memory-grouping", "clas"), "grouping", "'clas'", "did you mean 'class'"),
        case((*RUN, "--device", "cud"), "device", "'cud'", "cpu"),
        case((*RUN, "--device", "cuda:99"), "device", "'cuda:99'", "cpu"),
        case((*RUN, "--device", ""), "device", "''", "cpu"),
        case((*RUN, "--device", "meta"), "device", "'meta'", "cpu"),
        case((*RUN, "--device", "hpu"), "device", "'hpu'", "cpu"),
        # Numbers
        *(
            case((*RUN, "--lr", value), "lr must be a finite number", value)
            for value in ("abc", "", "0,1", "nan", "inf", "1e400")
        ),
        *(case((*RUN, "--lr", v), "lr must be above 0", f"not {v}") for v in ("0", "-1")),
        case((*RUN, "--lr", "1e39"), "lr must be", "at most 1e+30", "1e+39"),  # no 32-bit float
        *(case((*RUN, "--momentum", v), "momentum", v) for v in ("abc", "", "-0.1", "1", "nan")),
        *(
            case((*RUN, f"--{name}", value), name.split("-")[0], name.split("-")[-1], value)
            for name in ("batch-size", "iterations", "tasks", "eval-size")
            for value in ("abc", "", "0", "-1", "1.5", "nan", "1e3")
        ),
        *(
            case((*RUN, "--eval-schedule", value), value, "dense:100:10")
            for value in ("", "abc", "every:0", "every:x", "dense:1", "dense:0:0", "every:1:2")
        ),
        case((*RUN, "--keep-weights", "ends"), "keep weights", "'ends'", "did you mean 'end'"),
        case((*RUN, "--start-from", "nowhere"), "can't read the weights nowhere"),
        case((*RUN, "--eval-every", "3"), "'--eval-every'"),
        case((*RUN, "--reset-momentum"), "'--reset-momentum'"),
        *(case((*RUN, "--memory-per-class", v), "memory", v) for v in ("abc", "", "-1", "1.5")),
        *(case((*RUN, "--workers", v), "workers", v) for v in ("abc", "", "0", "-1", "1.5")),
        *(case((*RUN, "--checkpoint-every", v), "checkpoint", v) for v in ("abc", "-1", "nan")),
        *(case((*RUN, "--seeds", v), "seeds", v) for v in ("abc", "", "0", "-1", "1.5", "1,2")),
        *(
            case((*RUN, "--seed", value), "seed", value)
            for value in ("abc", "", "-1", "1.5", "1;2", "nan")
        ),
        *(case((*RUN, "--seed", v), "seed", "not ''") for v in ("1,,2", "1,", ",")),
        case("run split-cifar100 er --seed 4294967296", "seed", "4,294,967,295"),
        case((*RUN, "--seed", "142", "--seeds", "2"), "--seed", "--seeds"),
        case((*RUN, "--tasks", "4"), "rotated-mnist", "3 tasks", "4"),
        case("run split-cifar100 er --tasks 11", "split-cifar100", "10 tasks", "11"),
        case("run split-cifar100 bic --memory-per-class 1", "memory per class", "2"),
    ],
)
def test_a_mistake(
    args: tuple[str, ...],
    named: tuple[str, ...],
    twofold: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of these are found before any data is asked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load", no_data)
    wrong(twofold(*args), *named)
    assert list(tmp_path.iterdir()) == []


def no_data(*_: object) -> None:
    pytest.fail("the mistake was not found")


def test_what_comes_after_an_option_is_explained(twofold: Command) -> None:
    """Mistakes of a kind: a second method, or a second seed, apart from the first."""
    wrong(twofold(*RUN, "--seeds", 2, "er+gem"), "'er+gem'", "METHOD")
    wrong(twofold(*RUN, "--seed", 142, 152), "'152'", "write --seed 142,152")
    wrong(twofold(*RUN, "--seed", 142, "er+gem"), "'er+gem'", "METHOD")


@pytest.mark.parametrize(
    ("option", "right"),
    [("--learning-rate", "--lr"), ("--gamma", "gem(gamma="), ("--bs", "--batch-size")],
)
def test_no_far_fetched_advice(option: str, right: str, twofold: Command) -> None:
    """The right one, or none: `--whitening` is not what `--learning-rate` was to be."""
    message = wrong(twofold(*RUN, option, "0.1"), f"'{option}'")
    assert "did you mean" not in message or right in message


def test_in_processes_of_their_own(tmp_path: Path, cache_folder: str) -> None:
    """Two of them as a shell sees them: exit code, stdout and stderr as they are."""
    env = {**os.environ, "TWOFOLD_CACHE": cache_folder, "TWOFOLD_DATA": str(tmp_path / "none")}
    wrong(process("rnu", cwd=tmp_path), "'rnu'", "'run'")
    wrong(process(*RUN, "--out", "here", cwd=tmp_path, env=env), "TWOFOLD_DATA", "none")
    assert leftovers(tmp_path) == []


# A batch, or a memory, that does not fit the data


def test_a_batch_larger_than_a_task(run_tiny: Command, tmp_path: Path) -> None:
    wrong(run_tiny("er", "--batch-size", 26), "batch size 26", "25")
    wrong(run_tiny("er", "--batch-size", 26, "--mode", "online"), "batch size 26", "25")
    assert nothing_in(tmp_path / "out")


def test_a_batch_larger_than_what_bic_trains_on(run_tiny: Command, tmp_path: Path) -> None:
    """It holds out one example of each class, so that 20 of 25 remain."""
    wrong(run_tiny("bic", "--batch-size", 21), "batch size 21", "20")
    wrong(run_tiny("bic", "--batch-size", 21, "--mode", "online"), "batch size 21", "20")
    assert nothing_in(tmp_path / "out")
    assert run_tiny("bic", "--batch-size", 20).code == 0


def test_bic_that_would_hold_out_all_of_its_memory_keeps_one_of_a_class(run_tiny: Command) -> None:
    options = ("--memory-per-class", 2, "--batch-size", 2)
    assert run_tiny("bic(validation=0.9)", *options).code == 0


@pytest.mark.parametrize("method", ["er", "gem", "agem", "der", "er+gem"])
def test_replay_with_an_empty_memory(method: str, run_tiny: Command, tmp_path: Path) -> None:
    wrong(run_tiny(method, "--memory-per-class", 0), "memory per class 0", "empty")
    assert nothing_in(tmp_path / "out")


def test_methods_without_a_memory_need_none(run_tiny: Command) -> None:
    assert run_tiny("finetune;joint", "--memory-per-class", 0).code == 0


def test_what_is_wrong_with_one_method_stops_all(run_tiny: Command, tmp_path: Path) -> None:
    """Before the first has trained for hours."""
    result = run_tiny("finetune;er", "--memory-per-class", 0)
    wrong(result, "memory per class")
    assert nothing_in(tmp_path / "out")


# Places


@pytest.mark.parametrize("place", ["file/below", "file", "/proc/twofold/runs", "/dev/null/runs"])
def test_an_out_folder_that_cannot_be_written(
    place: str, run_tiny: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    out = tmp_path / place
    wrong(run_tiny("er", "--out", out), "write", str(out))
    assert (tmp_path / "file").read_text() == "no folder"


def test_an_out_folder_without_a_name(
    run_tiny: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out "$UNSET"` must not fill the working directory."""
    monkeypatch.chdir(tmp_path)
    wrong(run_tiny("er", "--out", ""), "out must be a path")
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_written(
    run_tiny: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "file" / "cache"))
    wrong(run_tiny("er"), "cache folder", str(tmp_path / "file" / "cache"), "$TWOFOLD_CACHE")
    assert nothing_in(tmp_path / "out")


# Plugins


MUTE = """
class MuteError(Exception):
    def __str__(self):
        raise RuntimeError

raise MuteError
"""


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, ["not", "file"]),
        ("x = = 1\n", ["SyntaxError", "line 1"]),
        ("import no_such_module\n", ["no_such_module"]),
        ("def f():\n    raise RuntimeError('two\\nlines')\n\nf()\n", ["RuntimeError", "two"]),
        ("raise SystemExit(0)\n", ["SystemExit"]),
        ("\x00\x01\x02", ["null bytes"]),
        (MUTE, ["MuteError", "its message cannot be shown"]),
    ],
    ids=["missing", "syntax", "import", "raises", "exits", "binary", "mute"],
)
def test_a_plugin_that_does_not_load(
    content: str | None, named: list[str], twofold: Command, tmp_path: Path
) -> None:
    file = tmp_path / "bad.py"
    if content is not None:
        file.write_text(content)
    run = (*RUN, "--seeds", 2, "--out", tmp_path / "out", "--plugin", file)
    for args in (run, ("list", "--plugin", file), run):  # the second time is no better
        message = wrong(twofold(*args), str(file), *named)
        assert "Traceback" not in message
    assert not (tmp_path / "out").exists()


def test_a_plugin_that_is_a_loop_of_links(twofold: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").symlink_to(tmp_path / "mine.py")
    wrong(twofold(*RUN, "--plugin", tmp_path / "mine.py"), "there is no file", "mine.py")


def test_a_plugin_that_is_no_python(twofold: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("some words")
    wrong(twofold(*RUN, "--plugin", tmp_path / "mine.txt"), "mine.txt", "Python file")
    wrong(twofold(*RUN, "--plugin", tmp_path), str(tmp_path), "Python file")
