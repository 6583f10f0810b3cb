"""Rows that come in batches: the posterior of all of them, from the new ones and a memory.

The likelihood of new rows is exact. Earlier rows are kept, and so exact as well, as long as there
are at most `KEPT_ROWS` of them, and up to ten times as many while no quadratic approximates their
log-likelihood to the accuracy `GOOD`. All other rows are represented by a memory
(`skbayes_sg.engine.memory`): for linear regression by the triangular factor of all rows, which is
exact, and for other models by that quadratic. Scales of priors that adapt to the data adapt to all
rows so far.

A fit keeps nothing of its rows. By Stein's identity, the quadratic of their log-likelihood follows
from the draws and the prior: see `_likelihood_of_draws`.
"""

import warnings
from dataclasses import dataclass, replace
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..diagnostics.verdict import UPDATE
from ..dynamics import Importance
from ..engine import equal_rows
from ..engine.memory import Quadratic, left_out, not_negative, summarised
from ..exceptions import UpdateWarning
from ..geometry.preconditioning import DENSE_LIMIT
from ..kernels import many_draws
from ..kernels.layout import frozen
from ..priors.families import is_learned
from ..recipe.choose import sample_posterior
from ..recipe.closed_form import remembered
from ..recipe.tuning import FEW_ROWS
from ._centring import centre_of, check_near
from ._changed import (
    asked_prior,
    check_likelihood,
    has_other_prior,
    of_likelihood,
    prior_after_fit,
)
from ._shards import ShardSummary, described, first_label, pooled
from ._store import check_draw_store, copies_of

__all__ = ["Past", "can_update", "update", "where_possible"]

KEPT_ROWS = 1000  # up to this number of rows in all batches, rows are kept and stay exact
# As long as no quadratic approximates them well, up to this many times KEPT_ROWS rows are kept.
KEPT_FACTOR = 10
# Standard deviation, over the posterior, of the log-likelihood that a good quadratic may leave out.
GOOD = 0.1
# Numbers of X beyond which more than KEPT_ROWS rows are not kept, unless no row so far is of some
# class: no quadratic represents that.
KEPT_NUMBERS = 1_000_000
CHECKED = 32  # number of draws at which a quadratic is compared with the rows that it replaces
# A class that earlier rows would lack by chance with a smaller probability has come late. Errors
# are then so many times as large as they are elsewhere for what quadratics leave out: three to six
# times (``tests/estimators/test_partial_fit.py::test_classes_that_come_late_are_told``).
BY_CHANCE, LATE = 1e-3, 5.0


@dataclass(frozen=True)
class Past:
    """What `partial_fit` keeps of earlier rows.

    Parameters
    ----------
    n_rows : int
        Number of all earlier rows.
    centre : array or None
        What is subtracted from the columns in all batches.
    known : dict or None
        Moments of centred columns and of responses, as for shards; None if the first rows were
        those of a fit.
    prior : array, optional
        The prior, if it is that of a fit and no longer adapts to rows.
    asked : array, optional
        What `asked_prior` has returned in the fit, or in the last call if there was none, by which
        changes of priors are seen.
    law : dict, optional
        The parameters of the likelihood, by name, with which the earlier rows were taken.
    rows : tuple, optional
        X, y and weight of rows that are still exact.
    memory : skbayes_sg.engine.memory.Triangle or Quadratic, optional
        The representation of all other rows.
    precision : array, optional
        About the precision matrix of the posterior when the quadratic was made.
    error : float
        Standard deviation of the log-likelihood that the quadratic leaves out, which limits what it
        may do to a posterior mean: see `_aged`.
    late : bool
        Whether a class has come late: see `_comes_late`.
    """

    n_rows: int
    centre: Any
    known: Any = None
    prior: Any = None
    asked: Any = None
    law: Any = None
    rows: Any = None
    memory: Any = None
    precision: Any = None
    error: float = 0.0
    late: bool = False


def can_update(estimator):
    """True if an estimator has a `partial_fit`; `AttributeError` with the reason if it has none."""
    if estimator.group_effects is not None:
        raise AttributeError("There is no partial_fit with group_effects: fit all rows at once.")
    samplers, kinds = estimator._updating_samplers
    steps = ("gradient", "subsampling", "batch_size", "step_size", "preconditioner")
    sampler = estimator.sampler
    asked = [name for name in steps if not _is(getattr(estimator, name), "auto")]
    if not (any(_is(sampler, name) for name in samplers) or isinstance(sampler, kinds)):
        asked.append("sampler")
    if not _is(estimator.keep, "all"):
        asked.append("keep")
    if estimator.n_subposteriors != 1:
        asked.append("n_subposteriors")
    if _is(getattr(estimator, "class_weight", None), "balanced"):
        asked.append("class_weight")
    owner = type(estimator).__name__
    if is_learned(estimator.prior):
        raise AttributeError(
            f"{owner} has no partial_fit with prior={estimator.prior!r}: it needs a prior of fixed "
            "scales, such as prior=Normal(scale=1.0)."
        )
    if asked:
        values = ", ".join(f"{name}={getattr(estimator, name)!r}" for name in asked)
        raise AttributeError(
            f"{owner} has no partial_fit with {values}: it makes independent "
            f"draws (sampler={' or '.join(map(repr, samplers))}) from the posterior of all rows, "
            "of which it keeps second moments."
        )
    return True


class where_possible:
    """Descriptor of a method ``partial_fit`` that exists for estimators that `can_update`.

    For others the `AttributeError` says why there is none.
    `sklearn.utils.metaestimators.available_if` says only that there is no such attribute, and
    leaves the reason to the cause of the error, which many tools do not show.
    """

    def __init__(self, method):
        self.method = method
        update_wrapper(self, method)

    def __get__(self, estimator, owner=None):
        if estimator is None:
            return self.method
        can_update(estimator)
        return MethodType(self.method, estimator)


def _is(value, name):
    """Whether a value is this string; other values, such as arrays, are not compared."""
    return isinstance(value, str) and value == name


def past_of(estimator, plan):
    """The `Past` of an estimator after batches or a fit; None for a new estimator.

    `ValueError` after a fit of shards.
    """
    if estimator._past is not None or not hasattr(estimator, "posterior_"):
        return estimator._past
    if estimator._origin_of_fit is None:
        raise ValueError(
            f"This {type(estimator).__name__} was fitted to shards, whose posterior partial_fit "
            "does not go on with. Begin with partial_fit on the first shard."
        )
    prior, centre, n_rows, total, *of_fit = estimator._origin_of_fit
    asked, law = of_fit or (None, None)
    draws = plan.theta(estimator.posterior_.sampled, centre)
    memory, precision, error = _likelihood_of_draws(draws.reshape(-1, len(prior)), prior, total)
    kept = {"prior": prior, "asked": asked, "law": law}
    return Past(n_rows, centre, memory=memory, precision=precision, error=error, **kept)


def _likelihood_of_draws(draws, prior, total):
    """(`Quadratic` of the likelihood, precision of the posterior, error) from posterior draws.

    With U = L + P, the negative logarithms of likelihood and prior, E[∇U f] = E[∇f] under the
    posterior for every function f. In coordinates z of mean zero and unit covariance, the linear
    function of z that is closest to ∇L in mean square, g + H z, therefore follows from P:

        g = -E[∇P],    H = I - E[∇P zᵀ].

    It is the slope of the quadratic by which `partial_fit` replaces rows (`summarised`). The error,
    a standard deviation of a log density, has two parts. If L were a quadratic, the
    identity would hold for V = g + H z + ∇P in the place of ∇U, so that c = E[V_a (z_a² - 1)] and
    d = E[V_a (z_a³ - 3 z_a)] would be zero along each axis a. The terms of L of third and fourth
    order have about the standard deviation (Σ c²/6 + Σ d²/24)^½. For a normal prior, c and d are
    the skewnesses and the excess kurtoses of the posterior, and this is Edgeworth's expansion. The
    mean of S draws of D parameters is off by (D/(S - D))^½ in addition.
    """
    S, D = draws.shape
    if S <= D + 1:
        raise ValueError(
            f"partial_fit after fit needs more draws than there are parameters, {D}, and there are "
            f"{S}. Raise n_draws, or begin with partial_fit."
        )
    mean, C = draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
    width = np.sqrt(np.diag(C))
    values, axes = linalg.eigh(C / np.outer(width, width))
    to_z = axes / np.sqrt(values) / width[:, None]
    z, slopes = (draws - mean) @ to_z, np.zeros_like(draws)
    many_draws.prior_gradients(frozen(prior), draws, slopes)
    along = slopes @ (axes * np.sqrt(values) * width[:, None])
    H = np.eye(D) - along.T @ z / (S - 1)
    H = not_negative(0.5 * (H + H.T))
    V = along - along.mean(axis=0) + z @ H
    third, fourth = np.mean(V * (z**2 - 1.0), axis=0), np.mean(V * (z**3 - 3.0 * z), axis=0)
    error = np.sqrt(np.sum(third**2 / 6.0 + fourth**2 / 24.0)) + np.sqrt(D / (S - D))
    quadratic = Quadratic(mean, -slopes.mean(axis=0), to_z @ H @ to_z.T, total)
    return quadratic, to_z @ to_z.T, float(error)


def update(estimator, X, y, weight, plan):
    """Sample the posterior of these rows and all earlier ones, and return the estimator.

    See `partial_fit` of `BayesianRegressor` for what the posterior is.
    """
    _check_parameters(estimator, plan)
    past = past_of(estimator, plan)
    if past is not None:
        check_likelihood(estimator, past)
    past = _with_rows(estimator, past, X, y, weight)
    is_exact = plan.model.normal and not isinstance(past.memory, Quadratic)
    if past.rows is not None:
        X, y, weight = _joined(past.rows, (X, y, weight))
    request = estimator._request(X.shape[0])
    rows, plan = _centred(X, past.centre), replace(plan, centre=past.centre)
    target = _target(estimator, rows, y, weight, plan, past, request.n_jobs)
    if past.memory is not None and not is_exact:
        request = replace(request, sampler=Importance())
    request.names = plan.labels
    request.parameters, request.identified = plan.parameters, plan.identified
    check_draw_store(
        request.n_chains, request.n_draws, target.n_parameters, 12, copies=copies_of(1)
    )
    found = []

    def draw(progress):
        found.append(sample_posterior(target, request, progress))
        return found[0], [], {}

    estimator._conclude(draw, plan, target.prior, 1, X=X, y=first_label(y))
    if is_exact:
        past, error = replace(past, memory=remembered(target)), 0.0
    else:
        lacking = _lacks_a_class(estimator, past.known)
        most = np.inf if has_other_prior(estimator, plan, past) else 1.0
        past, error = _grown(past, target, found[0].draws, (X, y, weight), lacking, most)
        error *= LATE if past.late else 1.0
    estimator.posterior_.evidence["update_error"] = np.full(len(plan.labels), error)
    vars(estimator).update(n_samples_seen_=past.n_rows, update_error_=error)
    past = replace(past, law=of_likelihood(estimator))
    if past.prior is None:
        past = replace(past, asked=asked_prior(estimator, plan))
    vars(estimator).update(_past=past, _seen=None)
    if error > UPDATE:
        _warn(estimator, error)
    return estimator


def _check_parameters(estimator, plan):
    """`ValueError` if the posterior of earlier rows has other parameters than the plan."""
    posterior = getattr(estimator, "posterior_", None)
    if posterior is None or posterior.labels == tuple(plan.labels):
        return
    odd = set(posterior.labels) ^ set(plan.labels)
    example = next(label for label in [*posterior.labels, *plan.labels] if label in odd)
    there = "with" if example in posterior.labels else "without"
    raise ValueError(
        f"{type(estimator).__name__}.partial_fit goes on with the posterior of earlier rows, "
        f"which was sampled {there} {example!r}. Leave fit_intercept, noise and the kind of prior "
        "as they were, or begin with a new estimator."
    )


def _with_rows(estimator, past, X, y, weight):
    """The `Past` with the number and the moments of new rows; `past` is None for the first."""
    centre = centre_of(estimator, X, weight) if past is None else past.centre
    own = described(estimator, _centred(X, centre), y, weight)
    if past is None:
        past = Past(0, centre, own)
    elif past.known is not None:
        late = past.late or _comes_late(past, own)
        past = replace(past, known=pooled([past.known, own]), late=late)
    if past.known is not None:
        check_near(estimator, *past.known["columns"][1:])
    return replace(past, n_rows=past.n_rows + X.shape[0])


def _comes_late(past, own):
    """Whether a class of new rows is not missing by chance in all earlier ones.

    `own` are the moments of the new rows. The share of the class in them counts without one of its
    rows: that it is there at all says only that it exists.
    """
    if "classes" not in own:
        return False
    is_new = ~np.isin(own["classes"], past.known["classes"])
    totals = own["class_totals"]
    share = np.maximum(totals[is_new] - 1.0, 0.0) / totals.sum()
    return bool(((1.0 - share) ** past.n_rows < BY_CHANCE).any())


def _joined(old, new):
    """(X, y, weight) of the old rows and below them of the new ones; CSR if either is sparse."""
    X = [part[0] for part in (old, new)]
    if any(sparse.issparse(part) for part in X):
        X = sparse.vstack([sparse.csr_array(part) for part in X], format="csr")
    else:
        X = np.concatenate(X)
    return X, *(np.concatenate([a, b]) for a, b in zip(old[1:], new[1:], strict=True))


def _centred(X, centre):
    """Rows less the centre that the first batch has determined; None subtracts nothing."""
    if centre is None:
        return X
    return (X.toarray() if sparse.issparse(X) else X) - centre


def _lacks_a_class(estimator, known):
    """Whether all rows so far lack some class, or all responses are zero.

    `known` are the moments of the rows, as `described` returns them.
    """
    if known is None:  # the first rows were those of a fit
        return False
    if "classes" in known:
        return len(known["classes"]) < len(estimator.classes_)
    return known["size"] == 0.0


def _grown(past, target, draws, rows, lacking, most):
    """(`Past` after a batch, error of the posterior of that batch).

    `rows` are X, y and weight of all rows that were exact in that posterior, `draws` its draws, and
    `lacking` says whether they lack a class. The error is that of `_aged`, as is `most`.
    """
    flat, n = draws.reshape(-1, draws.shape[-1]), rows[0].shape[0]
    if past.memory is None and n <= KEPT_ROWS:
        return replace(past, rows=rows), 0.0
    mean, covariance = flat.mean(axis=0), np.atleast_2d(np.cov(flat, rowvar=False))
    own = summarised(target, mean, covariance)
    some = flat[np.unique(np.linspace(0, len(flat) - 1, CHECKED).astype(int))]
    left = np.inf if lacking else left_out(target.with_memory(None), own, some)
    few = n <= KEPT_FACTOR * KEPT_ROWS and (lacking or n * rows[0].shape[1] <= KEPT_NUMBERS)
    if past.memory is None and few and left > GOOD:
        return replace(past, rows=rows), 0.0
    memory = own if past.memory is None else past.memory + own
    precision = memory.hessian + np.diag(target.prior_curvature(mean))
    error = _aged(past, mean, precision, most) if past.memory is not None else 0.0
    changed = {"rows": None, "memory": memory, "precision": precision}
    return replace(past, **changed, error=float(np.hypot(error, left))), error


def _aged(past, mean, precision, most):
    """Number of posterior standard deviations by which the quadratic may have moved a mean.

    The log-likelihood that the quadratic of a batch leaves out has the standard deviation δ under
    the posterior of its time. It moves means by at most δ standard deviations of that posterior,
    and not at all while the posterior stays where it is: the δ of batches are therefore added as
    independent errors. If what is left out is of third order, its slope is (1 + r²) times as large
    r standard deviations away. While later rows raise the precision from P to P', the error in new
    standard deviations is at most the share (λ_max(P'⁻¹P))^½ of the old one; it is at most `most`,
    which is 1 unless another prior has lowered the precision.
    """
    step, D = mean - past.memory.origin, len(mean)
    square = step @ past.precision @ step  # about D at most, if the new rows are like the others
    moved = max(square / D, square - D)
    return float(past.error * (1.0 + moved) * _shrinkage(past.precision, precision, most))


def _warn(estimator, error):
    """`UpdateWarning` that quadratics may have moved means by `error` standard deviations."""
    warnings.warn(
        f"{type(estimator).__name__}.partial_fit: the quadratics for earlier rows may have moved "
        f"posterior means by {error:.1f} posterior standard deviations (update_error_), and may "
        "have made the posterior too narrow or too wide, because it was wide, or elsewhere, when "
        "they were new. Put rows into random order before they are divided into batches, begin "
        "with a larger batch, or fit all rows at once.",
        UpdateWarning,
        stacklevel=4,
    )


def _shrinkage(before, after, most):
    """(λ_max(P'⁻¹P))^½ for the precision matrices P `before` and P' `after`; at most `most`."""
    try:
        largest = linalg.eigh(before, after, eigvals_only=True)[-1]
    except linalg.LinAlgError:  # P' is singular: a direction has no precision
        return most
    return float(min(np.sqrt(max(largest, 0.0)), most))


def _target(estimator, rows, y, weight, plan, past, n_jobs):
    """The `Target` of rows and of the memory, with the prior that follows from all rows so far."""

    def merged(target):
        few = past.memory is None and target.n_rows <= FEW_ROWS
        return equal_rows.merged(target) if few else target

    target = estimator._target(rows, y, weight, plan, n_jobs, merged)
    if target.n_parameters > DENSE_LIMIT:
        raise ValueError(
            f"partial_fit is for at most {DENSE_LIMIT} parameters, got {target.n_parameters}: it "
            "keeps a matrix of second derivatives."
        )
    if past.prior is not None:
        prior = prior_after_fit(estimator, plan, past)
    else:
        whole = ShardSummary([past.known]).stand_in(plan, bool(estimator.fit_intercept))
        prior = estimator._prior_of(whole, plan.coef_shape, plan.extras)
    return target.with_prior(prior).with_memory(past.memory)
