"""Datasets in memory, and their digest."""

from __future__ import annotations

from pathlib import Path

from twofold.datasets import load
from twofold.datasets.dataset import digest


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
