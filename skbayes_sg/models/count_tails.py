"""Whether a few draws decide what is predicted for counts.

The mean of a count under one draw of the parameters is exp(η). If the posterior standard deviation
of η is s, as for a category that was not in the data, the average over draws is exp(s²/2) times the
median, and exp(2s²) times its square the second moment: from s of about 1.5 on both are what the
few largest η make of them, and soon they are absurd.

For a level of a group that was not in the data it is worse. Its mean under one draw has the factor
exp(v/2), v = τ² with slopes left out, and its second moment exp(2v). From few levels the posterior
of τ falls hardly faster than its prior: with HalfNormal(s) the standard deviation of a prediction
is infinite if s is at least ½, and with slopes the mean may be as well.

The measure is the share of effective draws, E[c]²/E[c²] for the contributions c of the draws.
"""

import warnings
from typing import NamedTuple

import numpy as np

from .._base import weights as weighting
from ..exceptions import HeavyTailWarning

__all__ = ["CountTails"]

# Least shares of effective draws in means and in second moments, for new levels. With smaller
# shares, means from new draws differ by a quarter and more, and standard deviations by a factor of
# two and more.
MEAN, SPREAD = 0.4, 0.05
# The same for rows without new levels, where η has a light tail: from posterior standard deviations
# of η of 1.5 and 1.1 on.
MEAN_OF_ROWS, SPREAD_OF_ROWS = 0.1, 0.01


class CountTails(NamedTuple):
    """What a prediction of counts has seen of the draws that decide it.

    Parameters
    ----------
    new : list of ndarray of shape (2, n_rows)
        For rows of new levels the shares of effective draws in the mean and in the second moment.
    others : list of ndarray of bool, shape (2, n_rows)
        For other rows, whether few draws decide the mean and the second moment.
    """

    new: list
    others: list

    def look(self, means, mean, components, weights, spread):
        """Look at some rows, given the means (rows, components) of all components of draws.

        `mean` (rows,) is their average. The second moment is looked at only with `spread`.
        """
        share = getattr(components, "share", None)
        with np.errstate(over="ignore", invalid="ignore"):
            if share is None:
                self.others.append(_decided(means, mean, weights, spread))
                return
            by_draw = means.reshape(len(means), *share.shape)
            found = np.ones((2, len(means)))
            found[0] = _effective_share(np.einsum("rdn,dn->rd", by_draw, share), weights)
            if spread:
                second = np.einsum("rdn,rdn,dn->rd", by_draw, by_draw, share)
                found[1] = _effective_share(second, weights)
            self.new.append(found)

    def warn(self):
        """Issue a `HeavyTailWarning` if means or standard deviations are not to be used."""
        if self.new:
            mean, second = np.concatenate(self.new, axis=1)
            _warn(
                np.stack([~(mean >= MEAN), ~(second >= SPREAD)]),
                "rows whose level was not in the data: the levels of the data are too few to say "
                "how large effects can be, and a mean grows with the exponential of an effect.",
                "group_scale=HalfNormal(0.3)",
            )
        if self.others:
            _warn(
                np.concatenate(self.others, axis=1),
                "rows: the data say little of their predictors, as of categories that were not in "
                "the data, and a mean grows with the exponential of a predictor.",
                "prior=Normal(scale=HalfCauchy(1.0)), whose scale is learned",
            )


def _warn(few, which, prior):
    """`HeavyTailWarning` if few draws decide the mean or the spread of some rows, (2, n_rows)."""
    what = ["mean"] * bool(few[0].any()) + ["standard deviation"] * bool(few[1].any())
    if what:
        warnings.warn(
            f"Few draws decide the predicted {' and '.join(what)} of {few.sum(axis=1).max()} of "
            f"{few.shape[1]} {which} Use predict_quantiles, of which the median is the prediction, "
            f"or a narrower prior, such as {prior}.",
            HeavyTailWarning,
            stacklevel=4,
        )


def _decided(means, mean, weights, spread):
    """Whether few draws decide the mean and the second moment of rows, (2, n_rows).

    They do not where the draws differ by less than counts with the same mean do. A share of
    effective draws is at least the ratio of the mean to the largest contribution, so that hardly
    any row needs a closer look.
    """
    found = np.zeros((2, len(means)), dtype=bool)
    rows = np.flatnonzero(~(MEAN_OF_ROWS * means.max(axis=1) <= mean))
    c = means[rows]
    if not len(rows):
        return found
    matters = ~(weighting.std(c, weights, axis=1) ** 2 <= weighting.mean(c, weights, axis=1))
    found[0, rows] = matters & ~(_effective_share(c, weights) >= MEAN_OF_ROWS)
    if spread:
        found[1, rows] = matters & ~(_effective_share(c * c, weights) >= SPREAD_OF_ROWS)
    return found


def _effective_share(c, weights):
    """Share of effective draws, E[c]²/E[c²], for each row of contributions c (rows, draws)."""
    c = c / c.max(axis=1, keepdims=True)
    return weighting.mean(c, weights, axis=1) ** 2 / weighting.mean(c * c, weights, axis=1)
