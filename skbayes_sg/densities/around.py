"""Coordinates around a point of a row density, from first derivatives alone.

The width of each parameter comes from the squares of the rows' gradients, whose sum has the
expectation of the Hessian (Fisher's information), and the Hessian from differences of the gradient
of all rows over a small share of that width.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from ..geometry import preconditioning
from ..geometry.frame import Frame
from ..geometry.mode import Centre
from ..kernels.layout import FACT_PREDICTOR, frozen
from ..priors import Flat
from ..priors.families import of_family
from .density import row_gradients

__all__ = ["DENSE", "DensityFrame", "frame_around", "log_laplace_evidence", "mode_near"]
__all__ += ["with_row_terms", "without_maximum"]

DENSE = 400  # parameters up to which there is a Hessian by default
SHARE = 0.02  # of a width, the step of a difference
BLOCK_BYTES = 1 << 22
ROUNDS, LEVEL = 5, 0.1  # of the search for a mode, and what is left to rise


@dataclass(frozen=True)
class DensityFrame(Frame):
    """A `Frame` whose Hessian is known as a matrix or as its diagonal, and in no other way."""

    def _estimated_range(self):
        return float(self.curvature.min()), float(self.curvature.max())


def information(target, theta):
    """Σ_i (weight_i ∂ℓ_i/∂θ_j)² of all rows, and the curvature of the prior."""
    size = max(1, BLOCK_BYTES // (8 * target.n_parameters))
    total = target.prior_curvature(theta)
    for first in range(0, target.n_rows, size):
        rows = slice(first, first + size)
        weight = np.maximum(target.weight[rows, None], np.finfo(float).tiny)
        total = total + (row_gradients(target, theta, rows) ** 2 / weight).sum(axis=0)
    return np.maximum(total, np.finfo(float).tiny)


def likelihood_hessian(target, theta, widths):
    """The Hessian of the negative log-likelihood, by central differences of its gradient."""
    H = np.empty((len(theta), len(theta)))
    for j, h in enumerate(SHARE * widths):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += h
        behind[j] -= h
        H[j] = (target.likelihood(ahead)[1] - target.likelihood(behind)[1]) / (2.0 * h)
    return 0.5 * (H + H.T)


def mode_near(target, theta, max_iter=1000):
    """A local maximum of the posterior near θ, if it is one: see `has_arrived`.

    By L-BFGS, in units of the widths where it begins. Far from the mode widths may be so small that
    it ends on the way, and begins anew from there.
    """
    for _ in range(ROUNDS):
        theta = _descent(target, theta, max_iter)
        if has_arrived(target, theta):
            break
    return theta


def _descent(target, theta, max_iter):
    """Where L-BFGS ends."""
    with np.errstate(all="ignore"):
        widths = 1.0 / np.sqrt(information(target, theta))

    def objective(phi):
        with np.errstate(all="ignore"):
            value, g = target.value_and_gradient(theta + widths * phi)
        if not (np.isfinite(value) and np.isfinite(g).all()):
            return 1e300, np.zeros(len(phi))
        return value, widths * g

    options = {"maxiter": max_iter, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-4}
    options["maxfun"] = 3 * max_iter  # where there is no minimum, lines are searched for ever
    found = optimize.minimize(
        objective, np.zeros(len(theta)), jac=True, method="L-BFGS-B", options=options
    )
    return theta + widths * found.x


def has_arrived(target, theta):
    """Whether the density rises by less than `LEVEL` nats in a width, along any parameter."""
    with np.errstate(all="ignore"):
        found, g = information(target, theta), target.value_and_gradient(theta)[1]
        return bool((np.abs(g) < LEVEL * np.sqrt(found)).all())  # not for NaN


def without_maximum(target, theta):
    """Which parameters with flat priors have no maximum where a descent has ended.

    The density still rises there by more than a nat in a width, or does not depend on them.
    """
    flat = of_family(target.prior, Flat)
    if not flat.any():
        return flat
    with np.errstate(all="ignore"):
        found, g = information(target, theta), target.value_and_gradient(theta)[1]
    return flat & ~((np.abs(g) < np.sqrt(found)) & (found > np.finfo(float).tiny))


def frame_around(target, theta, kind):
    """The `DensityFrame` of a preconditioner: "hessian", "diagonal" or "none"."""
    found = information(target, theta)
    curvature = target.prior_curvature(theta)
    H, F, whitened = found - curvature, preconditioning.diagonal(found), False
    if kind == "hessian":
        H = likelihood_hessian(target, theta, 1.0 / np.sqrt(found))
        if not np.isfinite(H).all():
            H, kind = found - curvature, "diagonal"
        else:
            F, whitened = preconditioning.from_any_hessian(H + np.diag(curvature))
    elif kind == "none":
        F = preconditioning.identity(len(theta))
    centre = Centre(theta, target.data.facts, np.zeros(len(theta)), H, target.prior, 0.0)
    return DensityFrame(target, centre, kind, F, whitened)


def log_laplace_evidence(frame):
    """log p(θ̂, rows) + ½ log det of the covariance that the Hessian stands for."""
    root = frame.laplace_root
    log_det = np.log(np.abs(root[0])).sum() if len(root) == 1 else np.linalg.slogdet(root)[1]
    return -frame.target.value_and_gradient(frame.centre.theta)[0] + log_det


def with_row_terms(frame):
    """The frame with the gradients of all rows at its centre, for control variates."""
    target, theta, D = frame.target, frame.centre.theta, frame.target.n_parameters
    own = target.data.facts
    facts = np.empty((target.n_rows, own.shape[1] + 2 * D))
    facts[:, :FACT_PREDICTOR] = own[:, :FACT_PREDICTOR]
    facts[:, FACT_PREDICTOR : FACT_PREDICTOR + D] = theta
    facts[:, FACT_PREDICTOR + 2 * D :] = own[:, FACT_PREDICTOR:]
    size, terms = max(1, BLOCK_BYTES // (8 * D)), slice(FACT_PREDICTOR + D, FACT_PREDICTOR + 2 * D)
    for first in range(0, target.n_rows, size):
        block = own[first : first + size]
        facts[first : first + size, terms] = target.derivative(
            block, np.tile(theta, (len(block), 1))
        )
    g = target.weight @ facts[:, terms]
    centre = Centre(theta, frozen(facts), g, frame.centre.hessian, target.prior, 0.0)
    return DensityFrame(target, centre, frame.kind, frame.F, frame.whitened)
