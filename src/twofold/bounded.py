"""Minimisation by a trust-region Newton method that ends after a fixed number of steps.

Before scipy 1.17, the search for a single step of `trust-exact` may go on forever if the values
are extreme. Here every step has a limit, whatever the version of scipy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # which imports its parts when they are first used
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = 500
SEARCHES = 25  # for one step: the limit of scipy since 1.17
OPTIONS: dict[str, Any] = {"gtol": 1e-8, "max_trust_radius": 1e4, "maxiter": STEPS}


def minimise(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    hessian: Callable[[Array], Array],
    start: Array,
) -> Array:
    """Return where the function is lowest, or the best place found within the limits."""
    limited = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)
    method: Any = "trust-exact" if limited else _older
    limits = {"subproblem_maxiter": SEARCHES} if limited else {}
    options = {**OPTIONS, **limits}
    search: Any = scipy.optimize.minimize
    result = search(
        value_and_gradient, start, method=method, jac=True, hess=hessian, options=options
    )
    return np.asarray(result.x)


def _older(function: Any, start: Array, args: Any = (), **options: Any) -> Any:
    """Do what `trust-exact` does in a scipy without the limit; such a scipy changes no more."""
    library: Any = scipy.optimize

    class Limited(library._trustregion_exact.IterativeSubproblem):  # type: ignore[misc]
        def solve(self, radius: float) -> Any:
            left = iter(range(2 * SEARCHES))
            factorise: Any = self.cholesky  # type: ignore[has-type]

            def counted(*arguments: Any, **named: Any) -> Any:
                if next(left, None) is None:
                    raise np.linalg.LinAlgError("no step was found")  # which ends the search
                return factorise(*arguments, **named)

            self.cholesky = counted
            try:
                return super().solve(radius)
            finally:
                self.cholesky = factorise

    known = {name: options[name] for name in (*OPTIONS, "jac", "hess")}
    search = library._trustregion._minimize_trust_region
    return search(function, start, args, subproblem=Limited, **known)
