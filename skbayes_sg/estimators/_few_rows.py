"""Errors and warnings for few rows that the coefficients fit exactly, so that no noise is left.

Where n rows are fitted exactly by r coefficients, their likelihood grows like σ^-(n - r) towards
σ = 0. Unless the prior of σ vanishes there, the posterior has no finite integral for n > r. If
there are many rows beyond r, the draws of σ are at the rounding error of the response, which the
verdict on the draws tells; for one or two they are spread over all sizes of noise.
"""

import warnings
from contextlib import contextmanager

import numpy as np
from scipy import linalg, sparse

from ..exceptions import SamplerConvergenceWarning, SamplerDivergedError
from ..geometry.mode import NotFiniteError
from ..priors import Gamma, InverseGamma
from ..priors.families import POSITIVE_PRIORS

__all__ = ["naming_exact_fits"]

# Rows are examined if there are at most FEW for each coefficient, and fewer than MOST_COLUMNS
# columns.
FEW, MOST_COLUMNS = 10, 200
SPREAD_OUT = 2.5  # number of rows beyond r below which draws of σ are spread over all sizes
EXACT = 1e-12  # largest residual of an exact fit, as a share of the largest absolute response


def rows_beyond(X, y, weight, has_intercept, few=FEW):
    """The total weight n of rows that are fitted exactly, less the rank r; zero for other rows.

    It is also zero with more than `few` rows for each coefficient.
    """
    n, d = X.shape
    if sparse.issparse(X) or d >= MOST_COLUMNS or n > few * (d + 1):
        return 0.0
    A = np.column_stack([X, np.ones(n)]) if has_intercept else np.asarray(X, dtype=float)
    size = np.abs(A).max(axis=0)
    A = A / np.where(size > 0.0, size, 1.0)
    found, _, rank, _ = linalg.lstsq(A, y, cond=max(A.shape) * np.finfo(float).eps)
    is_exact = np.abs(y - A @ found).max() <= EXACT * np.abs(y).max()
    return max(float(weight.sum()) - rank, 0.0) if is_exact else 0.0


def _says(estimator, beyond, n):
    """The message that n rows are fitted exactly, `beyond` of them more than the rank."""
    return (
        f"{type(estimator).__name__}: {n} rows are fitted exactly, and are {beyond:.3g} more than "
        "that takes, so that the posterior of the noise has no finite integral: it grows towards a "
        f"noise of zero like its power -{beyond:.3g}. Give more rows, "
        "BayesianLinearRegression(noise=...) with the noise, or noise_prior=InverseGamma(), which "
        "keeps it away from zero."
    )


def _vanishes_at_zero(prior):
    """Whether the density of a prior of the noise, by name or as object, vanishes at zero."""
    family = POSITIVE_PRIORS.get(prior) if isinstance(prior, str) else type(prior)
    return family in (Gamma, InverseGamma)


@contextmanager
def naming_exact_fits(estimator, X, y, weight, model):
    """Context manager of a fit that names the cause if its posterior has no finite integral.

    Raises
    ------
    ValueError
        By `BayesianRobustRegression`, before chains that would not converge; and in place of an
        error of the sampler.

    Warns
    -----
    SamplerConvergenceWarning
        By `BayesianLinearRegression`, whose draws depend on where its grid of log σ ends.
    """
    learns = model.location_scale and not _vanishes_at_zero(estimator.noise_prior)
    beyond = rows_beyond(X, y, weight, bool(estimator.fit_intercept)) if learns else 0.0
    is_spread = 0.0 < beyond < SPREAD_OUT
    if is_spread and not model.normal:
        raise ValueError(_says(estimator, beyond, len(y)))
    if is_spread:
        warnings.warn(_says(estimator, beyond, len(y)), SamplerConvergenceWarning, stacklevel=5)
    try:
        yield
    except (SamplerDivergedError, NotFiniteError) as error:
        if learns and beyond == 0.0 and isinstance(error, NotFiniteError):
            beyond = rows_beyond(X, y, weight, bool(estimator.fit_intercept), few=np.inf)
        if beyond == 0.0:
            raise
        raise ValueError(_says(estimator, beyond, len(y))) from error
