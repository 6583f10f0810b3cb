"""A second, naive statement of all that the kernels compute: plain NumPy, one line a formula.

Log densities are complex-safe (they branch on real parts only), so that derivatives are exact by
the complex step f'(x) = Im f(x + i 1e-30) / 1e-30.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

STEP = 1e-30


def complex_step(f, x):
    """Derivatives of f, of any shape, along each entry of x; the entries are the last axis."""
    x = np.asarray(x, dtype=complex)
    return np.stack([np.imag(f(x + 1j * STEP * e)) / STEP for e in np.eye(len(x))], axis=-1)


def central_difference(f, x, size=None):
    """Gradient of a real function by central differences with steps of eps^(1/3)."""
    x = np.asarray(x, dtype=np.float64)
    steps = np.finfo(float).eps ** (1 / 3) * np.maximum(1.0, np.abs(x)) if size is None else size
    return np.array(
        [(f(x + e) - f(x - e)) / (2.0 * e.sum()) for e in np.diag(np.broadcast_to(steps, len(x)))]
    )


# -- log densities --------------------------------------------------------------------------------


def absolute(x):
    """|x|, with derivative 0 at 0."""
    return x * np.sign(np.real(x))


def softplus(eta):
    """log(1 + e^eta)."""
    positive = np.real(eta) >= 0.0
    return np.where(positive, eta, 0.0) + np.log1p(np.exp(np.where(positive, -eta, eta)))


def sigmoid(eta):
    """1 / (1 + e^-eta)."""
    positive = np.real(eta) >= 0.0
    z = np.exp(np.where(positive, -eta, eta))
    return np.where(positive, 1.0, z) / (1.0 + z)


def log_sum_exp(eta):
    """Over the last axis, which stays with length 1."""
    largest = np.real(eta).max(axis=-1, keepdims=True)
    return largest + np.log(np.exp(eta - largest).sum(axis=-1, keepdims=True))


def own(eta, y):
    """The predictor of each row's own class."""
    return eta[np.arange(len(y)), y.astype(int)]


def indicator(y, n_classes):
    """One-hot rows."""
    return (y[:, None] == np.arange(n_classes)).astype(float)


# -- posterior ------------------------------------------------------------------------------------


@dataclass
class Posterior:
    """U(θ) = Σ weight_i ℓ_i(η_i(θ)) - log p(θ) and the parts it is made of.

    Parameters
    ----------
    case : cases.ModelCase
    X, y, weight : arrays
    intercept : bool
    log_prior : sequence of callables
        One a parameter.
    """

    case: Any
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    intercept: bool
    log_prior: Any

    @property
    def dimension(self):
        """Number of parameters."""
        return len(self.log_prior)

    def predictors(self, theta):
        """η, (n_rows, n_predictors): B and b and extras lie one after the other in θ."""
        model, d = self.case.model, self.X.shape[1]
        K = model.n_linear
        eta = self.X @ theta[: K * d].reshape(K, d).T
        if self.intercept:
            eta = eta + theta[K * d : K * d + K]
        extras = theta[len(theta) - model.n_extra :]
        return np.concatenate([eta, np.tile(extras, (len(eta), 1))], axis=1)

    @property
    def jacobian(self):
        """∂η_ik/∂θ_j, (n_rows, n_predictors, n_parameters)."""
        return np.stack([self.predictors(e) for e in np.eye(self.dimension)], axis=-1)

    def log_likelihood(self, theta):
        """Log-likelihood of each row, weights included."""
        return self.weight * self.case.log_likelihood(self.predictors(theta), self.y)

    def log_prior_density(self, theta):
        """log p(θ), up to a constant."""
        return sum(f(t) for f, t in zip(self.log_prior, theta, strict=True))

    def potential(self, theta):
        """U(θ), up to a constant."""
        return -(self.log_likelihood(theta).sum() + self.log_prior_density(theta))

    def gradient(self, theta):
        """∇U by complex step, of the whole formula at once."""
        return complex_step(self.potential, theta)

    def prior_gradient(self, theta):
        """∇(-log p), parameter by parameter."""
        return -complex_step(self.log_prior_density, theta)

    def terms(self, eta):
        """weight_i ∂ℓ_i/∂η."""
        return self.weight[:, None] * self.case.derivative(eta, self.y)

    def curvatures(self, eta):
        """weight_i ∂²ℓ_i/∂η², (n_rows, K, K), by complex step of the derivative."""
        columns = [
            np.imag(self.terms(eta + 1j * STEP * e)) / STEP for e in np.eye(eta.shape[1])
        ]  # each row's derivative depends on its own predictors only
        return np.stack(columns, axis=-1)

    def row_gradients(self, theta):
        """Gradient of each row's term of U, (n_rows, n_parameters)."""
        return np.einsum("nk,nkj->nj", self.terms(self.predictors(theta)), self.jacobian)

    def row_hessians(self, theta):
        """Hessian of each row's term of U, (n_rows, n_parameters, n_parameters)."""
        W, J = self.curvatures(self.predictors(theta)), self.jacobian
        return np.einsum("nki,nkl,nlj->nij", J, W, J)

    def scale(self, theta):
        """Size of the terms that cancel in a gradient: what rounding is measured against."""
        rows = np.abs(self.row_gradients(theta)).sum()
        return max(1.0, rows, np.abs(self.prior_gradient(theta)).max())


# -- laws -----------------------------------------------------------------------------------------


def stationary_law(maps, shifts, noise, chances=None):
    """Exact mean and covariance of θ' = M_b θ + c_b + noise, a map b drawn at every step."""
    p = np.full(len(maps), 1.0 / len(maps)) if chances is None else np.asarray(chances)
    d = len(maps[0])
    M, c = np.tensordot(p, maps, 1), np.tensordot(p, shifts, 1)
    mean = np.linalg.solve(np.eye(d) - M, c)
    second = sum(q * np.kron(m, m) for q, m in zip(p, maps, strict=True))
    if np.abs(np.linalg.eigvals(second)).max() >= 1.0:
        raise ValueError("unstable in mean square")
    moved = np.einsum("bij,j->bi", maps, mean) + shifts - mean
    spread = noise + np.einsum("b,bi,bj->ij", p, moved, moved)
    covariance = np.linalg.solve(np.eye(d * d) - second, spread.ravel()).reshape(d, d)
    return mean, covariance
