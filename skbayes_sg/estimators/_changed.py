"""Parameters that have changed since the rows that `partial_fit` represents by a memory.

A memory holds a likelihood. Another prior may therefore stand beside it, as long as its numbers do
not follow from the rows, as "auto" scales do: a fit keeps nothing of its rows from which they could
be computed anew. The parameters of the likelihood itself have to stay as they were.
"""

from copy import copy

import numpy as np

from ..geometry.preconditioning import DENSE_LIMIT
from ..priors import Flat, Normal, Units
from ..priors.columns import LOC
from ..priors.families import of_family, resolve

__all__ = ["asked_prior", "check_likelihood", "has_other_prior", "of_likelihood"]
__all__ += ["prior_after_fit"]

OF_LIKELIHOOD = "noise", "class_weight"  # parameters that are in the likelihood of each row
# Why a prior that was changed is refused, and what to do.
FOLLOWS = (
    "its scale would follow from the rows of the fit, of which nothing is kept. Give a prior of "
    "fixed scales"
)
OPEN = (
    "it leaves open what is added to the coefficients of all classes. Use a proper prior, such as "
    "Normal(scale=100.0)"
)
UNITS = 1.2345, 2.3456  # in which priors are compared; scales that follow from the rows differ


def of_likelihood(estimator):
    """The parameters of the likelihood, by name, as they are now."""
    return {
        name: copy(getattr(estimator, name)) for name in OF_LIKELIHOOD if hasattr(estimator, name)
    }


def check_likelihood(estimator, past):
    """`ValueError` if the likelihood that the memory of a `Past` holds had other parameters."""
    begin = "Leave it as it was, or begin with a new estimator."
    for name, before in (past.law or {}).items():
        now = getattr(estimator, name)
        if past.memory is not None and now != before:
            raise ValueError(
                f"{type(estimator).__name__}.partial_fit goes on with a likelihood of earlier rows "
                f"with {name}={before!r}, got {name}={now!r}. {begin}"
            )
    if past.centre is not None:
        prior = resolve(estimator._given("intercept_prior"), "intercept_prior")
        if not isinstance(prior, Flat):
            raise ValueError(
                f"{type(estimator).__name__}.partial_fit: intercept_prior={prior!r} is for an "
                "intercept at zero of all columns, and columns far from zero were centred, as the "
                f"flat prior of the intercept allowed. {begin}"
            )


def asked_prior(estimator, plan, unit=UNITS[0]):
    """The table of the priors that an estimator is given, for rows of this unit.

    It is None for priors with which `partial_fit` does not go on. The default of the intercept may
    be wider beside some rows, so that a prior whose scale is the unit stands for it.
    """
    if len(plan.labels) > DENSE_LIMIT or estimator._coefficient_prior.is_learned:
        return None
    units = Units(unit, lambda: np.ones(plan.coef_shape[-1]))
    default = estimator.intercept_prior is None
    b = Normal(scale=unit) if default else estimator.intercept_prior
    K = plan.model.n_linear if estimator.fit_intercept else 0
    return estimator._table_in(units, plan.coef_shape, b, K, plan.extras)


def has_other_prior(estimator, plan, past):
    """Whether a prior is not the one with which the memory of a `Past` was made."""
    asked = asked_prior(estimator, plan)
    return past.asked is not None and asked is not None and bool((asked != past.asked).any())


def prior_after_fit(estimator, plan, past):
    """The prior of a fit, and for parameters whose prior has changed since, that of now.

    `ValueError` for those of which a scale would follow from the rows of the fit, and for flat ones
    of three or more classes.
    """
    if past.asked is None:
        return past.prior
    asked, other = (asked_prior(estimator, plan, unit) for unit in UNITS)
    changed = (asked != past.asked).any(axis=1)
    if not changed.any():
        return past.prior
    names = _names_of_priors(plan, len(asked))
    _refuse(estimator, names, changed & (asked != other).any(axis=1), FOLLOWS)
    if plan.classes is not None and len(plan.classes) > 2:
        _refuse(estimator, names, changed & of_family(asked, Flat), OPEN)
    prior, extras = np.where(changed[:, None], asked, past.prior), len(asked) - len(plan.extras)
    prior[extras:, LOC] = past.prior[extras:, LOC]  # floors, which follow from the rounding of y
    return prior


def _names_of_priors(plan, n):
    """For each of n parameters the constructor's parameter that has its prior."""
    of_coef, extras = int(np.prod(plan.coef_shape)), list(plan.extras.values())
    n_intercepts = n - of_coef - len(extras)
    return ["prior"] * of_coef + ["intercept_prior"] * n_intercepts + extras


def _refuse(estimator, names, mask, why):
    """`ValueError` if a parameter in the mask has a prior that cannot stand beside the memory."""
    if not mask.any():
        return
    name = names[int(np.argmax(mask))]
    value = getattr(estimator, name) if hasattr(estimator, name) else estimator._given(name)
    raise ValueError(
        f"{type(estimator).__name__}.partial_fit after fit: {name}={value!r} is not that of the "
        f"fit, and {why}, leave it as it was, or begin with partial_fit."
    )
