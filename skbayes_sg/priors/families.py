"""The list of all families of priors: their names, and their codes in prior tables."""

import numpy as np

from ..exceptions import InvalidParameterError
from ._base import PositivePrior, Prior
from .columns import KIND, SHAPE
from .flat import Flat, PositiveFlat
from .gamma import Gamma
from .half_normal import HalfNormal
from .half_student_t import HalfCauchy, HalfStudentT
from .horseshoe import Horseshoe
from .inverse_gamma import InverseGamma
from .laplace import Laplace
from .normal import Normal
from .student_t import StudentT

__all__ = [
    "FAMILIES",
    "POSITIVE_PRIORS",
    "PRIORS",
    "is_learned",
    "of_family",
    "resolve",
    "resolve_positive",
    "tail",
]

PRIORS = {"normal": Normal, "laplace": Laplace, "student_t": StudentT, "flat": Flat}
# Priors whose scales are sampled, and which therefore have no rows in prior tables.
LEARNED = {"horseshoe": Horseshoe}
POSITIVE_PRIORS = {
    "half_normal": HalfNormal,
    "half_student_t": HalfStudentT,
    "half_cauchy": HalfCauchy,
    "inverse_gamma": InverseGamma,
    "gamma": Gamma,
    "flat": PositiveFlat,
}

# The code of a family is its place in this list. Families of positive parameters come last.
FAMILIES: tuple = (*PRIORS.values(), *POSITIVE_PRIORS.values())
for _code, _family in enumerate(FAMILIES):
    _family._kind = float(_code)


def of_family(prior, *families):
    """Return for each row of a prior table whether it belongs to one of these families."""
    return np.isin(prior[:, KIND], [family._kind for family in families])


def tail(row):
    """Return df for the prior-table row of a positive v whose density falls off as v^(-df - 1)."""
    return FAMILIES[int(row[KIND])]._tail(row[SHAPE])


def is_learned(value):
    """Whether a string or an object stands for a prior whose scales are learned."""
    if isinstance(value, str):
        return value in LEARNED
    return getattr(value, "is_learned", False)


def resolve(value, name="prior", *, auto=False):
    """Return the prior object for a string or an object.

    With `auto`, a string stands for a prior whose scale is "auto"; errors call the prior `name`.
    """
    if isinstance(value, Prior) and not isinstance(value, PositivePrior):
        return value
    if isinstance(value, str) and value in PRIORS:
        return PRIORS[value](scale="auto") if auto and value != "flat" else PRIORS[value]()
    if isinstance(value, str) and value in LEARNED:
        return LEARNED[value]()
    raise InvalidParameterError(
        f"The {name!r} parameter must be one of {sorted(PRIORS | LEARNED)} or a prior object of "
        f"skbayes_sg.priors, got {value!r}."
    )


def resolve_positive(value, name="noise_prior"):
    """Return the prior object of a positive parameter for a string or an object."""
    if isinstance(value, Flat):
        return PositiveFlat()
    if isinstance(value, PositivePrior):
        return value
    if isinstance(value, str) and value in POSITIVE_PRIORS:
        return POSITIVE_PRIORS[value]()
    raise InvalidParameterError(
        f"The {name!r} parameter must be one of {sorted(POSITIVE_PRIORS)} or a prior of a positive "
        f"number of skbayes_sg.priors, such as HalfNormal(scale=2.0), got {value!r}."
    )
