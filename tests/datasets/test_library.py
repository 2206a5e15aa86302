"""Where datasets are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from twofold.datasets import check, get, load, names
from twofold.errors import UserError

pytestmark = pytest.mark.usefixtures("no_data")


def test_names() -> None:
    assert names() == ("cifar100", "mini-imagenet", "mnist")


@pytest.mark.parametrize("use", [load, get, check])
def test_unknown_name(use: object) -> None:
    with pytest.raises(UserError, match="unknown dataset 'mnst': did you mean 'mnist'"):
        use("mnst")  # type: ignore[operator]


def test_the_folder_given_comes_first(
    tmp_path: Path, mini_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOFOLD_DATA", str(tmp_path))
    assert get("mini-imagenet", mini_folder) == mini_folder / "mini-imagenet"
    assert f"from {mini_folder}" in check("mini-imagenet", mini_folder)


def test_then_the_environment(mini_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_DATA", str(mini_folder))
    assert get("mini-imagenet") == mini_folder / "mini-imagenet"
    assert len(load("mini-imagenet").class_names) == 100


@pytest.mark.parametrize("empty_first", [False, True])
def test_then_the_cache(
    mini_folder: Path,
    cache_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    empty_first: bool,
) -> None:
    if empty_first:  # a data folder that lacks this dataset is passed over
        monkeypatch.setenv("TWOFOLD_DATA", str(tmp_path))
    cache_folder.mkdir()
    (cache_folder / "mini-imagenet").symlink_to(mini_folder / "mini-imagenet")
    assert get("mini-imagenet") == cache_folder / "mini-imagenet"
    assert check("mini-imagenet").startswith(
        "mini-imagenet: 500 + 100 images of 84x84x3, 100 classes, digest "
    )


@pytest.mark.parametrize("use", [load, get, check])
def test_a_missing_data_folder_in_the_environment(
    use: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOFOLD_DATA", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"\$TWOFOLD_DATA is .*none, which is not a folder"):
        use("mnist")  # type: ignore[operator]


@pytest.mark.parametrize("use", [load, check])
@pytest.mark.parametrize("folder", [".", "none"])
def test_a_folder_without_the_data_set(use: object, folder: str, tmp_path: Path) -> None:
    place = tmp_path / folder
    with pytest.raises(UserError, match="no MNIST in") as caught:
        use("mnist", place)  # type: ignore[operator]
    message = str(caught.value)
    assert "train-images-idx3-ubyte.gz" in message
    assert f"`twofold data get mnist --data {place}`" in message
    assert ("not a folder" in message) == (folder == "none")
    assert "\n" not in message


def test_check_does_not_fetch() -> None:
    with pytest.raises(UserError, match=r"no CIFAR-100 in .*`twofold data get cifar100` puts it"):
        check("cifar100")


@pytest.mark.parametrize("use", [load, get, check])
@pytest.mark.parametrize("explicit", [False, True])
def test_mini_imagenet_cannot_be_fetched(use: object, explicit: bool, tmp_path: Path) -> None:
    folder = tmp_path / "data" if explicit else None
    with pytest.raises(UserError, match="no Mini-ImageNet in") as caught:
        use("mini-imagenet", folder)  # type: ignore[operator]
    message = str(caught.value)
    for part in (
        "train.csv, val.csv and test.csv",
        "mini-imagenet-cache-{train,val,test}.pkl",
        "Vinyals et al. (2016)",
        "Ravi & Larochelle (2017)",
        "ImageNet's terms",
    ):
        assert part in message
    assert "\n" not in message
    assert not (tmp_path / "data").exists()


def test_an_unreadable_place_is_named(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(UserError, match="loop"):
        load("mnist", loop)
