"""Likelihoods of rows whose level has no other row, with the effect of the level integrated out.

Only its own row informs such an effect u. The posterior without the row has u ~ N(0, v), and
importance weights reach it badly or not at all from draws that know y. With u integrated out, the
posterior of all other parameters φ is the same, and the likelihood of the row is

    p(y | φ) = ∫ p(y | η + u) N(u; 0, v) du,

with v = τ², or the sum of the τ_k² of all columns in which the row is alone. This likelihood has no
u, so that leaving out the row is as harmless as for any other row. A row of weight a < 1 takes
∫ p^a N du with it.

The integrand has one peak where log p is concave in the predictor t = η + u. The integral is
computed by the trapezoidal rule in x, t = c + w sinh(ax)/a, about a place c near the peak and with
the width w of the integrand there. Newton steps that begin at the effect as it was drawn find both
for each row and each draw. Away from c the nodes grow apart, since one side may be flat as far as
the prior reaches, as for a class that is certain or a count of zero. With τ up to 3 errors are
below 0.001 for any such row, and with τ = 10 below 0.1 for these flat ones
(``tests/groups/test_alone.py``).

Other integrands, such as those of robust regression and of functions of users, may have a peak
where the prior is and another one where the likelihood is. Three rules then share the integral:
one about each of these, and that from above. A rule with spacing h_r(t) = √(w_r² + a²(t - c_r)²)
between nodes takes the part h_r⁻²/Σ_q h_q⁻² of the integrand, which is smooth for each of them, and
most of it near narrow peaks that only one of them resolves.
"""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Alone"]

# Newton steps towards the peak, and the longest of them in standard deviations of the draws of t.
NEWTON_STEPS, LONGEST_STEP = 5, 3.0
MOST_THIRDS = 12  # times that a width is divided by three
# Distance of the places for finite differences, in the smaller of this unit and √v.
APART = 0.03
SPACING, GROWTH = 0.6, 0.5  # spacing of the nodes in x; a
FAR, FAR_PRIORS = (
    60.0,
    8.0,
)  # how far the nodes reach, in widths of the peak, and in those of N(0, v)


class Alone(NamedTuple):
    """Likelihoods of rows that are alone in their level, with its effect integrated out.

    Parameters
    ----------
    mean : ndarray of shape (n_rows, n_draws)
        η, the predictors without the effects that are integrated out.
    variance : ndarray of shape (n_rows, n_draws)
        v, the prior variance of these effects.
    one_peak : bool
        Whether log p is known to be concave in t.
    """

    mean: Any
    variance: Any
    one_peak: bool = True

    def values(self, values):
        """Return the values of a parameter unchanged: each draw remains a single component."""
        return values

    def log_likelihood(self, of_predictors, eta, powers=1.0):
        """log ∫ p^a N du, (rows, draws), for powers a (rows, 1), of which 1 makes it log p(y | φ).

        Predictors `eta` (rows, draws, 1) have effects as they were drawn.
        """

        def log_p(t):
            return powers * of_predictors(t[:, :, None], self)

        def log_joint(t):
            return log_p(t) - 0.5 * np.square(t - self.mean) / self.variance

        with np.errstate(over="ignore", invalid="ignore"):  # likelihoods of e^t that are zero
            rules, far = [_peak(log_joint, eta[:, :, 0], self.variance)], FAR
            if not self.one_peak:
                rules = [self._likeliest(log_p, eta[:, :, 0]), (self.mean, np.sqrt(self.variance))]
                far = FAR_PRIORS * np.sqrt(self.variance) / rules[0][1]
            total = np.full(self.mean.shape, -np.inf)
            for node, stretch in _nodes(np.max(far)):
                for t, width in rules:
                    place = t + width * node
                    part = np.log(stretch * width) + _log_share((t, width), rules, place)
                    total = np.logaddexp(total, np.fmax(log_joint(place) + part, -np.inf))
        return total - 0.5 * np.log(2.0 * np.pi * self.variance)

    def removed(self, of_predictors, eta, log_likelihood, powers):
        """What rows take with them that are left out with these powers (rows,), as logarithms."""
        if (powers == 1.0).all():
            return log_likelihood
        return self.log_likelihood(of_predictors, eta, powers[:, None])

    def _likeliest(self, log_p, t):
        """The place among drawn t (rows, draws) where each row is most likely, and peak widths.

        A width is the largest √v/3^k within which log p falls by at most half a nat.
        """
        best = np.nan_to_num(log_p(t), nan=-np.inf).argmax(axis=1)
        place = np.take_along_axis(t, best[:, None], axis=1) + np.zeros(t.shape)
        top, width = log_p(place), np.sqrt(self.variance)
        for _ in range(MOST_THIRDS):
            low = np.fmin(log_p(place - width), log_p(place + width))
            width = np.where(low < top - 0.5, width / 3.0, width)
        return place, width


def _nodes(far):
    """Pairs of sinh(ax)/a and its derivative times the spacing, until the former exceeds `far`."""
    last = int(np.arcsinh(GROWTH * far) / GROWTH / SPACING) + 1
    x = SPACING * np.arange(-last, last + 1)
    return zip(np.sinh(GROWTH * x) / GROWTH, SPACING * np.cosh(GROWTH * x), strict=True)


def _log_share(own, rules, place):
    """The logarithm of the share of one of several rules in the integrand at places t."""
    if len(rules) == 1:
        return 0.0
    spacings = [width**2 + np.square(GROWTH * (place - centre)) for centre, width in (own, *rules)]
    return -np.log(spacings[0] * sum(1.0 / spacing for spacing in spacings[1:]))


def _peak(log_joint, t, variance):
    """Places near the modes of log-concave functions of t, and the widths of their peaks there."""
    unit = t.std(axis=1, keepdims=True)
    unit = np.where(unit > 0.0, unit, np.sqrt(variance))
    apart = APART * np.minimum(unit, np.sqrt(variance))
    for _ in range(NEWTON_STEPS):
        slope, bend = _differences(log_joint, t, apart, variance)
        t = t + np.nan_to_num(np.clip(slope / bend, -LONGEST_STEP * unit, LONGEST_STEP * unit))
    return t, 1.0 / np.sqrt(_differences(log_joint, t, apart, variance)[1])


def _differences(log_joint, t, apart, variance):
    """First and negative second derivatives of `log_joint`; the latter at least 1/`variance`."""
    below, here, above = log_joint(t - apart), log_joint(t), log_joint(t + apart)
    bend = (2.0 * here - below - above) / np.square(apart)
    return (above - below) / (2.0 * apart), np.fmax(bend, 1.0 / variance)
