"""DER++ (Buzzega et al., 2020): DER with the cross-entropy of replayed examples.

    L = CE(new) + alpha E_{(x,z) in memory} ||z - h(x)||^2 + beta CE(memory)

Both sums over the memory are on one replay batch. The original draws two.
"""

from __future__ import annotations

from dataclasses import dataclass

from twofold.objectives.der import Der


@dataclass
class Derpp(Der, name="derpp"):
    """DER++: replay of logits and of labels. It is `der` with beta 0.5.

    alpha: weight of the distance between logits, which is the mean over the outputs.
    beta: weight of the cross-entropy on replayed examples.
    augment: `crop` (the default), `pad` or `none`.
    """

    beta: float = 0.5

    label = "DER++"
