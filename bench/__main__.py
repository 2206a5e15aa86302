"""Speed as ratios, measured in one run: `make bench`. docs/performance.md explains the rows.

The part `peers` needs an environment with Avalanche: `make bench-peers`.

python bench [--only evaluation,steps] [--json bench.json]
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import time
from pathlib import Path

import torch

from twofold.experiments.summary import hardware

PARTS = (
    "evaluation",
    "training",
    "throughput",
    "steps",
    "minima",
    "memory",
    "overhead",
    "watching",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description="Speed as ratios.")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}, peers")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), metavar="FILE")
    args = parser.parse_args()
    start, rows = time.monotonic(), []
    for part in args.only.split(","):
        began = time.monotonic()
        for row in importlib.import_module(part).rows():
            sign = "ok" if row.reached else "--"
            value = f"{row.value:.2f}{row.unit}"
            note = f"  ({row.note})" if row.note else ""
            print(f"{sign}  {row.name:88} {value:>8}  {row.bound} {row.target:g}{note}", flush=True)
            rows.append({**dataclasses.asdict(row), "reached": row.reached})
        print(f"    {part}: {time.monotonic() - began:.0f} s", flush=True)
    seconds = round(time.monotonic() - start)
    instructions = torch.backends.cpu.get_cpu_capability()  # which the environment may limit
    machine = hardware("cpu") | {"instructions": instructions, "torch": torch.__version__}
    args.json.write_text(json.dumps(machine | {"seconds": seconds, "rows": rows}, indent=2) + "\n")
    print(f"{len(rows)} rows in {seconds} s, written to {args.json}")


if __name__ == "__main__":
    main()
