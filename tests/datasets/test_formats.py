"""Each publisher's format, read as written and refused when damaged."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import publishers
from PIL import Image

from twofold.datasets import check, cifar100, load, mini_imagenet, mnist
from twofold.datasets.dataset import Copy, Dataset, digest
from twofold.errors import UserError


def found(copy: Copy | None) -> Copy:
    assert copy is not None
    return copy


# --- MNIST


@pytest.mark.parametrize("place", ["MNIST/raw", "mnist", "."])
def test_mnist_is_read(tmp_path: Path, place: str) -> None:
    files = publishers.mnist_files()
    publishers.write(tmp_path / place, files)
    copy = found(mnist.find(tmp_path))
    dataset = copy.decode()
    assert copy.where == tmp_path / place
    assert dataset.train.images.shape == (30, 28, 28, 1)
    assert dataset.test.images.shape == (10, 28, 28, 1)
    assert dataset.train.labels.dtype == np.int64
    assert dataset.train.coarse is None
    assert dataset.class_names == tuple("0123456789")
    raw = gzip.decompress(files["train-images-idx3-ubyte.gz"])
    assert dataset.train.images.tobytes() == raw[16:]
    labels = gzip.decompress(files["t10k-labels-idx1-ubyte.gz"])
    assert bytes(dataset.test.labels.tolist()) == labels[8:]


def test_mnist_may_be_unpacked(tmp_path: Path) -> None:
    """One file of it or all; packed ones are taken where there are both."""
    files = publishers.mnist_files()
    packed = found(mnist.find(publishers.write(tmp_path / "packed", files))).decode()
    for number, (name, content) in enumerate(files.items(), 1):
        publishers.write(tmp_path, {**files, name.removesuffix(".gz"): gzip.decompress(content)})
        for left in list(files)[:number]:
            (tmp_path / left).unlink()
        copy = found(mnist.find(tmp_path))
        assert sum(file.suffix == "" for file in copy.files) == number
        assert digest(copy.decode()) == digest(packed)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"cut")
    with pytest.raises(UserError, match="train-images-idx3-ubyte: not an idx file"):
        found(mnist.find(tmp_path)).decode()
    publishers.write(tmp_path, files)
    assert digest(found(mnist.find(tmp_path)).decode()) == digest(packed)


def test_mnist_needs_all_four_files(tmp_path: Path) -> None:
    files = publishers.mnist_files()
    del files["t10k-labels-idx1-ubyte.gz"]
    publishers.write(tmp_path, files)
    assert mnist.find(tmp_path) is None


IMAGES = "train-images-idx3-ubyte.gz"
SMALL = np.zeros((30, 28, 28), np.uint8)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (IMAGES, publishers.mnist_files()[IMAGES][:-100], "cut short or damaged"),
        (IMAGES, publishers.mnist_files()[IMAGES][:-4] + b"aaaa", "cut short or damaged"),
        (IMAGES, b"", "not an idx file"),
        (IMAGES, b"not gzip at all", "cut short or damaged"),
        (IMAGES, gzip.compress(b"\0\0\x0d\3" + publishers.idx(SMALL)[4:]), "not an idx file"),
        (IMAGES, gzip.compress(b"\0\0\x08\3\0"), "not an idx file"),
        (IMAGES, gzip.compress(publishers.idx(SMALL)[:-1]), "its header says"),
        (IMAGES, gzip.compress(publishers.idx(SMALL) + b"x"), "its header says"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[0])), "not an idx file"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[:, :14])), r"expected \(30, 28, 28\)"),
        (IMAGES, gzip.compress(publishers.idx(SMALL[:7])), r"for 30 labels"),
    ],
    ids=[
        "cut short",
        "checksum",
        "empty",
        "no gzip",
        "floats",
        "header cut",
        "byte less",
        "byte more",
        "one image",
        "half images",
        "fewer images",
    ],
)
def test_damaged_mnist_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    publishers.write(tmp_path, {**publishers.mnist_files(), name: content})
    with pytest.raises(UserError, match=message) as caught:
        found(mnist.find(tmp_path)).decode()
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("use", [load, check])
def test_other_digits_are_not_mnist(tmp_path: Path, use: Any) -> None:
    publishers.write(tmp_path, publishers.mnist_files())
    with pytest.raises(UserError, match="damaged or not MNIST"):
        use("mnist", tmp_path)


# --- CIFAR-100


def is_cifar(dataset: Dataset) -> None:
    contents = publishers.cifar_contents()
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        wanted = contents[part]
        assert split.labels.tolist() == wanted["fine_labels"]
        assert split.coarse is not None
        assert split.coarse.tolist() == wanted["coarse_labels"]
        assert split.coarse.dtype == split.labels.dtype == np.int64
        # The publisher stores 1024 red, 1024 green, 1024 blue values, row by row.
        red_of_second_row = wanted["data"][:, 32:64]
        assert np.array_equal(split.images[:, 1, :, 0], red_of_second_row)
        assert np.array_equal(split.images[:, 0, 5, 2], wanted["data"][:, 2048 + 5])
    assert dataset.class_names[:2] == ("class 0", "class 1")


@pytest.mark.parametrize("place", ["cifar-100-python", "."])
def test_cifar_folder_is_read(tmp_path: Path, place: str) -> None:
    publishers.write(tmp_path / place, publishers.cifar_files())
    is_cifar(found(cifar100.find(tmp_path)).decode())


def test_cifar_archive_is_read_in_place(tmp_path: Path) -> None:
    publishers.write(tmp_path, {cifar100.ARCHIVE: publishers.cifar_archive()})
    is_cifar(found(cifar100.find(tmp_path)).decode())
    assert [path.name for path in tmp_path.iterdir()] == [cifar100.ARCHIVE]


def test_hostile_archive_does_nothing(tmp_path: Path) -> None:
    files = publishers.cifar_files()
    link = tarfile.TarInfo("cifar-100-python/test")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard = tarfile.TarInfo("cifar-100-python/test")
    hard.type, hard.linkname = tarfile.LNKTYPE, "../../outside"
    device = tarfile.TarInfo("cifar-100-python/test")
    device.type = tarfile.CHRTYPE
    members: list[tuple[tarfile.TarInfo | str, bytes]] = [
        ("../outside", b"x"),
        (str(tmp_path / "outside"), b"x"),
        ("../cifar-100-python/train", b"garbage"),
        ("/cifar-100-python/train", b"garbage"),
        (link, b""),
        (hard, b""),
        (device, b""),
    ]
    good: list[tuple[tarfile.TarInfo | str, bytes]] = [
        (f"cifar-100-python/{name}", content) for name, content in files.items()
    ]
    folder = tmp_path / "data"
    publishers.write(folder, {cifar100.ARCHIVE: publishers.tar_gz(members + good)})
    is_cifar(found(cifar100.find(folder)).decode())
    publishers.write(folder, {cifar100.ARCHIVE: publishers.tar_gz(members)})
    with pytest.raises(UserError, match="lacks the file cifar-100-python/train"):
        found(cifar100.find(folder)).decode()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in folder.iterdir()] == [cifar100.ARCHIVE]


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.95])
def test_cut_short_archive_is_refused(tmp_path: Path, share: float) -> None:
    archive = publishers.cifar_archive()
    cut = archive[: int(share * len(archive))]
    publishers.write(tmp_path, {cifar100.ARCHIVE: cut})
    with pytest.raises(UserError, match=cifar100.ARCHIVE):
        found(cifar100.find(tmp_path)).decode()


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("train", {"data": None}, "expected uint8"),
        ("train", {"data": np.zeros((40, 3071), np.uint8)}, r"\(40, 3071\).*expected uint8"),
        ("train", {"data": np.zeros((39, 3072), np.uint8)}, r"\(39, 3072\).*expected uint8"),
        ("test", {"data": np.zeros((20, 3072), np.float32)}, "float32"),
        ("test", {"fine_labels": ["a"] * 20}, "test: fine_labels: expected a list of whole"),
        ("test", {"coarse_labels": [1] * 19}, "19 coarse labels"),
        ("meta", {"fine_label_names": "apple"}, "not a list of names"),
        ("meta", {"fine_label_names": [1, 2]}, "not a list of names"),
    ],
)
def test_wrong_cifar_is_refused(
    tmp_path: Path, part: str, change: dict[str, Any], message: str
) -> None:
    contents = publishers.cifar_contents()
    contents[part].update(change)
    publishers.write(tmp_path, publishers.cifar_files(contents))
    with pytest.raises(UserError, match=message):
        found(cifar100.find(tmp_path)).decode()


def test_cifar_without_a_key_is_refused(tmp_path: Path) -> None:
    contents = publishers.cifar_contents()
    del contents["test"]["coarse_labels"]
    publishers.write(tmp_path, publishers.cifar_files(contents))
    with pytest.raises(UserError, match="test: lacks 'coarse_labels'"):
        found(cifar100.find(tmp_path)).decode()


def test_other_images_are_not_cifar(tmp_path: Path) -> None:
    publishers.write(tmp_path, publishers.cifar_files())
    with pytest.raises(UserError, match="damaged or not CIFAR-100"):
        check("cifar100", tmp_path)


# --- Mini-ImageNet


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
        wanted = [publishers.mini_value(wnid, number) for wnid in wnids for number in numbers]
        found = split.images.astype(int)
        assert abs(found - np.array(wanted)[:, None, None, None]).max() <= tolerance


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
        ({"image_data": "none"}, "expected uint8"),
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


def test_the_digest_covers_everything(mini_folder: Path) -> None:
    from dataclasses import replace

    dataset = load("mini-imagenet", mini_folder)
    other_labels = replace(dataset.test, labels=dataset.test.labels[::-1])
    other_images = replace(dataset.train, images=255 - dataset.train.images)
    with_coarse = replace(dataset.train, coarse=dataset.train.labels)
    variants = [
        dataset,
        replace(dataset, test=other_labels),
        replace(dataset, train=other_images),
        replace(dataset, train=with_coarse),
        replace(dataset, class_names=dataset.class_names[::-1]),
    ]
    assert len({digest(variant) for variant in variants}) == len(variants)
