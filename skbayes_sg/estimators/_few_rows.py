"""Whether few rows leave anything for the noise.

Where n rows are fitted exactly by r coefficients, their likelihood grows like σ^-(n - r) towards
σ = 0. Unless the prior of σ vanishes there, the posterior has no finite integral for n > r. For
many such rows draws are at the rounding error of the response, which the verdict tells; for one or
two beyond r they are spread over all sizes of noise.
"""

import warnings
from contextlib import contextmanager

import numpy as np
from scipy import linalg, sparse

from ..exceptions import SamplerConvergenceWarning, SamplerDivergedError
from ..geometry.mode import NotFiniteError
from ..models import Linear, Robust
from ..priors import Gamma, InverseGamma
from ..priors.families import POSITIVE_PRIORS

__all__ = ["naming_exact_fits"]

FEW, MOST_COLUMNS = 10, 200  # rows for each coefficient, and coefficients, that are looked at
SPREAD_OUT = 2.5  # rows beyond r
EXACT = 1e-12  # of the sizes of the response


def rows_beyond(X, y, weight, has_intercept):
    """n - r, by weight, of rows that are fitted exactly, or zero."""
    n, d = X.shape
    if sparse.issparse(X) or d >= MOST_COLUMNS or n > FEW * (d + 1):
        return 0.0
    A = np.column_stack([X, np.ones(n)]) if has_intercept else np.asarray(X, dtype=float)
    size = np.abs(A).max(axis=0)
    A = A / np.where(size > 0.0, size, 1.0)
    found, _, rank, _ = linalg.lstsq(A, y)
    is_exact = np.abs(y - A @ found).max() <= EXACT * np.abs(y).max()
    return max(float(weight.sum()) - rank, 0.0) if is_exact else 0.0


def _says(estimator, beyond, n):
    return (
        f"{type(estimator).__name__}: {n} rows are fitted exactly, and are {beyond:.3g} more than "
        "that takes, so that the posterior of the noise has no finite integral: it grows towards a "
        f"noise of zero like its power -{beyond:.3g}. Give more rows, "
        "BayesianLinearRegression(noise=...) with the noise, or noise_prior=InverseGamma(), which "
        "keeps it away from zero."
    )


def _vanishes_at_zero(prior):
    family = POSITIVE_PRIORS.get(prior) if isinstance(prior, str) else type(prior)
    return family in (Gamma, InverseGamma)


@contextmanager
def naming_exact_fits(estimator, X, y, weight, model):
    """Name the cause where a posterior that has no finite integral cannot be sampled.

    Raises
    ------
    ValueError
        By `BayesianRobustRegression`, before chains that would not converge, or for their error.

    Warns
    -----
    SamplerConvergenceWarning
        By `BayesianLinearRegression`, whose draws depend on where its grid of log σ ends.
    """
    learns = isinstance(model, (Linear, Robust)) and not _vanishes_at_zero(estimator.noise_prior)
    beyond = rows_beyond(X, y, weight, bool(estimator.fit_intercept)) if learns else 0.0
    is_spread = 0.0 < beyond < SPREAD_OUT
    if is_spread and isinstance(model, Robust):
        raise ValueError(_says(estimator, beyond, len(y)))
    if is_spread:
        warnings.warn(_says(estimator, beyond, len(y)), SamplerConvergenceWarning, stacklevel=5)
    try:
        yield
    except (SamplerDivergedError, NotFiniteError) as error:
        if beyond == 0.0:
            raise
        raise ValueError(_says(estimator, beyond, len(y))) from error
