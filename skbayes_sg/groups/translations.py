"""Exact moves along what rows cannot tell: effects of one factor against those of another.

Levels of two factors k and l that are connected by rows make up a component: one for all where the
factors are crossed, and one for each level of the outer factor where they are nested. To add δ to
the effects of all levels of k in a component c, and to take it from those of l, leaves the
predictors of all rows as they are. Only the priors hold δ back. With inverse covariances Ω of the
effects of a level, and sums over the levels of a component,

    p(δ_c | rest) = N(m_c, 1/P_c),
    P_c = Σ_k Ω_k + Σ_l Ω_l,   m_c = P_c⁻¹ (Σ_l Ω_l u_l - Σ_k Ω_k u_k).

Gibbs draws of u_k given u_l, and then of u_l given u_k, move along this direction only by the width
that the rows leave to the effects of a level. Scales also move little, since their law given the
effects is narrow. So scales first make steps in their law with all δ integrated out, with ψ as in
`covariance` and L_f levels,

    log p(ψ) + Σ_f (½ L_f log |Ω_f| - ½ Σ u_fᵀ Ω_f u_f) + ½ Σ_c (P_c m_c² - log P_c).

The same is done for the slopes of one column. Such moves leave the law as it is, since Lebesgue
measure is invariant under translations: Liu and Sabatti (2000), Generalised Gibbs sampler and
multigrid Monte Carlo for Bayesian computation, Biometrika 87, 353-369.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .translation_kernels import Side, shifted_log_density, walk_scales

__all__ = ["Translation", "translations_of"]

# Widths of the steps of the scales, in about the spread of log τ given the effects.
WIDTHS = np.repeat([0.5, 1.5, 4.0], 4)


@dataclass
class Translation:
    """Moves of effect a of the levels of factor k against effect b of those of factor l.

    Parameters
    ----------
    pair : tuple of int
        (k, l).
    effect : tuple of int
        (a, b).
    component : tuple of two ndarray of int
        For each level of k, and of l, the number of its component.
    sizes : tuple of two ndarray of int
        Number of levels of k, and of l, in each component.
    """

    pair: tuple
    effect: tuple
    component: tuple
    sizes: tuple

    @cached_property
    def free(self):
        """Mask of the components with levels of both factors; a level without rows is alone."""
        return self.sizes[0] * self.sizes[1] > 0

    def move(self, u, psi, priors, unit, rng):
        """Draw the scales of both factors, and δ of each component; change effects and scales.

        Parameters
        ----------
        u : list of ndarray of shape (n_levels, q)
            Effects of each factor.
        psi : list of ndarray
            ψ of each factor: see `Covariance`.
        priors : list of ndarray of shape (q, 5)
            Prior-table rows of the standard deviations of the effects of each factor.
        unit : float
            Logarithm of the unit of the effects.
        rng : numpy.random.Generator
        """
        (k, m), sums = self.pair, self.sums(u, priors)
        if self.free.sum() > 1:
            psi[k], psi[m] = self._walked(sums, psi[k], psi[m], unit, rng)
        precision, pull = np.empty((2, len(self.free)))
        shifted_log_density(*sums, psi[k], psi[m], unit, precision, pull)
        delta = pull / precision + rng.standard_normal(len(pull)) / np.sqrt(precision)
        # Scales may be so small that precisions are infinite.
        delta[~np.isfinite(delta) | ~self.free] = 0.0
        for f, e, own, _, sign in self._sides():
            u[f][:, e] += sign * delta[own]

    def sums(self, u, priors):
        """The `Side` of each factor."""
        found = []
        for f, e, own, n, sign in self._sides():
            totals = np.stack([np.bincount(own, x, len(n)) for x in u[f].T], axis=1)
            found.append(Side(len(u[f]), u[f].T @ u[f], totals, n, e, sign, priors[f]))
        return found

    def _walked(self, sums, first, second, unit, rng):
        """ψ of both factors after Metropolis steps with all δ integrated out."""
        first, second = first.copy(), second.copy()
        normals = rng.standard_normal((len(WIDTHS), max(len(first), len(second))))
        noise = WIDTHS, normals, np.log(rng.random(len(WIDTHS)))
        walk_scales(*sums, first, second, unit, 2, *noise)
        return first, second

    def _sides(self):
        """(factor, effect, components of the levels, sizes, sign of δ) of k, and of l."""
        return zip(self.pair, self.effect, self.component, self.sizes, (1.0, -1.0), strict=True)


def translations_of(problem):
    """A `Translation` for each pair of factors, and for each column with slopes by both."""
    found = []
    for pair in itertools.combinations(range(problem.n_factors), 2):
        component = _components(problem, *pair)
        n = 1 + max(own.max() for own in component)
        sizes = tuple(np.bincount(own, minlength=n) for own in component)
        names = [["", *problem.slopes[f]] for f in pair]
        for name in names[0]:
            if name in names[1]:
                effect = tuple(own.index(name) for own in names)
                found.append(Translation(pair, effect, component, sizes))
    return found


def _components(problem, k, m):
    """For each level of factors k and m, the number of its component: two arrays."""
    L, M = problem.sizes[k], problem.sizes[m]
    rows = problem.codes[:, k], L + problem.codes[:, m].astype(np.int64)
    edges = sparse.coo_array((np.ones(len(rows[0]), dtype=bool), rows), shape=(L + M, L + M))
    _, component = connected_components(edges, directed=False)
    return component[:L], component[L:]
