"""A plugin: ER's loss with what GEM adds at least, if it projects always, as part of the loss.

With `when=always`, GEM's step is that of g + v_1 g_1 + ... + v_K g_K with every v_k >= gamma, where
g is the gradient of ER's loss and g_k that of the loss on stored examples of past task k. With all
v_k = gamma this is plain SGD on

    1/t l_new + (1 - 1/t) l_old + gamma (l_1 + ... + l_K),        K = t - 1.

So `heavier-er` beside `er+gem(when=always)` with the same gamma tells what of GEM's effect is its
weight on old tasks, a "what", and what is its projection, a "how".
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.objectives import Objective
from twofold.objectives.base import Draw, Pass, Term, cross_entropy


@dataclass
class HeavierEr(Objective, name="heavier-er"):
    """ER's loss and, for each past task, gamma times the loss on b of its stored examples.

    gamma: 0 is ER (with b stored examples of each past task in place of b of all).
    """

    gamma: float = 1.0

    replays = "each"

    def passes(self, draw: Draw) -> list[Pass]:
        new = Term("new", 1 / draw.task, draw.new.x, cross_entropy(draw.new.y))
        if draw.old is None:
            return [[new]]
        # b examples of each of the t-1 past tasks are one batch: their losses add to t-1 means.
        weight = 1 - 1 / draw.task + self.gamma * (draw.task - 1)
        return [[new, Term("old", weight, draw.old.x, cross_entropy(draw.old.y))]]
