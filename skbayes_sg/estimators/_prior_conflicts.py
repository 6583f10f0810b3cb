"""Warnings after a fit about priors that decide what they should not, or fail to decide."""

import warnings

import numpy as np

from ..diagnostics.verdict import CONFLICT
from ..exceptions import PriorConflictWarning, WidePriorWarning
from ..priors import HalfNormal, Normal
from ..priors.columns import SCALE
from ..priors.families import of_family

__all__ = ["warn_of_half_normals", "warn_of_unit_scales", "warn_of_units", "warn_of_wide_prior"]

HELD = 0.9  # a posterior variance above this share of the prior's is that of the prior
# Effective parameters for each row and predictor, beyond which there is a warning: the mean squared
# error of least squares in new rows is then 1.7 times that of the truth, or more.
CROWDED = 0.4
FAR_OUT = 4.0  # a posterior mean so many prior standard deviations from zero is not expected
PULLED = 0.1  # posterior standard deviations by which a prior may pull, unsaid
FEW = 5.0  # effective parameters up to which nobody expects much of a table's columns


def _is_default(estimator):
    """Whether the prior of the coefficients is the default one."""
    return isinstance(estimator.prior, str) and estimator.prior == "normal"


def warn_of_half_normals(posterior, prior, extras):
    """`PriorConflictWarning` for each positive parameter that a half-normal prior holds back."""
    n, apart = len(prior), np.ravel(posterior.evidence.get("prior_conflict", 0.0))
    for place, name in zip(range(n - len(extras), n), extras, strict=True):
        if len(apart) == n and apart[place] > CONFLICT and of_family(prior[[place]], HalfNormal)[0]:
            warnings.warn(
                f"The data alone are {apart[place]:.1f} standard deviations from the half-normal "
                f"prior of {name}, whose scale is {prior[place, SCALE]:.3g}; its posterior mean is "
                f"{posterior.mean(name):.4g}. The prior holds it back, and everything that depends "
                "on it: give a larger scale, HalfNormal(scale=...), or a prior with a heavier "
                "tail, 'half_student_t'.",
                PriorConflictWarning,
                stacklevel=2,
            )


def warn_of_unit_scales(posterior, priors):
    """`PriorConflictWarning` for parameters that a prior given as a string holds back.

    Such a prior, N(0, 1) or half-normal, knows nothing of the parameter's unit. It pulls a
    posterior mean m with standard deviation s by about m s standard deviations. `priors` are
    strings or objects by the name of the parameter.
    """
    for name, prior in priors.items():
        if not isinstance(prior, str):
            continue
        kind = {"normal": "Normal", "half_normal": "HalfNormal"}.get(prior, "")
        m, s = np.ravel(posterior.mean(name)), np.ravel(posterior.std(name))
        pull = np.where(np.abs(m) > FAR_OUT, np.abs(m) * s, 0.0)
        if kind and pull.max() > PULLED:
            warnings.warn(
                f"The prior of {name}, {prior!r}, has scale 1, and the posterior mean is "
                f"{m[pull.argmax()]:.4g}: the prior holds it back. Give a scale in the unit of the "
                f"parameter, {kind}(scale=...), or a prior with a heavier tail.",
                PriorConflictWarning,
                stacklevel=2,
            )


def warn_of_units(estimator, posterior, prior):
    """`PriorConflictWarning` if the default prior suppresses a coefficient of a column in use.

    A default prior of scale one, in the unit of the column, keeps the coefficient of a column that
    varies by 0.01 near zero, whatever the data say.
    """
    apart = np.ravel(posterior.evidence.get("prior_conflict", 0.0))
    n = posterior.mean("coef").size
    if not _is_default(estimator) or len(apart) != len(prior) or n == 0:
        return
    held = np.ravel(posterior.std("coef")) ** 2 > HELD * prior[:n, SCALE] ** 2
    apart = np.where(held & of_family(prior[:n], Normal), apart[:n], 0.0)
    worst = int(np.argmax(apart))
    if apart[worst] > CONFLICT:
        warnings.warn(
            f"The default prior N(0, {prior[worst, SCALE]:.3g}²) keeps {posterior.labels[worst]} "
            f"near zero, although the data alone are {apart[worst]:.1f} standard deviations from "
            "it: the column varies too little for this prior. Standardise the columns, as "
            "StandardScaler does, or give a wider prior, Normal(scale=...).",
            PriorConflictWarning,
            stacklevel=2,
        )


def warn_of_wide_prior(estimator, posterior, target, total):
    """`WidePriorWarning` if rows are few for the coefficients that the default prior leaves free.

    With a prior of variance v₀ and a posterior of variance v, the data determine the share
    1 - v/v₀ of a coefficient; the sum of these shares is the effective number of parameters. Rows
    are counted by their `total` weight, because equal rows are one row of the target.
    """
    n = posterior.mean("coef").size
    prior = target.prior[:n]
    if not _is_default(estimator) or n == 0 or not of_family(prior, Normal).all():
        return
    known = 1.0 - np.square(np.ravel(posterior.std("coef")) / prior[:, SCALE])
    effective = np.clip(known, 0.0, 1.0).sum()
    if effective > max(CROWDED * total * target.model.n_linear, FEW):
        warnings.warn(
            f"The default prior is wide, and leaves coefficients to {total:g} rows that count as "
            f"{effective:.3g} parameters: predictions of new rows may be worse than without any "
            "column. Use prior=Normal(scale=HalfCauchy(1.0)), whose scale is learned, a narrower "
            "prior, Normal(scale=...), or fewer columns.",
            WidePriorWarning,
            stacklevel=2,
        )
