"""TensorBoard as a sink of curves."""

from __future__ import annotations

from pathlib import Path


class Board:
    """The event files of one run, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # A run that continues is written anew from its first iteration. TensorBoard then drops
        # what an earlier attempt wrote.
        self._writer = SummaryWriter(str(folder), purge_step=0)

    def write(self, rows: list[tuple[int, dict[str, float]]]) -> None:
        for step, values in rows:
            for tag, value in values.items():
                self._writer.add_scalar(tag, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
