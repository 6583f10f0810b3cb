"""Exact moves of the effects of a factor against the coefficient that they deviate from.

To add δ to the effects of all L levels of a factor, and to take it from the intercept b, leaves the
predictors of all rows as they are; the same holds for the slopes of a column and its coefficient,
where slopes of a column about its centre m also take -m δ from the intercept, if its prior is flat.
So only the priors hold δ back. With the inverse covariance Ω of the effects of a level, and a prior
b ~ N(m₀, s₀²), it is the translation of `translations` with a second factor that has one level, the
effect b - m₀ and the known standard deviation s₀. Where the prior is a mixture of normal laws, s₀
is drawn first, given b (`skbayes_sg.priors.scale_mixtures`). As in `translations`, the scales of
the effects then make steps in their law with δ integrated out.

Collapsed coordinates make effects follow the coefficients and scales. Here effects stay where they
are, and coefficients and scales are drawn given them: what is slow in one way is fast in the other
(Yu and Meng 2011, To center or not to center: that is not the question, JCGS 20, 531-570).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..priors import Flat
from ..priors.columns import LOC, SCALE
from ..priors.families import of_family
from ..priors.flat import PositiveFlat
from ..priors.scale_mixtures import ScaleMixtures, are_mixtures
from .translation_kernels import Side, shifted_log_density, walk_scales

__all__ = ["Recentring", "recentrings_of"]

WIDTHS = np.repeat([1.0, 3.0], 2)  # of steps, in about the spread of log τ given the effects
NO_BOUND = 1e100  # s₀ that stands for a flat prior
OF_KNOWN = PositiveFlat()._table((1,))  # stands for a prior of s₀, which is known


@dataclass
class Recentring:
    """Moves of one effect of all levels of a factor against a coefficient.

    Parameters
    ----------
    factor, effect : int
        The factor, and which of the effects of its levels: 0 for the intercept, then slopes.
    coefficient : int
        The place of b in θ.
    prior : ndarray of shape (1, 5)
        The row of b in a prior table.
    taken : ndarray of shape (n_coefficients,)
        What is taken from each coefficient if δ is one: 1 from b, and -m from the intercept beside
        a slope.
    """

    factor: int
    effect: int
    coefficient: int
    prior: np.ndarray
    taken: np.ndarray

    def move(self, theta, u, psi, priors, rng):
        """Draw the scales of the factor, and δ; change coefficient, effects and scales.

        Parameters
        ----------
        theta : ndarray
        u, psi, priors
            As for `skbayes_sg.groups.translations.Translation.move`.
        rng : numpy.random.Generator
        """
        f, fixed = self.factor, np.array([math.log(self._scale(theta, rng))])
        sums, own = self.sums(theta, u, priors), psi[f].copy()
        normals = rng.standard_normal((len(WIDTHS), len(own)))
        noise = WIDTHS, normals, np.log(rng.random(len(WIDTHS)))
        walk_scales(*sums, own, fixed, 0.0, 1, *noise)
        precision, pull = np.empty((2, 1))
        shifted_log_density(*sums, own, fixed, 0.0, precision, pull)
        delta = (pull[0] + rng.standard_normal() * math.sqrt(precision[0])) / precision[0]
        psi[f] = own
        if math.isfinite(delta):  # scales may be so small that precisions are infinite
            u[f][:, self.effect] += delta
            theta[: len(self.taken)] -= delta * self.taken

    @cached_property
    def _mixture(self):
        return ScaleMixtures(self.prior)

    def _off(self, theta):
        """b - m₀, with m₀ = 0 for a flat prior."""
        return theta[self.coefficient] - self.prior[0, LOC]

    def _scale(self, theta, rng):
        """s₀, drawn where it is not known; `NO_BOUND` for a flat prior."""
        scale = self.prior[0, SCALE]
        precision = self._mixture.precisions(np.array([self._off(theta) / scale]), rng)[0]
        return scale / math.sqrt(precision) if precision > 0.0 else NO_BOUND

    def sums(self, theta, u, priors):
        """The `Side` of the factor, and that of the coefficient."""
        own, b = u[self.factor], np.array([[self._off(theta)]])
        n, total = np.array([len(own)]), own.sum(axis=0)[None]
        first = Side(len(own), own.T @ own, total, n, self.effect, 1.0, priors[self.factor])
        return first, Side(1, b * b, b, np.ones_like(n), 0, -1.0, OF_KNOWN)


def recentrings_of(problem):
    """A `Recentring` of each effect of a coefficient whose prior is a mixture of normal laws."""
    target, found, last = problem.target, [], problem.n_coefficients - 1
    prior = target.prior[: last + 1]
    flat, mixed = of_family(prior, Flat), are_mixtures(prior)
    for f, slopes in enumerate(problem.slopes):
        places = [last] if target.intercept else [None]
        centres = [0.0, *problem.centres[f]]
        for effect, (place, centre) in enumerate(zip([*places, *slopes], centres, strict=True)):
            if place is None or not mixed[place]:
                continue
            if centre != 0.0 and not (target.intercept and flat[last]):
                continue
            unit, own = np.eye(last + 1), prior[place : place + 1]
            found.append(Recentring(f, effect, int(place), own, unit[place] - centre * unit[last]))
    return found
