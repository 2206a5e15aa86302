"""Mini-ImageNet: 100 classes of ImageNet at 84x84 (Vinyals et al. 2016), all classes pooled.

The published split divides the classes, for few-shot learning. Here every class is trained and
tested. The test set is the last sixth of each class's images in file order (100 of 600).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from twofold.datasets import unpickle
from twofold.datasets.dataset import Copy, Dataset, Source, Split
from twofold.errors import UserError
from twofold.extras import need
from twofold.plainfiles import opened

PARTS = ("train", "val", "test")
CLASSES = 100
SIDE = 84
LONGEST_SIDE = 10_000  # of an image before it is resized
FEWEST = 6  # images of a class, so that at least one is in the test set
Key = TypeVar("Key")


def find(folder: Path) -> Copy | None:
    for place in (folder / "mini-imagenet", folder):
        tables = tuple(place / f"{part}.csv" for part in PARTS)
        if (place / "images").is_dir() and all(table.is_file() for table in tables):
            return Copy(place, (*tables, place / "images"), partial(decode_folder, place))
        pickles = tuple(place / f"mini-imagenet-cache-{part}.pkl" for part in PARTS)
        if all(file.is_file() for file in pickles):
            return Copy(place, pickles, partial(decode_pickles, place))
    return None


def decode_folder(place: Path) -> Dataset:
    need("images", "Mini-ImageNet as image files")
    present = set(os.listdir(place / "images"))  # noqa: PTH208 (60,000 names, no paths)
    classes: dict[str, list[str]] = {}
    names_so_far: set[str] = set()
    for part in PARTS:
        table = place / f"{part}.csv"
        for name, label in _rows(table):
            if name not in present:
                raise UserError(f"{table}: names {name}, which is not in {place / 'images'}")
            if name in names_so_far:
                raise UserError(f"{table}: names {name}, which is named before")
            names_so_far.add(name)
            classes.setdefault(label, []).append(name)
    ordered = {label: sorted(names) for label, names in classes.items()}
    return _pool(ordered, lambda name: _read_image(place / "images" / name), place)


def _rows(table: Path) -> list[tuple[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = [(row["filename"], row["label"]) for row in csv.DictReader(file, strict=True)]
    except KeyError as error:
        raise UserError(f"{table}: lacks the column {error}, expected filename,label") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{table}: not a csv file ({error})") from error
    for number, row in enumerate(rows, start=1):
        if not all(row):
            raise UserError(f"{table}: row {number} lacks a file name or a label")
    return rows


def _read_image(path: Path) -> NDArray[np.uint8]:
    from PIL import Image  # imported here, since only decoding needs it

    try:
        with opened(path) as file, Image.open(file, formats=("JPEG", "PNG")) as image:
            if max(image.size) > LONGEST_SIDE:
                raise UserError("it has {}x{} pixels".format(*image.size))
            rgb = image.convert("RGB")
        if rgb.size != (SIDE, SIDE):
            rgb = rgb.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    except Exception as error:  # the decoders raise a dozen kinds of error on a damaged file
        raise UserError(f"{path}: not an image that can be read ({error})") from error
    return np.asarray(rgb)


def decode_pickles(place: Path) -> Dataset:
    classes: dict[str, list[tuple[int, int]]] = {}
    images = []
    for number, part in enumerate(PARTS):
        path = place / f"mini-imagenet-cache-{part}.pkl"
        pixels, indices = _read_pickle(path)
        images.append(pixels)
        for label, rows in indices.items():
            classes.setdefault(label, []).extend((number, row) for row in rows)
    return _pool(classes, lambda key: images[key[0]][key[1]], place)


def _read_pickle(path: Path) -> tuple[NDArray[np.uint8], dict[str, list[int]]]:
    with path.open("rb") as stream:
        content = unpickle.read(stream, str(path), ("image_data", "class_dict"))
    pixels = unpickle.array(content["image_data"], f"{path}: image_data")
    if pixels.dtype != np.uint8 or pixels.shape[1:] != (SIDE, SIDE, 3):
        raise UserError(
            f"{path}: image_data is {pixels.dtype} {pixels.shape}, "
            f"expected uint8 (N, {SIDE}, {SIDE}, 3)"
        )
    by_class = content["class_dict"]
    if not isinstance(by_class, dict) or not all(isinstance(k, str | bytes) for k in by_class):
        raise UserError(f"{path}: class_dict is not a dict from class names to indices")
    indices = {}
    for label, rows in by_class.items():
        numbers = np.sort(unpickle.integers(rows, f"{path}: class_dict"))
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < len(pixels):
            raise UserError(f"{path}: class_dict points outside of its {len(pixels)} images")
        indices[unpickle.text(label)] = numbers.tolist()
    _check_once(indices, path)
    return pixels, indices


def _check_once(indices: Mapping[str, list[int]], path: Path) -> None:
    """Require that no image is named twice: it could be in the training set and in the test set."""
    rows_so_far: set[int] = set()
    for row in (row for rows in indices.values() for row in rows):
        if row in rows_so_far:
            raise UserError(f"{path}: class_dict names image {row} twice")
        rows_so_far.add(row)


def _pool(
    classes: Mapping[str, list[Key]], read: Callable[[Key], NDArray[np.uint8]], place: Path
) -> Dataset:
    """Return the dataset with training and test sets made from each class's images, in order."""
    if len(classes) != CLASSES:
        raise UserError(f"{place}: holds {len(classes)} classes, expected {CLASSES}")
    names = sorted(classes)
    train: list[tuple[int, Key]] = []
    test: list[tuple[int, Key]] = []
    for number, name in enumerate(names):
        keys = classes[name]
        if len(keys) < FEWEST:
            raise UserError(
                f"{place}: class {name} has {len(keys)} images, expected {FEWEST} or more"
            )
        border = len(keys) - len(keys) // 6
        train += [(number, key) for key in keys[:border]]
        test += [(number, key) for key in keys[border:]]
    return Dataset("mini-imagenet", _split(train, read), _split(test, read), tuple(names))


def _split(items: list[tuple[int, Key]], read: Callable[[Key], NDArray[np.uint8]]) -> Split:
    images = np.empty((len(items), SIDE, SIDE, 3), np.uint8)
    for row, (_, key) in enumerate(items):
        images[row] = read(key)
    return Split(images, np.array([number for number, _ in items], np.int64))


SOURCE = Source(
    name="mini-imagenet",
    title="Mini-ImageNet",
    files=(
        "images/ with train.csv, val.csv and test.csv, or "
        "mini-imagenet-cache-{train,val,test}.pkl, in mini-imagenet or in the folder itself"
    ),
    find=find,
    fetch=None,
    digest=None,
    origin=(
        "it cannot be downloaded freely: it is the ImageNet subset of Vinyals et al. (2016) in the "
        "split of Ravi & Larochelle (2017), for those who accept ImageNet's terms"
    ),
)
