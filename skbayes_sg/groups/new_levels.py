"""Whether a few draws decide what is predicted for counts of levels that were not in the data.

The mean of such a count under one draw of the parameters has the factor exp(v/2), v = τ² with
slopes left out, and its second moment exp(2v). From few levels the posterior of τ falls hardly
faster than its prior: with HalfNormal(s) the standard deviation of a prediction is infinite if s is
at least ½, and with slopes the mean may be as well. Averages over draws are then what the largest τ
makes of them.
"""

import warnings
from typing import NamedTuple

import numpy as np

from ..exceptions import HeavyTailWarning

__all__ = ["TailsOfNewLevels"]

# Least shares of effective draws, E[c]²/E[c²] for the contributions c of the draws, of means and of
# standard deviations. With smaller shares, means from new draws differ by a quarter and more, and
# standard deviations by a factor of two and more.
MEAN, SPREAD = 0.4, 0.05


class TailsOfNewLevels(NamedTuple):
    """The shares of effective draws of all rows of new levels that have been looked at.

    Parameters
    ----------
    shares : list of ndarray of shape (2, n_rows)
        For some rows, the shares of effective draws in the mean and in the second moment.
    """

    shares: list

    def look(self, means, components, weights, spread):
        """Append the shares of rows, given the means (rows, components) of all components of draws.

        The second moment is looked at only with `spread`.
        """
        share = getattr(components, "share", None)
        if share is None:
            return
        by_draw = means.reshape(len(means), *share.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.ones((2, len(means)))
            found[0] = _effective_share(np.einsum("rdn,dn->rd", by_draw, share), weights)
            if spread:
                second = np.einsum("rdn,rdn,dn->rd", by_draw, by_draw, share)
                found[1] = _effective_share(second, weights)
        self.shares.append(found)

    def warn(self):
        """Issue a `HeavyTailWarning` if means or standard deviations are not to be used."""
        if not self.shares:
            return
        mean, second = np.concatenate(self.shares, axis=1)
        few = int((~(mean >= MEAN)).sum()), int((~(second >= SPREAD)).sum())
        what = ["mean"] * (few[0] > 0) + ["standard deviation"] * (few[1] > 0)
        if what:
            warnings.warn(
                f"Few draws decide the predicted {' and '.join(what)} of {max(few)} of {len(mean)} "
                "rows whose level was not in the data: the levels of the data are too few to say "
                "how large effects can be, and a mean grows with the exponential of an effect. "
                "Use predict_quantiles, of which the median is the prediction, or a narrower "
                "prior, such as group_scale=HalfNormal(0.3).",
                HeavyTailWarning,
                stacklevel=3,
            )


def _effective_share(c, weights):
    """Share of effective draws, E[c]²/E[c²], for each row of contributions c (rows, draws)."""
    c = c / c.max(axis=1, keepdims=True)
    return np.average(c, axis=1, weights=weights) ** 2 / np.average(c * c, axis=1, weights=weights)
