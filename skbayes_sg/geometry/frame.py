"""Coordinates around a centre, and the constants that gradient estimators refer to."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from .._base import streams
from ..kernels.layout import NO_SLOPES, Coordinates, Problem, frozen
from . import preconditioning
from .eigenvalues import extreme_eigenvalue
from .mode import Centre

__all__ = ["START", "Frame", "build_frame", "shear", "shear_back", "sheared", "slopes_of"]

START = 0.5  # standard deviation of the starting points of chains, in widths of the posterior
ROUNDING = 1e-10  # share of a curvature below which a difference from it is rounding error


@dataclass(frozen=True)
class Frame:
    """Coordinates θ = centre + S F φ of a target.

    Parameters
    ----------
    target : Target
    centre : Centre
    kind : {"hessian", "diagonal", "none"}
        The preconditioner from which F is computed.
    F : array
        A matrix, or its diagonal as one row: see `skbayes_sg.geometry.preconditioning`.
    whitened : bool
        Whether Fᵀ (Hessian at the centre) F is the identity.
    slopes : array of shape (n_linear, n_features) or (0, 0)
        S subtracts Σ_j slope_kj (B_kj - centre) from the intercept b_k; there are no slopes if
        S = I. See `sheared`.
    """

    target: object
    centre: Centre
    kind: str
    F: np.ndarray
    whitened: bool
    slopes: np.ndarray = field(default_factory=lambda: NO_SLOPES)

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
        """Fᵀ H F as a matrix, for a symmetric matrix H in θ."""
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
        weights = self.target.weights_at(self.centre.theta)

        def product(phi):
            theta = self._moved(phi)
            H_theta = self.target.hessian_product(weights, theta) + self.prior_curvature * theta
            return self._pulled_back(H_theta)

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
        """Draws from the Laplace approximation in φ, one for each row of normals."""
        if len(self.slopes):
            return normals  # their F is the root of the Hessian's diagonal in these coordinates
        return preconditioning.solve(self.F, preconditioning.apply(self.laplace_root, normals))

    def starts(self, seed, n_chains):
        """Starting points φ of chains (n_chains, D): `guess`, with `START` times the spread."""
        rngs = [streams.of_chain(seed, k).start for k in range(n_chains)]
        normals = np.array([rng.standard_normal(self.target.n_parameters) for rng in rngs])
        return START * self.guess(normals)

    @cached_property
    def offset(self):
        """∇_φ U at the centre, with the (smoothed) prior."""
        return self._pulled_back(self.centre.gradient + self.prior_gradient)

    def theta(self, phi):
        """θ at positions of a chain, of any leading shape."""
        return self.centre.theta + self._moved(phi)

    def _moved(self, phi):
        """S F φ for rows φ."""
        return shear(self.slopes, preconditioning.apply(self.F, phi))

    def _pulled_back(self, g):
        """Fᵀ Sᵀ g, for one g."""
        return preconditioning.pull_back(self.F, shear_back(self.slopes, g))

    def scores(self, slopes):
        """∇ log p in θ from gradients of U in φ, of any leading shape."""
        g = preconditioning.push_forward(self.F, slopes.reshape(-1, slopes.shape[-1]))
        return -shear_back(-self.slopes, g).reshape(slopes.shape)

    def rescaled(self, S):
        """The frame in which positions of covariance S have unit covariance."""
        F = preconditioning.from_covariance(self.F, S)
        return replace(self, F=F, whitened=False)

    def problem(self, gradient):
        """The `Problem` of the kernels, for an estimator of the gradient."""
        D = self.target.n_parameters
        facts, offset, linear = self.target.data.facts, np.zeros(D), np.empty((0, 0))
        prior = np.zeros((2, D))
        if gradient.uses_linear:
            # The quadratic part of the prior is in `linear`; every step adds the exact prior's
            # difference from it.
            facts, offset = self.facts, self.offset
            prior = np.stack([self.prior_gradient, self.prior_curvature])
            linear = self.curvature[None, :] if self.whitened else self.curvature
        elif gradient.uses_constant:
            facts, offset = self.facts, self._pulled_back(self.centre.gradient)
        constants, share = np.stack([offset, *prior]), gradient.exact_share
        if share != 1.0:
            constants = np.vstack([share * constants, np.full((1, D), share)])
            linear = share * linear
        coordinates = Coordinates(*map(frozen, (self.centre.theta, self.F, self.slopes)))
        data = self.target.with_facts(facts)
        return Problem(data, self.target.prior, coordinates, frozen(constants), frozen(linear))


def sheared(frame):
    """Return a diagonal frame in which the intercepts move with the coefficients.

    Under columns that are not centred, such as those of words, intercepts are several times as wide
    as at fixed coefficients. With slope_kj = H_(kj, b_k)/H_(b_k, b_k), a weighted mean of column j,
    the Hessian H has no entry between b_k and the coefficients of class k in the new coordinates.
    """
    target, theta = frame.target, frame.centre.theta
    K, d = target.model.n_linear, target.n_features
    H, own = np.array(frame.centre.hessian) + frame.prior_curvature, np.zeros((K, d))
    least = np.maximum(frame.prior_curvature, ROUNDING * np.abs(H))
    weights = target.weights_at(theta)
    for k in range(K):
        at, part = K * d + k, slice(k * d, (k + 1) * d)
        if H[at] > 0.0:  # as it is wherever the likelihood is concave
            unit = np.zeros(len(theta))
            unit[at] = 1.0
            row = target.hessian_product(weights, unit)[part]
            own[k] = row / H[at]
            H[part] = np.maximum(H[part] - row * own[k], least[part])
    return replace(frame, F=preconditioning.diagonal(H), slopes=own)


def slopes_of(H, K, d):
    """The slopes of `sheared`, (K, d), for a Hessian H that is known as a matrix."""
    at = K * d + np.arange(K)
    return np.array([H[k * d : (k + 1) * d, b] / H[b, b] for k, b in enumerate(at)]).reshape(K, d)


def shear(slopes, theta):
    """S θ for rows θ."""
    theta, B, b = _parts(theta, *slopes.shape)
    b -= np.einsum("...kd,kd->...k", B, slopes)
    return theta


def shear_back(slopes, g):
    """Sᵀ g for rows g. The inverse of S has the opposite slopes."""
    g, B, b = _parts(g, *slopes.shape)
    B -= slopes * b[..., None]
    return g


def _parts(rows, K, d):
    """A copy of rows, with views of their coefficients (..., K, d) and their K intercepts."""
    rows = np.array(rows) if K else rows
    B = rows[..., : K * d].reshape(*rows.shape[:-1], K, d)
    return rows, B, rows[..., K * d : K * d + K]


def build_frame(target, centre, kind):
    """The `Frame` around a centre for a preconditioner: "hessian", "diagonal" or "none"."""
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
