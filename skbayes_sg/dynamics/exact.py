"""Independent draws from a posterior that is known in closed form: no chain at all."""

from sklearn.base import BaseEstimator

__all__ = ["Exact"]


class Exact(BaseEstimator):
    """Independent draws, where the posterior is known in closed form.

    That is linear regression with normal or flat priors of the coefficients, any prior of the
    noise: given σ the coefficients are normal, and with them integrated out the law of log σ is one
    of a single number (`skbayes_sg.recipe.closed_form`). There are no steps: a step size, a
    gradient, a subsampling scheme or a preconditioner is refused; a warm-up or thinning has no
    effect.

    Examples
    --------
    >>> from skbayes_sg.dynamics import Exact
    >>> Exact()
    Exact()
    """
