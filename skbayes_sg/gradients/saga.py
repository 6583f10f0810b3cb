"""SAGA-LD (Dubey et al. 2016, algorithm 1): each row's gradient less the one last computed for it.

Σ_i α_i + Σ_k c_k [∇ℓ_k(θ) - α_k], where α_i is the gradient of row i when it was last drawn; then
α_k ← ∇ℓ_k(θ) for the rows of the batch. The table holds one term for each predictor of a row; times
the row it gives the gradient. A generalised linear model needs one number a row. The estimate uses
the *old* table: updating the table first would cause the error ``-(1 - n/N) Σ(∇ℓ_i - α_i)``.
"""

import numpy as np

from .._base.jit import entry, inlined, pointee
from ..exceptions import InvalidParameterError
from ..kernels.gradient import pull_back, to_theta
from ..kernels.layout import (
    GRADIENT_THETA,
    PREDICTORS,
    SEEN,
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

__all__ = ["SAGA"]

PANEL = 1 << 16  # largest number of rows in one call of the kernel that fills the table


@inlined
def add_differences(problem, estimator, theta, rows, n, coefficients, memory, blocks, g_out):
    """Add Σ_k c_k (∇ℓ_k(θ) - α_k) to g_out; return Σ c_k over the rows that were never drawn.

    For these α_k = 0. The terms of the batch at θ are written to ``memory.batch``.
    """
    data, eta, terms, unseen = problem.data, blocks[PREDICTORS], blocks[TERM], 0.0
    size = eta.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        predictors(data, theta, rows, start, stop, eta)
        estimator.derivative(data.facts, rows, start, stop, eta, terms)
        for k in range(start, stop):
            i = rows[k]
            if np.isnan(memory.table[i, 0]):
                unseen += coefficients[k]
            for c in range(terms.shape[1]):
                memory.batch[k, c] = terms[k - start, c]
                if not np.isnan(memory.table[i, 0]):
                    terms[k - start, c] -= memory.table[i, c]
        scatter(data, rows, start, stop, coefficients, terms, g_out)
    return unseen


@inlined
def remember(data, rows, n, memory, blocks):
    """Set α_k to the terms in ``memory.batch``, and update Σ_i α_i, for the rows of the batch.

    The rows are updated one after the other, so that a row that was drawn twice changes once.
    """
    table, terms = memory.table, blocks[TERM]
    size = terms.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        for k in range(start, stop):
            i = rows[k]
            known = not np.isnan(table[i, 0])
            if not known:
                memory.counts[SEEN] += 1
            for c in range(terms.shape[1]):
                old = table[i, c] if known else np.float32(0.0)
                table[i, c] = memory.batch[k, c]
                terms[k - start, c] = np.float64(table[i, c]) - np.float64(old)
        scatter(data, rows, start, stop, memory.coefficients, terms, memory.vectors[TOTAL])


@pointee
def _gradient(problem, estimator, phi, rows, n, coefficients, scratch, g_out):
    vectors, memory = scratch.vectors, scratch.memory
    theta, g, total = vectors[THETA], vectors[GRADIENT_THETA], memory.vectors[TOTAL]
    to_theta(problem.coordinates, phi, theta)
    seen = max(memory.counts[SEEN], 1)
    for j in range(theta.shape[0]):
        g[j] = 0.0
    prior_gradient(problem.prior, theta, g)
    unseen = add_differences(
        problem, estimator, theta, rows, n, coefficients, memory, scratch.blocks, g
    )
    # A row that was never drawn is represented by the mean of the m rows that were: the sum is
    # (N/m) Σ α, and such a row of the batch is compared with that mean.
    share = problem.data.facts.shape[0] / seen - unseen / seen
    for j in range(theta.shape[0]):
        g[j] += share * total[j]
    remember(problem.data, rows, n, memory, scratch.blocks)
    pull_back(problem.coordinates, g, g_out)


@entry
def _fill(problem, derivative, phi, rows, ones, scratch):
    """Set α_i to the terms at the position phi for the given rows, and add them to Σ_i α_i."""
    vectors, memory, data = scratch.vectors, scratch.memory, problem.data
    eta, terms, theta = scratch.blocks[PREDICTORS], scratch.blocks[TERM], vectors[THETA]
    to_theta(problem.coordinates, phi, theta)
    size = eta.shape[0]
    for start in range(0, rows.shape[0], size):
        stop = min(start + size, rows.shape[0])
        predictors(data, theta, rows, start, stop, eta)
        derivative(data.facts, rows, start, stop, eta, terms)
        for k in range(stop - start):
            for c in range(terms.shape[1]):
                memory.table[rows[start + k], c] = terms[k, c]
                terms[k, c] = memory.table[rows[start + k], c]
        scatter(data, rows, start, stop, ones, terms, memory.vectors[TOTAL])


class SAGA(Gradient):
    """Differences to the last gradient of each row: SAGA-LD.

    ``Σ_i w_i J_iᵀ α_i + Σ_k c_k w_k J_kᵀ (t_k(θ) - α_k)`` with t = ∂ℓ/∂η and α_i the term of row i
    when it was last drawn. It needs no centre, and is unbiased for any table α:
    ``tests/gradients/test_memory_gradients.py::test_mean_and_covariance_for_a_memory_of_elsewhere``.
    Its noise depends on the distance between θ and the positions at which the rows were last drawn,
    about N/n steps ago: it is about twice that of `ControlVariate` if the chain forgets its
    position in that time
    (``tests/recipe/test_tuning.py::test_noise_of_a_memory_is_that_of_an_independent_position``),
    and less otherwise. Each chain keeps a table of N K numbers of 4 bytes (K predictors a row, 1
    for a generalised linear model).

    Parameters
    ----------
    table : {"full_pass", "online"}, default="full_pass"
        "full_pass" fills the table by one pass over all rows at the start of a chain. "online"
        begins with an empty table: rows that were never drawn are represented by the mean of those
        that were (the reweighting of sec. 5 of the paper, by ``(N/m) Σ α`` for m rows), which
        leaves the estimate unbiased
        (``tests/gradients/test_memory_gradients.py::test_online_table_for_any_rows_seen``), and
        adds noise until most rows have been drawn.

    Raises
    ------
    InvalidParameterError
        By `fit`, for another `table`.
    MemoryError
        By `fit`, if the table does not fit into memory.

    References
    ----------
    K. A. Dubey, S. J. Reddi, S. A. Williamson, B. Poczos, A. J. Smola and E. P. Xing (2016).
    Variance reduction in stochastic gradient Langevin dynamics. NeurIPS, algorithm 1.

    Examples
    --------
    >>> from skbayes_sg.gradients import SAGA
    >>> SAGA(table="online")
    SAGA(table='online')
    """

    terms = staticmethod(Minibatch.terms)
    kernel = staticmethod(_gradient)

    def __init__(self, table: str = "full_pass") -> None:
        self.table = table

    def measured(self, n_rows, batch_size):
        """Return twice the noise of `ControlVariate`, because θ and its reference both move."""
        return [(ControlVariate(), 2.0)]

    def settling_steps(self, n_rows, batch_size):
        """Return the number of steps until almost every row is in an online table."""
        return 10 * n_rows // batch_size if self.table == "online" else 0

    def check(self, n_rows, batch_size):
        """Raise `InvalidParameterError` for an unknown `table`."""
        if self.table not in ("full_pass", "online"):
            raise InvalidParameterError(
                f"The table of {self!r} must be 'full_pass' or 'online', got {self.table!r}."
            )

    def memory(self, setup, rng):
        """Return a memory with an empty table, with room for all rows."""
        return new_memory(setup, rng, n_table=setup.n_rows)

    def prepare(self, setup, chain, estimator, scratch):
        """Fill the table once, at the start of the chain."""
        counts = chain.memory.counts
        if counts[SEEN] > 0 or self.table != "full_pass":
            return
        derivative, phi = estimator.derivative, chain.state[0]
        for first in range(0, setup.n_rows, PANEL):
            rows = np.arange(first, min(first + PANEL, setup.n_rows))
            _fill(setup.problem, derivative, phi, rows, np.ones(len(rows)), scratch)
        counts[SEEN] = setup.n_rows
