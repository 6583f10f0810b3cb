r"""U of coefficients and log scales s = log τ together, at many draws.

With r_j = (θ_j - loc_j)/u_j and U at fixed scales ŝ, of which `skbayes_sg.importance.potential` has
a version that looks at few rows,

    U(θ, s) = U(θ; ŝ) + Σ_j [(e^{-2 s_g(j)} - e^{-2 ŝ_g(j)}) r_j²/2 + s_g(j)] - log p(s).
"""

import numpy as np

from ..kernels.layout import frozen
from ..kernels.many_draws import prior_gradients, prior_values

__all__ = ["ScalePrior", "ScaledPotential"]


class ScalePrior:
    """-log p(s) of rows of log scales, and its gradients."""

    def __init__(self, scales):
        self.table = frozen(scales.table)

    def values(self, s):
        """-log p(s) for rows s, (n,), up to a constant."""
        found = np.zeros(len(s))
        prior_values(self.table, np.ascontiguousarray(s), found)
        return found

    def gradients(self, s):
        """Gradients of -log p(s) for rows s, (n, n_scales)."""
        found = np.zeros(s.shape)
        prior_gradients(self.table, np.ascontiguousarray(s), found)
        return found


class ScaledPotential:
    """U(θ, s) as a function of rows (φ, s).

    Parameters
    ----------
    base : skbayes_sg.importance.potential.Potential
        U(θ; ŝ) in the coordinates φ of a frame.
    collapse : OneScale or ManyScales
        The collapsed coordinates of the same frame.
    """

    order = 2

    def __init__(self, base, collapse):
        self.base, self.collapse = base, collapse
        self.n_exact, self.work = base.n_exact, base.work
        self.member = np.eye(collapse.n_scales)[collapse.scales.group]

    def _parts(self, x):
        """φ, s, r_j of each coefficient and e^{-2s}, for rows x = (φ, s)."""
        own, D = self.collapse, len(self.collapse.g)
        phi, s = x[:, :D], x[:, D:]
        return phi, s, own.r + phi @ own.f.T, np.exp(-2.0 * s)

    def values(self, x):
        """U(θ, s) for rows x = (φ, s), (n_draws,), up to a constant."""
        return self.base.values(x[:, : len(self.collapse.g)]) + self.of_scales(x)

    def of_scales(self, x):
        """U(θ, s) - U(θ; ŝ) for rows x = (φ, s), (n_draws,), up to a constant."""
        _, s, r, q = self._parts(x)
        own = self.collapse
        squares = np.square(r) @ self.member
        prior = 0.5 * squares * (q - own.reference) + s * own.scales.counts
        return prior.sum(axis=1) + own.prior.values(s)

    @staticmethod
    def error_far(x):
        """Zero, as in `skbayes_sg.importance.potential.Potential`: there are no polynomials."""
        return 0.0

    def gradients(self, x):
        """Gradients of U in (φ, s), (n_draws, n_parameters + n_scales)."""
        phi, s, r, q = self._parts(x)
        own = self.collapse
        g = self.base.gradients(phi) + ((q - own.reference) @ self.member.T * r) @ own.f
        of_scales = own.scales.counts - q * (np.square(r) @ self.member) + own.prior.gradients(s)
        return np.concatenate([g, of_scales], axis=1)
