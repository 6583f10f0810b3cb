"""Recommendations: scores of items for a user, the best items, and the similarity of items."""

import warnings

import numpy as np
from scipy import linalg
from sklearn.utils import column_or_1d

from .._base.categories import UNSEEN, encode, encode_table
from .._base.validation import check_within, is_whole
from .chains import predictions
from .prediction_kernels import predictive

__all__ = ["alike", "best", "item_codes", "scorer", "scores_under_a_draw", "user_codes"]

STRATEGIES = ("mean", "thompson", "ucb")


def user_codes(users, context, categories, offsets, cold):
    """Return the codes of users and their context, (n_users, C); codes of items are set later."""
    users = column_or_1d(np.asarray(users))
    codes = np.zeros((len(users), len(categories)), np.int32)
    codes[:, 0] = encode(users, categories[0])
    _tell_unknown(users[codes[:, 0] == UNSEEN], len(users), cold)
    n_more = len(categories) - 2
    if n_more != (0 if context is None else np.asarray(context).shape[-1]):
        raise ValueError(
            f"context must have the {n_more} categories that X has beyond user and item, got "
            f"{context!r}."
        )
    if n_more:
        rows = np.broadcast_to(np.asarray(context), (len(users), n_more))
        codes[:, 2:] = encode_table(rows, categories[2:], offsets[2:])
    return codes


def _tell_unknown(users, n_users, cold):
    """Warn of users that were not in the data, or raise `ValueError` if `cold` is "raise"."""
    if len(users) == 0:
        return
    said = f"{len(users)} of {n_users} users were not in the data, such as {users.tolist()[0]!r}"
    if cold == "raise":
        raise ValueError(f"{said}. Use cold='prior' for recommendations from the prior.")
    said += "; their recommendations follow from the prior, and are what new users like on average."
    warnings.warn(said, UserWarning, stacklevel=4)


def item_codes(row, offsets):
    """Return the codes of one user (`row`) with every item, (n_items, C)."""
    items = np.arange(offsets[1], offsets[2])
    codes = np.tile(row, (len(items), 1))
    codes[:, 1] = items
    return codes


def scorer(strategy, draws, exploration, rng):
    """Return ``score(codes)``, the function that scores each row by a strategy of `recommend`."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be 'mean', 'thompson' or 'ucb', got {strategy!r}.")
    ends, wanted = (-np.inf, np.inf), "a finite number"
    check_within("exploration", exploration, "recommend", *ends, wanted=wanted)

    def thompson(codes):
        return scores_under_a_draw(draws.at(rng.integers(len(draws.alpha))), codes, rng)

    def optimistic(codes):
        f, g, spread, _ = predictive(draws, codes)
        score = g.mean(axis=0)
        if strategy == "ucb":
            score += exploration * np.sqrt(f.var(axis=0) + spread.mean(axis=0))
        return score

    return thompson if strategy == "thompson" else optimistic


def _new_row(rng, mean, covariance):
    """Draw a row of F from its prior, a normal law."""
    root = linalg.cholesky(covariance.astype(np.float64), lower=True)
    return mean + root @ rng.standard_normal(len(mean))


def scores_under_a_draw(draw, codes, rng):
    """Expected standardised ratings of one user for all items under a single draw.

    Parameters
    ----------
    draw : FactorDraws
        A single draw, without first axes.
    codes : ndarray of shape (n, C)
        Rows of F of the user with all items; new rows (-1) are drawn once from their prior.
    rng : numpy.random.Generator
    """
    new = {c: _new_row(rng, draw.mu[c], draw.sigma[c]) for c in np.flatnonzero(codes[0] < 0)}
    columns = [
        np.tile(new[c], (len(codes), 1)) if c in new else draw.F[codes[:, c]]
        for c in range(codes.shape[1])
    ]
    return predictions(np.stack(columns, axis=1).astype(np.float64))


def best(scores, n, labels, owner):
    """Return places and values of the n largest finite scores, best first; ties keep their order.

    Parameters
    ----------
    scores : iterable of ndarray of shape (n_items,)
        One array for each label.
    n : int
    labels : ndarray
        The users or items that the scores belong to.
    owner : str
        What a label stands for, for the error message.

    Returns
    -------
    places : ndarray of int, shape (n_labels, n)
    values : ndarray of shape (n_labels, n)
    """
    places, values = [], []
    for label, score in zip(labels.tolist(), scores, strict=True):
        _check_enough(n, int(np.isfinite(score).sum()), f"{owner} {label!r}")
        places.append(np.argsort(-score, kind="stable")[:n])
        values.append(score[places[-1]])
    return np.array(places, np.intp), np.array(values)


def _check_enough(n, n_left, owner):
    """Raise `ValueError` unless n is an int for which there are enough items."""
    if n_left == 0:
        raise ValueError(
            f"No items are left for {owner}. With exclude_seen=False, `recommend` returns those "
            "that are rated already, too."
        )
    if not is_whole(n) or not 1 <= n <= n_left:
        raise ValueError(
            f"n must be an int in [1, {n_left}], the number of items that are left for {owner}, "
            f"got {n!r}."
        )


def alike(draws, rows, items):
    """Correlation over new users of the expected ratings of items, averaged over the draws.

    Under a draw it is the correlation of ``q_i · p`` and ``q_j · p`` for p ~ N(·, Σ), with the
    covariance Σ of the factors of users, and of all other columns except the items. Rotations and
    changes of scale of the factors do not change it.

    Parameters
    ----------
    draws : FactorDraws
        Draws with one first axis.
    rows : ndarray of int, shape (m,)
        Rows of F of the requested items.
    items : slice
        Rows of F of all items.

    Returns
    -------
    ndarray of shape (m, n_items)
        Correlations; -inf for an item with itself.
    """
    total = np.zeros((len(rows), items.stop - items.start))
    for s in range(len(draws.alpha)):
        sigma = draws.sigma[s, :, :-1, :-1].astype(np.float64)
        root = linalg.cholesky(sigma.sum(axis=0) - sigma[1], lower=True)
        Q, mine = draws.F[s, items, :-1] @ root, draws.F[s, rows, :-1] @ root
        Q /= np.linalg.norm(Q, axis=1, keepdims=True)
        mine /= np.linalg.norm(mine, axis=1, keepdims=True)
        total += mine @ Q.T
    total /= len(draws.alpha)
    total[np.arange(len(rows)), rows - items.start] = -np.inf
    return total
