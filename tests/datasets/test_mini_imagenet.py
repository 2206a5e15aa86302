"""Mini-ImageNet: both formats, read as published and refused if damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from PIL import Image

from twofold.datasets import load, mini_imagenet
from twofold.datasets.dataset import Dataset
from twofold.errors import UserError


def is_mini(dataset: Dataset, per_class: int, tolerance: int) -> None:
    wnids = sorted(wnid for part in publishers.mini_parts().values() for wnid in part)
    assert dataset.class_names == tuple(wnids)
    tested = per_class // 6
    for split, numbers in (
        (dataset.train, range(per_class - tested)),
        (dataset.test, range(per_class - tested, per_class)),
    ):
        assert split.images.shape == (100 * len(numbers), 84, 84, 3)
        assert split.labels.tolist() == np.repeat(np.arange(100), len(numbers)).tolist()
        expected = [publishers.mini_value(wnid, number) for wnid in wnids for number in numbers]
        result = split.images.astype(int)
        assert abs(result - np.array(expected)[:, None, None, None]).max() <= tolerance


@pytest.mark.parametrize(("place", "per_class", "side"), [("mini-imagenet", 6, 84), (".", 13, 30)])
def test_mini_folder_is_read(tmp_path: Path, place: str, per_class: int, side: int) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    publishers.write_mini_folder(tmp_path / place, per_class, side)
    is_mini(load("mini-imagenet", tmp_path), per_class, tolerance=2)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_mini_pickles_are_read(tmp_path: Path, protocol: int) -> None:
    contents = publishers.mini_pickles(per_class=7)
    publishers.write_mini_pickles(tmp_path / "mini-imagenet", contents, protocol)
    is_mini(load("mini-imagenet", tmp_path), per_class=7, tolerance=0)


def test_both_formats_give_the_same_classes_and_split(tmp_path: Path, mini_folder: Path) -> None:
    publishers.write_mini_pickles(tmp_path, publishers.mini_pickles(per_class=6), protocol=2)
    one, two = load("mini-imagenet", mini_folder), load("mini-imagenet", tmp_path)
    assert one.class_names == two.class_names
    assert np.array_equal(one.test.labels, two.test.labels)
    assert abs(one.test.images.astype(int) - two.test.images).max() <= 2


@pytest.fixture
def mini(tmp_path: Path, mini_folder: Path) -> Path:
    """A copy to damage: the images are links, so that it is made at once."""
    place = tmp_path / "mini-imagenet"
    (place / "images").mkdir(parents=True)
    for table in (mini_folder / "mini-imagenet").glob("*.csv"):
        (place / table.name).write_bytes(table.read_bytes())
    for image in (mini_folder / "mini-imagenet" / "images").iterdir():
        (place / "images" / image.name).symlink_to(image)
    return place


def refused(place: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load("mini-imagenet", place)
    assert "\n" not in str(caught.value)


def a_test_image(place: Path) -> Path:
    """One of the test set, which is read last."""
    return sorted((place / "images").iterdir())[-1]


@pytest.mark.parametrize("keep", [0, 20, 400])
def test_damaged_image_is_named(mini: Path, keep: int) -> None:
    image = a_test_image(mini)
    content = image.read_bytes()
    image.unlink()
    image.write_bytes(content[:keep])
    refused(mini, f"{image.name}: not an image that can be read")


def test_missing_image_is_named(mini: Path) -> None:
    a_test_image(mini).unlink()
    refused(mini, rf"\.csv: names {a_test_image(mini).name[:9]}00000005\.jpg, which is not in")


def test_images_of_other_kinds_are_converted(mini: Path) -> None:
    image = a_test_image(mini)
    image.unlink()
    Image.new("CMYK", (200, 100), (0, 0, 0, 255)).save(image, format="JPEG")
    assert load("mini-imagenet", mini).test.images[-1].max() < 5
    image.unlink()
    Image.new("L", (10, 10), 200).save(image, format="PNG")
    assert abs(mini_imagenet.decode_folder(mini).test.images[-1].astype(int) - 200).max() == 0


def test_an_image_out_of_the_folder_is_not_read(mini: Path) -> None:
    (mini / "secret.jpg").write_bytes(a_test_image(mini).read_bytes())
    with (mini / "val.csv").open("a") as table:
        table.write("../secret.jpg,n00000001\n")
    refused(mini, r"names \.\./secret\.jpg, which is not in")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\na,b\n", "lacks the column 'filename', expected filename,label"),
        ("filename,label\na.jpg\n", "row 1 lacks a file name or a label"),
        ('filename,label\n"a\n', "not a csv file"),
        ("filename,label\n", "holds 84 classes, expected 100"),
        ("\xff\xfe", "not a csv file"),
    ],
)
def test_wrong_table_is_refused(mini: Path, text: str, message: str) -> None:
    (mini / "val.csv").write_bytes(text.encode("latin1"))
    refused(mini, message)


def test_an_image_listed_twice_is_refused(mini: Path) -> None:
    (mini / "val.csv").write_bytes((mini / "test.csv").read_bytes())
    refused(mini, "which is named before")


def test_a_class_with_too_few_images_is_refused(mini: Path) -> None:
    lines = (mini / "val.csv").read_text().splitlines()
    (mini / "val.csv").write_text("\n".join(lines[:-1]))
    refused(mini, "has 5 images, expected 6 or more")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_data": np.zeros((5, 32, 32, 3), np.uint8)}, "expected uint8"),
        ({"image_data": np.zeros((5, 84, 84, 3), np.float32)}, "float32"),
        ({"image_data": "none"}, "expected an array"),
        ({"class_dict": [1]}, "not a dict from class names"),
        ({"class_dict": {1: [1]}}, "not a dict from class names"),
        ({"class_dict": {"n1": [0, 10_000]}}, "points outside of its 96 images"),
        ({"class_dict": {"n1": [-1]}}, "points outside of its 96 images"),
        ({"class_dict": {"n1": ["x"]}}, "expected a list of whole numbers"),
        ({"class_dict": {"n1": [0]}}, "holds 85 classes"),
    ],
)
def test_wrong_pickle_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    contents = publishers.mini_pickles(per_class=6)
    contents["val"].update(change)
    publishers.write_mini_pickles(tmp_path, contents, protocol=4)
    refused(tmp_path, message)


@pytest.mark.real_data
def test_the_real_images(real_dataset: Callable[[str], Dataset]) -> None:
    dataset = real_dataset("mini-imagenet")
    trained, tested = (np.bincount(s.labels) for s in (dataset.train, dataset.test))
    assert len(dataset.class_names) == 100
    assert tested.tolist() == ((trained + tested) // 6).tolist()
    assert dataset.train.images.shape[1:] == (84, 84, 3)
    assert dataset.class_names == tuple(sorted(dataset.class_names))
