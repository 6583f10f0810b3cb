"""Row densities: models in which the likelihood of a row is any function of all parameters.

To the engine such a model has no linear predictors and D extra ones, θ itself: η_i = θ, so that the
terms of a row, ∂ℓ_i/∂η, are its gradient. With this all gradients, subsampling schemes and
dynamics work as they are. The numbers of a row are the last columns of its facts.
"""

import numpy as np

from .._base.jit import inner, jit
from ..engine.target import Target
from ..models import Model

__all__ = ["RowDensity", "density_target", "numbers_of_rows", "row_gradients"]


@jit
def _no_curvature(facts, rows, start, stop, eta, u_out):
    """Set `u_out` to NaN: second derivatives of a row density are not known."""
    for k in range(stop - start):
        for c in range(u_out.shape[1]):
            u_out[k, c] = np.nan


@inner
def numbers_of_rows(facts, rows, start, stop, width):
    """Return the numbers of the rows with the indices ``rows[start:stop]``, (·, width)."""
    out = np.empty((stop - start, width))
    first = facts.shape[1] - width
    for k in range(stop - start):
        for j in range(width):
            out[k, j] = facts[rows[start + k], first + j]
    return out


class RowDensity(Model):
    """A likelihood ``Σ_i weight_i log p(row_i | θ)`` of D parameters.

    A subclass has the kernels ``loss`` and ``derivative`` of `Model`, in which every row of ``eta``
    is θ, and a row of ``facts`` ends with the numbers of the row. There are no second derivatives
    of rows, and so the Taylor gradient is refused. Where sums over the rows are faster by products
    of matrices, a subclass also has the kernel ``sums(facts, theta, valued, g_out)``, see
    `skbayes_sg.kernels.layout.SUMS`, or without a kernel ``loss_and_gradient(facts, theta)``, the
    sum of the weighted losses of rows and its gradient; and ``loss_hessian(facts, theta)``, its
    Hessian.

    Parameters
    ----------
    n_parameters : int
    """

    n_linear = 0
    separable = False
    curvature = staticmethod(_no_curvature)

    def __init__(self, n_parameters):
        self.n_extra = n_parameters


def density_target(model, X, weight, prior, *, n_jobs=None):
    """Return the `Target` of rows X under the row density `model` with the prior table `prior`."""
    nothing = np.empty((len(X), 0))
    labels = np.column_stack([np.zeros(len(X)), X])
    return Target(nothing, labels, weight, model, prior, intercept=False, n_jobs=n_jobs)


def row_gradients(target, theta, rows):
    """Return weight_i ∇ℓ_i(θ) for some rows of a target, (n, D)."""
    facts = target.data.facts[rows]
    terms = target.derivative(facts, np.tile(theta, (len(facts), 1)))
    return target.weight[rows, None] * terms
