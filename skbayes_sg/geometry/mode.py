"""The centre: a point near the posterior mode, to a tolerance in posterior standard deviations.

Stopping rules of optimisers refer to the gradient, which does not tell the distance to the mode:
scikit-learn's `LogisticRegression` may stop several posterior standard deviations from it. The
measure here is the Newton decrement sqrt(gᵀH⁻¹g), the distance to the mode in posterior standard
deviations. The optimisers are SciPy's; this module chooses the starting point, the coordinates and
the stopping rule.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize, sparse

from ..engine.target import Target
from ..models import LinearKnownNoise, Softmax
from ..priors import Flat, Laplace
from ..priors.columns import LOC, SCALE, SHAPE
from ..priors.families import of_family
from . import preconditioning
from .first_place import first_place, some_rows
from .noise_collapse import has_collapsed, is_near, may_collapse, weighted_centre

__all__ = ["Centre", "check_independent", "check_proper", "check_width", "decrement"]
__all__ += [
    "NotFiniteError",
    "find_centre",
    "informative_rows",
    "is_good_start",
    "newton",
    "not_finite",
]

SUBSAMPLE = 20_000
"""Number of rows in a first search for the mode, if there are more than twice as many rows."""

DEPENDENT = 1e-13
"""Columns count as linearly dependent if the Hessian, scaled to a unit diagonal, has an eigenvalue
below this.
"""

RESTARTS = 5
"""How often Newton steps begin, at most, where rounding errors end them before a noise's floor."""

WIDEST = 1e140
"""Largest standard deviation of a parameter, since its square has to be a finite float."""

BAD_APPROXIMATION = 2
"""SciPy's status of a trust-region search whose quadratic no longer predicts what steps gain."""


@dataclass
class Centre:
    """A point, with the derivatives of the posterior there.

    ``prior`` is the prior that the point refers to: a Laplace prior is smoothed over a posterior
    standard deviation, since it has no curvature itself.
    """

    theta: np.ndarray
    facts: np.ndarray  # facts of the rows, with their predictors and terms at θ
    gradient: np.ndarray  # of the negative log-likelihood
    hessian: np.ndarray  # of the negative log-likelihood: dense, or its diagonal
    prior: np.ndarray
    distance: float  # distance from the mode, in posterior standard deviations
    is_mode: bool = True  # whether the point is near a mode: see `noise_collapse`


class _Objective:
    """U and its derivatives as functions of φ = F⁻¹(θ - origin); the last result is cached."""

    def __init__(self, target, origin, F):
        self.target, self.origin, self.F = target, origin, F
        self._value_at = self._hessian_at = None
        self.lowest, self.lowest_at = np.inf, origin

    def theta(self, phi):
        return self.origin + preconditioning.apply(self.F, phi)

    def value(self, phi):
        """U and its gradient at φ; infinity and zeros where these are not finite."""
        theta = self.theta(phi)
        if self._value_at is None or not np.array_equal(theta, self._value_at):
            self._value, self._value_at = self.target.value_and_gradient(theta), theta
        value, g = self._value
        if not (np.isfinite(value) and np.isfinite(g).all()):
            return np.inf, np.zeros(len(phi))  # an overflow: the optimiser rejects the step
        if value < self.lowest:
            self.lowest, self.lowest_at = value, theta
        return value, preconditioning.pull_back(self.F, g)

    def hessian(self, phi):
        """The Hessian of U at φ, or the identity where that is not finite; F must be diagonal."""
        if self._hessian_at is None or not np.array_equal(phi, self._hessian_at):
            theta = self.theta(phi)
            with np.errstate(over="ignore", invalid="ignore"):
                H = self.target.likelihood_hessian(theta)
            H[np.diag_indices_from(H)] += self.target.prior_curvature(theta)
            (scale,) = self.F
            H = scale[:, None] * H * scale if np.isfinite(H).all() else np.eye(len(H))
            self._hessian, self._hessian_at = H, phi.copy()
        return self._hessian


def decrement(H, g):
    """sqrt(gᵀH⁻¹g): distance to the minimum of a quadratic, in units of its width.

    It is infinite if H is not positive definite.
    """
    try:
        return float(linalg.norm(preconditioning.whitened(H, g)))
    except linalg.LinAlgError:
        return np.inf


def newton(target, theta, tolerance, max_iter=200, radius=None, known=None):
    """Take trust-region Newton steps until the mode is within `tolerance` standard deviations.

    Returns the last θ. The first step has the length `radius` at most, ten standard deviations of
    each parameter if None. A true value of ``known(theta, U(theta))`` ends the steps as well.
    """
    floors = target.prior[len(theta) - target.model.n_extra :, LOC]
    for _ in range(RESTARTS if floors.any() else 1):  # without a floor U may have no lower bound
        theta, has_failed = _newton_steps(target, theta, tolerance, max_iter, radius, known)
        if not has_failed:
            break
    return theta


def _newton_steps(target, theta, tolerance, max_iter, radius, known):
    """Take the steps of `newton`; return θ, and whether rounding errors have ended them.

    The units of parameters are those at the beginning: further steps may have better ones.
    """
    # Each parameter has a unit of its own, so that none is compared with another one.
    curvature = np.abs(target.likelihood_curvature(theta)) + target.prior_curvature(theta)
    logarithms = slice(len(theta) - target.model.n_extra, None)
    curvature[logarithms] = np.maximum(curvature[logarithms], 1.0)  # units of one at most
    F = preconditioning.diagonal(np.where(curvature > 0.0, curvature, 1.0))
    objective = _Objective(target, theta, F)

    def stop(intermediate_result):
        phi = intermediate_result.x
        value, g = objective.value(phi)
        if known is not None and known(objective.theta(phi), value):
            raise StopIteration
        if decrement(objective.hessian(phi), g) <= tolerance:
            raise StopIteration

    D = len(theta)
    value, g = objective.value(np.zeros(D))
    if np.isfinite(value) and decrement(objective.hessian(np.zeros(D)), g) <= tolerance:
        return theta, False
    options = {"gtol": 1e-12, "maxiter": max_iter, "max_trust_radius": 1e30}
    options["initial_trust_radius"] = 10.0 * np.sqrt(D) if radius is None else radius
    method = {"method": "trust-exact", "jac": True, "hess": objective.hessian, "callback": stop}
    try:
        with np.errstate(over="ignore"):  # steps that overflow are rejected
            result = optimize.minimize(objective.value, np.zeros(D), **method, options=options)
    except (ValueError, UnboundLocalError):
        # SciPy raises the first for a quadratic with entries that overflow, and the second where it
        # finds no multiple of the identity that makes a quadratic of rounding errors convex.
        return objective.lowest_at, True
    return objective.theta(result.x), result.status == BAD_APPROXIMATION and result.nit > 0


def _quasi_newton(target, theta, F, tolerance, max_iter=100):
    """Return θ after L-BFGS, in coordinates F in which the posterior has about unit width.

    L-BFGS needs only gradients. Its first step has length one for any gradient. Here the unit of
    length is the norm of the gradient, so that the first step is Newton's, as far as F is correct.
    """
    start, objective = np.zeros(len(theta)), _Objective(target, theta, F)
    unit = max(linalg.norm(objective.value(start)[1]), 1.0)
    objective.F = unit * F  # the cached value is identified by its θ
    options = {"gtol": tolerance * unit, "ftol": 0.0, "maxiter": max_iter, "maxcor": 20}
    method = {"method": "L-BFGS-B", "jac": True, "options": options}
    result = optimize.minimize(objective.value, start, **method)
    return objective.theta(result.x)


def informative_rows(target, n, rng):
    """Draw n rows with probability ∝ weight (1 + scaled mean square); return them and new weights.

    The entries of a row are divided by the root mean squares of their columns: rows with a rare
    level then have large entries, so that rare columns are not lost.
    """
    X, weight = target.X, target.weight

    def squares(rows):
        block = X[rows]
        return block.power(2) if sparse.issparse(block) else np.square(block, dtype=np.float64)

    columns = target.over_chunks(lambda rows: weight[rows] @ squares(rows), target.n_features)
    scale = 1.0 / np.maximum(sum(columns) / weight.sum(), np.finfo(float).tiny)
    size = np.concatenate(target.over_chunks(lambda rows: squares(rows) @ scale, len(scale)))
    p = weight * (1.0 + size / target.n_features)
    p /= p.sum()
    rows = np.sort(rng.choice(target.n_rows, n, p=p))
    return rows, weight[rows] / (n * p[rows])


def _smoothed(prior, width):
    """A prior table with |z| in Laplace priors replaced by sqrt(z² + ε²).

    ε is one posterior standard deviation, given as the width of the parameter.
    """
    prior = prior.copy()
    laplace = of_family(prior, Laplace)
    prior[laplace, SHAPE] = width[laplace] / prior[laplace, SCALE]
    return prior


def _centre_at(target, theta, dense):
    """The `Centre` at θ, with its distance to the mode."""
    facts, gradient, hessian = target.expansion(theta, dense=dense)
    g, prior = gradient + target.prior_gradient(theta), target.prior_curvature(theta)
    if dense:
        distance = decrement(hessian + np.diag(prior), g)
    else:
        distance = float(np.sqrt(np.sum(g**2 / (hessian + prior))))
    return Centre(theta, facts, gradient, hessian, target.prior, distance)


def _metric(target, theta, dense):
    """F with F Fᵀ the inverse Hessian at θ, or the inverse of its diagonal."""
    curvature = target.prior_curvature(theta)
    if not dense:
        return preconditioning.diagonal(target.likelihood_curvature(theta) + curvature)
    H = target.likelihood_hessian(theta) + np.diag(curvature)
    return preconditioning.from_any_hessian(H)[0]


def _is_nearer(target, theta, part):
    """Whether θ is nearer to the mode than the mode of a part of the rows is expected to be."""
    _, g = target.value_and_gradient(theta)
    distance = linalg.norm(_metric(part, theta, dense=True).T @ g)
    return distance < np.sqrt(len(theta) * target.n_rows / part.n_rows)


def _descend(target, theta, dense, tolerance, rng, is_good=False):
    """Find the `Centre` from θ, under a twice differentiable prior.

    `is_good` says that the mode may be near θ, so that a part of the rows need not find it first.
    """
    if dense and may_collapse(target):
        return _centre_without_collapse(target, theta)
    if dense and target.n_rows <= 2 * SUBSAMPLE:
        return _centre_at(target, newton(target, theta, 1e-3), dense)
    part = target
    if target.n_rows > 2 * SUBSAMPLE:
        part = target.take(*informative_rows(target, SUBSAMPLE, rng)).with_memory(target.memory)
    if dense and not (is_good and _is_nearer(target, theta, part)):
        theta = newton(part, theta, 1.0)
    for _ in range(5):
        F = _metric(part, theta, dense)
        theta = _quasi_newton(target, theta, F, tolerance / 3.0)
        centre = _centre_at(target, theta, dense)
        if centre.distance <= tolerance:
            break
        part = target
    return centre


def _centre_without_collapse(target, theta):
    """The `Centre` at the mode, or where the mass is if the noise collapses at the mode."""
    theta = newton(target, theta, 1e-3, known=lambda theta, _: is_near(target, theta))
    if is_near(target, theta):
        other = weighted_centre(target)
        if not has_collapsed(theta, other):
            theta = newton(target, theta, 1e-3, known=lambda at, _: has_collapsed(at, other))
        if has_collapsed(theta, other):
            return replace(_centre_at(target, other, dense=True), is_mode=False)
    return _centre_at(target, theta, dense=True)


def _has_no_bound(target):
    """Whether coefficients may fit all rows: then U falls without end as the noise goes to zero."""
    few = target.total_weight <= target.n_parameters
    return target.model.n_extra and not target.model.discrete and few


def is_good_start(target, theta):
    """Whether the search for the mode may begin at θ, the mode of other rows or another prior.

    It had better begin at the first place of all if U, of some of the rows, is lower there.
    """
    if _has_no_bound(target):  # `find_centre` would return the starting point as it is
        return False
    part = some_rows(target)
    points = theta, first_place(target)
    with np.errstate(all="ignore"):  # θ may be anything
        values = [part.value_and_gradient(point)[0] for point in points]
    return bool(np.isfinite(theta).all() and values[0] < values[1])


def find_centre(target, *, dense, rng, tolerance=0.5, start=None):
    """Find a `Centre` within `tolerance` posterior standard deviations of the mode.

    With many rows, trust-region Newton finds the mode of an informative subsample; L-BFGS follows
    with a few gradient passes over all rows, in the coordinates of the subsample's Hessian. The
    full Hessian is computed once, at the end.

    Parameters
    ----------
    target : Target
    dense : bool
        Whether Hessians may be kept as matrices.
    rng : numpy.random.Generator
        Draws the subsample.
    tolerance : float
        Largest distance, in posterior standard deviations; with few rows it is a thousandth.
    start : array of shape (n_parameters,), optional
        The starting point; that of `first_place` if None.
    """
    theta = first_place(target) if start is None else start
    laplace, is_good = of_family(target.prior, Laplace), start is not None
    smooth = target.with_prior(_smoothed(target.prior, target.prior[:, SCALE]))
    if _has_no_bound(target):
        return _centre_at(smooth, theta, dense)
    if not laplace.any():
        return _descend(target, theta, dense, tolerance, rng, is_good)
    for _ in range(3):
        centre = _descend(smooth, theta, dense, tolerance, rng, is_good)
        theta, is_good = centre.theta, True
        F = _metric(smooth, theta, dense)
        width = np.sqrt((F**2).sum(axis=1)) if dense else F[0]
        smooth = target.with_prior(_smoothed(target.prior, width))
    return _centre_at(smooth, theta, dense)


class NotFiniteError(ValueError):
    """A likelihood is NaN or infinite where its mode was looked for."""


def not_finite(theta):
    """The `NotFiniteError` for a likelihood that is not finite at θ."""
    return NotFiniteError(
        "The log_likelihood, or a derivative of it, is not finite where the mode was looked for: "
        f"at the parameters {np.array2string(theta, precision=4, threshold=10)}. It must be a "
        "number there, and smooth. A likelihood that is zero for some values of a parameter needs "
        "CustomDensity, with a start where it is not."
    )


# -- does the posterior exist? ----------------------------------------------------------------


def check_independent(target, dense):
    """Raise `ValueError` if rows do not determine the coefficients that have flat priors.

    The other coefficients are determined by their proper priors, however wide these are, so that
    only the rows' Hessian in those with flat priors must be positive definite.
    """
    flat = of_family(target.prior, Flat)
    if not dense:
        if _is_intercept_alone(target, flat) and not target.model.separable:
            return
        raise ValueError(
            f"prior='flat' needs a check that the posterior exists, which is only available for up "
            f"to {preconditioning.DENSE_LIMIT} parameters, and there are {target.n_parameters}. "
            "Use a proper prior."
        )
    if target.model.n_extra:  # X alone decides: terms of extra parameters need not be convex
        prior = target.prior[: target.n_parameters - target.model.n_extra]
        target = Target(
            target.X, 0.0, target.weight, LinearKnownNoise(), prior, intercept=target.intercept
        )
    flat = flat[: target.n_parameters]
    H = target.likelihood_hessian(first_place(target))[np.ix_(flat, flat)]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    if linalg.eigvalsh(scale[:, None] * H * scale)[0] >= DEPENDENT:
        return
    if isinstance(target.model, Softmax):
        raise ValueError(
            "Improper posterior: of three or more classes, the data tell only how coefficients "
            "differ, and prior='flat' leaves what is added to all of them open. Use a proper "
            "prior, such as prior=Normal(scale=100.0)."
        )
    raise ValueError(
        "Improper posterior: prior='flat' needs data that determine every coefficient, but the "
        "columns of X (with the intercept) are linearly dependent. Use a proper prior, or drop "
        "columns."
    )


def _is_intercept_alone(target, flat):
    """Whether the only flat prior is that of the intercept, which any row determines."""
    return bool(flat.sum() == 1 and target.intercept and flat[target.n_features])


def check_proper(target, centre):
    """Return a centre that proves that a posterior under a flat prior exists, or raise.

    With decrement λ and R = max_i ‖x_i‖ in the inverse Hessian's norm, λR bounds the change of any
    predictor by a Newton step. In separable data it stays at or above 1 at any distance; if the
    mode exists it falls to zero.
    """
    for refine in (False, True):
        if refine:
            centre = _centre_at(target, newton(target, centre.theta, 1e-7), dense=True)
        H = centre.hessian + np.diag(target.prior_curvature(centre.theta))
        try:
            F, _ = preconditioning.from_hessian(H)
        except linalg.LinAlgError:
            continue
        norms = target.over_chunks(
            lambda rows, F=F: target.norms(target.design(rows), F).max(), target.n_parameters
        )
        if centre.distance * max(norms) < 0.5:
            return centre
    why = "separates the classes (or a level of a categorical column has only one class)"
    if target.model.discrete:
        why = "falls in rows without events alone (or a level, or all of the table, has none)"
    raise ValueError(
        "Improper posterior: it does not exist under flat priors, because a combination of the "
        f"columns {why}. Use a proper prior, such as prior='normal'."
    )


def check_width(width, total_weight):
    """Raise `ValueError` if rows leave a parameter under a flat prior as good as undetermined.

    `width` is the largest standard deviation of a parameter; its square has to be a float.
    """
    if width > WIDEST:
        raise ValueError(
            f"Improper posterior, as far as floating-point numbers go: under a flat prior rows of "
            f"total sample weight {total_weight:.3g} leave a parameter with a standard deviation "
            f"of about {width:.3g}. Scale the weights to a mean of one, or use a normal prior."
        )
