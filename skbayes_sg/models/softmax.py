"""Multinomial logistic regression: ℓ_i(η) = log Σ_c e^{η_c} - η_{y_i},  y_i in {0, ..., K - 1}.

∂ℓ/∂η = p - e_{y_i} and ∂²ℓ/∂η² u = p∘u - p (p·u) with p = softmax(η). All K predictors are free, as
in scikit-learn's multinomial `LogisticRegression`; the prior identifies their common shift.
"""

import math

import numpy as np

from .._base.jit import entry, inlined, inner, jit
from ..kernels.layout import FACT_WEIGHT, FACT_Y
from ..kernels.many_draws import TINY
from ..kernels.sigmoid import HIGHEST, decay, exp
from ..kernels.softplus import log1p
from ._base import Model

__all__ = ["Softmax"]


@inner
def _largest(eta, k):
    """Return the largest predictor in row k of `eta`."""
    largest = eta[k, 0]
    for c in range(1, eta.shape[1]):
        largest = max(largest, eta[k, c])
    return largest


@inner
def _log_sum_exp(eta, k):
    """Return log Σ_c e^η_c for row k of `eta`."""
    largest, total = _largest(eta, k), 0.0
    for c in range(eta.shape[1]):
        total += math.exp(eta[k, c] - largest)
    return largest + math.log(total)


@jit
def _loss(facts, rows, start, stop, eta):
    total = 0.0
    for k in range(start, stop):
        i = rows[k]
        own = eta[k - start, int(facts[i, FACT_Y])]
        total += facts[i, FACT_WEIGHT] * (_log_sum_exp(eta, k - start) - own)
    return total


@inlined
def _write_largest(base, moved, j, top_out):
    """Write the largest predictor of each row at draw j, of η = base + moved[:, j]."""
    top_out[:] = -np.inf
    for c in range(moved.shape[0]):
        for k in range(moved.shape[2]):
            top_out[k] = max(top_out[k], base[c, k] + moved[c, j, k])


@inlined
def _add_exponentials(base, moved, top, total_out):
    """Add e^(η - top) to `total_out`, elementwise, with η = base + moved."""
    for k in range(moved.shape[0]):
        total_out[k] += decay(base[k] + moved[k] - top[k])


@inlined
def _add_logs(total, top_out):
    """Add log(total) to `top_out`, elementwise; each total is at least 1."""
    for k in range(top_out.shape[0]):
        top_out[k] += log1p(total[k] - 1.0)


@inlined
def _replace_by_exponentials(base, top, moved, total_out):
    """Overwrite `moved` by e^(η - top), and add it to `total_out`, with η = base + moved."""
    for k in range(moved.shape[0]):
        moved[k] = decay(base[k] + moved[k] - top[k])
        total_out[k] += moved[k]


@inlined
def _scale(factor, moved):
    """Multiply `moved` by `factor`, elementwise, with zero for what is smaller than `TINY`."""
    for k in range(moved.shape[0]):
        term = factor[k] * moved[k]
        moved[k] = term if abs(term) > TINY else 0.0


@entry
def _add_losses(facts, base, moved, scratch, values_out):
    """Add the losses at many draws, as `Model` defines it; the loops over rows are vectorised."""
    weight, y, top, total = facts[FACT_WEIGHT], facts[FACT_Y], scratch[0], scratch[1]
    K, n_draws, n = moved.shape
    for j in range(n_draws):
        _write_largest(base, moved, j, top)
        total[:] = 0.0
        for c in range(K):
            _add_exponentials(base[c], moved[c, j], top, total)
        _add_logs(total, top)
        for k in range(n):
            own = int(y[k])
            values_out[j] += weight[k] * (top[k] - base[own, k] - moved[own, j, k])


@entry
def _replace_by_derivatives(facts, base, moved, scratch):
    """Derivatives at many draws, as `Model` defines them; the loops over rows are vectorised."""
    weight, y, top, total = facts[FACT_WEIGHT], facts[FACT_Y], scratch[0], scratch[1]
    K, n_draws, n = moved.shape
    for j in range(n_draws):
        _write_largest(base, moved, j, top)
        total[:] = 0.0
        for c in range(K):
            _replace_by_exponentials(base[c], top, moved[c, j], total)
        for k in range(n):
            moved[int(y[k]), j, k] -= total[k]
        for k in range(n):
            total[k] = weight[k] / total[k]
        for c in range(K):
            _scale(total, moved[c, j])


@jit
def _derivative(facts, rows, start, stop, eta, terms_out):
    n, K = stop - start, eta.shape[1]
    for k in range(n):
        largest = _largest(eta, k)
        for c in range(K):
            terms_out[k, c] = max(eta[k, c] - largest, -HIGHEST)
    flat = terms_out[:n].reshape(n * K)
    for m in range(n * K):  # a separate loop, so that it is vectorised
        flat[m] = exp(flat[m])
    for k in range(n):
        total = 0.0
        for c in range(K):
            total += terms_out[k, c]
        for c in range(K):
            terms_out[k, c] /= total
        terms_out[k, int(facts[rows[start + k], FACT_Y])] -= 1.0


@jit
def _curvature(facts, rows, start, stop, eta, u_out):
    for k in range(stop - start):
        largest, total, mean = _largest(eta, k), 0.0, 0.0
        for c in range(eta.shape[1]):
            p = math.exp(eta[k, c] - largest)
            total += p
            mean += p * u_out[k, c]
        for c in range(eta.shape[1]):
            p = math.exp(eta[k, c] - largest) / total
            u_out[k, c] = p * (u_out[k, c] - mean / total)


class Softmax(Model):
    """Multinomial logistic regression: ℓ_i(η) = log Σ_c e^(η_c) - η_(y_i).

    There are K free predictors, one for each class; `y` is the index of the class. The prior
    determines their common shift, on which the likelihood does not depend.

    Parameters
    ----------
    n_classes : int
        The number of classes, K.

    Examples
    --------
    >>> from skbayes_sg.models import Softmax
    >>> Softmax(3).n_predictors
    3
    """

    convex = True
    loss = staticmethod(_loss)
    add_losses = staticmethod(_add_losses)
    derivative = staticmethod(_derivative)
    replace_by_derivatives = staticmethod(_replace_by_derivatives)
    curvature = staticmethod(_curvature)

    def __init__(self, n_classes):
        self.n_linear = n_classes
