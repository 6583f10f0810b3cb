"""The posterior as Python code uses it: rows, model and prior, with passes over all rows.

A pass consists of panels, fixed ranges of rows whose results are added up in order, with one BLAS
thread each. So the result depends neither on `n_jobs` nor on the number of BLAS threads.
"""

import numpy as np
from scipy import sparse

from .._base import memmap
from .._base.columns import block_moments, merged
from .._base.threads import in_threads
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, FACT_Y, Data, Sparse, frozen
from ..priors.table import prior_curvature, prior_gradient, prior_value
from .memory import Quadratic

__all__ = ["Target"]

# Sizes in bytes of dense float64 rows: of a panel, the unit of work of a thread; of one BLAS call;
# and of one BLAS call on rows that are copied first, so that they stay in cache.
PANEL_BYTES = 1 << 24
PASS_BYTES = 1 << 22
CHUNK_BYTES = 1 << 21
# Share of entries that are not zero up to which dense rows become sparse ones, as with hundreds of
# levels: chains on all rows are then four times as fast. With more, products by BLAS are faster.
COMPACT_SHARE = 0.01
SEEN_ROWS = 1000  # first rows, which tell whether all need be looked at for that
SPARSE_SHARE = 0.1  # share of stored entries below which sparse products are faster

# Smallest size of the values of a column: a standard deviation divided by it still has a square
# that is a finite float.
TINIEST = 1e-140


def _all(eta):
    """Return (rows, start, stop), with which the kernels of a model process all rows of `eta`."""
    return np.arange(len(eta)), 0, len(eta)


def _with_ones(block):
    """Return a CSR matrix in float64 with a column of ones at the end, as `sparse.hstack` does.

    It takes a fifth of the time of `hstack`, which is called for each block of rows.
    """
    n, d = block.shape
    indptr = block.indptr + np.arange(n + 1, dtype=block.indptr.dtype)
    is_old = np.ones(block.nnz + n, bool)
    is_old[indptr[1:] - 1] = False
    data, indices = np.ones(len(is_old)), np.full(len(is_old), d, block.indices.dtype)
    data[is_old], indices[is_old] = block.data, block.indices
    return sparse.csr_array((data, indices, indptr), shape=(n, d + 1))


def _weighted_product(A, w, B):
    """Return Aᵀ diag(w) B as a dense array, for dense or for sparse A and B."""
    if sparse.issparse(B):
        product = A.T @ B.multiply(w[:, None]).tocsr()
        return product.toarray() if sparse.issparse(product) else product
    if A is B and w.min() >= 0.0:
        root = np.sqrt(w[:, None]) * A
        return root.T @ root  # NumPy calls syrk for this, which is half of the work
    return A.T @ (w[:, None] * B)


class Target:
    """Negative log posterior U(θ) = Σ weight_i ℓ_i(η_i(θ)) - log p(θ), and its derivatives.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    y : array of shape (n_rows,) or (n_rows, n_labels)
        Labels; all but the first become the last columns of the facts. If there is only one, the
        others are the defaults of the model (`Model.more_labels`).
    weight : array of shape (n_rows,)
    model : skbayes_sg.models.Model
    prior : array of shape (n_parameters, 5)
        The columns are those of `skbayes_sg.priors.columns`.
    intercept : bool
    n_jobs : int or None
        Threads for passes over all rows.

    Attributes
    ----------
    memory : skbayes_sg.engine.memory.Quadratic or Triangle, or None
        What rows that are no longer kept add to the likelihood; see `with_memory`.
    are_different : bool
        Whether equal rows have been merged, and there are fewer rows than before.
    """

    memory = None
    are_different = False

    def __init__(self, X, y, weight, model, prior, *, intercept=True, n_jobs=None):
        self.X, self.model = memmap.aligned(X), model
        self.intercept, self.n_jobs = intercept, n_jobs
        self.prior = frozen(prior)
        y = np.asarray(y, dtype=np.float64)
        more = y[:, 1:] if y.ndim == 2 else np.tile(model.more_labels, (X.shape[0], 1))
        facts = np.empty((X.shape[0], 2 + more.shape[1]))
        facts[:, FACT_Y], facts[:, FACT_WEIGHT] = y[:, 0] if y.ndim == 2 else y, weight
        facts[:, 2:] = more
        self.n_rows, self.n_features = X.shape
        self.n_parameters = len(prior)
        self.data = self.with_facts(frozen(facts))
        d, K = self.n_features, model.n_linear
        linear = [np.r_[c * d : (c + 1) * d, [K * d + c] * intercept].astype(int) for c in range(K)]
        extra = range(self.n_parameters - model.n_extra, self.n_parameters)
        self._positions = linear + [np.array([e]) for e in extra]

    def __getstate__(self):
        return vars(self) | {"data": self.data.facts}  # X is pickled once

    def __setstate__(self, state):
        vars(self).update(state, X=memmap.aligned(state["X"]))
        self.data = self.with_facts(frozen(memmap.aligned(state["data"])))

    def with_facts(self, facts):
        """Return the rows of X with the given facts, as the `Data` that kernels read."""
        X, model = self.X, self.model
        if sparse.issparse(X):
            stored = Sparse(
                frozen(X.data, X.dtype), frozen(X.indices, np.int32), frozen(X.indptr, np.int64)
            )
        else:
            stored = frozen(X, X.dtype)
        return Data(stored, facts, X.shape[1], model.n_linear, bool(self.intercept), model.n_extra)

    @property
    def weight(self):
        """Weights of the rows."""
        return self.data.facts[:, FACT_WEIGHT]

    def labels(self, rows=slice(None)):
        """Return the labels of the given rows, (n, n_labels)."""
        return np.delete(self.data.facts[rows], FACT_WEIGHT, axis=1)

    def take(self, rows, weight, n_jobs=None):
        """Return the `Target` of some of the rows, with the given weights and the same prior."""
        X, y = memmap.gather(self.X, rows), self.labels(rows)
        options = {"intercept": self.intercept, "n_jobs": n_jobs}
        found = Target(X, y, weight, self.model, self.prior, **options)
        found.are_different = self.are_different
        return found

    def merged(self, rows, weight):
        """Return the `Target` of one of each class of equal rows, with their summed weights."""
        found = self.take(rows, weight, self.n_jobs)
        found.are_different |= found.n_rows < self.n_rows
        return found

    @property
    def counted(self):
        """How many rows there are, in words."""
        rows = "row" if self.n_rows == 1 else "rows"
        return f"{self.n_rows} {'different ' if self.are_different else ''}{rows}"

    def column_moments(self):
        """Return (Σ w, mean, variance) of the columns of X."""

        def work(rows):
            return block_moments(self.X[rows], self.weight[rows])

        return merged(self.over_chunks(work, self.n_features))

    def column_spreads(self):
        """Return the weighted standard deviation of each column; |c| if it is a constant c ≠ 0.

        The result for a column of zeros is 1. A column whose values are so small that their
        squares underflow raises a `ValueError`.
        """

        _, mean, variance = self.column_moments()
        spread, size = np.sqrt(variance), np.abs(mean)
        spread = np.where(spread > 1e-8 * size, spread, np.where(size > 0.0, size, 1.0))
        if spread.min() < TINIEST:
            raise ValueError(
                f"The values of column {spread.argmin()} of X are too small: their size is "
                f"{spread.min():.1e}, and must be {TINIEST:g} at least, since coefficients are in "
                "its inverse. Use other units."
            )
        return spread

    def compacted(self):
        """Return a `Target` with sparse rows if hardly any entry of dense rows is not zero."""
        X = self.X
        is_dense = not sparse.issparse(X) and memmap.mapped(X) is None
        if not is_dense or X.shape[1] * COMPACT_SHARE < 1.0:
            return self
        for rows, most in (X[:SEEN_ROWS], 2.0 * COMPACT_SHARE), (X, COMPACT_SHARE):
            if np.count_nonzero(rows) > most * rows.size:
                return self
        other = self._with(X=sparse.csr_array(X))
        other.data = other.with_facts(self.data.facts)
        return other

    def with_prior(self, prior):
        """Return a `Target` with the same likelihood and another prior."""
        return self._with(prior=frozen(prior))

    def with_memory(self, memory):
        """Return a `Target` with the same rows, and a memory of earlier ones.

        The likelihood and its derivatives include a `Quadratic`, but the kernels of chains do not.
        Only the closed form includes a `Triangle`.
        """
        return self._with(memory=memory)

    def _with(self, **changed):
        other = object.__new__(Target)
        other.__dict__.update(self.__dict__, **changed)
        return other

    @property
    def total_weight(self):
        """Sum of the weights of all rows, including those that only the memory knows."""
        return self.weight.sum() + (self.memory.total if self.memory else 0.0)

    @property
    def quadratic(self):
        """The memory if it is a `Quadratic`, else None."""
        return self.memory if isinstance(self.memory, Quadratic) else None

    # -- passes -------------------------------------------------------------------------------

    def over_panels(self, work):
        """Return the results of ``work(first, last)`` for fixed ranges of rows, from threads."""
        size = max(1, PANEL_BYTES // (8 * (self.n_features + 1)))

        def panel(first):
            last = min(first + size, self.n_rows)
            result = work(first, last)
            memmap.forget(self.X, first, last)
            return result

        return in_threads(panel, range(0, self.n_rows, size), self.n_jobs)

    def over_chunks(self, work, width, least=512):
        """Return the results of ``work(slice)`` for ranges of rows with small temporary arrays.

        An array of shape (rows of a range, width) stays in cache. A range has `least` rows or more.
        """
        size = max(least, CHUNK_BYTES // (8 * width))

        def panel(first, last):
            starts = range(first, last, size)
            return [work(slice(start, min(start + size, last))) for start in starts]

        return [result for panel_ in self.over_panels(panel) for result in panel_]

    def value_and_gradient(self, theta):
        """Return U(θ), in nats, and its gradient ∇U(θ)."""
        likelihood, g = self.likelihood(theta)
        prior_gradient(self.prior, theta, g)
        return likelihood + prior_value(self.prior, theta), g

    def likelihood(self, theta):
        """Return the negative log-likelihood and its gradient at θ, with the `quadratic`."""

        def work(first, last):
            if self.model.sums is not None:
                g = np.zeros(len(theta))
                return self.model.sums(self.data.facts[first:last], np.array(theta), True, g), g
            if self.model.loss_and_gradient is not None:
                return self.model.loss_and_gradient(self.data.facts[first:last], theta)
            value, g = 0.0, 0.0
            for rows, block in self._blocks(first, last):
                facts, eta = self.data.facts[rows], self._predictors(block, theta)
                value += self.model.loss(facts, *_all(eta), eta)
                terms = facts[:, FACT_WEIGHT, None] * self.derivative(facts, eta)
                g = g + self._scatter(block, terms)
            return value, g

        values, gradients = zip(*self.over_panels(work), strict=True)
        value, g, past = sum(values), sum(gradients), self.quadratic
        return (value, g) if past is None else (value + past.value(theta), g + past.slope(theta))

    def expansion(self, theta, *, dense):
        """Return (facts, gradient, Hessian) of the negative log-likelihood at θ, in one pass.

        The Hessian is a matrix if `dense`, else its diagonal. The facts are those of the rows, with
        columns for the predictors and terms at θ.
        """
        K = self.model.n_predictors
        own = self.data.facts
        facts = np.empty((self.n_rows, own.shape[1] + 2 * K))
        facts[:, :FACT_PREDICTOR] = own[:, :FACT_PREDICTOR]
        facts[:, FACT_PREDICTOR + 2 * K :] = own[:, FACT_PREDICTOR:]

        def work(first, last):
            weights, g = self._expand(theta, first, last, facts)
            of_panel = self._panel_hessian if dense else self._panel_diagonal
            return g, of_panel(weights, first, last)

        gradients, hessians = zip(*self.over_panels(work), strict=True)
        g, H, past = sum(gradients), sum(hessians), self.quadratic
        if past is not None:
            g, H = g + past.slope(theta), H + (past.hessian if dense else np.diag(past.hessian))
        return frozen(facts), g, H

    def _expand(self, theta, first, last, facts_out):
        """Return weight_i ∂²ℓ_i/∂η² (n, K, K) and the gradient at θ of the rows of a panel.

        The predictors and terms of the rows at θ are written to `facts_out`.
        """
        K, weights, g = self.model.n_predictors, [], 0.0
        for rows, block in self._blocks(first, last):
            own, eta = self.data.facts[rows], self._predictors(block, theta)
            terms = self.derivative(own, eta)
            weights.append(self.curvature(own, eta))
            facts_out[rows, FACT_PREDICTOR : FACT_PREDICTOR + K] = eta
            facts_out[rows, FACT_PREDICTOR + K : FACT_PREDICTOR + 2 * K] = terms
            g = g + self._scatter(block, own[:, FACT_WEIGHT, None] * terms)
        return np.concatenate(weights), g

    def likelihood_hessian(self, theta):
        """Return the Hessian of the negative log-likelihood at θ, dense."""

        def work(first, last):
            return self._panel_hessian(self.weights_at(theta, first, last), first, last)

        H = sum(self.over_panels(work))
        return H if self.quadratic is None else H + self.quadratic.hessian

    def hessian_product(self, weights, direction):
        """Return Σ_i J_iᵀ W_i J_i direction over all rows, for weights W (n_rows, K, K)."""

        def work(first, last):
            total = 0.0
            for start, stop, A in self._chunks(first, last):
                W = weights[first + start : first + stop]
                moved = np.einsum("nbc,nc->nb", W, self.along(A, direction))
                total = total + self.row_sum(A, moved)
            return total

        return sum(self.over_panels(work))

    def likelihood_curvature(self, theta):
        """Return the diagonal of the Hessian of the negative log-likelihood at θ."""

        def work(first, last):
            return self._panel_diagonal(self.weights_at(theta, first, last), first, last)

        H = sum(self.over_panels(work))
        return H if self.quadratic is None else H + np.diag(self.quadratic.hessian)

    def prior_curvature(self, theta):
        """Return the diagonal of a positive semi-definite Hessian of the negative log prior."""
        return prior_curvature(self.prior, theta)

    def prior_gradient(self, theta):
        """Return the gradient of the negative log prior at θ."""
        out = np.zeros(self.n_parameters)
        prior_gradient(self.prior, theta, out)
        return out

    # -- kernels of the model on rows whose facts and predictors (n, K) are given ---------------

    def derivative(self, facts, eta):
        """Return ∂ℓ_i/∂η, (n, K), without the weights."""
        terms = np.empty(eta.shape)
        self.model.derivative(facts, *_all(eta), eta, terms)
        return terms

    def curvature(self, facts, eta):
        """Return weight_i ∂²ℓ_i/∂η², (n, K, K)."""
        n, K = eta.shape
        weights = np.empty((n, K, K))
        for c, unit in enumerate(np.eye(K)):
            column = np.tile(unit, (n, 1))
            self.model.curvature(facts, *_all(eta), eta, column)
            weights[:, :, c] = facts[:, FACT_WEIGHT, None] * column
        return weights

    def weights_at(self, theta, first=0, last=None):
        """Return weight_i ∂²ℓ_i/∂η² at θ of a range of rows, (n, K, K)."""
        parts = [
            self.curvature(self.data.facts[rows], self._predictors(block, theta))
            for rows, block in self._blocks(first, self.n_rows if last is None else last)
        ]
        return np.concatenate(parts)

    # -- designs: some rows with a column of ones if there is an intercept ---------------------

    def _blocks(self, first, last):
        """Yield pairs (slice, these rows of X in float64, dense or CSR as X is)."""
        width = max(self.n_features, self.model.n_extra)
        size = max(512, PASS_BYTES // (8 * width))
        for start in range(first, last, size):
            rows = slice(start, min(start + size, last))
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def _predictors(self, block, theta):
        """Return the predictors η of the rows of a block, (n, K)."""
        K, d = self.model.n_linear, self.n_features
        eta = np.empty((block.shape[0], self.model.n_predictors))
        eta[:, :K] = block @ theta[: K * d].reshape(K, d).T
        if self.intercept:
            eta[:, :K] += theta[K * d : K * d + K]
        eta[:, K:] = theta[len(theta) - self.model.n_extra :]
        return eta

    def _scatter(self, block, terms):
        """Return Σ_i J_iᵀ t_i over the rows of a block, for terms t (n, K)."""
        K, d = self.model.n_linear, self.n_features
        g, total = np.empty(self.n_parameters), terms.sum(axis=0)
        g[: K * d] = (block.T @ terms[:, :K]).T.ravel()
        g[K * d :] = total if self.intercept else total[K:]
        return g

    def design(self, rows, dtype=np.float64):
        """Return rows as a matrix for BLAS, with a column of ones if there is an intercept.

        It is dense, or CSR in float64 if X is so sparse that this is faster.
        """
        block = memmap.gather(self.X, rows)
        if sparse.issparse(block) and not self.keeps_sparse:
            block = block.toarray()
        if not self.intercept:
            return block.astype(np.float64 if sparse.issparse(block) else dtype, copy=False)
        if sparse.issparse(block):
            return _with_ones(block)
        out = np.empty((block.shape[0], self.n_features + 1), dtype)
        out[:, :-1], out[:, -1] = block, 1.0
        return out

    @property
    def keeps_sparse(self):
        """Whether the matrices of `design` are sparse."""
        X = self.X
        return sparse.issparse(X) and X.nnz < SPARSE_SHARE * X.shape[0] * X.shape[1]

    def positions(self):
        """Return, for each predictor, the places of its parameters in θ: one for each extra."""
        return self._positions

    def factors(self, A):
        """Return, for each predictor, its derivatives (n, ·) by the parameters of `positions`."""
        ones = np.ones((A.shape[0], 1))
        return [A] * self.model.n_linear + [ones] * self.model.n_extra

    def along(self, A, directions):
        """Return J_i R of the rows of a design: (n, K) for one direction R, (n, K, m) for m."""
        return np.stack(list(self._moved(A, directions)), axis=1)

    def norms(self, A, directions):
        """Return the Frobenius norms ‖J_i R‖ of the rows of a design, (n,), for directions R."""
        return np.sqrt(sum(np.einsum("nm,nm->n", M, M) for M in self._moved(A, directions)))

    def _moved(self, A, directions):
        """Yield the parts of `along`, one predictor after the other."""
        for J, where in zip(self.factors(A), self.positions(), strict=True):
            yield J @ directions[where]

    def row_sum(self, A, terms):
        """Return Σ_i J_iᵀ t_i over the rows of a design, for terms t (n, K)."""
        total = np.zeros(self.n_parameters)
        for J, where, t in zip(self.factors(A), self.positions(), terms.T, strict=True):
            total[where] += J.T @ t
        return total

    def outer_sum(self, A, weights):
        """Return Σ_i J_iᵀ W_i J_i over the rows of a design, for weights W (n, K, K)."""
        positions, J = self.positions(), self.factors(A)
        if len(J) == 1:
            return _weighted_product(J[0], weights[:, 0, 0], J[0])
        H = np.zeros((self.n_parameters, self.n_parameters))
        for b, left in enumerate(positions):
            for c, right in enumerate(positions[: b + 1]):
                block = _weighted_product(J[b], weights[:, b, c], J[c])
                H[np.ix_(left, right)] = block
                H[np.ix_(right, left)] = block.T
        return H

    def _chunks(self, first, last):
        """Yield (start, stop, design) for ranges that stay in cache, counted from `first`."""
        size = max(512, CHUNK_BYTES // (8 * (self.n_features + 1)))
        for start in range(first, last, size):
            stop = min(start + size, last)
            yield start - first, stop - first, self.design(slice(start, stop))

    def _panel_hessian(self, weights, first, last):
        chunks = self._chunks(first, last)
        return sum(self.outer_sum(A, weights[start:stop]) for start, stop, A in chunks)

    def _panel_diagonal(self, weights, first, last):
        diagonal = np.zeros(self.n_parameters)
        X = self.X[first:last]
        squares = X.power(2) if sparse.issparse(X) else X.astype(np.float64, copy=False) ** 2
        for c, where in enumerate(self.positions()):
            w = weights[:, c, c]
            if c < self.model.n_linear:
                diagonal[where[: self.n_features]] = squares.T @ w
            if c >= self.model.n_linear or self.intercept:
                diagonal[where[-1]] = w.sum()
        return diagonal
