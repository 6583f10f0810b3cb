"""SAGA-LD (Dubey et al. 2016, algorithm 1): the gradient of a row against the one last seen of it.

Σ_i α_i + Σ_k c_k [∇ℓ_k(θ) - α_k], where α_i is the gradient of row i when it was last drawn; then
α_k ← ∇ℓ_k(θ) for the rows of the batch. The table holds a term per predictor of a row, from which
the gradient is made by the row itself: one number a row for a generalised linear model. The
estimate uses the *old* table: one that is written first is off by ``-(1 - n/N) Σ(∇ℓ_i - α_i)``.
"""

import numpy as np

from .._base.jit import entry, inlined, pointee
from ..exceptions import InvalidParameterError
from ..kernels.gradient import pull_back, to_theta
from ..kernels.layout import (
    BLOCK,
    GRADIENT_THETA,
    PHI,
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

PANEL = 1 << 16  # rows of the full pass that are listed at once


@inlined
def add_differences(problem, estimator, theta, rows, n, coefficients, memory, blocks, g_out):
    """g_out += Σ_k c_k (∇ℓ_k(θ) - α_k); returns Σ c_k over the rows that were never seen."""
    data, eta, terms, unseen = problem.data, blocks[PREDICTORS], blocks[TERM], 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
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
    """α_k ← the terms of the batch, row by row, so that a row drawn twice changes once."""
    table, terms = memory.table, blocks[TERM]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
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
def _gradient(problem, estimator, z, rows, n, coefficients, scratch, g_out):
    vectors, memory = scratch.vectors, scratch.memory
    theta, g, total = vectors[THETA], vectors[GRADIENT_THETA], memory.vectors[TOTAL]
    to_theta(problem.coordinates, z, vectors[PHI], theta)
    seen = max(memory.counts[SEEN], 1)
    for j in range(theta.shape[0]):
        g[j] = 0.0
    prior_gradient(problem.prior, theta, g)
    unseen = add_differences(
        problem, estimator, theta, rows, n, coefficients, memory, scratch.blocks, g
    )
    # Rows never seen are taken for the mean of those that were: (N/m) Σ α of m rows, and for each
    # of the batch that mean is what it is compared with. With all rows seen, Σ α.
    share = problem.data.facts.shape[0] / seen - unseen / seen
    for j in range(theta.shape[0]):
        g[j] += share * total[j]
    remember(problem.data, rows, n, memory, scratch.blocks)
    pull_back(problem.coordinates, z, g, g_out)


@entry
def _fill(problem, derivative, z, rows, ones, scratch):
    """α_i = the terms at a position, for the rows of a list."""
    vectors, memory, data = scratch.vectors, scratch.memory, problem.data
    eta, terms, theta = scratch.blocks[PREDICTORS], scratch.blocks[TERM], vectors[THETA]
    to_theta(problem.coordinates, z, vectors[PHI], theta)
    for start in range(0, rows.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.shape[0])
        predictors(data, theta, rows, start, stop, eta)
        derivative(data.facts, rows, start, stop, eta, terms)
        for k in range(stop - start):
            for c in range(terms.shape[1]):
                memory.table[rows[start + k], c] = terms[k, c]
                terms[k, c] = memory.table[rows[start + k], c]
        scatter(data, rows, start, stop, ones, terms, memory.vectors[TOTAL])


class SAGA(Gradient):
    """Differences to what was last seen of a row: SAGA-LD.

    ``Σ_i w_i J_iᵀ α_i + Σ_k c_k w_k J_kᵀ (t_k(θ) - α_k)`` with t = ∂ℓ/∂η and α_i the term of row i
    when it was last drawn. Unbiased for any table α. It needs no centre, and its noise is that of
    the distance between θ and the places where the rows were last seen, up to N/n steps ago: about
    twice that of `ControlVariate` where that is long enough to forget, less where it is not. A
    table of N K numbers of 4 bytes a chain is kept (K predictors a row, 1 for a generalised linear
    model).

    Parameters
    ----------
    table : {"full_pass", "online"}, default="full_pass"
        "full_pass" fills the table by one pass over all rows at the start of a chain. "online"
        begins without one: rows that were never drawn are taken for the mean of those that were
        (the reweighting of sec. 5 of the paper, by ``(N/m) Σ α`` for m rows seen), which leaves
        the estimate unbiased, and costs noise until most rows have been seen.

    Raises
    ------
    InvalidParameterError
        When it is used with another `table`.
    MemoryError
        By `fit`, where the table does not fit.

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

    def __init__(self, table="full_pass"):
        self.table = table

    def measured(self, n_rows, batch_size):
        """Twice the noise of a control variate: θ and where a row was last seen both move."""
        return [(ControlVariate(), 2.0)]

    def settling_steps(self, n_rows, batch_size):
        """Those in which an online table sees almost every row that matters."""
        return 10 * n_rows // batch_size if self.table == "online" else 0

    def check(self, n_rows, batch_size):
        """`InvalidParameterError` for a `table` that is neither."""
        if self.table not in ("full_pass", "online"):
            raise InvalidParameterError(
                f"The table of {self!r} must be 'full_pass' or 'online', got {self.table!r}."
            )

    def memory(self, setup, rng):
        """A table without a row in it."""
        return new_memory(setup, rng, n_table=setup.n_rows)

    def prepare(self, setup, chain, estimator, scratch):
        """Fill the table once, where the chain begins."""
        counts = chain.memory.counts
        if counts[SEEN] > 0 or self.table != "full_pass":
            return
        for first in range(0, setup.n_rows, PANEL):
            rows = np.arange(first, min(first + PANEL, setup.n_rows))
            ones = np.ones(len(rows))
            _fill(setup.problem, estimator.derivative, chain.state[0], rows, ones, scratch)
        counts[SEEN] = setup.n_rows
