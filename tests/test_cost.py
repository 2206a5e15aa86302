"""What training costs: images counted in real iterations, and what components state."""

from __future__ import annotations

import pytest
from helpers.benchmarks import class_benchmark
from helpers.training import training_of
from torch import Tensor, nn

from twofold.cost import Load
from twofold.method import Method
from twofold.objectives import Objective
from twofold.routines import Needs, Routine
from twofold.settings import Settings
from twofold.training import Training

BENCHMARKS = {norm: class_benchmark(norm=norm) for norm in (False, True)}


with_and_without_norm = pytest.mark.parametrize("norm", [False, True], ids=["plain", "norm"])


class Meter:
    """Counts the images of every training pass, forward and backward."""

    def __init__(self, module: nn.Module) -> None:
        self.forward: list[int] = []
        self.backward: list[int] = []
        self._own = module
        module.register_forward_hook(self._count)

    def _count(self, module: nn.Module, _, logits: Tensor) -> None:
        if module is self._own and logits.requires_grad:
            self.forward.append(len(logits))
            logits.register_hook(lambda gradient: self.backward.append(len(gradient)))


def cost(method: str, norm: bool) -> Meter:
    """Return what three tasks with three iterations of batch size 5 cost."""
    objective, routines = Method.parse(method).make()
    settings = Settings(lr=0.05, batch_size=5, seed=0, iterations=3, eval_schedule="every:3")
    training = Training(BENCHMARKS[norm], objective, routines, settings)
    meter = Meter(training.net.module)
    training.run()
    return meter


@with_and_without_norm
def test_agem_on_er_costs_no_image_more(norm):
    er, agem = cost("er", norm), cost("er+agem", norm)
    assert er.forward == er.backward == 3 * [5] + 6 * [10]
    assert sum(agem.forward) == sum(er.forward)
    if norm:  # one forward pass, and a second backward pass through its graph for g_old
        assert agem.forward == er.forward
        assert agem.backward == 3 * [5] + 12 * [10]
    else:
        assert sum(agem.backward) == sum(er.backward)


@pytest.mark.parametrize(
    ("method", "images"),  # of an iteration, in multiples of b, in tasks 1, 2 and 3
    [
        ("finetune", [1, 1, 1]),
        ("er", [1, 2, 2]),
        ("joint", [1, 2, 3]),
        ("joint+agem", [1, 2, 3]),
        ("agem", [1, 2, 2]),
        ("gem", [1, 2, 3]),
        ("er+gem", [1, 3, 4]),
        ("joint+gem", [1, 3, 5]),
        ("er+agem(reference=frozen)", [1, 3, 3]),
        ("der+agem", [1, 2, 2]),
        ("bic+agem", [1, 2, 2]),
    ],
)
@with_and_without_norm
def test_a_run_pays_only_for_what_its_method_asks(method, images, norm):
    assert sum(cost(method, norm).forward) == 3 * 5 * sum(images)


class Counter:
    """Counts forward passes of an iteration: with gradients, and images without."""

    def __init__(self, module: nn.Module) -> None:
        self.start()

        def count(called: nn.Module, _, logits: Tensor) -> None:
            with_gradient = called is module and logits.requires_grad
            self.load += Load(1, len(logits)) if with_gradient else Load(evaluated=len(logits))

        module.register_forward_hook(count)  # a function: a copy of the network has it as well

    def start(self) -> None:
        self.load = Load()


def iteration_loads(method: str, norm: bool, b: int = 5) -> dict[int, Load]:
    """Return the load of an iteration of each task, as it is counted; the mean over four."""
    current = "er-ace" in method or "nmc" in method
    memory = "per-class-task(20,current=true)" if current else "per-class-task(20)"
    training = training_of(
        method, benchmark=BENCHMARKS[norm], batch_size=b, iterations=4, memory=memory
    )
    counter, loads = Counter(training.net.module), {task: Load() for task in (1, 2, 3)}
    iterate = training._iterate

    def counted(task, n, rows):
        counter.start()
        recorded = iterate(task, n, rows)
        loads[task] += counter.load * (1 / 4)
        return recorded

    training._iterate = counted
    training.run()
    return loads


@with_and_without_norm
@pytest.mark.parametrize("name", sorted(Objective.known))
def test_an_objective_states_what_an_iteration_costs(name, norm):
    objective = Objective.find(name)()
    for task, counted in iteration_loads(name, norm).items():
        assert objective.cost(task, 5, norm) + objective.further_cost(task, 5) == counted


@with_and_without_norm
@pytest.mark.parametrize("routine", sorted(Routine.known))
def test_a_routine_states_what_it_costs_beyond_what_it_asks_for(routine, norm):
    """Finetuning asks for one pass over b images; `asks` implies the passes for references."""
    options = {"every": 2, "examples": 20} if routine in ("lpr", "hold") else {}
    part = Routine.find(routine)(**options)
    method = {
        "lpr": "lpr(every=2,examples=20)",
        "hold": "hold(every=2,examples=20)",
        "rescale": "clip+agem+rescale",
        "fade": "agem+fade",
    }.get(routine)
    for task, counted in iteration_loads(f"finetune+{method or routine}", norm).items():
        changes = routine in ("rescale", "fade")  # what agem has asked for
        asked = Needs.OLD if changes else part.asks()
        own = Load(1, 5)
        implied = Load()
        if Needs.ELSEWHERE in asked:
            implied += own
        if task > 1 and Needs.OLD in asked:
            implied += own
        if Needs.PER_TASK in asked:
            implied += own * (task - 1)
        assert own + implied + part.cost(task) == counted


@pytest.mark.parametrize("quota", [4, 10, 20])
def test_bic_states_what_an_evaluation_costs(quota):
    training = training_of("bic", memory_per_class=quota)
    training.run()
    counter = Counter(training.net.module)
    training.objective.before_evaluation()
    assert training.objective.evaluation_cost(3, 3, quota) == counter.load
    assert Objective.find("er")().evaluation_cost(3, 3, quota) == Load()
    assert training.objective.evaluation_cost(1, 3, quota) == Load()  # nothing to correct


def test_loads_add_up():
    assert Load(1, 2, 3) + Load(10, 20, 30) == Load(11, 22, 33)
    assert Load(1, 2, 3) * 2 == Load(2, 4, 6)
    assert Load() + Load(evaluated=1) == Load(0, 0, 1)
