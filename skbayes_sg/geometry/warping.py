"""Coordinates that follow the shape of skewed axes.

If a level of a categorical column has few rows, all of one class, the posterior of its coefficient
has a long tail on one side and decays steeply on the other: the curvature varies a hundredfold, and
every sampler with one step size is slow. With φ = T(z), where T transforms a standard normal into
the density along the axis, both sides become Gaussian. Every increasing T leaves the posterior
unchanged; a good one only makes sampling easier.
"""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtri

from ..gradients import Taylor
from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, frozen
from ..kernels.warps import Warp
from . import preconditioning

__all__ = ["Warping", "fit_warping", "skewed_parameters"]

REACH = 14.0  # of the density along an axis, in widths of the Laplace approximation
GRID = np.sinh(np.linspace(-np.arcsinh(REACH), np.arcsinh(REACH), 61))
EDGE = 4.5  # of the splines, in standard deviations
CELLS = 36
ROWS = 4000
MOVED = 0.1  # a predictor that changes less along the whole axis is treated as linear
LEAST_SLOPE = 0.1  # the steep side may lie elsewhere off the axis through one point
TAYLOR = Taylor()


class Warping:
    """Increasing splines T_a of some axes a.

    Parameters
    ----------
    axes : sequence of int
    splines : sequence of scipy.interpolate.CubicSpline
        Each on CELLS + 1 uniform knots, with no bend at its ends.
    """

    def __init__(self, axes=(), splines=()):
        self.axes, self.splines = list(axes), list(splines)

    def kernel(self):
        """The `Warp` for kernels, or None if nothing is warped."""
        if not self.axes:
            return None
        return Warp(
            frozen(self.axes, np.int64),
            frozen([s.x[0] for s in self.splines]),
            frozen([s.x[1] - s.x[0] for s in self.splines]),
            frozen([s.c[::-1].T for s in self.splines]),
        )

    def position(self, z):
        """φ = T(z), for any leading shape."""
        phi = np.array(z)
        for a, spline in zip(self.axes, self.splines, strict=True):
            phi[..., a] = _straight(spline, z[..., a], 0)
        return phi

    def inverse(self, phi):
        """z with T(z) = φ, to about a thousandth of a standard deviation."""
        z = np.array(phi)
        for a, spline in zip(self.axes, self.splines, strict=True):
            knots = np.linspace(spline.x[0], spline.x[-1], 50 * CELLS)
            values, x = spline(knots), phi[..., a]
            below = knots[0] + (x - values[0]) / spline(knots[0], 1)
            above = knots[-1] + (x - values[-1]) / spline(knots[-1], 1)
            inside = np.interp(x, values, knots)
            z[..., a] = np.where(x < values[0], below, np.where(x > values[-1], above, inside))
        return z

    def slopes(self, z, slopes):
        """∂U/∂φ at positions z, from the gradients of kernels, T' ∂U/∂φ - T''/T'."""
        if not self.axes:
            return slopes
        first, second = self.derivative(z, 1), self.derivative(z, 2)
        return (slopes + second / first) / first

    def derivative(self, z, order):
        """T', T'' or T''' on the warped axes; of the identity on the others."""
        out = np.full_like(z, 1.0 if order == 1 else 0.0)
        for a, spline in zip(self.axes, self.splines, strict=True):
            out[..., a] = _straight(spline, z[..., a], order)
        return out


def _straight(spline, z, order):
    """A derivative of a spline with linear extrapolation."""
    inside = np.clip(z, spline.x[0], spline.x[-1])
    if order == 0:
        return spline(inside) + spline(inside, 1) * (z - inside)
    return spline(inside, order) if order == 1 else np.where(z == inside, spline(z, order), 0.0)


class _Potential:
    """Derivative of the potential along lines in φ, from the rows that change along them.

    The quadratic part of the potential is known exactly. Rows contribute only to the remainder,
    which is of third order in the distance, so that a few thousand rows suffice.
    """

    def __init__(self, survey, rng):
        self.survey, self.frame = survey, survey.frame
        n = ROWS // survey.K
        rows, stands_for = survey.sample_rows(survey.leverage_chances(3, 0.1), rng, n)
        self.A = survey.target.design(rows)
        self.facts = frozen(survey.frame.facts[rows])
        self.weight = self.facts[:, FACT_WEIGHT] * stands_for

    def slopes(self, start, direction, places):
        """dU/dt at ``start + t direction`` for t in `places`."""
        frame, K = self.frame, self.survey.K
        moved = self.survey.predictors(self.A, direction)
        rows = np.flatnonzero(np.abs(moved).max(axis=1) * REACH > MOVED)
        facts, moved = frozen(self.facts[rows]), moved[rows]
        base = facts[:, FACT_PREDICTOR : FACT_PREDICTOR + K] + self.survey.predictors(
            self.A[rows], start
        )
        pull, found = self.weight[rows, None] * moved, []
        theta, along = (preconditioning.apply(frame.F, phi) for phi in (start, direction))
        for t in places:
            terms = self.survey.terms(TAYLOR, facts, base + t * moved)
            shift = theta + t * along
            prior = frame.target.prior_gradient(frame.centre.theta + shift)
            prior -= frame.prior_gradient + frame.prior_curvature * shift
            quadratic = (frame.offset + start + t * direction) @ direction
            found.append(quadratic + prior @ along + (pull * terms).sum())
        return np.array(found)


def skewed_parameters(survey, rng, threshold=0.5):
    """Order of the parameters by the nonlinearity of their slope, and how many are skewed.

    The slope is measured two posterior standard deviations to either side, along the direction in
    which the other parameters follow by regression.
    """
    potential, F = _Potential(survey, rng), survey.frame.F
    origin, ends, departures = np.zeros(len(F)), np.array([-2.0, 2.0]), []
    for direction in F / np.sqrt((F**2).sum(axis=1))[:, None]:
        straight = potential.frame.offset @ direction + ends
        departures.append(np.abs(potential.slopes(origin, direction, ends) - straight).max())
    order = np.argsort(departures, kind="stable")
    return order, int(np.sum(np.array(departures) > threshold))


def fit_warping(survey, axes, at, rng):
    """Warp some axes by the density along each of them, through the position `at`."""
    potential, kept, splines = _Potential(survey, rng), [], []
    for a in axes:
        direction = np.zeros(len(at))
        direction[a] = 1.0
        slopes = potential.slopes(at - at[a] * direction, direction, GRID)
        spline = _quantile_spline(CubicSpline(GRID, slopes).antiderivative())
        if spline is not None:
            kept.append(int(a))
            splines.append(spline)
    return Warping(kept, splines)


def _quantile_spline(psi):
    """The T for which T(z) has density exp(-ψ) if z is normal; None if it is not increasing."""
    t = np.linspace(-REACH, REACH, 8001)
    density = np.exp(psi(t).min() - psi(t))
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    total = below[-1]
    above = np.concatenate([np.cumsum(0.5 * (density[1:] + density[:-1])[::-1])[::-1], [0.0]])
    inside = (below > 1e-7 * total) & (above > 1e-7 * total)
    z = np.where(below < above, ndtri(below / total), -ndtri(above / total))[inside]
    if (np.diff(z) <= 0.0).any():  # the density vanishes between two peaks
        return None
    knots = np.linspace(max(-EDGE, z[0]), min(EDGE, z[-1]), CELLS + 1)
    fine = np.linspace(knots[0], knots[-1], 40 * CELLS + 1)
    exact = CubicSpline(z, t[inside])
    slope = np.hypot(np.maximum(exact(fine, 1), 0.0), LEAST_SLOPE)
    values = CubicSpline(fine, slope).antiderivative()(knots)
    values += float(exact(0.0)) - np.interp(0.0, knots, values)
    spline = CubicSpline(knots, values, bc_type="natural")
    increasing = spline(fine, 1).min() > 0.5 * LEAST_SLOPE
    return spline if increasing else None
