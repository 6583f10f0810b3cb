"""The warps T, one for each axis q, from the normal law to the posterior's along q.

Along q the posterior is e^-f, f(s) = g·q s + s²/2 + the remainders of the rows that lie there. Its
distribution function F is found on a grid, from both ends, and s as a function of ψ = Φ⁻¹(F(s)) is
made a cubic spline, which goes on in straight lines. The spline *is* T: a table that is not right
costs efficiency, and the weights, which know T' exactly, make up for it.

    φ = ψ + Q⁺(T(Qψ) - Qψ),     log |det ∂φ/∂ψ| = Σ_a log T_a'(q_a·ψ),

with the pseudoinverse Q⁺, so that Qφ = T(Qψ), and what is orthogonal to all axes stays. Axes of the
proposal are orthonormal, and Q⁺ is Qᵀ. Those of `warps_of_draws` are not.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.special import ndtr, ndtri, ndtri_exp

__all__ = ["Place", "Warps", "fit_warp", "unwarped", "warps_of_draws"]

REACH = 14.0  # half width of the first grid, in standard deviations of the Laplace approximation
CORE = 2.0  # distance from the centre up to which the steps of that grid are about even
FARTHEST = 1e4  # distance from the centre beyond which that grid is not extended
DEPTH = 40.0  # the density counts as zero so many nats below its maximum
CAP = 80.0  # nats below its maximum at which the log density is cut off in a table
FLAT = 1e-12  # least slope of T in the log determinant of `inverse`
BARRIER = 1.0  # behind a barrier the log density rises again by more than so many nats
PLACES = 121  # number of places of a grid
REFINEMENTS = 2  # number of grids after the first
LEAST_PLACES = 20  # with fewer places of finite ψ a law cannot be tabulated
FINER = 8  # cells of the distribution function for each cell of the grid
WIDEST = 8.0  # largest |ψ| of a table
EDGE = 7.0  # largest |ψ| of the knots; beyond, the spline goes on in straight lines
KNOTS = 200  # number of knots of the spline
SMOOTHED = 0.3  # width in ψ over which quantiles of draws are averaged
OF_DRAWS = 2.5  # largest |ψ| of the knots of a table of draws; there are few draws beyond
BLOCK_NUMBERS = 1 << 20  # largest number of entries of ψ that are moved at once


class Warps:
    """The map φ = T(ψ).

    Parameters
    ----------
    axes : array of shape (n_axes, n_parameters)
        Unit vectors, linearly independent.
    splines : list of scipy.interpolate.PPoly
        One for each axis, a function of ψ along it: cubics between knots at even steps, with the
        same number of knots for all.
    duals : array of shape (n_parameters, n_axes), optional
        The pseudoinverse of `axes`; their transpose if None, for axes that are orthonormal.
    """

    def __init__(self, axes, splines, duals=None):
        self.axes, self.splines = axes, splines
        self.duals = axes.T if duals is None else duals
        self.low = np.array([spline.x[0] for spline in splines])
        self.high = np.array([spline.x[-1] for spline in splines])
        self.coefficients = np.array([spline.c.T for spline in splines])  # cubic first

    def __len__(self):
        return len(self.splines)

    def position(self, psi):
        """φ and log |det ∂φ/∂ψ| for rows ψ, in blocks, as cubics take five times their memory."""
        if len(self) == 0:
            return psi, np.zeros(len(psi))
        phi, log_det = np.empty_like(psi), np.empty(len(psi))
        size = max(BLOCK_NUMBERS // max(psi.shape[1], 1), 1)
        for first in range(0, len(psi), size):
            block = slice(first, first + size)
            place = self.at(psi[block])
            phi[block], log_det[block] = place.phi, place.log_det
        return phi, log_det

    def at(self, psi):
        """The `Place` of rows ψ."""
        along = psi @ self.axes.T
        if len(self) == 0:
            return Place(psi, np.zeros(len(psi)), self.axes, self.duals, along, along)
        value, slope, bend = self._evaluated(along)
        phi = psi + (value - along) @ self.duals.T
        return Place(phi, np.log(slope).sum(axis=1), self.axes, self.duals, slope, bend)

    def inverse(self, phi):
        """Approximate ψ and log |det ∂φ/∂ψ| for rows φ, by tables of T."""
        if len(self) == 0:
            return phi, np.zeros(len(phi))
        along = phi @ self.axes.T
        psi = np.stack(
            [_inverse(spline, s) for spline, s in zip(self.splines, along.T, strict=True)], axis=1
        )
        _, slope, _ = self._evaluated(psi)
        return phi + (psi - along) @ self.duals.T, np.log(np.maximum(slope, FLAT)).sum(axis=1)

    def _evaluated(self, x):
        """All T_a, T_a' and T_a'' at (n, n_axes) places: cubics that go on in straight lines."""
        inside, n_cells = np.clip(x, self.low, self.high), self.coefficients.shape[1]
        width = (self.high - self.low) / n_cells
        # ψ may be NaN, in a trajectory that has overflowed and will be rejected.
        cell = np.minimum(np.nan_to_num((inside - self.low) / width).astype(np.intp), n_cells - 1)
        t = inside - (self.low + cell * width)
        c3, c2, c1, c0 = np.moveaxis(self.coefficients[np.arange(len(self)), cell], 2, 0)
        slope = (3.0 * c3 * t + 2.0 * c2) * t + c1
        value = ((c3 * t + c2) * t + c1) * t + c0 + slope * (x - inside)
        return value, slope, np.where(x == inside, 6.0 * c3 * t + 2.0 * c2, 0.0)


@dataclass(frozen=True)
class Place:
    """Where `Warps` carry rows ψ, and how.

    Attributes
    ----------
    phi : array of shape (n, n_parameters)
    log_det : array of shape (n,)
        log |det ∂φ/∂ψ|.
    axes : array of shape (n_axes, n_parameters)
    duals : array of shape (n_parameters, n_axes)
    slope, bend : array of shape (n, n_axes)
        T_a' and T_a''.
    """

    phi: np.ndarray
    log_det: np.ndarray
    axes: np.ndarray
    duals: np.ndarray
    slope: np.ndarray
    bend: np.ndarray

    def pull_back(self, g):
        """∂/∂ψ of U(φ) - log |det ∂φ/∂ψ|, from g = ∂U/∂φ."""
        if len(self.axes) == 0:
            return g
        along = (self.slope - 1.0) * (g @ self.duals) - self.bend / self.slope
        return g + along @ self.axes


def unwarped(n_parameters):
    """The `Warps` without axes, which are the identity map."""
    return Warps(np.empty((0, n_parameters)), [])


def _inverse(spline, s):
    """Approximate ψ with T(ψ) = s, by a table of the spline."""
    x = np.linspace(spline.x[0], spline.x[-1], 4 * KNOTS)
    values, slopes = spline(x), np.maximum(spline(x[[0, -1]], 1), np.finfo(float).tiny)
    below, above = np.minimum(s - values[0], 0.0), np.maximum(s - values[-1], 0.0)
    with np.errstate(all="ignore"):  # where T is flat, ψ is far away
        outside = np.nan_to_num(below / slopes[0] + above / slopes[1])
    return np.interp(s, values, x) + np.clip(outside, -FARTHEST, FARTHEST)


def fit_warp(f, local=False):
    """The spline T for one axis, or None where the law along it cannot be tabulated.

    A first grid finds where the mass is. The places of the next are at even steps of ψ according to
    the grid before, so that a wall is resolved as well as a long tail.

    Parameters
    ----------
    f : callable
        Negative log density along the axis, up to a constant, of an array of places.
    local : bool
        Whether the law ends at barriers, beyond which another mode lies.
    """
    places, values = _range(f, local)
    for _ in range(REFINEMENTS):
        psi, s = _normal_scores(places, values)
        if len(psi) < LEAST_PLACES:
            return None
        places = np.interp(np.linspace(psi[0], psi[-1], PLACES), psi, s)
        values = _finite(f(places))
    psi, s = _normal_scores(places, values)
    knots = np.linspace(max(psi[0], -EDGE), min(psi[-1], EDGE), KNOTS)
    value = PchipInterpolator(psi, s)(knots)
    spline = CubicSpline(knots, value, bc_type="natural")
    if spline(np.linspace(knots[0], knots[-1], 4 * KNOTS), 1).min() > 0.0:
        return spline
    return PchipInterpolator(knots, value)  # increasing, whatever the table


def warps_of_draws(axes, phi):
    """The `Warps` that carry the normal law to the marginal laws of draws along axes.

    T(ψ) is the mean of the empirical quantiles s_(i) at normal scores about ψ, smoothed with a
    normal law of width h:

        T(ψ) = Σ_i s_(i) [Φ((b_i+1 - ψ)/h) - Φ((b_i - ψ)/h)],     b_i = Φ⁻¹(i/n).

    Parameters
    ----------
    axes : array of shape (n_axes, n_parameters)
        Unit vectors, linearly independent but not orthogonal: along the directions of rows.
    phi : array of shape (n, n_parameters)
        Draws. They need not be accurate, as chains on the warps are exact with any.
    """
    knots = np.linspace(-OF_DRAWS, OF_DRAWS, KNOTS)
    scores = ndtri(np.arange(len(phi) + 1) / len(phi))
    share = np.diff(ndtr((scores - knots[:, None]) / SMOOTHED), axis=1)
    tables = share @ np.sort(phi @ axes.T, axis=0)
    splines = [PchipInterpolator(knots, table) for table in tables.T]
    return Warps(axes, splines, linalg.pinv(axes))


def _normal_scores(places, values):
    """Arrays ψ and s with Φ(ψ) = F(s), for the density e^-values on a grid; both increase."""
    fine = np.interp(
        np.arange(FINER * (len(places) - 1) + 1) / FINER, np.arange(len(places)), places
    )
    log_density = -PchipInterpolator(places, np.minimum(values - values.min(), CAP))(fine)
    # The mass of a cell by the trapezoidal rule, summed from both ends.
    cells = np.logaddexp(log_density[1:], log_density[:-1]) + np.log(0.5 * np.diff(fine))
    below = np.append(-np.inf, np.logaddexp.accumulate(cells))
    above = np.append(np.logaddexp.accumulate(cells[::-1])[::-1], -np.inf)
    total = below[-1]
    psi = np.where(
        below < above,
        ndtri_exp(np.minimum(below - total, 0.0)),
        -ndtri_exp(np.minimum(above - total, 0.0)),
    )
    inside = np.flatnonzero(np.isfinite(psi) & (np.abs(psi) < WIDEST))
    psi, fine = psi[inside], fine[inside]
    rising = np.append(True, np.diff(np.maximum.accumulate(psi)) > 0.0)
    return psi[rising], fine[rising]


def _finite(values):
    """Values of -log p, with a very large number in the place of those that are not finite."""
    return np.where(np.isfinite(values), values, 1e300)


def _range(f, local):
    """A grid of places that holds all of the mass, and the values of f there.

    Its steps are about even up to `CORE`, and proportional to the distance beyond, so that the
    centre is resolved however long a tail is.
    """
    low, high = -REACH, REACH
    while True:
        ends = np.arcsinh(np.array([low, high]) / CORE)
        places = CORE * np.sinh(np.linspace(*ends, PLACES))
        values = _finite(f(places))
        if local:
            values = np.where(_basin(places, values), values, 1e300)
        inside = np.flatnonzero(values < values.min() + DEPTH)
        open_low = inside[0] == 0 and low > -FARTHEST
        open_high = inside[-1] == PLACES - 1 and high < FARTHEST
        if not (open_low or open_high):
            first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, PLACES - 1)
            return places[first : last + 1], values[first : last + 1]
        low, high = (2.0 * low if open_low else low), (2.0 * high if open_high else high)


def _basin(places, values):
    """Whether each place lies on the near side of the barriers around the centre."""
    inside, middle = np.ones(len(values), bool), int(np.argmin(np.abs(places)))
    for outward in (np.arange(middle, len(values)), np.arange(middle, -1, -1)):
        highest = np.maximum.accumulate(values[outward])
        beyond = np.flatnonzero(values[outward] < highest - BARRIER)
        if len(beyond):
            inside[outward[np.argmax(values[outward[: beyond[0]]]) :]] = False
    return inside
