"""`twofold runs`: which runs are meant; and `export`, an archive that shows the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.commandline import Command, Outcome, one_line, runs_in, tiny
from helpers.runs import curve_run, example_run, gap_accuracies

from twofold import Run, Store, UserError
from twofold.cli.flags import FILTERS
from twofold.compare.groups import groups
from twofold.experiments.config import configure
from twofold.experiments.plotting import accuracy_curve, projected_share
from twofold.report.page import build_page

SHOWN = ("table main", "table gamma", "table trajectories", "verdicts", "runs")
EMA = "er+ema(0.999)"


def whole_run(method: str, seed: int, length: int = 300) -> Run:
    """A run as training leaves it: with losses, projections, and raw accuracies for `ema`."""
    table = gap_accuracies(length, 3, seed)
    table[:, 6::7] = np.nan  # not evaluated, as may be but at the ends of tasks
    run = curve_run(method, table, seed, eval_schedule="every:7")
    random = np.random.default_rng(seed)
    own = {
        name: random.random(length, np.float32)
        for name in ("loss", "loss_new", "loss_old", "norm_ratio", "unsolved", "logged")
    }
    own["projected"] = (random.random(length) < 0.1).astype(np.float32)
    longer = 1 + random.random(length, np.float32)
    own["norm_ratio"] = np.where(own["projected"] > 0, longer, np.float32(1))
    if "ema" in method:
        raw = gap_accuracies(length, 3, seed + 1).astype(np.float32)
        own |= {f"raw_accuracy_{k + 1}": raw[k] for k in range(3)}
        for name in ("min", "avg", "minimum_of_task", "accuracy_after_task"):
            run.summary[f"raw_{name}"] = run.summary[name]
    return Run(run.config, run.summary, {**run.columns, **own})


@pytest.fixture
def full(tmp_path: Path) -> Path:
    store = Store(tmp_path / "full")
    store.prepare()
    for method in ("er", "er+gem", "er+gem(gamma=0.5,when=always)", EMA):
        for seed in (142, 152, 162):
            store.save(whole_run(method, seed))
    return store.folder


@pytest.fixture
def small(full: Path, twofold: Command, tmp_path: Path) -> Path:
    result = twofold("runs", "export", "--runs", full, "--to", tmp_path / "small")
    assert result.code == 0, result.err
    assert result.out.startswith(f"12 runs exported to {tmp_path / 'small'}, ")
    return tmp_path / "small"


def test_what_is_kept_is_every_bit_as_it_was(full: Path, small: Path) -> None:
    assert [f.name for f in Store(full).folders()] == [f.name for f in Store(small).folders()]
    for folder in Store(full).folders():
        old, new = Run.load(folder), Run.load(small / folder.name)
        assert (new.config, new.summary) == (old.config, old.summary)
        left_out = {"loss", "loss_new", "loss_old", "unsolved", "logged"}
        assert {*old.columns} - {*new.columns} == left_out
        for name in new.columns:
            assert new.columns[name].dtype == old.columns[name].dtype
            assert new.columns[name].tobytes() == old.columns[name].tobytes()


@pytest.mark.parametrize("command", SHOWN)
def test_all_text_is_the_same(command: str, full: Path, small: Path, twofold: Command) -> None:
    formats = ["--json"] if command == "runs" else ["--format=md", "--format=csv", "--format=json"]
    for option in formats:
        old, new = (twofold(*command.split(), "--runs", store, option) for store in (full, small))
        assert old.code == new.code == 0
        assert old.out.replace(str(full), str(small)) == new.out


def test_measures_curves_and_the_page_are_the_same(full: Path, small: Path) -> None:
    old, new = Store(full).runs(), Store(small).runs()
    for one, other in zip(old, new, strict=True):
        np.testing.assert_equal(one.measures, other.measures)
        np.testing.assert_equal(one.raw_measures, other.raw_measures)
        assert (one.raw_measures is not None) == ("ema" in one.config.method)
        assert one.gaps == other.gaps
    for one, other in zip(groups(old), groups(new), strict=True):
        for task in (1, 2, 3):
            a, b = accuracy_curve(one.runs, task), accuracy_curve(other.runs, task)
            assert all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("x", "mean", "error"))
        assert np.array_equal(projected_share(one.runs), projected_share(other.runs))
    assert build_page(old, "a store") == build_page(new, "a store")


def test_the_figure_is_the_same(full: Path, small: Path, twofold: Command, tmp_path: Path) -> None:
    pictures = []
    for store in (full, small):
        file = tmp_path / f"{store.name}.png"
        assert twofold("figure", "gap", "rotated-mnist", "--runs", store, "-o", file).code == 0
        pictures.append(file.read_bytes())
    assert pictures[0] == pictures[1]


def test_a_run_of_the_papers_length_is_small(twofold: Command, tmp_path: Path) -> None:
    store = Store(tmp_path / "full")
    store.prepare()
    store.save(whole_run("er", 142, 6000))
    twofold("runs", "export", "--runs", store.folder, "--to", tmp_path / "small")
    files = sorted((tmp_path / "small").iterdir())
    names = ["checksums.json", "curves.parquet", "runs.jsonl", "store.json"]
    assert [file.name for file in files] == names
    assert sum(file.stat().st_size for file in files) < 25_000


def test_what_is_there_is_left_alone(full: Path, small: Path, twofold: Command) -> None:
    before = {f.name: f.stat().st_mtime_ns for f in small.iterdir()}
    second = twofold("runs", "export", "--runs", full, "--to", small)
    assert second.out == f"0 runs exported to {small}, 0 KB; 12 were there already\n"
    assert {f.name: f.stat().st_mtime_ns for f in small.iterdir()} == before


def test_the_copies_have_checksums(full: Path, small: Path, twofold: Command) -> None:
    assert "12 of 12 runs" in twofold("runs", "verify", "--runs", small).out
    (small / "curves.parquet").write_bytes(b"")
    assert twofold("runs", "verify", "--runs", small).code == 1


def test_filters_and_names_choose(full: Path, twofold: Command, tmp_path: Path) -> None:
    def export(*which: object) -> list[str]:
        to = tmp_path / "some"
        shutil.rmtree(to, ignore_errors=True)
        assert twofold("runs", "export", *which, "--runs", full, "--to", to).code == 0
        return [f"{run.config.method} {run.config.seed}" for run in Store(to).runs()]

    assert export("--method", "er", "--seed", "142,162") == ["er 142", "er 162"]
    first, second, *_ = Store(full).folders()
    assert len(export(first.name, second.name[-10:])) == 2
    assert [f.name for f in Store(tmp_path / "some").folders()] == [first.name, second.name]


def test_nothing_is_trained_into_the_copy(
    run_tiny: Command, twofold: Command, toy: Path, tmp_path: Path
) -> None:
    out, to = tmp_path / "out", tmp_path / "to"
    run_tiny("er;er+gem")
    twofold("runs", "export", "--runs", out, "--to", to)
    files = {f: f.read_bytes() for f in to.iterdir()}
    result = twofold(*tiny(toy, to, "er;er+gem"), "--json")
    assert (result.code, result.out) == (2, "")
    assert "is an archive, which stays as it is: train into a different" in one_line(result.err)
    assert {f: f.read_bytes() for f in to.iterdir()} == files


def test_a_run_keeps_its_name_when_its_plugin_has_gone(
    run_tiny: Command, twofold: Command, half: Path, tmp_path: Path
) -> None:
    """Its identity has the plugin's text in it."""
    run_tiny("er+half", "--plugin", half)
    (stored_run,) = runs_in(tmp_path / "out")
    half.unlink()
    twofold("runs", "export", "--runs", tmp_path / "out", "--to", tmp_path / "to")
    assert [f.name for f in Store(tmp_path / "to").folders()] == [stored_run.name]


def test_a_column_that_was_left_out_is_named(small: Path) -> None:
    curves = Store(small).runs()[0].columns
    with pytest.raises(UserError, match=r"small/rotated\S+ has no column 'loss': there are iter"):
        curves["loss"]
    assert "loss" not in curves
    assert curves.get("loss") is None


def test_tensorboard_says_what_is_missing(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="with TensorBoard (pip install tensorboard)")
    from twofold.experiments.live import Live

    run = Store(small).runs()[0]
    capsys.readouterr()
    Live(tmp_path / "board").show_stored(run.folder)
    message = capsys.readouterr().err
    name = run.config.folder_name()
    assert f"{name} has no loss, loss_new, loss_old, unsolved\n" in message
    assert any((tmp_path / "board").rglob("events.*"))


# Mistakes


def test_mistakes_take_one_line_and_leave_nothing(
    full: Path, twofold: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(full)
    new = tmp_path / "new"
    for args, named in (
        (("export",), "--to DIR"),
        (("list", "--to", new), "--to DIR"),
        (("export", "--to", full), f"{full} is where the runs are"),
        (("export", "--to", tmp_path / "link"), "is where the runs are"),
        (("export", "--to", tmp_path / "file"), f"can't write to {tmp_path / 'file'}"),
        (("export", "--to", new, "--method", "bic"), "unknown method 'bic'"),
        (("export", "0123456789", "--to", new), "there is no run '0123456789'"),
        (("exprot", "--to", new), "did you mean 'export'"),
    ):
        result = twofold("runs", *args, "--runs", full)
        assert result.code == 2, args
        assert result.out == ""
        assert named in one_line(result.err)
        assert not new.exists()
    assert twofold("runs", "export", "--to", new, "--runs", tmp_path / "none").code == 2


def test_a_damaged_run_is_named_and_left_out(full: Path, twofold: Command, tmp_path: Path) -> None:
    damaged = Store(full).folders()[3]
    (damaged / "summary.json").write_text("{}\n")
    result = twofold("runs", "export", "--runs", full, "--to", tmp_path / "to")
    assert result.err == f"{damaged}: summary.json is damaged; it is left out\n"
    assert result.out.startswith("11 runs exported")
    alone = twofold("runs", "export", damaged.name, "--runs", full, "--to", tmp_path / "other")
    assert alone.code == 2
    assert f"there is no run {damaged.name!r}" in alone.err


# Which runs are meant


def acted(twofold: Command, action: str, store: Path, *options: object) -> Outcome:
    to = ("--to", store.parent / "to") if action == "export" else ()
    return twofold("runs", action, "--runs", store, *to, *options)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("list", "er\\+gem "),
        ("show", '"method": "er\\+gem"'),
        ("verify", "3 of 3 runs match"),
        ("remove", "3 runs removed"),
        ("export", "3 runs exported"),
    ],
)
def test_a_method_may_be_written_in_more_than_one_way(
    action: str, said: str, full: Path, twofold: Command
) -> None:
    result = acted(twofold, action, full, "--method", "er + gem(0.5, violated)")
    assert result.code == 0, result.err
    assert len(re.findall(said, result.out)) == (3 if action in ("list", "show") else 1)
    assert "always" not in result.out


@pytest.mark.parametrize("action", ["list", "show", "verify", "remove", "export"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--benchmark", "rotated-mist", "unknown benchmark 'rotated-mist': did you mean 'rotated-"),
        ("--mode", "onlin", "unknown value of mode 'onlin': did you mean 'online'? (there are "),
        ("--mode", "online", "unknown mode 'online': did you mean 'offline'? (there are offline)"),
        ("--method", "er+gme", "unknown method 'er+gme': did you mean 'er+gem'? (there are er, "),
        ("--method", "er+agem", "unknown method 'er+agem': did you mean 'er+gem'?"),
        ("--profile", "published", "unknown profile 'published' (there are paper)"),
        ("--lr", "0.5", "unknown lr '0.5'"),
        ("--batch-size", "10", "unknown batch size '10'"),
        ("--seed", "142,7", "unknown seed '7' (there are 142, 152, 162)"),
    ],
)
def test_a_value_that_no_run_has_is_a_mistake(
    action: str, option: str, value: str, message: str, full: Path, twofold: Command
) -> None:
    result = acted(twofold, action, full, option, value)
    assert (result.code, result.out) == (2, "")
    assert one_line(result.err).startswith(message)
    assert len(runs_in(full)) == 12


DIFFERENT = {  # a value of each option that is not the one of a plain run
    "benchmark": "domain-cifar100",
    "method": "er+gem",
    "mode": "online",
    "lr": 0.5,
    "batch_size": 64,
    "seed": 7,
    "iterations": 30,
    "tasks": 2,
    "epochs": 3,
    "order": "2,1",
    "parts": 2,
    "blur": 0.1,
    "task_free": True,
    "scenario": "task",
    "momentum": 0.5,
    "optimizer": "adam",
    "memory": "reservoir(500,replay=64)",
    "memory_per_class": 7,
    "memory_grouping": "class",
    "eval_schedule": "every:7",
    "validation": 0.1,
    "eval_size": 50,
    "eval_precision": "bf16",
    "diagnose": True,
    "profile": "published",
    "whitening": "published",
    "start_from": "",
    "keep_weights": "end",
    "device": "cpu:0",
}


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run for each option that differs in it; without weights to start from, a plain one."""
    store = Store(tmp_path_factory.mktemp("varied"))
    store.prepare()
    what = {"benchmark": "rotated-mnist", "method": "er", "lr": 0.1, "batch_size": 128}
    for seed, (name, value) in enumerate(DIFFERENT.items(), 142):  # some share an identity
        options = {**what, "seed": seed, **({} if name == "start_from" else {name: value})}
        options |= {"memory": "reservoir(500)"} if name == "task_free" else {}
        config = configure(options.pop("benchmark"), options.pop("method"), **options)
        store.save(example_run(config, gap_accuracies(12, 3, 1)))
    return store


def test_there_is_a_filter_for_every_option() -> None:
    assert {*DIFFERENT} == {option.name for option in FILTERS}


@pytest.mark.parametrize("name", [name for name in DIFFERENT if name != "start_from"])
def test_every_filter_selects_its_runs(name: str, varied: Store, twofold: Command) -> None:
    flag, value = f"--{name.replace('_', '-')}", DIFFERENT[name]
    result = twofold("runs", "--runs", varied.folder, flag, value, "--json").objects
    expected = [run.name for run in varied.runs() if getattr(run.config, name) == value]
    assert [Path(each["folder"]).name for each in result] == expected
    assert 0 < len(expected) < 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("eval_schedule", "every:9", "unknown eval schedule 'every:9': did you mean 'every:7'?"),
        ("tasks", "5", "unknown tasks '5' (there are 2, None)"),
        ("device", "cpu:1", "unknown device 'cpu:1': did you mean 'cpu:0'? (there are cpu, cpu:0)"),
        ("keep_weights", "switches", "unknown keep weights 'switches' (there are end, none)"),
        ("memory_per_class", "8", "unknown memory per class '8' (there are 100, 7)"),
    ],
)
def test_a_value_that_no_run_has_is_answered_with_those_there_are(
    name: str, value: str, message: str, varied: Store, twofold: Command
) -> None:
    result = twofold("runs", "--runs", varied.folder, f"--{name.replace('_', '-')}", value)
    assert (result.code, result.out) == (2, "")
    assert one_line(result.err).startswith(message)


def test_values_that_no_run_has_together(full: Path, twofold: Command) -> None:
    other = curve_run("er", gap_accuracies(60, 3, 1), mode="online")
    Store(full).save(other)
    result = twofold("runs", "--runs", full, "--mode", "online", "--method", EMA)
    assert (result.code, result.out) == (2, "")
    assert f"no run in {full} matches all filters" in one_line(result.err)


def test_verify_looks_at_what_the_filters_say(full: Path, twofold: Command) -> None:
    gem = next(folder for folder in Store(full).folders() if "-er+gem-" in folder.name)
    (gem / "curves.parquet").write_bytes(b"")
    assert acted(twofold, "verify", full, "--method", "er").out.startswith("3 of 3 runs")
    result = acted(twofold, "verify", full, "--method", "er+gem")
    assert (result.code, result.out.splitlines()[0]) == (1, f"{gem}: curves.parquet is damaged")
    (gem / "config.json").write_text("{}")  # nobody can tell any more which run that was
    result = acted(twofold, "verify", full, "--method", "er")
    assert (result.code, result.out.splitlines()[1]) == (1, "3 of 4 runs match their checksums")


@pytest.mark.parametrize(
    "command",
    [
        *("runs", "runs verify", "runs export --to to", "table main", "verdicts", "departures"),
        *("report", "figure gap rotated-mnist"),
    ],
)
def test_a_folder_without_runs(
    command: str, twofold: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No runs are a mistake, and what the folder is instead is said."""
    monkeypatch.chdir(tmp_path)
    for name in ("all/one", "all/and-another", "empty"):
        Store(name).prepare()
    for folder, message in (
        ("all", "all holds stores: all/and-another, all/one; name one of them"),
        ("empty", "there are no runs in empty: `twofold "),
        ("none", "there is no folder none: `twofold "),
    ):
        result = twofold(*command.split(), "--runs", folder)
        assert (result.code, result.out) == (2, "")
        assert one_line(result.err).startswith(message)
