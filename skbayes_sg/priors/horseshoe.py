"""The regularised horseshoe: most coefficients near zero, and a few that are hardly shrunk."""

import numpy as np

from .._base.validation import check_within
from ..exceptions import InvalidParameterError
from ._base import Prior, Units
from .half_student_t import HalfCauchy
from .learned import LearnedScales
from .normal import Normal

__all__ = ["Horseshoe"]

SHARE = 0.1  # the default of n_relevant, as a share of the number of coefficients


class Horseshoe(Prior):
    r"""Regularised horseshoe prior: a few coefficients are large, and all others nearly zero.

    .. math::

        p(\theta, \lambda, \tau) \propto \prod_j N(\theta_j / u_j \mid 0, \tau^2 \lambda_j^2)\,
        e^{-(\theta_j / u_j)^2 / (2 c^2)}\, C^+(\lambda_j \mid 0, 1)\; C^+(\tau \mid 0, \tau_0),

    with half-Cauchy laws :math:`C^+`, the slab :math:`c`, and units :math:`u_j` of one standard
    deviation of the response (for classifiers and counts: 1) for one of the column [1]_ [2]_. The
    global scale :math:`\tau` is learned, around
    :math:`\tau_0 = \frac{k}{p - k} \frac{\tilde\sigma}{\sqrt n}` with :math:`k` relevant columns of
    :math:`p`, :math:`n` rows, and :math:`\tilde\sigma` 1 for linear models, 2 for classes, and
    :math:`1/\sqrt{\bar y}` for counts. This prior is for coefficients only; the string "horseshoe"
    stands for it.

    It is the prior of [2]_, and not exactly that of [1]_, of brms or of Stan's examples. Those
    divide :math:`p` by :math:`\int p\, d\theta` given the scales, so that scales beyond the slab
    have more mass, and measure :math:`\tau_0` in units of the noise instead of the response. With
    fewer rows than columns, standard deviations of coefficients may differ by a third.

    Fits run Markov chains. In linear, robust and logistic regression the scales move with the
    coefficients integrated out; elsewhere :math:`\tau` mixes slowly, and chains make many draws for
    each one that is kept. There may be up to 500 columns, and in linear regression with at most
    500 rows up to 5000.

    Parameters
    ----------
    n_relevant : float, default=None
        k, a guess of the number of coefficients that are not zero: positive, and less than the
        number of coefficients. None is a tenth of them.
    slab : float, default=2.0
        c, the standard deviation of coefficients that are not shrunk, in the units above.

    References
    ----------
    .. [1] J. Piironen and A. Vehtari (2017). Sparsity information and regularization in the
       horseshoe and other shrinkage priors. Electronic Journal of Statistics 11, 5018-5051.
    .. [2] A. Nishimura and M. A. Suchard (2023). Shrinkage with shrunken shoulders: Gibbs sampling
       shrinkage model posteriors with guaranteed convergence rates. Bayesian Analysis 18, 367-390.

    Examples
    --------
    >>> from skbayes_sg.priors import Horseshoe
    >>> Horseshoe(n_relevant=5)
    Horseshoe(n_relevant=5)
    """

    is_learned = True

    def __init__(self, n_relevant: float | None = None, slab: float = 2.0) -> None:
        self.n_relevant = n_relevant
        self.slab = slab

    def _learned(self, shape, units, names=None):
        """Return the `LearnedScales` of coefficients of `shape`, the columns last.

        Its table has the half-Cauchy prior of τ √n/σ̃, whose scale is k/(p - k).
        """
        del names
        p = int(np.prod(shape, dtype=int))
        k = max(SHARE * p, 0.5) if self.n_relevant is None else self.n_relevant
        wanted = f"a positive number, less than that of the coefficients, {p}"
        k = check_within("n_relevant", k, f"prior={self!r}", 0.0, p, wanted=wanted)
        slab = self._positive("slab", "prior")
        unit = np.tile(units.of_columns(), p // shape[-1])
        table = HalfCauchy(k / (p - k))._table((1,), "prior", Units())
        one, group = Normal()._table(shape), np.zeros(p, dtype=int)
        return LearnedScales(group, unit, one, table, ("prior_scale",), slab, True)

    def _table(self, shape, name="prior", units=None):
        raise InvalidParameterError(
            f"{name}={self!r} is for coefficients: use a prior of fixed scale, such as 'normal'."
        )
