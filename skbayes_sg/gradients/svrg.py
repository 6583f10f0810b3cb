"""SVRG-LD (Dubey et al. 2016, algorithm 2) and vrSG-MCMC (Chen et al. 2019, algorithm 1).

Σ_i ∇ℓ_i(θ̃) + Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̃)], where θ̃ is the position at the last refresh, every m
steps. In vrSG-MCMC the sum over all rows is itself estimated, from n1 > n rows drawn anew at each
refresh: given these rows, the error of that sum is the bias of the estimate.
"""

from .._base.jit import inlined, pointee
from .._base.validation import check_whole
from ..exceptions import InvalidParameterError
from ..kernels.gradient import add_rows, pull_back, to_theta
from ..kernels.layout import (
    ANCHOR,
    EXTRA,
    GRADIENT_THETA,
    LEFT,
    PERIOD,
    PREDICTORS,
    TERM,
    THETA,
    TOTAL,
    new_memory,
)
from ..kernels.rows import predictors, scatter
from ..priors.table import prior_gradient
from ._base import Gradient
from .control_variate import ControlVariate
from .minibatch import Minibatch

__all__ = ["SVRG"]


@inlined
def add_differences(data, estimator, theta, anchor, rows, n, coefficients, blocks, g_out):
    """Add Σ_k c_k [∇ℓ_k(θ) - ∇ℓ_k(θ̃)] to g_out, for the batch and θ̃ = `anchor`."""
    eta, terms, there = blocks[PREDICTORS], blocks[TERM], blocks[EXTRA]
    size = eta.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        predictors(data, anchor, rows, start, stop, eta)
        estimator.derivative(data.facts, rows, start, stop, eta, there)
        predictors(data, theta, rows, start, stop, eta)
        estimator.derivative(data.facts, rows, start, stop, eta, terms)
        for k in range(stop - start):
            for c in range(terms.shape[1]):
                terms[k, c] -= there[k, c]
        scatter(data, rows, start, stop, coefficients, terms, g_out)


@inlined
def refresh(problem, estimator, theta, scratch):
    """Set θ̃ to θ, and estimate the sum of all gradients there from n1 rows without replacement."""
    memory = scratch.memory
    rows, n, total = memory.rows, memory.coefficients.shape[0], memory.vectors[TOTAL]
    N = rows.shape[0]
    if n < N:  # the first n1 steps of a Fisher-Yates shuffle of the list that the last one left
        for k in range(n):
            other = k + int(memory.rng.random() * (N - k))
            rows[k], rows[other] = rows[other], rows[k]
    for j in range(theta.shape[0]):
        memory.vectors[ANCHOR, j] = theta[j]
        total[j] = 0.0
    coefficients, blocks = memory.coefficients, scratch.blocks
    add_rows(problem.data, estimator, theta, rows, n, coefficients, blocks, total)
    memory.counts[LEFT] = memory.counts[PERIOD]


@pointee
def _gradient(problem, estimator, phi, rows, n, coefficients, scratch, g_out):
    vectors, memory = scratch.vectors, scratch.memory
    theta, g = vectors[THETA], vectors[GRADIENT_THETA]
    to_theta(problem.coordinates, phi, theta)
    if memory.counts[LEFT] == 0:
        refresh(problem, estimator, theta, scratch)
    memory.counts[LEFT] -= 1
    for j in range(theta.shape[0]):
        g[j] = memory.vectors[TOTAL, j]
    prior_gradient(problem.prior, theta, g)
    anchor, blocks = memory.vectors[ANCHOR], scratch.blocks
    add_differences(problem.data, estimator, theta, anchor, rows, n, coefficients, blocks, g)
    pull_back(problem.coordinates, g, g_out)


class SVRG(Gradient):
    """Differences to a recent position of the chain: SVRG-LD, or vrSG-MCMC.

    ``Σ_i w_i J_iᵀ t_i(θ̃) + Σ_k c_k w_k J_kᵀ (t_k(θ) - t_k(θ̃))`` with t = ∂ℓ/∂η, and θ̃ is the
    position at the last refresh. It needs neither a centre nor a table, but a pass over all rows,
    or over `anchor_size` of them, every `refresh` steps. It is unbiased for any θ̃:
    ``tests/gradients/test_memory_gradients.py::test_mean_and_covariance_for_a_memory_of_elsewhere``.

    Parameters
    ----------
    refresh : int, optional
        Steps from one refresh to the next, m. The default is N/n for n of N rows a step, so that
        refreshes read as many rows as steps.
    anchor_size : int, optional
        Number n1 of rows from which the sum at θ̃ is estimated, drawn without replacement at each
        refresh: this is vrSG-MCMC. It must be more than the batch size. The default is all rows,
        SVRG-LD. With fewer rows the sum has the same error for all `refresh` steps, which acts like
        so many times the noise
        (``tests/recipe/test_tuning.py::test_noise_of_an_anchor_of_some_rows``): unless the step is
        very small, the posterior is too wide. "auto" chooses such a small step.

    Raises
    ------
    InvalidParameterError
        By `fit`, for numbers that are not positive, and if `anchor_size` is not more than the batch
        size, or more than the number of rows.

    References
    ----------
    K. A. Dubey, S. J. Reddi, S. A. Williamson, B. Poczos, A. J. Smola and E. P. Xing (2016).
    Variance reduction in stochastic gradient Langevin dynamics. NeurIPS, algorithm 2.

    C. Chen, W. Wang, Y. Zhang, Q. Su and L. Carin (2019). A convergence analysis for a class of
    practical variance-reduction stochastic gradient MCMC. Science China Information Sciences.

    Examples
    --------
    >>> from skbayes_sg.gradients import SVRG
    >>> SVRG(anchor_size=1000, refresh=100)
    SVRG(anchor_size=1000, refresh=100)
    """

    terms = staticmethod(Minibatch.terms)
    kernel = staticmethod(_gradient)
    reads = 3.0  # a row at θ and at θ̃, and, by default, another one at the next refresh

    def __init__(self, refresh: int | None = None, anchor_size: int | None = None) -> None:
        self.refresh = refresh
        self.anchor_size = anchor_size

    def measured(self, n_rows, batch_size):
        """Return twice the noise of `ControlVariate`, and perhaps that of the anchor's rows.

        The latter is included if it depends on the batch size, as by the default of `refresh`.
        """
        found = [(ControlVariate(), 2.0)]
        if self.refresh is None and self._leaves_rows_out(n_rows):
            found.append((Minibatch(), n_rows * self._anchor_noise(n_rows)))
        return found

    def fixed_noise(self, n_rows):
        """Return the noise of the anchor's rows if `refresh` is given, and otherwise 0.

        It counts `refresh` times, because so many steps share it. The batch size does not affect
        it if `refresh` is given.
        """
        if self.refresh is None or not self._leaves_rows_out(n_rows):
            return 0.0
        return self.refresh * self._anchor_noise(n_rows)

    def lasting_noise(self, n_rows, batch_size):
        """Return the noise of the anchor's rows, and the number of steps that share an anchor."""
        if not self._leaves_rows_out(n_rows):
            return 0.0, 1
        return self._anchor_noise(n_rows), self.period(n_rows, batch_size)

    def _leaves_rows_out(self, n_rows):
        return self.anchor_size is not None and self.anchor_size < n_rows

    def _anchor_noise(self, n_rows):
        """Return the noise of the anchor's sum, as a multiple of that from one uniform row."""
        return (1.0 - self.anchor_size / n_rows) / self.anchor_size

    def check(self, n_rows, batch_size):
        """Raise `InvalidParameterError` for values that cannot be used."""
        for name in ("refresh", "anchor_size"):
            check_whole(name, getattr(self, name), self, 1, none=True)
        if self.anchor_size is None:
            return
        if self.anchor_size > n_rows:
            raise InvalidParameterError(
                f"The anchor_size of {self!r} is larger than the number of rows with a weight, "
                f"{n_rows}. Leave it out to use all rows."
            )
        if self.anchor_size <= batch_size < n_rows:
            raise InvalidParameterError(
                f"The anchor_size of {self!r} must be larger than batch_size={batch_size}, because "
                "the sum at the anchor corrects the batches."
            )

    def most_rows(self, n_rows):
        """Return one less than the number of rows of the anchor, or all rows by default."""
        return n_rows if self.anchor_size is None else self.anchor_size - 1

    def memory(self, setup, rng):
        """Return a memory without an anchor, which the first step sets."""
        N = setup.n_rows
        return new_memory(
            setup, rng, n_anchor=self.anchor_size or N, period=self.period(N, setup.batch_size)
        )

    def period(self, n_rows, batch_size):
        """Return the number m of steps from one refresh to the next.

        Parameters
        ----------
        n_rows, batch_size : int

        Returns
        -------
        int
        """
        return self.refresh or max(1, n_rows // batch_size)
