"""Draws of coefficients and scales with importance weights, in collapsed coordinates.

The proposal of `skbayes_sg.importance` for the coefficients at the reference scales, with its
warps, is carried to other scales by the collapsed coordinates z: ψ → z = T(ψ), ζ → s, (z, s) → φ.
ζ, also N(0, I), is warped to the Laplace marginal of each log scale, with the others at their mode.
Weights are those of the exact posterior of both; where they fail, chains in lockstep move in (ψ,
ζ), or, where that takes short steps, coefficients and scale in turn (`alternating`).
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from .._base import streams
from ..importance.fit import fit_proposal
from ..importance.warps import Place, Warps, fit_warp
from .alternating import Alternating
from .collapse import REACH
from .path import ModePath
from .potential import ScaledPotential

__all__ = ["ScaledPlace", "ScaledProposal", "ScaledWarps"]

FEW_ROWS = 2_000  # up to so many rows, all are exact in the potential
CHECKED = 32  # draws under large scales, at which potentials with few exact rows are checked
TILT = 0.5  # largest slope of log p(s) that a tilt takes away; the left tail has the slope 1
FAR = 2.5  # ζ of these large scales


class ScaledWarps:
    """The map (ψ, ζ) → (φ, s); see `skbayes_sg.importance.warps.Warps`.

    Parameters
    ----------
    own : Warps
        The map T of ψ.
    collapse : OneScale or ManyScales
    mode, width : array of shape (n_scales,)
        Mode and width of s. The Laplace marginal of the collapse is tilted to have this mode.
    """

    def __init__(self, own, collapse, mode, width):
        self.own, self.collapse, self.mode, self.width = own, collapse, mode, width
        slope = np.clip(collapse.marginal_slope(mode[None])[0], -TILT, TILT)
        splines = [fit_warp(self._section(a, slope[a])) for a in range(len(mode))]
        kept = [a for a, spline in enumerate(splines) if spline is not None]
        self.of_scales = Warps(np.eye(len(mode))[kept], [splines[a] for a in kept])

    def _section(self, a, slope):
        """-log p(s) along axis a, in widths from the mode, with a tilt that makes it the mode.

        `slope` is that of -log p(s) at the mode. Beyond `REACH` the function is infinite.
        """
        section, width = self.collapse.section(self.mode, a), self.width[a]

        def f(x):
            step = width * x
            values = section(np.clip(step, -REACH, REACH))
            return np.where(np.abs(step) < REACH, values - step * slope, np.inf)

        return f

    def __len__(self):
        return len(self.own) + len(self.of_scales)

    def _parts(self, psi):
        """ψ and ζ of rows (ψ, ζ), or φ and s of rows (φ, s)."""
        D = len(self.collapse.g)
        return psi[:, :D], psi[:, D:]

    def position(self, psi):
        """(φ, s) and log |det ∂(φ, s)/∂(ψ, ζ)| for rows (ψ, ζ)."""
        place = self.at(psi)
        return place.phi, place.log_det

    def at(self, psi):
        """The `ScaledPlace` of rows (ψ, ζ)."""
        own, zeta = self._parts(psi)
        of_own, of_scales = self.own.at(own), self.of_scales.at(zeta)
        s = self.mode + self.width * of_scales.phi
        phi, log_det = self.collapse.position(of_own.phi, s)
        log_det = of_own.log_det + of_scales.log_det + log_det
        return ScaledPlace(np.concatenate([phi, s], axis=1), log_det, self, of_own, of_scales)


@dataclass(frozen=True)
class ScaledPlace:
    """Where `ScaledWarps` carry rows (ψ, ζ); see `skbayes_sg.importance.warps.Place`."""

    phi: np.ndarray
    log_det: np.ndarray
    warps: ScaledWarps
    own: Place
    of_scales: Place

    def pull_back(self, g):
        """∂/∂(ψ, ζ) of U - log |det ∂(φ, s)/∂(ψ, ζ)|, from g = ∂U/∂(φ, s)."""
        (_, s), (of_phi, of_s) = self.warps._parts(self.phi), self.warps._parts(g)
        of_z, more = self.warps.collapse.pull_back(self.own.phi, s, of_phi)
        of_x = self.warps.width * (of_s + more)
        return np.concatenate([self.own.pull_back(of_z), self.of_scales.pull_back(of_x)], axis=1)


class ScaledProposal:
    """What `skbayes_sg.importance.sample.certified_draws` needs of a proposal.

    Parameters
    ----------
    frame : Frame
        The frame of the coefficients at the reference scales.
    collapse : OneScale or ManyScales
    mode, width : array of shape (n_scales,)
        Mode and width of the Laplace marginal of the log scales.
    """

    def __init__(self, frame, collapse, mode, width):
        self.frame, self.collapse = frame, collapse
        self.fixed = fit_proposal(frame)
        self.hard = self.fixed.hard
        self.warps = ScaledWarps(self.fixed.warps, collapse, mode, width)

    @property
    def n_parameters(self):
        """Number of entries of (ψ, ζ)."""
        return self.frame.target.n_parameters + self.collapse.n_scales

    def potentials(self, left, _):
        """Potentials with more and more exact rows, as in `skbayes_sg.importance.fit.Proposal`.

        Rows that are kept to second order around the centre must be accurate also where scales are
        large and coefficients are far from it. Few draws are there, so that such a potential is
        first checked at draws with large scales.
        """
        if self.frame.target.n_rows <= FEW_ROWS:
            return
        psi = streams.fixed().standard_normal((CHECKED, self.n_parameters))
        psi[:, -self.collapse.n_scales :] = FAR
        x, _ = self.warps.position(psi)
        exact = self.exact.values(x)
        for n in self.fixed.numbers_exact(left):
            potential = ScaledPotential(self.fixed.of_second_order(n), self.collapse)
            if np.std(exact - potential.values(x)) <= left:
                yield potential

    @cached_property
    def surrogate(self):
        """U by which chains in lockstep move: exact in the hard rows, or in all as `fixed` is."""
        own = self.fixed.surrogate
        is_exact = own is self.fixed.exact
        return self.exact if is_exact else ScaledPotential(own, self.collapse)

    def warps_of_draws(self, _):
        """None: draws of the scales have no warps of their own."""
        return None

    @property
    def other_motion(self):
        """A function that makes `Alternating` chains, if there is a path of modes; else None."""
        if not isinstance(self.collapse, ModePath):
            return None
        return partial(Alternating, self.exact, self.collapse, float(self.warps.width[0]))

    @cached_property
    def exact(self):
        """The potential U(θ, s), exact in all rows."""
        return ScaledPotential(self.fixed.exact, self.collapse)
