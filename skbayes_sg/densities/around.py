"""Coordinates around a point of a row density, from first derivatives alone.

The width of each parameter is its posterior standard deviation according to the squares of the
rows' gradients, whose sum has the expectation of the Hessian (Fisher's information). Where a model
does not know the Hessian, it comes from differences of the gradient of all rows over a small share
of that width.
"""

from bisect import bisect_left
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

__all__ = ["DENSE", "DensityFrame", "frame_around", "is_unbounded", "log_laplace_evidence"]
__all__ += ["mode_near", "reaches"]
__all__ += ["with_row_terms", "without_maximum"]

DENSE = 400  # parameters up to which a Hessian is made by default, unless the model knows it
SHARE = 0.02  # step of a difference of gradients, as a share of the width of a parameter
BLOCK_BYTES = 1 << 22  # size in bytes of the gradients of rows that are in memory together
# The search for a mode takes at most ROUNDS runs of L-BFGS. A mode has been reached if the log
# density rises by less than LEVEL nats in a width.
ROUNDS, LEVEL = 5, 0.1
RISING = 0.5  # nats in a width by which the density rises where a search has not found a maximum
SHRUNK = 1e-3  # share of the reach of a parameter that is left where a density rises without bound
FARTHEST = 64  # reaches are between 2 to the power of -64 and of 64


@dataclass(frozen=True)
class DensityFrame(Frame):
    """A `Frame` whose Hessian is known only as a matrix, or as its diagonal."""

    def _estimated_range(self):
        return float(self.curvature.min()), float(self.curvature.max())


def fisher_diagonal(target, theta):
    """Return an estimate of the diagonal of the Hessian of U at θ, (D,), positive.

    It is the sum over the rows of weight_i (∂ℓ_i/∂θ_j)², plus the curvature of the prior.
    """
    size = max(1, BLOCK_BYTES // (8 * target.n_parameters))
    total = target.prior_curvature(theta)
    for first in range(0, target.n_rows, size):
        rows = slice(first, first + size)
        weight = np.maximum(target.weight[rows, None], np.finfo(float).tiny)
        total = total + (row_gradients(target, theta, rows) ** 2 / weight).sum(axis=0)
    return np.maximum(total, np.finfo(float).tiny)


def likelihood_hessian(target, theta, widths):
    """Return the Hessian of the negative log-likelihood: the model's, or by central differences.

    These are differences of the gradient over a small share of the `widths` of the parameters.
    """
    if target.model.loss_hessian is not None:
        facts, of_rows = target.data.facts, target.model.loss_hessian
        return sum(target.over_panels(lambda first, last: of_rows(facts[first:last], theta)))
    H = np.empty((len(theta), len(theta)))
    for j, h in enumerate(SHARE * widths):
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += h
        behind[j] -= h
        H[j] = (target.likelihood(ahead)[1] - target.likelihood(behind)[1]) / (2.0 * h)
    return 0.5 * (H + H.T)


def mode_near(target, theta, max_iter=1000):
    """Return where a search for a local maximum of the posterior from θ ends.

    The search is by L-BFGS, in units of the widths where it begins. Far from the mode widths may be
    so small that it ends on the way; it then begins anew from there, with `ROUNDS` runs at most.
    `has_arrived` tells whether the end is a maximum.
    """
    for _ in range(ROUNDS):
        theta = _descent(target, theta, max_iter)
        if has_arrived(target, theta):
            break
    return theta


def _descent(target, theta, max_iter):
    """Return where one run of L-BFGS from θ ends."""
    with np.errstate(all="ignore"):
        widths = 1.0 / np.sqrt(fisher_diagonal(target, theta))

    def objective(phi):
        with np.errstate(all="ignore"):
            value, g = target.value_and_gradient(theta + widths * phi)
        if not (np.isfinite(value) and np.isfinite(g).all()):
            return 1e300, np.zeros(len(phi))
        return value, widths * g

    options = {"maxiter": max_iter, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-4}
    options["maxfun"] = 3 * max_iter  # without a minimum line searches may go on for very long
    found = optimize.minimize(
        objective, np.zeros(len(theta)), jac=True, method="L-BFGS-B", options=options
    )
    return theta + widths * found.x


def has_arrived(target, theta):
    """Whether the log density rises by less than `LEVEL` nats in a width along every parameter."""
    return not still_rising(target, theta, LEVEL).any()


def still_rising(target, theta, level=RISING):
    """Return for each parameter, (D,), whether the density rises by `level` nats in its width.

    A search that has ended at θ has not found a maximum then, unless θ is at a kink.
    """
    with np.errstate(all="ignore"):
        found, g = fisher_diagonal(target, theta), target.value_and_gradient(theta)[1]
        return ~(np.abs(g) < level * np.sqrt(found))  # true for NaN


def reaches(target, theta):
    """Return for each parameter, (D,), how far it goes until U changes by half a nat.

    They are the next larger powers of two. Unlike widths they need no gradients of rows, which
    may all be zero.
    """
    value, _ = target.value_and_gradient(theta)

    def is_near(j, exponent):
        beside = np.tile(theta, (2, 1))
        beside[:, j] += np.array([-1.0, 1.0]) * 2.0**exponent
        changes = [target.value_and_gradient(place)[0] - value for place in beside]
        return bool(np.abs(changes).max() < 0.5)  # false for NaN

    def farthest(j):
        exponents = range(-FARTHEST, FARTHEST)
        return bisect_left(exponents, True, key=lambda exponent: not is_near(j, exponent))

    with np.errstate(all="ignore"):
        return 2.0 ** (np.array([farthest(j) for j in range(len(theta))]) - FARTHEST)


def is_unbounded(target, start, theta):
    """Whether a search that has ended at θ has followed a density that rises without bound.

    It still rises there, and is far narrower than at a starting point: there is hardly any mass,
    however high it rises. Effects whose scale may become zero have such a density.
    """
    if not still_rising(target, theta).any():
        return False
    return bool((reaches(target, theta) < SHRUNK * reaches(target, start)).any())


def without_maximum(target, theta):
    """Return for each parameter, (D,), whether its prior is flat and leaves it without a maximum.

    That is so if at θ, where a search has ended, the log density still rises by more than a nat in
    a width of the parameter, or does not depend on it.
    """
    flat = of_family(target.prior, Flat)
    if not flat.any():
        return flat
    with np.errstate(all="ignore"):
        found, g = fisher_diagonal(target, theta), target.value_and_gradient(theta)[1]
    return flat & ~((np.abs(g) < np.sqrt(found)) & (found > np.finfo(float).tiny))


def frame_around(target, theta, kind):
    """Return the `DensityFrame` at θ with the preconditioner "hessian", "diagonal" or "none".

    A Hessian that is not finite is replaced by the diagonal of `fisher_diagonal`.
    """
    found = fisher_diagonal(target, theta)
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
    """Return the log evidence of Laplace's approximation in nats, up to a constant.

    It is log p(θ̂, rows) + ½ log det of the inverse Hessian.
    """
    root = frame.laplace_root
    log_det = np.log(np.abs(root[0])).sum() if len(root) == 1 else np.linalg.slogdet(root)[1]
    return -frame.target.value_and_gradient(frame.centre.theta)[0] + log_det


def with_row_terms(frame):
    """Return the frame with the gradients of all rows at its centre, for control variates."""
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
