"""What the samplers of group effects see: rows, their levels, and the priors of the scales."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..engine.equal_rows import few_different

__all__ = ["GroupOutcome", "GroupProblem"]


@dataclass
class GroupProblem:
    """Rows with groups, their likelihood and priors, from which samplers draw.

    Parameters θ of draws are in the order (coefficients, intercept, logarithms of the extras of the
    model, and what the sampler reports of the scales: log τ_k of each factor).

    Parameters
    ----------
    target : skbayes_sg.engine.target.Target
        The rows, their likelihood, and the prior of coefficients and extras.
    codes : ndarray of int32, shape (n_rows, n_factors)
        The level of each row.
    sizes : tuple of int
        The number of levels of each factor.
    scales : list of ndarray of shape (width, 5)
        For each factor the priors of the standard deviations of its effects, rows of a table of
        priors: that of the intercept first, and then those of slopes.
    slopes : list of list of int
        For each factor the columns of X whose slopes vary with its levels.
    centres : list of ndarray of shape (n_slopes,)
        For each factor, what is subtracted from these columns where they multiply slopes of levels:
        the effects of a level are at this place of its columns.
    """

    target: Any
    codes: np.ndarray
    sizes: tuple
    scales: list
    slopes: list
    centres: list

    @property
    def n_factors(self):
        """Number of factors."""
        return len(self.sizes)

    @property
    def n_coefficients(self):
        """Number of coefficients, with the intercept."""
        return self.target.n_parameters - self.target.model.n_extra

    @property
    def is_linear(self):
        """Whether the likelihood is that of linear regression."""
        return self.target.model.normal

    @property
    def widths(self):
        """Number of effects of a level of each factor: the intercept, and one for each slope."""
        return [1 + len(own) for own in self.slopes]

    def merged(self):
        """The same problem with equal rows of the same levels merged, if few are different."""
        found = few_different(self.target, self.codes)
        if found is None:
            return self
        return replace(self, target=self.target.merged(*found), codes=self.codes[found[0]])

    def sorted_by(self, k):
        """The same problem with its rows in the order of the levels of factor k."""
        order = np.argsort(self.codes[:, k], kind="stable")
        target = self.target.take(order, self.target.weight[order], self.target.n_jobs)
        return replace(self, target=target, codes=self.codes[order])

    @cached_property
    def design(self):
        """The design matrix (X, 1), or X without an intercept, in float64."""
        return np.ascontiguousarray(self.target.design(slice(0, self.target.n_rows)))

    def sloped(self, k):
        """Columns that the slopes of factor k multiply, about their centres, (n_rows, n_slopes)."""
        return self.design[:, self.slopes[k]] - self.centres[k]


@dataclass
class GroupOutcome:
    """Draws and diagnostics that a sampler of group effects returns.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_parameters)
        All draws of θ.
    effects : list of ndarray of float32, shape (n_levels * width, n_chains, n_kept)
        For each factor the kept draws of its effects.
    moments : list of ndarray of shape (2, n_levels * width)
        For each factor the mean and the standard deviation of its effects over all draws.
    sampler : object or str
    diagnostics : dict of str to float
    n_warmup : int
    step_size : float
    thin : int
    kept : ndarray of int, optional
        Numbers of the draws whose effects are kept; all of them if None.
    factors : list of ndarray of shape (n_chains * n_kept, width, width), optional
        Where slopes vary, triangular factors of the covariances of effects. The last numbers of a
        draw are then the logarithms of standard deviations, and correlations.
    evidence : dict of str to ndarray
        Measurements from which the verdict is made: see `skbayes_sg.diagnostics.verdict`.
    """

    draws: np.ndarray
    effects: list
    moments: list
    sampler: Any
    diagnostics: dict
    n_warmup: int = 0
    step_size: float = np.nan
    thin: int = 1
    kept: Any = None
    factors: Any = None
    evidence: dict = field(default_factory=dict)
