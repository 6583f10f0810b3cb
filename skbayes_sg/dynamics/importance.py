"""Independent draws from a warped Gaussian, corrected by importance weights."""

from sklearn.base import BaseEstimator

__all__ = ["Importance"]


class Importance(BaseEstimator):
    """Independent draws with a certificate: no chain, no step size, no warm-up.

    In coordinates in which the posterior has about unit width, draws of a normal law are carried
    through increasing maps along the few directions in which the posterior is skewed. Importance
    weights correct what is left, and their Pareto k says whether they can: the draws, resampled so
    that all count the same, are exact up to Monte Carlo error if it is below 0.7
    (``tests/importance/test_importance.py::test_a_proposal_that_is_too_narrow_is_not_believed``;
    ``examples/benchmarks/gauntlet.py`` compares them with known posteriors). See
    `skbayes_sg.importance`.

    There are no steps: a step size, a gradient, a subsampling scheme or a preconditioner is
    refused, and a warm-up or thinning has no effect. Where the certificate does not hold,
    Hamiltonian Monte Carlo in the same coordinates takes its place; where that does not mix
    either, a mixture of Student's t laws grows until it covers a posterior of up to eight
    parameters (Raftery and Bao; not for robust regression), or `fit` warns.

    References
    ----------
    A. E. Raftery and L. Bao (2010). Estimating and projecting trends in HIV/AIDS generalized
    epidemics using incremental mixture importance sampling. Biometrics 66(4), 1162-1173.

    A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024). Pareto smoothed importance
    sampling. Journal of Machine Learning Research 25(72), 1-58.

    Examples
    --------
    >>> from skbayes_sg.dynamics import Importance
    >>> Importance()
    Importance()
    """
