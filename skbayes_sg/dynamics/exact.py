"""Independent draws from a posterior that is known in closed form, without a chain."""

from sklearn.base import BaseEstimator

__all__ = ["Exact"]


class Exact(BaseEstimator):
    """Independent draws from a posterior that is known in closed form.

    This applies to linear regression with normal or flat priors of the coefficients and any prior
    of the noise: given σ the coefficients are normal, and with the coefficients integrated out the
    distribution of log σ is one-dimensional (`skbayes_sg.recipe.closed_form`). There are no steps,
    so a step size, a gradient, a subsampling scheme or a preconditioner is an error; warm-up and
    thinning have no effect.

    Examples
    --------
    >>> from skbayes_sg.dynamics import Exact
    >>> Exact()
    Exact()
    """
