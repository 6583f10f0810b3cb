"""Steps on a Gaussian posterior, s' = M s + c + B ξ, as the library's own kernel takes them."""

import itertools
import math

import cases
import numpy as np
import probe
from scenes import make_scene

from skbayes_sg.dynamics import SGLD
from skbayes_sg.priors import Normal


def gaussian_scene(**options):
    """A linear regression of three parameters, dependent and on different scales."""
    return make_scene("gaussian", "normal", columns=[0.6, 1.5], **options)


def precision_and_mean(scene):
    """Of the Gaussian posterior, by the formulas."""
    posterior, origin = scene.posterior, np.zeros(scene.posterior.dimension)
    units = np.eye(len(origin))
    constant = posterior.gradient(origin)
    A = np.stack([posterior.gradient(e) - constant for e in units], axis=1)  # it is affine
    return A, -np.linalg.solve(A, posterior.gradient(origin))


def step_size(scene, frame, share, dynamics=None):
    """h at some share of the stability limit, as a rule h λ_max(P A) < 4."""
    A, _ = precision_and_mean(scene)
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F
    return share * (dynamics or SGLD()).largest_step(np.linalg.eigvalsh(F.T @ A @ F).max())


def affine(kernels, h, rows=None, coefficients=None):
    """(M, c, B) of a step of the library, states flattened."""
    rows, coefficients = kernels.all_rows if rows is None else (rows, coefficients)
    D, shape = kernels.dimension, kernels.start(np.zeros(kernels.dimension)).shape
    size, silence = shape[0] * D, np.zeros(D)

    def step(state, noise):
        out = kernels.step(state.reshape(shape), rows, coefficients, noise, h)
        return out.ravel()

    c = step(np.zeros(size), silence)
    M = np.stack([step(e, silence) - c for e in np.eye(size)], axis=1)
    B = np.stack([step(np.zeros(size), e) - c for e in np.eye(D)], axis=1)
    return M, c, B


def radius(M):
    """Largest modulus of an eigenvalue."""
    return np.abs(np.linalg.eigvals(M)).max()


def in_theta(frame, mean, covariance):
    """The law of θ = centre + F φ for φ the first coordinates."""
    F = np.diag(frame.F[0]) if len(frame.F) == 1 else frame.F
    D = len(F)
    return frame.centre.theta + F @ mean[:D], F @ covariance[:D, :D] @ F.T


def batch_maps(kernels, h, n):
    """(M, c, B) of every batch of n rows, without replacement."""
    N = kernels.setup.n_rows
    found = [
        affine(kernels, h, rows, np.full(n, N / n)) for rows in itertools.combinations(range(N), n)
    ]
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def formula_maps(scene, frame, gradient, h, n):
    """The same for SGLD without preconditioner, from the row gradients themselves."""
    posterior, origin = scene.posterior, np.zeros(scene.posterior.dimension)
    N, case, maps, shifts = len(posterior.X), cases.GRADIENTS[gradient], [], []
    A, mu = precision_and_mean(scene)

    def estimate(theta, rows):
        a = case.row_vectors(posterior, theta, frame)
        return A @ (theta - mu) - a.sum(axis=0) + N / n * a[list(rows)].sum(axis=0)

    for rows in itertools.combinations(range(N), n):
        constant = estimate(origin, rows)
        slopes = np.stack([estimate(e, rows) - constant for e in np.eye(len(origin))], axis=1)
        maps.append(np.eye(len(origin)) - 0.5 * h * slopes)
        shifts.append(-0.5 * h * constant)
    return np.stack(maps), np.stack(shifts)


def unit_scene():
    """A standard normal posterior of one parameter: one row and the prior have half of it each."""
    table = Normal(scale=math.sqrt(2.0))._table((1,))
    model = cases.MODELS["gaussian"].model
    target = probe.make_target(
        model, np.ones((1, 1)), np.zeros(1), np.full(1, 0.5), table, intercept=False
    )
    return probe.frame_at(target, np.zeros(1))
