"""Coordinates around a centre, and the constants that gradient estimators refer to."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ..kernels.layout import FACT_PREDICTOR, FACT_WEIGHT, Coordinates, Problem, frozen
from ..kernels.tables import Tables
from . import preconditioning
from .eigenvalues import extreme_eigenvalue
from .mode import Centre
from .warping import Warping

__all__ = ["Frame", "build_frame"]


@dataclass(frozen=True)
class Groups:
    """Groups of rows and their tables, for the `Tabulated` gradient."""

    facts: np.ndarray  # with the group of each row
    gradient: np.ndarray  # of the likelihood at the centre, of the rows without a group
    hessian: np.ndarray  # likewise
    tables: Tables


@dataclass(frozen=True)
class Frame:
    """Coordinates θ = centre + F φ of a target.

    Parameters
    ----------
    target : Target
    centre : Centre
    kind : {"hessian", "diagonal", "none"}
        The preconditioner from which F is computed.
    F : array
        As in `skbayes_sg.geometry.preconditioning`.
    whitened : bool
        Whether Fᵀ (Hessian at the centre) F is the identity.
    warping : Warping
        φ = T(z) along a few axes; the chain moves in z.
    """

    target: object
    centre: Centre
    kind: str
    F: np.ndarray
    whitened: bool
    warping: Warping = field(default_factory=Warping)
    groups: Groups | None = None

    @property
    def dense(self):
        """Whether the Hessian at the centre is known as a matrix."""
        return self.centre.hessian.ndim == 2

    @property
    def facts(self):
        """Facts of the rows, with their predictors and terms at the centre."""
        return self.centre.facts

    @cached_property
    def prior_curvature(self):
        """Curvature of the (smoothed) prior at the centre."""
        return self.target.with_prior(self.centre.prior).prior_curvature(self.centre.theta)

    @cached_property
    def prior_gradient(self):
        """Gradient of the (smoothed) prior at the centre."""
        return self.target.with_prior(self.centre.prior).prior_gradient(self.centre.theta)

    @cached_property
    def curvature(self):
        """Hessian of U at the centre in φ: a matrix, or its diagonal if only that is known."""
        if self.whitened:
            return np.ones(self.target.n_parameters)
        if not self.dense:
            return (self.centre.hessian + self.prior_curvature) * self.F[0] ** 2
        H = self.centre.hessian + np.diag(self.prior_curvature)
        return self.congruence(H)

    def congruence(self, H):
        """Fᵀ H F."""
        return self.F[0][:, None] * H * self.F[0] if len(self.F) == 1 else self.F.T @ H @ self.F

    @cached_property
    def curvature_range(self):
        """Smallest and largest curvature in φ."""
        if not (self.dense or self.whitened):
            return self._estimated_range()
        values = self.curvature if self.curvature.ndim == 1 else linalg.eigvalsh(self.curvature)
        return float(values.min()), float(values.max())

    def _estimated_range(self):
        """Extreme eigenvalues of the Hessian at the centre, by products with it."""
        weights, F = self.target.weights_at(self.centre.theta), self.F

        def product(phi):
            theta = preconditioning.apply(F, phi)
            H_theta = self.target.hessian_product(weights, theta) + self.prior_curvature * theta
            return preconditioning.pull_back(F, H_theta)

        smallest, largest = (
            extreme_eigenvalue(product, self.target.n_parameters, which) for which in ("SA", "LA")
        )
        return max(smallest, 1e-6 * largest), largest

    @cached_property
    def laplace_root(self):
        """R with R Rᵀ the inverse Hessian at the centre (or of its diagonal), in θ."""
        if self.whitened:
            return self.F
        if self.dense:
            H = self.centre.hessian + np.diag(self.prior_curvature)
            return preconditioning.from_any_hessian(H)[0]
        return preconditioning.diagonal(self.centre.hessian + self.prior_curvature)

    @cached_property
    def width(self):
        """Posterior standard deviation of each parameter according to the Hessian."""
        R = self.laplace_root
        return np.abs(R[0]) if len(R) == 1 else np.sqrt((R**2).sum(axis=1))

    def guess(self, normals):
        """Positions that roughly follow the posterior, one for each row of normals.

        They are draws from the Laplace approximation, or from its warped form.
        """
        if self.warping.axes:
            return normals
        return preconditioning.solve(self.F, preconditioning.apply(self.laplace_root, normals))

    @cached_property
    def offset(self):
        """∇_φ U at the centre, with the (smoothed) prior."""
        return preconditioning.pull_back(self.F, self.centre.gradient + self.prior_gradient)

    def theta(self, z):
        """θ at positions of a chain, of any leading shape."""
        return self.centre.theta + preconditioning.apply(self.F, self.warping.position(z))

    def scores(self, z, slopes):
        """∇ log p in θ at positions of a chain, from gradients of U in z, of any leading shape."""
        g = self.warping.slopes(z, slopes).reshape(-1, z.shape[-1])
        return -preconditioning.push_forward(self.F, g).reshape(z.shape)

    def rescaled(self, S):
        """The frame in which positions of covariance S have unit covariance."""
        F = preconditioning.from_covariance(self.F, S)
        return replace(self, F=F, whitened=False)

    def reordered(self, order):
        """The frame whose last axes change only the last parameters of `order`.

        F is triangular in this order: the last axis changes only the last parameter, the one before
        it only the last two, and so on. This is only for Hessian coordinates.
        """
        H = self.centre.hessian + np.diag(self.prior_curvature)
        F = np.empty_like(H)
        F[order], whitened = preconditioning.from_hessian(H[np.ix_(order, order)])
        return replace(self, F=F, whitened=whitened, warping=Warping(), groups=None)

    def warped(self, warping):
        """The frame with other warps."""
        return replace(self, warping=warping)

    def grouped(self, rows, group, directions, places, terms_at):
        """The frame in which groups of rows are compared with themselves along a direction.

        Parameters
        ----------
        rows, group : arrays of int
            The rows that belong to a group, and their groups.
        directions : array of shape (n_groups, n_parameters)
            The change of a group's predictors with θ.
        places : array of shape (n_groups, n_knots)
            Knots of each group.
        terms_at : callable
            ``terms_at(rows, shifts)`` returns the terms for predictors that are shifted from the
            centre, an array (len(shifts), len(rows), 1).
        """
        target = self.target
        facts = np.full((target.n_rows, self.facts.shape[1] + 1), -1.0)
        facts[:, :-1], facts[rows, -1] = self.facts, group
        part = target.take(rows, facts[rows, FACT_WEIGHT])
        own = facts[rows, FACT_WEIGHT] * facts[rows, FACT_PREDICTOR + 1]
        design = part.design(slice(None))
        values = np.empty((*places.shape, target.n_parameters))
        for g in range(len(places)):
            mine = np.flatnonzero(group == g)
            terms = facts[rows[mine], FACT_WEIGHT, None] * terms_at(rows[mine], places[g])
            sums = terms[:, :, 0] @ design[mine]
            values[g] = preconditioning.pull_back(self.F, sums.T).T
        tables = Tables(frozen(directions), frozen(places), frozen(values))
        groups = Groups(
            frozen(facts),
            self.centre.gradient - target.row_sum(design, own[:, None]),
            self.centre.hessian - part.likelihood_hessian(self.centre.theta),
            tables,
        )
        return replace(self, groups=groups)

    def problem(self, gradient):
        """The `Problem` of the kernels, for an estimator of the gradient."""
        D = self.target.n_parameters
        facts, offset, linear = self.target.data.facts, np.zeros(D), np.empty((0, 0))
        prior, tables = np.zeros((2, D)), None
        if gradient.uses_tables:
            # The quadratic part of the prior is in `linear`; every step adds the exact prior's
            # difference from it.
            facts, tables = self.groups.facts, self.groups.tables
            prior = np.stack([self.prior_gradient, self.prior_curvature])
            offset = preconditioning.pull_back(self.F, self.groups.gradient + prior[0])
            linear = self.congruence(self.groups.hessian + np.diag(prior[1]))
        elif gradient.uses_linear:
            facts, offset = self.facts, self.offset
            prior = np.stack([self.prior_gradient, self.prior_curvature])
            linear = self.curvature[None, :] if self.whitened else self.curvature
        elif gradient.uses_constant:
            facts, offset = self.facts, preconditioning.pull_back(self.F, self.centre.gradient)
        coordinates = Coordinates(frozen(self.centre.theta), frozen(self.F), self.warping.kernel())
        data, constants = self.target.with_facts(facts), frozen(np.stack([offset, *prior]))
        return Problem(data, self.target.prior, coordinates, constants, frozen(linear), tables)


def build_frame(target, centre, kind):
    """The frame for a preconditioner: "hessian", "diagonal" or "none"."""
    curvature = target.with_prior(centre.prior).prior_curvature(centre.theta)
    dense = centre.hessian.ndim == 2
    whitened = False
    if kind == "hessian":
        F, whitened = preconditioning.from_any_hessian(centre.hessian + np.diag(curvature))
    elif kind == "diagonal":
        diagonal = np.diag(centre.hessian) if dense else centre.hessian
        F = preconditioning.diagonal(diagonal + curvature)
    else:
        F = preconditioning.identity(target.n_parameters)
    return Frame(target, centre, kind, F, whitened)
