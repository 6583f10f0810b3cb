"""Taylor-based gradient (Nagapetyan et al. 2017, eq. 11): sample the remainder of an expansion.

G(θ̂) + H(θ̂)(θ - θ̂) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̂) - ∇²ℓ_k(θ̂)(θ - θ̂)], with the exact gradient G
and Hessian H of the likelihood at a centre θ̂. It is unbiased for any centre; the noise is of
second order in ‖θ - θ̂‖, and zero for a quadratic likelihood.

Far from θ̂ the remainders can be larger than the gradients themselves. The interpolation that the
paper proposes at the end of its section 3.4 takes a share of this estimate and the rest of the
plain one, from the same rows: ``Σ_k c_k ∇ℓ_k(θ) + share [Σ_i e_i(θ) - Σ_k c_k e_k(θ)]`` with the
expansions ``e_k(θ) = ∇ℓ_k(θ̂) + ∇²ℓ_k(θ̂)(θ - θ̂)``. It is unbiased for any share.
"""

from .._base.jit import inlined, jit, pointee
from .._base.validation import check_within
from ..kernels.gradient import (
    add_product,
    add_pulled_back,
    gradient,
    start_gradient,
    to_theta,
)
from ..kernels.layout import (
    EXACT_SHARE,
    EXTRA,
    FACT_PREDICTOR,
    GRADIENT_THETA,
    PREDICTORS,
    TERM,
    THETA,
)
from ..kernels.rows import predictors, scatter
from ..priors.table import prior_gradient
from ._base import Gradient
from .minibatch import Minibatch

__all__ = ["Taylor"]


@jit
def _terms(facts, derivative, curvature, rows, start, stop, eta, extra_out, terms_out):
    K, u = terms_out.shape[1], extra_out
    derivative(facts, rows, start, stop, eta, terms_out)
    for k in range(stop - start):
        for c in range(K):
            centre = facts[rows[start + k], FACT_PREDICTOR + c]
            u[k, c] = eta[k, c] - centre
            eta[k, c] = centre
    curvature(facts, rows, start, stop, eta, u)
    for k in range(stop - start):
        for c in range(K):
            terms_out[k, c] -= facts[rows[start + k], FACT_PREDICTOR + K + c] + u[k, c]


@inlined
def add_interpolated(data, estimator, share, theta, rows, n, coefficients, blocks, g_out):
    """Add Σ_k c_k J_kᵀ [share t_k + (1 - share) ∂ℓ_k/∂η(θ)] to g_out, for the rows of a batch."""
    eta, extra, terms = blocks[PREDICTORS], blocks[EXTRA], blocks[TERM]
    facts, derivative, curvature = data.facts, estimator.derivative, estimator.curvature
    size = eta.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        predictors(data, theta, rows, start, stop, eta)
        estimator.terms(facts, derivative, curvature, rows, start, stop, eta, extra, terms)
        predictors(data, theta, rows, start, stop, eta)
        derivative(facts, rows, start, stop, eta, extra)
        for k in range(stop - start):
            for c in range(terms.shape[1]):
                terms[k, c] = share * terms[k, c] + (1.0 - share) * extra[k, c]
        scatter(data, rows, start, stop, coefficients, terms, g_out)


@pointee
def _interpolated(problem, estimator, phi, rows, n, coefficients, scratch, g_out):
    vectors, coordinates = scratch.vectors, problem.coordinates
    theta, g, share = vectors[THETA], vectors[GRADIENT_THETA], problem.vectors[EXACT_SHARE, 0]
    to_theta(coordinates, phi, theta)
    start_gradient(problem.vectors, theta, coordinates.centre, g, g_out)
    prior_gradient(problem.prior, theta, g)
    blocks = scratch.blocks
    add_interpolated(problem.data, estimator, share, theta, rows, n, coefficients, blocks, g)
    add_product(problem.linear, phi, g_out)
    add_pulled_back(coordinates, g, g_out)


class Taylor(Gradient):
    """Remainders of the rows' expansions at the centre; the sum of the expansions is exact.

    ``t_k = ∂ℓ_k/∂η(θ) - ∂ℓ_k/∂η(θ̂) - ∂²ℓ_k/∂η²(θ̂) u_k`` with ``u_k = η_k(θ) - η_k(θ̂)``, plus
    ``G(θ̂) + H(θ̂)(θ - θ̂)`` of all rows. It is unbiased for any centre θ̂
    (``tests/gradients/test_gradient_estimators.py::test_mean_and_covariance_over_all_batches``). In
    whitened coordinates the covariance of the noise is of the order d²/(n N), so that large data
    need few rows a step. Each step also needs the product with the Hessian, a matrix of d² numbers.
    "auto" uses this gradient.

    Parameters
    ----------
    share : float in [0, 1], default=1.0
        Share of this estimate; the rest is that of `Minibatch`, from the same rows. Less than one
        is for posteriors that reach where the expansions are bad; each row is then computed twice,
        and the noise at the centre is (1 - share)² times that of `Minibatch`
        (``tests/gradients/test_taylor_share.py::test_mean_and_covariance_over_all_batches``).

    Raises
    ------
    InvalidParameterError
        By `fit`, for a share that is not a number in [0, 1].

    References
    ----------
    T. Nagapetyan, L. Szpruch, S. J. Vollmer, K. Zygalakis and M. Giles (2017). Multilevel Monte
    Carlo for scalable Bayesian computations. arXiv:1609.06144, sec. 3.4.

    Examples
    --------
    >>> from skbayes_sg.gradients import Taylor
    >>> Taylor(share=0.9)
    Taylor(share=0.9)
    """

    terms = staticmethod(_terms)
    uses_constant = True
    uses_linear = True

    def __init__(self, share: float = 1.0) -> None:
        self.share = share

    @property
    def exact_share(self):
        """Factor of the exact part of the estimate: the parameter `share`."""
        return self.share

    @property
    def uses_centre(self):
        """Whether there is no noise at the centre."""
        return self.share == 1.0

    @property
    def kernel(self):
        """The kernel that all estimators share, or one that interpolates if `share` is not 1."""
        return gradient if self.share == 1.0 else _interpolated

    def measured(self, n_rows, batch_size):
        """Return the estimators of both parts with their shares.

        The sum of their noise is a bound on the noise of the interpolation, since squares are
        convex.
        """
        if self.share == 1.0:
            return [(self, 1.0)]
        return [(Taylor(), self.share), (Minibatch(), 1.0 - self.share)]

    def check(self, n_rows, batch_size):
        """Raise `InvalidParameterError` for a share that cannot be used."""
        check_within("share", self.share, self, 0.0, 1.0, "[]")
