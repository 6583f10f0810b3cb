"""How far each row is from its quadratic, where the posterior is.

The remainder of row i along a unit vector q in φ is the difference of w ℓ(η̂ + s J_i F q) from its
quadratic in s, where s ~ N(0, 1) under the Laplace approximation. Its score is the root of the mean
square over that law, for each predictor along the line of `lines_of_rows`. Rows of one level of a
category add coherently, so that scores are added, not their squares. Most rows of a large table
have a score of next to nothing; with a single predictor these are recognised by four slopes each,
and only the others are integrated.

Most of the remainder of a row that is nearly quadratic is a slope: its drift, the mean over that
law of the derivative of the loss less the derivative at the centre. With it, rows that are kept to
second order leave less
(``tests/importance/test_importance.py::test_with_drifts_the_quadratic_rows_leave_less``).
"""

import numpy as np

from .._base.interrupts import without_interrupts
from .._base.jit import pointer
from ..engine.sigma_points import sigma_points
from ..kernels import many_draws
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, LOSS, frozen

__all__ = ["chosen_rows", "lines_of_rows", "remainders_along", "root_mean_square", "row_factors"]
__all__ += ["row_laws", "slopes_of_remainders"]

NODES, MASS = np.polynomial.hermite_e.hermegauss(5)
MASS = MASS / MASS.sum()
MOST = 10.0  # nats: a larger remainder counts as this
NEAR, FAR = 1.0, 3.0  # standard deviations at which slopes of rows with one predictor are compared
MANY = 8  # number of predictors from which products of matrices are faster
SLIGHT = 1e-4  # score up to which a row is nearly quadratic


def remainders_along(target, facts, weights, directions, places):
    """Remainders r_k(s v_k) of rows k whose predictors move by s v_k, (n_rows, n_places).

    Parameters
    ----------
    target : Target
        A target with the model of the rows.
    facts : array
        Facts of the rows, with predictors and terms at the centre.
    weights : array of shape (n_rows, K, K)
        weight ∂²ℓ/∂η² at the centre.
    directions : array of shape (n_rows, K)
        Directions v_k of the predictors of each row.
    places : array of shape (n_rows, n_places) or (1, n_places)
        Distances s along them.
    """
    K, n = target.model.n_predictors, len(facts)
    base = frozen(facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
    terms = facts[:, FACT_PREDICTOR + K : FACT_PREDICTOR + 2 * K]
    found = np.empty((n, places.shape[1]))
    loss, eta = pointer(target.model.loss, LOSS), np.empty((1, K))
    all_places = frozen(np.broadcast_to(places, found.shape))
    with without_interrupts(), np.errstate(all="ignore"):
        many_draws.row_losses(
            loss, facts, np.arange(n), base, np.ascontiguousarray(directions), all_places, eta,
            found,
        )  # fmt: skip
        origin = np.empty((n, 1))
        many_draws.row_losses(
            loss, facts, np.arange(n), base, np.zeros((n, K)), frozen(np.zeros((n, 1))), eta, origin
        )
        slope = facts[:, FACT_WEIGHT] * np.einsum("nk,nk->n", terms, directions)
        bend = np.einsum("nk,nkl,nl->n", directions, weights, directions)
        return found - origin - all_places * (slope[:, None] + 0.5 * all_places * bend[:, None])


def row_factors(frame, A):
    """J_i F of the rows of a design, one array (n_rows, n_parameters) for each predictor."""
    parts = zip(frame.target.factors(A), frame.target.positions(), strict=True)
    return [factor @ frame.F[where] for factor, where in parts]


def covariances(J):
    """Covariances C_i = J_i F (J_i F)ᵀ of the predictors of each row, (n_rows, K, K).

    They are those under the Laplace approximation; J are the `row_factors`.
    """
    if len(J) >= MANY:
        stacked = np.stack(J, axis=1)
        return stacked @ stacked.transpose(0, 2, 1)
    found = np.empty((len(J[0]), len(J), len(J)))
    for a, left in enumerate(J):
        for b, right in enumerate(J[: a + 1]):
            found[:, a, b] = found[:, b, a] = np.einsum("nd,nd->n", left, right)
    return found


def lines_of_rows(J, weights):
    """Yield, for each predictor c, the lines of all rows: unit vectors φ, (n_rows, n_parameters).

    A line is along Fᵀ J_iᵀ W_i e_c, in which the gradient of the row moves with predictor c:
    directions that leave the likelihood as it is, such as a common shift of all classes, have no
    part in it.
    """
    for c in range(len(J)):
        z = J[0] if len(J) == 1 else sum(weights[:, c, b, None] * J[b] for b in range(len(J)))
        length = np.sqrt(np.einsum("nd,nd->n", z, z))
        yield z / np.where(length > 0.0, length, 1.0)[:, None]


def _moves_along_lines(C, weights):
    """How the predictors of a row move along its lines, J_i F times each: (n_rows, lines, K)."""
    moved = weights @ C
    squares = np.einsum("ncb,ncb->nc", moved, weights)
    return moved / np.sqrt(np.where(squares > 0.0, squares, 1.0))[:, :, None]


def row_laws(frame):
    """Scores and drifts of all rows (see the module), each of shape (n_rows, n_predictors)."""
    target, K = frame.target, frame.target.model.n_predictors

    def work(rows):
        own = frozen(frame.facts[rows])
        eta = np.ascontiguousarray(own[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
        weights = target.curvature(own, eta)
        C = covariances(row_factors(frame, target.design(rows)))
        law = _law_of_one if K == 1 else _law
        return law(target, own, weights, C)

    found = target.over_chunks(work, max(target.n_parameters, 1))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _law(target, facts, weights, C):
    """Scores and drifts of some rows, given the covariances C of their predictors."""
    scores = np.empty(weights.shape[:2])
    for c, moved in enumerate(np.moveaxis(_moves_along_lines(C, weights), 1, 0)):
        scores[:, c] = root_mean_square(
            remainders_along(target, facts, weights, moved, NODES[None])
        )
    return scores, _drifts(target, facts, C)


def _law_of_one(target, facts, weights, C):
    """Scores and drifts of some rows with a single predictor, most of them nearly quadratic.

    With e(s) the derivative of the remainder r(s) = c₃s³ + c₄s⁴, two places ±s tell c₃ and c₄, and
    the mean square of r is 15 c₃² + 105 c₄². A row is nearly quadratic if that is next to nothing
    both by near places and by far ones; the scores of all others are found by quadrature.
    """
    v, bend = np.sqrt(C[:, 0, 0]), weights[:, 0, 0]
    scores, drift = np.zeros(len(v)), 0.0
    with np.errstate(all="ignore"):
        for s in (FAR, NEAR):  # the drift is that of the near places, which come last
            ahead, back = (slopes_of_remainders(target, facts, bend, u) for u in (s * v, -s * v))
            drift = 0.5 * (ahead + back)
            c3, c4 = drift * v / (3.0 * s**2), (ahead - back) * v / (8.0 * s**3)
            scores = np.maximum(scores, np.sqrt(15.0 * c3**2 + 105.0 * c4**2))
    far = np.flatnonzero(~(scores <= SLIGHT))
    moved = np.sign(bend[far, None]) * v[far, None]
    r = remainders_along(target, frozen(facts[far]), weights[far], moved, NODES[None])
    scores[far] = root_mean_square(r)
    return scores[:, None], np.where(np.isfinite(drift), drift, 0.0)[:, None]


def slopes_of_remainders(target, facts, bend, u):
    """Slopes weight (ℓ'(η̂ + u) - ℓ'(η̂)) - bend u of remainders of rows with one predictor."""
    eta, slope = facts[:, FACT_PREDICTOR] + u, facts[:, FACT_PREDICTOR + 1]
    moved = target.derivative(facts, eta[:, None])[:, 0]
    return facts[:, FACT_WEIGHT] * (moved - slope) - bend * u


def _drifts(target, facts, C):
    """Drifts weight (E ∂ℓ/∂η - ∂ℓ/∂η at the centre), by the `sigma_points` of N(η̂, C)."""
    K = C.shape[1]
    eta = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K]
    slope = facts[:, FACT_PREDICTOR + K : FACT_PREDICTOR + 2 * K]
    with np.errstate(all="ignore"):
        points = sigma_points(eta, C)
        mean = sum(target.derivative(facts, point) for point in points) / len(points)
        found = facts[:, FACT_WEIGHT, None] * (mean - slope)
    return np.where(np.isfinite(found), found, 0.0)  # overflows where the points are far away


def root_mean_square(r):
    """Root mean square over s ~ N(0, 1) of remainders at the `NODES`, each `MOST` nats at most."""
    return np.sqrt(np.square(np.clip(np.where(np.isnan(r), MOST, r), -MOST, MOST)) @ MASS)


def chosen_rows(scores, allowed, most):
    """Indices of the fewest rows such that scores of all others add up to `allowed` at most.

    They are never more than `most`, and the largest scores come first.
    """
    total, candidates = scores.sum(), np.arange(len(scores))
    if total <= allowed:
        return candidates[:0]
    if len(scores) > most:
        candidates = np.argpartition(-scores, most)[:most]
    order = candidates[np.argsort(-scores[candidates], kind="stable")]
    left = total - np.cumsum(scores[order])
    return order[: int(np.searchsorted(-left, -allowed)) + 1]
