"""U at many draws: exact in some rows, to second or fourth order in the others.

    U(θ̂ + Fφ) - U(θ̂) = b·φ + φᵀQφ/2 + Σ_{i in R} [w_i ℓ_i(η̂_i + J_i Fφ) - w_i ℓ_i(η̂_i)]
                        - log p(θ) + log p(θ̂),

with b and Q the gradient and the Hessian, at the centre and in φ, of the rows that are not in R.
Instead of the gradient at the centre, b may be that on average over the Laplace approximation, the
best slope under that law. With R all rows it is exact. Where all rows bend together along an axis
q, T(s) + G(s)·φ is added, with s = q·φ and G orthogonal to q: U and its gradient are exact on the
axis. The remainders of the other rows to fourth order (`fourth_order`) may be added as well.
"""

import numpy as np
from scipy import linalg, sparse
from scipy.interpolate import CubicSpline

from .._base.interrupts import without_interrupts
from .._base.jit import pointer
from ..geometry import preconditioning
from ..kernels import many_draws
from ..kernels.layout import DERIVATIVE, FACT_PREDICTOR, FACT_WEIGHT, LOSS, frozen

__all__ = ["NearAndFar", "Potential"]

BLOCK_BYTES = 1 << 20  # size of the predictors of a block of rows and draws, to stay in cache
BLOCK_ROWS = 512  # largest number of rows in a block
BLOCK_DRAWS = 256  # largest number of draws in a block
MANY_ROWS = 4000  # with more exact rows (for gradients: predictors), single precision is used
LIGHT = 64.0  # largest weight of a row for which single precision does
LOOKED_AT = 8  # number of draws, the farthest left to polynomials, at which these are checked
MOST_ALONG = 1 << 24  # most predictors of all rows and draws that are kept to move along lines


class Potential:
    """U - U(θ̂) as a function of φ.

    Parameters
    ----------
    frame : Frame
    rows : array of int, optional
        R: the rows that are exact, all of them if None.
    drift : array of shape (n_parameters,), optional
        Mean gradient of the other rows under the Laplace approximation, in θ, less that at the
        centre.
    beyond : FourthOrder, optional
        Remainders of the other rows beyond their quadratics at the centre.
    """

    order = 2

    @staticmethod
    def error_far(phi):
        """Zero: there is no polynomial of higher order."""
        return 0.0

    def __init__(self, frame, rows=None, drift=0.0, beyond=None):
        self.frame, self.target, self.beyond = frame, frame.target, beyond
        D, K = self.target.n_parameters, self.target.model.n_predictors
        self.n_exact = self.target.n_rows if rows is None else len(rows)
        if rows is None:
            self.part, facts = self.target, frame.facts
            self.b, self.Q = self._of_rows_that_are_gone()
        else:
            facts = frozen(frame.facts[rows])
            self.part = self.target.take(rows, facts[:, FACT_WEIGHT], n_jobs=self.target.n_jobs)
            self.b, self.Q = self._of_the_others(facts, drift)
        # Predictors in single precision are right to 1e-6, which light rows leave harmless; and
        # chains are exact however their gradients are rounded.
        light = facts[:, FACT_WEIGHT].max(initial=0.0) <= LIGHT
        self.dtype = np.float32 if light and self.n_exact > MANY_ROWS else np.float64
        many = self.n_exact * K > MANY_ROWS
        self.dtype_of_gradients = np.float32 if light and many else np.float64
        self.F_of_gradients = frame.F.astype(self.dtype_of_gradients, copy=False)
        self.base = frozen(facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
        self.along = []  # corrections along axes, (q, T, G) each
        self.at_centre = self._losses_at_centre() + self._prior(np.zeros((1, D)))[0]

    def _of_rows_that_are_gone(self):
        """b and Q of the quadratic that stands for earlier rows; without any, zero and None."""
        frame, past = self.frame, self.target.quadratic
        if past is None:
            return np.zeros(self.target.n_parameters), None
        slope = past.slope(frame.centre.theta)
        return preconditioning.pull_back(frame.F, slope), frame.congruence(past.hessian)

    def _of_the_others(self, facts, drift):
        """b and Q of the rows that are not exact."""
        frame, part, K = self.frame, self.part, self.target.model.n_predictors
        gradient, H = frame.centre.gradient + drift, frame.centre.hessian.copy()
        first = FACT_PREDICTOR + K
        weighted = facts[:, FACT_WEIGHT, None] * facts[:, first : first + K]

        def work(rows):
            return part.row_sum(part.design(rows), weighted[rows])

        for own in part.over_chunks(work, self._width()):
            gradient -= own
        H -= part.likelihood_hessian(frame.centre.theta)
        return preconditioning.pull_back(frame.F, gradient), frame.congruence(H)

    def correct_along(self, axis, places, values, slopes):
        """Correct U so that U - U(θ̂) and ∇_φ U have given values and slopes along an axis."""
        phi = np.multiply.outer(places, axis)
        value, slope = values - self.values(phi), slopes - self.gradients(phi)
        slope -= np.multiply.outer(slope @ axis, axis)
        T, G = (CubicSpline(places, y, bc_type="natural") for y in (value, slope))
        self.along.append((axis, T, G))

    def values(self, phi):
        """U - U(θ̂) at the rows of `phi`, (n_draws,)."""
        steps = preconditioning.apply(self.frame.F, phi)
        losses = self._sum(steps, self.dtype, self._block_losses, np.zeros(len(phi)))
        return self._with_losses(losses, steps, phi)

    def along_rays(self, phi, directions):
        """U - U(θ̂) at φ + Σ_m c_m v_m as a function of c, whose calls need no product with X.

        Parameters
        ----------
        phi : array of shape (n_draws, n_parameters)
        directions : sequence of arrays of shape (n_draws, n_parameters)
            The v_m of each draw.

        Returns
        -------
        callable
            ``values(c)`` for c of shape (n_directions, n_draws, 1); it returns (n_draws,).
        """
        if len(phi) * self.n_exact * self.target.model.n_predictors > MOST_ALONG:
            return lambda c: self.values(phi + sum(map(np.multiply, c, directions)))
        everything = slice(0, self.part.n_rows)
        steps = [preconditioning.apply(self.frame.F, own) for own in (phi, *directions)]
        u = [self._moved(everything, self._by_predictor(own), len(phi))[1] for own in steps]

        def values(c):
            moved, step, position = (
                own[0] + sum(map(np.multiply, c, own[1:])) for own in (u, steps, (phi, *directions))
            )
            return self._with_losses(self._losses(everything, moved), step, position)

        return values

    def _with_losses(self, losses, steps, phi):
        """U - U(θ̂) at φ, with Σ_{i in R} w_i ℓ_i there and the steps F φ, each for every draw."""
        found = losses + self._prior(steps) - self.at_centre + phi @ self.b
        if self.Q is not None:
            found += 0.5 * np.einsum("nd,nd->n", phi @ self.Q, phi)
        for axis, T, G in self.along:
            s = np.clip(phi @ axis, T.x[0], T.x[-1])
            found += T(s) + np.einsum("nd,nd->n", G(s), phi)
        return found if self.beyond is None else found + self.beyond.values(phi)

    @property
    def work(self):
        """About the number of multiplications in a gradient at one draw."""
        D, K = self.target.n_parameters, self.target.model.n_predictors
        return float(self.n_exact * K * self._width() + D * D)

    def gradients(self, phi):
        """∇_φ U at the rows of `phi`, (n_draws, n_parameters)."""
        F, dtype = self.F_of_gradients, self.dtype_of_gradients
        steps = preconditioning.apply(F, phi.astype(dtype, copy=False))
        g = np.zeros(phi.shape)
        with without_interrupts():
            many_draws.prior_gradients(self.target.prior, self.frame.centre.theta + steps, g)
        g += self._sum(steps, dtype, self._block_gradients, np.zeros_like(g))
        g = preconditioning.pull_back(F, g.astype(dtype, copy=False).T).T + self.b
        if self.Q is not None:
            g += phi @ self.Q
        for axis, T, G in self.along:
            s = np.clip(phi @ axis, T.x[0], T.x[-1])
            slope = T(s, 1) + np.einsum("nd,nd->n", G(s, 1), phi)
            g += G(s) + np.multiply.outer(np.where(s == phi @ axis, slope, 0.0), axis)
        return g if self.beyond is None else g + self.beyond.gradients(phi)

    def _prior(self, steps):
        """-log p of the prior at the centre plus each of some steps in θ."""
        found = np.zeros(len(steps))
        many_draws.prior_values(self.target.prior, self.frame.centre.theta + steps, found)
        return found

    def _losses_at_centre(self):
        """Σ_{i in R} w_i ℓ_i(η̂_i)."""
        facts, base, model = self.part.data.facts, self.base, self.part.model

        def work(rows):
            eta = base[rows]
            return model.loss(frozen(facts[rows]), np.arange(len(eta)), 0, len(eta), eta)

        with without_interrupts():
            return sum(self.part.over_chunks(work, self._width()))

    def _sum(self, steps, dtype, of_block, total):
        """Add to `total`, for each draw, the sum over blocks of rows of what `of_block` returns."""
        for first in range(0, len(steps), BLOCK_DRAWS):
            some = slice(first, first + BLOCK_DRAWS)
            adder = self._adder(steps[some].astype(dtype, copy=False), of_block)
            for part in self.part.over_chunks(adder, self._width()):
                total[some] += part
        return total

    def _width(self):
        """Number of columns of a row, by which chunks of rows are made to fit into cache."""
        return max(self.part.n_features, 1)

    def _adder(self, steps, of_block):
        """A function of rows that returns the sum of what `of_block` returns for blocks of them."""
        moved = self._by_predictor(steps)
        size = BLOCK_BYTES // (8 * len(steps) * self.target.model.n_predictors)
        size = max(8, min(BLOCK_ROWS, size))

        def work(rows):
            total = 0.0
            for start in range(rows.start, rows.stop, size):
                block = slice(start, min(start + size, rows.stop))
                total = total + of_block(block, moved, len(steps))
            return total

        return work

    def _by_predictor(self, steps):
        """Steps in θ in the parameters of each predictor, as `_moved` takes them."""
        linear, extra = self._places()
        of_linear = steps[:, linear].transpose(1, 0, 2)
        of_linear = of_linear.reshape(len(linear) * len(steps), linear.shape[1])
        return np.ascontiguousarray(of_linear), steps[:, extra].T

    def _places(self):
        """The parameters of each linear predictor, (n_linear, ·), and those that are extra."""
        places, n_linear = self.part.positions(), self.part.model.n_linear
        width = len(places[0]) if n_linear else 0  # the density of a row has no linear predictor
        linear = np.array(places[:n_linear], dtype=int).reshape(n_linear, width)
        return linear, np.concatenate([[], *places[n_linear:]]).astype(int)

    def _moved(self, block, moved, n_draws):
        """J_k F φ_j of the rows k of a block, (n_predictors, n_draws, n_rows), and the design.

        `moved` is F φ in the parameters of each predictor: (n_linear n_draws, ·) of linear ones,
        and (n_extra, n_draws).
        """
        linear, extra = moved
        A, model = self.part.design(block, linear.dtype), self.part.model
        out = np.empty((model.n_predictors, n_draws, A.shape[0]), linear.dtype)
        flat = out[: model.n_linear].reshape(len(linear), A.shape[0])
        if len(linear) and sparse.issparse(A):
            flat[:] = (A @ linear.T).T
        elif len(linear):
            np.matmul(linear, A.T.astype(linear.dtype, copy=False), out=flat)
        out[model.n_linear :] = extra[:, :, None]
        return A, out

    def _block_losses(self, block, moved, n_draws):
        """Σ w_i ℓ_i over a block of rows at each draw, (n_draws,)."""
        return self._losses(block, self._moved(block, moved, n_draws)[1])

    def _losses(self, block, u):
        """Σ w_i ℓ_i over a block of rows with moved predictors u, (n_draws,)."""
        facts, base = self.part.data.facts[block], self.base[block]
        model, total = self.part.model, np.zeros(u.shape[1])
        with without_interrupts():
            if model.add_losses is not None:
                model.add_losses(frozen(facts.T), frozen(base.T), u, np.empty(base.T.shape), total)
            else:
                rows, loss, eta = (
                    np.arange(len(base)),
                    pointer(model.loss, LOSS),
                    np.empty_like(base),
                )
                many_draws.add_losses(loss, frozen(facts), rows, base, u, eta, total)
        return total

    def _replace_by_derivatives(self, facts, base, u):
        """Overwrite the moved predictors u of a block by weighted derivatives of its losses."""
        model = self.part.model
        if model.replace_by_derivatives is not None:
            columns, scratch = frozen(base.T, u.dtype), np.empty(base.T.shape, u.dtype)
            model.replace_by_derivatives(frozen(facts.T), columns, u, scratch)
        else:
            eta, terms = np.empty((2, *base.shape))
            derivative, rows = pointer(model.derivative, DERIVATIVE), np.arange(len(base))
            many_draws.add_derivatives(derivative, facts, rows, base, u, eta, terms)

    def _block_gradients(self, block, moved, n_draws):
        """∇_θ Σ w_i ℓ_i over a block of rows at each draw, (n_draws, n_parameters)."""
        A, u = self._moved(block, moved, n_draws)
        facts, base = frozen(self.part.data.facts[block]), self.base[block]
        with without_interrupts():
            self._replace_by_derivatives(facts, base, u)
        g, (linear, extra) = np.zeros((n_draws, self.part.n_parameters)), self._places()
        if len(linear):
            of_linear = u[: len(linear)].reshape(-1, len(base)) @ A
            g[:, linear] = of_linear.reshape(len(linear), n_draws, -1).transpose(1, 0, 2)
        g[:, extra] = u[len(linear) :].sum(axis=2).T
        return g


class NearAndFar:
    """U of fourth order near the centre, and exact far from it.

    Parameters
    ----------
    near, far : Potential
        The potential of fourth order, and the one that is exact in all rows.
    radius : float
        |φ| from which polynomials are not believed, and `far` is used.
    """

    order = 4

    def __init__(self, near, far, radius):
        self.near, self.far, self.radius, self.n_exact = near, far, radius, near.n_exact

    def values(self, phi):
        """U - U(θ̂) at the rows of `phi`, (n_draws,)."""
        found, is_far = self.near.values(phi), linalg.norm(phi, axis=1) >= self.radius
        found[is_far] = self.far.values(phi[is_far])
        return found

    def error_far(self, phi):
        """The largest error of the polynomials at the farthest draws that are left to them."""
        distance = linalg.norm(phi, axis=1)
        near = np.flatnonzero(distance < self.radius)
        looked_at = phi[near[np.argsort(-distance[near])[:LOOKED_AT]]]
        error = self.far.values(looked_at) - self.near.values(looked_at)
        return float(np.abs(error).max(initial=0.0))
