"""The settings of training: all options except for the benchmark and the method."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.choices import Grouping, Mode, Precision, Scenario
from twofold.evaluation.schedule import Schedule
from twofold.options import above, between, from_to_below, option
from twofold.sequence import order_check, read_order

SEED = 142  # the first of the seeds that `--seeds` counts
LARGEST = 10**9  # the largest count: larger ones fit no computer's memory
MOST_PARTS = 10_000  # tasks, each with a column of accuracies
LARGEST_SEED = 2**32 - 1  # the limit of numpy's legacy generator, which splits classes into tasks
LARGEST_LR = 1e30  # larger steps overflow single precision

TRAINING, EVALUATION = "what to train", "how to evaluate it"


def _schedule(text: str) -> str | None:
    Schedule.parse(text)  # it raises an error that states what is wrong
    return None


def _optimizer(text: str) -> str | None:
    from twofold import optimizers  # which imports torch

    optimizers.read(text)  # which says what is wrong
    return None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings with which a method is trained and evaluated."""

    mode: Mode = option(
        "offline",
        help="offline (many passes over a task; default) or online (one pass)",
        group=TRAINING,
        axis=True,
    )
    lr: float = option(
        0.1,
        help="learning rate (default: the method's, mostly 0.1 offline and 0.01 online)",
        check=above(0, LARGEST_LR),
        group=TRAINING,
        axis=True,
    )
    batch_size: int = option(
        128,
        help="examples per batch (default: 128 offline; online the benchmark's, mostly 10)",
        check=between(1, LARGEST),
        label="batch",
        group=TRAINING,
        axis=True,
    )
    seed: int = option(
        SEED,
        help="these seeds (142)",
        check=between(0, LARGEST_SEED),
        group=TRAINING,
        axis=True,
    )
    iterations: int | None = option(
        None,
        help="at most N iterations per task",
        check=between(1, LARGEST),
        group=TRAINING,
        reduces=True,
    )
    tasks: int | None = option(
        None,
        help="only the first N tasks",
        check=between(1, LARGEST),
        group=TRAINING,
        reduces=True,
    )
    epochs: int | None = option(
        None,
        help="N passes over the training data of each task, instead of iterations",
        check=between(1, LARGEST),
        group=TRAINING,
    )
    order: str | None = option(
        None,
        help="the benchmark's tasks in this order, such as 1,2,1: tasks can return or be left out",
        check=order_check,
        metavar="1,2,1",
        group=TRAINING,
        commas=True,
    )
    parts: int | None = option(
        None,
        help="homogeneous tasks: the data of all tasks (or of those in --order) in N random equal "
        "parts, each of which is a task, with one test set",
        check=between(1, MOST_PARTS),
        group=TRAINING,
    )
    blur: float = option(
        0.0,
        help="mix the examples of neighbouring tasks around each switch, over this share of their "
        "iterations (default: 0)",
        check=from_to_below(0, 1),
        metavar="FRACTION",
        group=TRAINING,
    )
    task_free: bool = option(
        False,
        help="train on one stream without task boundaries, which only the evaluation knows; it "
        "needs a memory such as reservoir(2000)",
        label="task-free",
        group=TRAINING,
    )
    scenario: Scenario | None = option(
        None,
        help="task: train and evaluate each task among its own classes, and give task ids to a "
        "network that takes them (default: the benchmark's own, domain or class)",
        metavar="SCENARIO",
        group=TRAINING,
    )
    momentum: float = option(
        0.9,
        help="of SGD; of Adam and its relatives, beta1 (default: 0.9)",
        check=from_to_below(0, 1),
        group=TRAINING,
    )
    optimizer: str = option(
        "sgd",
        help="sgd (with momentum; default), nesterov, adam(lr=0.001), adamw, rmsprop, or any other "
        "of torch.optim by name, with its options",
        check=_optimizer,
        group=TRAINING,
    )
    memory: str = option(
        "",
        help="what is stored: per-class-task(100) (default), per-class(100), reservoir(2000), "
        "class-balanced, ring, herding or your own; current=true stores the current task, too, and "
        "replay=64 sets the replay batch (docs/memories.md)",
        group=TRAINING,
    )
    memory_per_class: int = option(
        100,
        help="examples stored per class, or per class and task (100)",
        check=between(0, LARGEST),
        group=TRAINING,
    )
    memory_grouping: Grouping = option(
        "class-task",
        help="what has a quota in memory: class-task (a class in a task; default) or class",
        group=TRAINING,
    )
    eval_schedule: str = option(
        "every",
        help="every (default); every:10; dense:100:10: each of a task's first 100 iterations, "
        "then every 10th; exact-min: every 10th, and MIN exact, from a part of the images",
        check=_schedule,
        metavar="SCHEDULE",
        group=EVALUATION,
        reduces=True,
    )
    validation: float = option(
        0.0,
        help="evaluate on this share of the training images of each class and task, which are held "
        "out, instead of the test images (default: 0)",
        check=from_to_below(0, 1),
        metavar="FRACTION",
        group=EVALUATION,
        reduces=True,
    )
    eval_size: int = option(
        1000,
        help="test images per task (1000)",
        check=between(1, LARGEST),
        group=EVALUATION,
        reduces=True,
    )
    eval_precision: Precision = option(
        "fp32",
        help="fp32 (default); bf16 with checks, which is faster on some processors; or auto, which "
        "takes the faster one",
        group=EVALUATION,
        reduces=True,
    )

    # The stored columns differ, so a diagnosed run has an identity of its own.
    diagnose: bool = option(
        False,
        help="also log what each step does to the loss on old training images: old_predicted, "
        "old_second, old_change, ... (docs/routines.md)",
        group=EVALUATION,
    )

    @property
    def schedule(self) -> Schedule:
        return Schedule.parse(self.eval_schedule)

    @property
    def task_ids(self) -> bool:
        """Whether training knows which task an example belongs to."""
        return not self.task_free

    def iterations_of(self, examples: int, offline_iterations: int) -> int:
        """Return the iterations of a task: online, one pass without the last partial batch."""
        a_pass = examples // self.batch_size
        if self.epochs is not None:
            return self.epochs * a_pass
        count = a_pass if self.mode == "online" else offline_iterations
        return min(count, self.iterations or count)

    def sequence(self, available: int) -> list[int]:
        """Return which of the available tasks is trained at each place; parts are tasks."""
        every = list(range(1, (self.parts or available) + 1))
        order = read_order(self.order) if self.order and not self.parts else None
        return (order or every)[: self.tasks]
