"""`python -m torture`: disturb runs for some time, and print how the stores have borne it.

SECONDS=600 make torture              ten minutes instead of an hour
python -m torture --seed 7 --kind kill   one attempt, again
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from torture.kinds import KINDS, SELDOM
from torture.outcome import NotStartedError, Outcome
from twofold.report.text import markdown_table

EVERY = 10  # seeds between two attempts of the kinds that take long
HEAD = ["kind", "attempts", "survived", "lost", "made twice", "badly answered"]


def attempt(kind: str, seed: int) -> Outcome:
    """Disturb a store once, in a way that the seed decides."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        store = Path(folder) / "store"
        store.mkdir()
        return KINDS[kind](random.Random(seed), store)


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description="Disturb runs in many ways.")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, help="one attempt with this seed")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kinds = [args.kind] if args.kind else list(KINDS)
    outcomes: dict[str, list[Outcome]] = {kind: [] for kind in kinds}
    first = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    print(f"seeds from {first} on", flush=True)
    end, seed = time.monotonic() + args.seconds, first
    while time.monotonic() < end:
        for kind in kinds:
            if kind in SELDOM and (seed - first) % EVERY:
                continue
            try:
                outcome = attempt(kind, seed)
            except NotStartedError as error:
                print(f"{kind} {seed} is not counted: {error}", flush=True)
                continue
            except Exception:  # the attempt itself went wrong, and the others go on
                outcome = Outcome(badly=traceback.format_exc())
            outcomes[kind].append(outcome)
            if outcome != Outcome():
                print(f"python -m torture --kind {kind!r} --seed {seed}: {outcome}", flush=True)
        seed += 1
        if args.seed is not None:
            break
    print(f"seeds to {seed - 1}\n")
    print(table(outcomes))
    return int(any(outcome != Outcome() for each in outcomes.values() for outcome in each))


def table(found: dict[str, list[Outcome]]) -> str:
    lines = [HEAD]
    for kind, outcomes in found.items():
        bad = [sum(o.lost for o in outcomes), sum(o.twice for o in outcomes)]
        bad.append(sum(bool(o.badly) for o in outcomes))
        survived = sum(outcome == Outcome() for outcome in outcomes)
        lines.append([kind, str(len(outcomes)), str(survived), *map(str, bad)])
    totals = [str(sum(int(line[k]) for line in lines[1:])) for k in range(1, len(HEAD))]
    return markdown_table([*lines, ["all", *totals]], left=1)


if __name__ == "__main__":
    sys.exit(main())
