"""What follows for items: scores of all items for a user, and how alike items are."""

import numpy as np
from scipy import linalg

from .chains import predictions

__all__ = ["alike", "scores_under_a_draw", "top"]


def _new_row(rng, mean, covariance):
    """A row from its prior."""
    root = linalg.cholesky(covariance.astype(np.float64), lower=True)
    return mean + root @ rng.standard_normal(len(mean))


def scores_under_a_draw(draw, codes, rng):
    """Expected standardised ratings of one user for all items, if this draw were the truth.

    Parameters
    ----------
    draw : Draws
        A single one, without first axes.
    codes : ndarray of shape (n, C)
        Rows of F of the same user with all items; new rows (-1) are drawn once from their prior.
    rng : numpy.random.Generator
    """
    new = {c: _new_row(rng, draw.mu[c], draw.sigma[c]) for c in np.flatnonzero(codes[0] < 0)}
    rows = np.stack(
        [
            np.tile(new[c], (len(codes), 1)) if c in new else draw.F[codes[:, c]]
            for c in range(codes.shape[1])
        ],
        axis=1,
    )
    return predictions(rows.astype(np.float64))


def top(scores, n):
    """Places of the n largest scores, best first; among equals the first place wins."""
    return np.argsort(-scores, kind="stable")[:n]


def alike(draws, rows, items):
    """Correlation, over new users, of the expected ratings of items; averaged over the draws.

    Under a draw it is that of ``q_i · p`` and ``q_j · p`` with p ~ N(·, Σ), Σ the covariance of the
    factors of users (and of all other columns but the items). Rotating or rescaling the factors
    does not change it.

    Parameters
    ----------
    draws : Draws
        With one first axis.
    rows : ndarray of int, shape (m,)
        Rows of F of the items asked for.
    items : slice
        Rows of F of all items.

    Returns
    -------
    ndarray of shape (m, n_items)
    """
    total = np.zeros((len(rows), items.stop - items.start))
    for s in range(len(draws.alpha)):
        sigma = draws.sigma[s, :, :-1, :-1].astype(np.float64)
        root = linalg.cholesky(sigma.sum(axis=0) - sigma[1], lower=True)
        Q, mine = draws.F[s, items, :-1] @ root, draws.F[s, rows, :-1] @ root
        Q /= np.linalg.norm(Q, axis=1, keepdims=True)
        mine /= np.linalg.norm(mine, axis=1, keepdims=True)
        total += mine @ Q.T
    return total / len(draws.alpha)
