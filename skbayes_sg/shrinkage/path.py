r"""Coordinates along the path of modes, for one scale with which the posterior's curvature varies.

The quadratic of one centre does not hold at other scales s = log τ where the curvature of the
likelihood changes with the coefficients: most of all where columns separate classes, and a larger
scale lets the coefficients grow without end. So the mode θ̂(s) and the Hessian H(s) there are found
at places of s, up to where the Laplace marginal

    -log p(s | y) = U(θ̂(s), s) + log det H(s) / 2 - log p(s)

is `DEEP` above its lowest value. In the coordinates θ = θ̂ + Fφ where it is lowest, with modes c(s)
and H(s)⁻¹ = L Lᵀ there, L = B diag(r), the *coordinates along the path* z of φ are those of

    φ = c(s) + B(s) (r(s) z),     log |det ∂φ/∂z| = Σ_k log r_k(s).

c, log r, B and the marginal are natural cubic splines of s that go on in straight lines. However
inaccurate they are, the map is an exact change of variables, and importance weights make up for
what they miss.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.interpolate import CubicSpline

from ..geometry.frame import Frame
from ..models import Linear
from .collapse import Collapse
from .potential import ScalePrior
from .reference import frame_and_collapse, frame_at, negative_log_laplace, width_of_scales

__all__ = ["ModePath", "along_modes", "has_path"]

FEW_ROWS = 2000  # most rows for which modes at many scales are found
DEEP = 8.0  # the path ends where the log marginal is this many nats below its maximum
MOST = 16  # most places on either side of the first
LONGEST = 0.8  # longest step in s = log τ between places
FINE = 500  # nodes at which the maximum of the interpolated marginal is looked for


class _Place(NamedTuple):
    """A place of the path: s = log τ, -log p(s | y) up to a constant, and the frame there."""

    s: float
    height: float
    frame: Frame


def has_path(target, scales):
    """Whether a path of modes is of use (one scale, not linear) and cheap enough (few rows)."""
    curved = not isinstance(target.model, Linear)
    return scales.n_scales == 1 and curved and target.n_rows <= FEW_ROWS


def along_modes(target, scales, s, rng, theta):
    """The `Frame` at the lowest place of the path, and the `ModePath`; the search begins at s.

    If there is a mode at fewer than two places, the result is that of `frame_and_collapse` at s.
    """
    only = frame_and_collapse(target, scales, s, rng, theta)
    step = min(float(width_of_scales(only[1], s)[0]), LONGEST)

    def place(s, theta):
        frame = frame_at(target, scales, np.array([s]), rng, theta)
        return _Place(s, negative_log_laplace(frame, scales, np.array([s])), frame)

    first = place(float(s[0]), theta)
    found = [*_climbed(place, first, -step)[::-1], first, *_climbed(place, first, step)]
    found = [own for own in found if own.frame.whitened]
    if len(found) < 2:
        return only
    s, heights = (np.array(values) for values in zip(*(own[:2] for own in found), strict=True))
    fine = np.linspace(s[0], s[-1], FINE)
    best = place(fine[np.argmin(CubicSpline(s, heights)(fine))], theta)
    return best.frame, ModePath(best, scales, ScalePrior(scales), found)


def _climbed(place, last, step):
    """Places at equal steps on one side of `last`, up to one that is `DEEP` above the lowest."""
    found, lowest = [], last.height
    while len(found) < MOST and last.height - lowest < DEEP:
        last = place(last.s + step, last.frame.centre.theta)
        if not last.frame.whitened:
            break
        found.append(last)
        lowest = min(lowest, last.height)
    return found


class _Line:
    """A natural cubic spline of vectors or matrices that goes on in straight lines."""

    def __init__(self, s, values):
        self.spline = CubicSpline(s, values, bc_type="natural")

    def _cells(self, s):
        """For each s its cell of the spline, the place in it, and the distance beyond the ends."""
        x = self.spline.x
        inside = np.clip(s, x[0], x[-1])
        cell = np.clip(np.searchsorted(x, inside) - 1, 0, len(x) - 2)
        return cell, inside - x[cell], s - inside

    def __call__(self, s):
        """Values and derivatives at an array of places s."""
        cell, t, beyond = self._cells(s)
        return _cubic(self.spline.c[:, cell], t, beyond)

    def products(self, s, rows, transposed=False):
        """B(s) v, or Bᵀ(s) v if `transposed`, for each s and row v; and its derivative in s."""
        cell, t, beyond = self._cells(s)
        parts = np.empty((4, *rows.shape))
        for own in np.unique(cell):
            here, C = cell == own, self.spline.c[:, own]
            parts[:, here] = rows[here] @ (C if transposed else C.transpose(0, 2, 1))
        return _cubic(parts, t, beyond)


def _cubic(c, t, beyond):
    """Σ_k c_k t^(3-k) and its derivative, continued in a straight line by `beyond`."""
    t, beyond = (a.reshape(-1, *(1,) * (c.ndim - 2)) for a in (t, beyond))
    slope = (3.0 * c[0] * t + 2.0 * c[1]) * t + c[2]
    return ((c[0] * t + c[1]) * t + c[2]) * t + c[3] + beyond * slope, slope


class ModePath(Collapse):
    """The map along a path of modes; see `skbayes_sg.shrinkage.collapse.OneScale`.

    Parameters
    ----------
    best : _Place
        The place whose frame has the coordinates φ.
    scales : LearnedScales
    prior : ScalePrior
    places : list of _Place
        The places along the path, in increasing order of s = log τ.
    """

    _last: Any = (None, None, None)  # z, s and the slope of the last `position`

    def __init__(self, best, scales, prior, places):
        super().__init__(best.frame, scales, np.array([best.s]), prior)
        F, theta = best.frame.F, best.frame.centre.theta
        c = [linalg.solve(F, own.frame.centre.theta - theta) for own in places]
        roots = (linalg.solve(F, own.frame.F) for own in places)
        L = np.array([linalg.cholesky(root @ root.T, lower=True) for root in roots])
        self.roots = L
        r, s = np.einsum("naa->na", L), np.array([own.s for own in places])
        self.c, self.log_r, self.B = _Line(s, c), _Line(s, np.log(r)), _Line(s, L / r[:, None])
        self.height = _Line(s, np.array([own.height for own in places]) - best.height)

    def roots_near(self, s):
        """The roots L of all places, and for each entry of s the number of the nearest place."""
        places = self.c.spline.x
        return self.roots, np.searchsorted(0.5 * (places[1:] + places[:-1]), s)

    def negative_log_marginal(self, s):
        """-log p(s | y) of the Laplace marginal for rows s, (n, 1), up to a constant."""
        return self.height(s[:, 0])[0]

    def marginal_slope(self, s):
        """Gradient of `negative_log_marginal` for rows s, (n, 1)."""
        return self.height(s[:, 0])[1][:, None]

    def position(self, z, s):
        """φ and log |det ∂φ/∂z| for rows z and s."""
        (c, _), (log_r, _) = self.c(s[:, 0]), self.log_r(s[:, 0])
        moved, slope = self.B.products(s[:, 0], np.exp(log_r) * z)
        self._last = z.copy(), s[:, 0].copy(), slope
        return c + moved, log_r.sum(axis=1)

    def _slope(self, z, s, r):
        """The derivative of B(s) r z in s at fixed r, which `position` has often just computed."""
        *place, slope = self._last
        if slope is not None and np.array_equal(place[1], s) and np.array_equal(place[0], z):
            return slope
        return self.B.products(s, r * z)[1]

    def pull_back(self, z, s, g):
        """∂/∂z and ∂/∂s of U(φ) - log |det ∂φ/∂z|, from g = ∂U/∂φ."""
        s = s[:, 0]
        (_, moved), (log_r, grown) = self.c(s), self.log_r(s)
        r = np.exp(log_r)
        a = r * self.B.products(s, g, transposed=True)[0]
        moved = moved + self._slope(z, s, r)
        along = (g * moved + (a * z - 1.0) * grown).sum(axis=1)
        return a, along[:, None]
