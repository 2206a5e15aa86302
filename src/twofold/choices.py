"""The choices of options. This module imports no torch, so that `--help` answers at once."""

from __future__ import annotations

from typing import Literal

Mode = Literal["offline", "online"]
Scenario = Literal["domain", "class", "task"]
Whitening = Literal["train", "published"]
Grouping = Literal["class-task", "class"]
Precision = Literal["fp32", "bf16", "auto"]
Kept = Literal["none", "end", "switches"]
