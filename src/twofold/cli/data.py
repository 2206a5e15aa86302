"""`twofold data`: get or check a dataset."""

from __future__ import annotations

import argparse
from typing import Any

from twofold.cli.parsing import folder


def add(commands: Any) -> None:
    parser = commands.add_parser("data", help="get or check a dataset")
    parser.add_argument("action", choices=("get", "check"), metavar="get|check")
    parser.add_argument("name", metavar="NAME", help="mnist, cifar100 or mini-imagenet")
    parser.add_argument("--data", type=folder, metavar="DIR", help="where it is, or shall be")
    parser.set_defaults(act=act, parser=parser)


def act(args: argparse.Namespace) -> None:
    from twofold import datasets

    if args.action == "get":
        print(f"{args.name} is in {datasets.get(args.name, args.data)}")
    else:
        print(datasets.check(args.name, args.data))
