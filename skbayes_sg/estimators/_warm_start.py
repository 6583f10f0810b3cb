"""`warm_start`: the search for the mode begins where that of the previous fit has ended.

An estimator keeps its mode for this purpose, one number for each parameter. Where no mode was
looked for, as in closed form and in combinations of subposteriors, the posterior means take its
place. Parameters that the previous fit did not have, such as coefficients of new columns, begin in
the middle of their prior.
"""

import numpy as np

from .._base.validation import Parameters
from ..priors.table import starting_point

__all__ = ["start_of"]


def start_of(estimator, plan, prior):
    """The θ at which the search for the mode begins; None for first fits, and without `warm_start`.

    `plan` and `prior` are those of the new fit.
    """
    if not Parameters(estimator).flag("warm_start"):
        return None
    estimator._refuse_learned_scales("warm_start=True")
    posterior = getattr(estimator, "posterior_", None)
    if posterior is None:
        return None
    last = posterior.mean() if estimator._mode is None else estimator._mode
    known = dict(zip(posterior.labels, last, strict=True))
    middle = plan.parameters(starting_point(prior))
    values = [known.get(label, own) for label, own in zip(plan.labels, middle, strict=True)]
    return plan.theta(np.array(values), plan.centre)
