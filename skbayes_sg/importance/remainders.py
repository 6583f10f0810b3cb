"""How far each row is from its quadratic, where the posterior is.

The remainder of row i along a unit vector q in φ is what w ℓ(η̂ + s J_i F q) differs from its
quadratic in s, and s ~ N(0, 1) under the Laplace approximation. Its score is the root of the mean
square over that law, for each predictor along the line of `lines_of_rows`. Rows of one level of a
category add coherently, so that scores are added, not their squares.
"""

import numpy as np

from .._base.jit import interruptible, pointer
from ..kernels import many_draws
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, LOSS, frozen

__all__ = ["chosen_rows", "lines_of_rows", "remainders_along", "root_mean_square", "row_factors"]
__all__ += ["row_scores"]

NODES, MASS = np.polynomial.hermite_e.hermegauss(9)
MASS = MASS / MASS.sum()
MOST = 10.0


def remainders_along(target, facts, weights, directions, places):
    """r_k(s v_k) of the rows k, (n_rows, n_places).

    Parameters
    ----------
    target : Target
        Whose model it is.
    facts : array
        Of the rows, with predictors and terms at the centre.
    weights : array of shape (n_rows, K, K)
        weight ∂²ℓ/∂η² there.
    directions : array of shape (n_rows, K)
        The v_k.
    places : array of shape (n_rows, n_places) or (1, n_places)
        The s.
    """
    K, n = target.model.n_predictors, len(facts)
    base = frozen(facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
    terms = facts[:, FACT_PREDICTOR + K : FACT_PREDICTOR + 2 * K]
    found = np.empty((n, places.shape[1]))
    loss, eta = pointer(target.model.loss, LOSS), np.empty((1, K))
    all_places = np.ascontiguousarray(np.broadcast_to(places, found.shape))
    with interruptible(), np.errstate(all="ignore"):
        many_draws.row_losses(
            loss, facts, np.arange(n), base, np.ascontiguousarray(directions), all_places, eta,
            found,
        )  # fmt: skip
        origin = np.empty((n, 1))
        many_draws.row_losses(
            loss, facts, np.arange(n), base, np.zeros((n, K)), np.zeros((n, 1)), eta, origin
        )
        slope = facts[:, FACT_WEIGHT] * np.einsum("nk,nk->n", terms, directions)
        bend = np.einsum("nk,nkl,nl->n", directions, weights, directions)
        return found - origin - all_places * (slope[:, None] + 0.5 * all_places * bend[:, None])


def row_factors(frame, A):
    """J_i F of the rows of a design, one array (n_rows, n_parameters) for each predictor."""
    parts = zip(frame.target.factors(A), frame.target.positions(), strict=True)
    return [factor @ frame.F[where] for factor, where in parts]


def lines_of_rows(J, weights):
    """For each predictor c, the line of every row: a unit vector in φ, and J_i F times it.

    The line is that of Fᵀ J_iᵀ W_i e_c, in which the gradient of the row moves with predictor c:
    what leaves the likelihood as it is, such as a common shift of all classes, has no part in it.
    `J` is what `row_factors` gives.

    Yields
    ------
    units : array of shape (n_rows, n_parameters)
    moved : array of shape (n_rows, K)
    """
    for c in range(len(J)):
        z = J[0] if len(J) == 1 else sum(weights[:, c, b, None] * J[b] for b in range(len(J)))
        length = np.sqrt(np.einsum("nd,nd->n", z, z))
        units = z / np.where(length > 0.0, length, 1.0)[:, None]
        yield units, np.stack([np.einsum("nd,nd->n", part, units) for part in J], axis=1)


def row_scores(frame):
    """Scores of all rows, (n_rows, n_predictors): see the module."""
    target, K = frame.target, frame.target.model.n_predictors

    def work(rows):
        A, own = target.design(rows), frozen(frame.facts[rows])
        eta = np.ascontiguousarray(own[:, FACT_PREDICTOR : FACT_PREDICTOR + K])
        weights, scores = target.curvature(own, eta), np.empty(eta.shape)
        for c, (_, moved) in enumerate(lines_of_rows(row_factors(frame, A), weights)):
            r = remainders_along(target, own, weights, moved, NODES[None])
            scores[:, c] = root_mean_square(r)
        return scores

    return np.concatenate(target.over_chunks(work, max(target.n_parameters, 1)))


def root_mean_square(r):
    """Over s ~ N(0, 1), of remainders at the `NODES`; `MOST` nats are as good as infinite."""
    return np.sqrt(np.square(np.clip(np.where(np.isnan(r), MOST, r), -MOST, MOST)) @ MASS)


def chosen_rows(scores, allowed, most):
    """The fewest rows such that the scores of all others add up to `allowed`; `most` of them."""
    order = np.argsort(-scores, kind="stable")
    left = scores.sum() - np.cumsum(scores[order])
    n = int(np.searchsorted(-left, -allowed)) + 1 if scores.sum() > allowed else 0
    return order[: min(n, most)]
