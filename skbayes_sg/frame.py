"""A posterior seen from a centre: coordinates, and the constants that gradient estimators refer to."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from . import preconditioning
from .engine.layout import Problem, frozen
from .modes import Centre

__all__ = ["Frame", "build_frame"]


@dataclass(frozen=True)
class Frame:
    """Coordinates θ = centre + F φ of a target.

    Parameters
    ----------
    target : Target
    centre : Centre
    kind : {"hessian", "diagonal", "none"}
        Where F comes from.
    F : array
        As in `skbayes_sg.preconditioning`.
    whitened : bool
        Whether Fᵀ (Hessian at the centre) F is the identity.
    """

    target: object
    centre: Centre
    kind: str
    F: np.ndarray
    whitened: bool

    @property
    def dense(self):
        """Whether the Hessian at the centre is known as a matrix."""
        return self.centre.hessian.ndim == 2

    @cached_property
    def facts(self):
        """Facts of the rows with predictors and terms at the centre."""
        return self.target.terms(self.centre.theta)

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
        """Hessian of U at the centre in φ: a matrix, or its diagonal where only that is known."""
        if self.whitened:
            return np.ones(self.target.n_parameters)
        if not self.dense:
            return (self.centre.hessian + self.prior_curvature) * self.F[0] ** 2
        H = self.centre.hessian + np.diag(self.prior_curvature)
        return self._congruence(H)

    def _congruence(self, H):
        return self.F[0][:, None] * H * self.F[0] if len(self.F) == 1 else self.F.T @ H @ self.F

    @cached_property
    def curvature_range(self):
        """Smallest and largest curvature in φ."""
        values = self.curvature if self.curvature.ndim == 1 else linalg.eigvalsh(self.curvature)
        return float(values.min()), float(values.max())

    @cached_property
    def _laplace_root(self):
        """R with R Rᵀ the inverse Hessian at the centre (or of its diagonal), in θ."""
        if self.whitened:
            return self.F
        if self.dense:
            H = self.centre.hessian + np.diag(self.prior_curvature)
            return preconditioning.from_hessian(H)[0]
        return preconditioning.diagonal(self.centre.hessian + self.prior_curvature)

    @cached_property
    def width(self):
        """Posterior standard deviation of each parameter, as the Hessian has it."""
        R = self._laplace_root
        return np.abs(R[0]) if len(R) == 1 else np.sqrt((R**2).sum(axis=1))

    def laplace(self, normals):
        """Positions φ of draws from the Laplace approximation, one for each row of normals."""
        return preconditioning.solve(self.F, preconditioning.apply(self._laplace_root, normals))

    def theta(self, phi):
        """θ at positions φ, of any leading shape."""
        return self.centre.theta + preconditioning.apply(self.F, phi)

    def rescaled(self, S):
        """The frame in which positions of covariance S have unit covariance."""
        F = preconditioning.from_covariance(self.F, S)
        return replace(self, F=F, whitened=False)

    def problem(self, gradient):
        """What the kernels see, for an estimator of the gradient."""
        D = self.target.n_parameters
        offset, linear, reference = np.zeros(D), np.empty((0, 0)), np.zeros((2, D))
        facts = self.target.data.facts
        if gradient.uses_constant:
            facts, offset = self.facts, preconditioning.pull_back(self.F, self.centre.gradient)
        if gradient.uses_linear:
            # The prior's quadratic belongs to `linear`, which then is the identity in whitened
            # coordinates; what the exact prior differs from it is added at every step.
            offset = offset + preconditioning.pull_back(self.F, self.prior_gradient)
            linear = self.curvature[None, :] if self.whitened else self.curvature
            reference = np.stack([self.prior_gradient, self.prior_curvature])
        return Problem(
            self.target.with_facts(facts), self.target.prior, frozen(self.centre.theta),
            frozen(self.F), frozen(offset), frozen(linear), frozen(reference),
        )  # fmt: skip


def build_frame(target, centre, kind):
    """The frame of a preconditioner: "hessian", "diagonal" or "none"."""
    curvature = target.with_prior(centre.prior).prior_curvature(centre.theta)
    dense = centre.hessian.ndim == 2
    whitened = False
    if kind == "hessian":
        F, whitened = preconditioning.from_hessian(centre.hessian + np.diag(curvature))
    elif kind == "diagonal":
        diagonal = np.diag(centre.hessian) if dense else centre.hessian
        F = preconditioning.diagonal(diagonal + curvature)
    else:
        F = preconditioning.identity(target.n_parameters)
    return Frame(target, centre, kind, F, whitened)
