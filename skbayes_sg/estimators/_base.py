"""Base of the estimators with a row model: sampling, fitted attributes, blocks of predictors."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.threads import in_threads, one_blas_thread
from .._base.typing import ArrayLike, MatrixLike, RandomState
from .._base.validation import check_data
from ..diagnostics.verdict import OF_THE_POSTERIOR, quick_findings, said_of
from ..dynamics import Exact, Importance
from ..engine import equal_rows
from ..engine.scores import scores_of_all_rows
from ..engine.target import Target
from ..exceptions import (
    SamplerConvergenceWarning,
    SamplerDivergedError,
    UnusedParameterWarning,
)
from ..geometry.preconditioning import DENSE_LIMIT
from ..gradients import GRADIENTS
from ..groups.rows import AS_DRAWN
from ..kernels.layout import FACT_Y
from ..models.predictive import affine
from ..posterior import Posterior, Summary
from ..priors import Flat
from ..priors.table import powered
from ..recipe.choose import sample_posterior
from ..recipe.final_run import in_single_precision
from ..recipe.tuning import FEW_ROWS
from ..shards.sample import Sharded, combine_shards, sample_shards
from ..subsampling import SUBSAMPLING, AllRows
from ._arviz import arviz_of
from ._centring import centre_of, warn_if_held_back
from ._parameters import GLMParameters
from ._prior_conflicts import warn_of_half_normals, warn_of_units, warn_of_wide_prior
from ._rows_of_fit import RowsOfFit
from ._saved import defaults_of
from ._shards import (
    FromShards,
    check_rows_of_shards,
    first_label,
    warn_of_small_shards,
    watched,
)
from ._store import all_or_nothing, check_draw_store, copies_of
from ._warm_start import start_of

if TYPE_CHECKING:
    from ..multilevel import Expectation, MultilevelSGLD

__all__ = ["BayesianGLM", "all_or_nothing", "check_draw_store"]


# Combined draws get scores if rows x draws x parameters are at most this, since scores take long.
MOST_SCORED = 3e8
BLOCK_BYTES = 1 << 23  # bytes of a block of predictors, which stays in cache until it is reduced


def _label(component, choices):
    """The name of a component as users give it, from `choices` of names and classes.

    A sampler may be a name already; a component without a name has that of its class.
    """
    if isinstance(component, str):
        return component
    names = {kind: name for name, kind in choices.items()}
    return names.get(type(component), type(component).__name__)


def _with_scores(outcome, target):
    """The outcome of combined draws with exact scores, by which the draws can be judged."""
    thetas = outcome.draws.reshape(-1, target.n_parameters)
    with np.errstate(all="ignore"):  # combined draws may be anywhere
        scores = scores_of_all_rows(target, thetas).reshape(outcome.draws.shape)
    evidence = outcome.evidence | {"combined": np.ones(1)}
    found = {"scores": in_single_precision(scores), "scores_of": "all rows"}
    return replace(outcome, evidence=evidence, **found)


def _counting_all_rows(outcome, n_rows):
    """The outcome with `n_rows` as its batch size, if every step has used all rows.

    The target may have fewer rows than the data: equal rows are merged, or a few rows have the same
    likelihood as all.
    """
    if not isinstance(outcome.chosen["subsampling"], AllRows):
        return outcome
    sizes = np.full(outcome.batch_sizes.shape, float(n_rows))
    return replace(outcome, chosen=outcome.chosen | {"batch_size": n_rows}, batch_sizes=sizes)


def _raise_if_infinite(posterior, estimator):
    """`SamplerDivergedError` if a parameter is beyond the range of floats in some draw."""
    finite = np.isfinite(posterior.flat).all(axis=(0, 1))
    if not finite.all():
        raise SamplerDivergedError(
            f"{estimator}: draws of {posterior.labels[int(np.argmin(finite))]} have left the range "
            "of floats. Use priors with lighter tails, or a longer warm-up."
        )


def _warn_of_unused(estimator, sampler):
    """`UnusedParameterWarning` if `thin` or `n_warmup` was given, and the draws are independent."""
    asked = {"thin": estimator.thin_, "n_warmup": estimator.n_warmup_}
    given = {name: getattr(estimator, name) for name in asked}
    unused = [
        f"{name}={given[name]!r}"
        for name, used in asked.items()
        if not isinstance(given[name], str) and given[name] != used
    ]
    if unused and isinstance(sampler, Exact | Importance):
        have = "has" if len(unused) == 1 else "have"
        warnings.warn(
            f"{' and '.join(unused)} {have} no effect: the draws are independent (sampler_="
            f"{estimator.sampler_!r}), and not steps of a chain. Leave it to 'auto', or ask for "
            "chains, such as sampler='hmc'.",
            UnusedParameterWarning,
            stacklevel=2,
        )


def _warn_of_idle(estimator, n_parts):
    """`UnusedParameterWarning` for parameters that others leave without a meaning.

    `n_parts` is the number of subposteriors that were combined, or of shards.
    """
    needs = {
        "intercept_prior": ("fit_intercept", estimator.fit_intercept, "True"),
        "noise_prior": ("noise", isinstance(getattr(estimator, "noise", ""), str), "'infer'"),
        "combine": ("n_subposteriors", n_parts != 1, "2 or more"),
    }
    defaults = defaults_of(type(estimator))
    for name, (other, has_use, needed) in needs.items():
        if has_use or name not in defaults:
            continue
        value, default = getattr(estimator, name), defaults[name]
        if value is default or (isinstance(value, str) and value == default):
            continue
        warnings.warn(
            f"{name}={value!r} has no effect with "
            f"{other}={getattr(estimator, other)!r}: it needs {other} to be {needed}.",
            UnusedParameterWarning,
            stacklevel=2,
        )


def _warn_untrustworthy(posterior):
    """`SamplerConvergenceWarning` about all findings of `quick_findings`, if there are any."""
    findings = quick_findings(posterior)
    if findings:
        first = "The draws disagree with what is known of the posterior."
        if all(finding.name in OF_THE_POSTERIOR for finding in findings):
            first = "The posterior itself is degenerate."
        warnings.warn(f"{first} {said_of(findings)}", SamplerConvergenceWarning, stacklevel=2)


class BayesianGLM(FromShards, CallbackSupportMixin, GLMParameters):
    """Base of the estimators whose likelihood is a row model (`skbayes_sg.models`).

    A subclass defines `fit`, the constructor if it has parameters of its own (see `GLMParameters`),
    and

    ``_read(X, y, sample_weight, reset=True)``
        Checked rows, labels and weights, as `skbayes_sg._base.validation.check_data` returns them.
        Further items of a row, such as an exposure, come after its weight, and become labels.
    ``_plan(summary)``
        The `Plan` of what is sampled, given a `ShardSummary` of all shards.
    ``_first_plan(X, y, weight)``
        The `Plan` of a fit of rows as `_read` returns them.
    ``_fitted_plan(X, y, weight)``
        The `Plan` of the fit, for rows as `_read` returns them, which may be others.
    ``_responses(X, rng)``
        A response of each row for each draw, (rows, draws).
    ``_likelihood_of(y)``
        A function ``(rows, eta, components) -> log p(y_i | component)`` of the indices of some
        rows, of their predictors, and of the `Components` of the draws.

    `fit` makes a plan for the rows that it has read, and returns ``self._sample(X, y, weight,
    plan)``, inside of ``with all_or_nothing(self)``.
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _origin_of(self, y, weight):
        """The number that is subtracted from the response during sampling, zero by default."""
        del y, weight
        return 0.0

    def _target(self, X, y, weight, plan, n_jobs=None, merged=lambda target: target):
        """The `Target` of rows that `_read` returned, with the prior.

        ``merged(target)`` may be a target with fewer rows, of larger weights.
        """
        flat = Flat()._table((len(plan.labels),))
        target = Target(
            X, *plan.coded(y, weight), plan.model, flat, intercept=self.fit_intercept, n_jobs=n_jobs
        )
        target = merged(target)
        return target.with_prior(self._prior_of(target, plan.coef_shape, plan.extras))

    def _posterior_of(self, *rows, n_jobs=None):
        """The `Plan` of the fit, and the `Target` of rows that need not be those of the fit.

        `rows` are the arguments of `_read`.
        """
        self._refuse_learned_scales("the posterior of rows beside a fit")
        self._refuse_groups()
        X, y, weight = self._read(*rows, reset=False)
        plan = self._fitted_plan(X, y, weight)
        return plan, self._target(X, y, weight, plan, n_jobs).compacted()

    def _sample(self, X, y, weight, plan):
        """Draw from the posterior of rows that `_read` returned, and set the fitted attributes."""
        S, combiner = self._division()
        check_rows_of_shards(self, X, weight, S)
        centre, rows = centre_of(self, X, weight), X
        if centre is not None:
            rows, plan = X - centre, replace(plan, centre=centre)
        self._origin_of_y = self._origin_of(y, weight)
        plan = replace(plan, origin=self._origin_of_y)
        request = self._request(-(-X.shape[0] // S))
        request.names = plan.labels

        def merged(target):
            if request.batch_size is not None:
                return target
            if target.n_rows <= FEW_ROWS:
                return equal_rows.merged(target)
            is_whole = S == 1 and request.leaves_rows_to_auto
            return equal_rows.merged_if_it_pays(target) if is_whole else target

        target = self._target(rows, y, weight, plan, request.n_jobs, merged).compacted()
        scales = self._learned_scales(self._units(target), plan.coef_shape)
        if scales is not None:
            plan = replace(plan, scales=scales.sampled)
            if S > 1:
                self._refuse_learned_scales(f"n_subposteriors={S}")
        kept = self._kept(request, S)
        with_scores = 12 if target.n_parameters <= DENSE_LIMIT else 8  # bytes of a draw
        check_draw_store(
            request.n_chains * (S + (S > 1)), kept, target.n_parameters, with_scores,
            copies=copies_of(S),
        )  # fmt: skip
        request.parameters, request.identified = plan.parameters, plan.identified
        request.start = start_of(self, plan, target.prior)
        each, remedy = max(X.shape[0], weight.sum()) / S, "Use fewer subposteriors."
        warn_of_small_shards(self, S, each, target.n_parameters, remedy)

        seen = RowsOfFit.of(X, *plan.code(y, weight))
        origin = target.prior, centre, X.shape[0], float(target.weight.sum())
        self._forget(seen, origin if S == 1 else None)

        def draw(progress):
            unit = target.weight.sum() / weight.sum()  # models may divide weights
            if scales is not None:
                from ..shrinkage.choose import sample_with_scales  # imported when it is needed

                outcome, shards = sample_with_scales(target, scales, request, progress), []
                return _counting_all_rows(outcome, X.shape[0]), shards, {}
            outcome, shards, check = self._draw(target, request, S, combiner, plan, unit, progress)
            if S == 1:
                outcome = _counting_all_rows(outcome, X.shape[0])
            return outcome, shards, check

        self._conclude(draw, plan, target.prior, S, X=X, y=first_label(y))
        warn_of_wide_prior(self, self.posterior_, target, float(weight.sum()))
        return self

    # The names and the classes of samplers that `partial_fit` accepts.
    _updating_samplers: ClassVar[tuple] = ("auto", "importance"), (Importance,)
    _groups = None  # `skbayes_sg.estimators._groups.Groups` of a fit with group effects
    _past = None  # the `Past` with which `partial_fit` represents earlier rows
    _origin_of_y = 0.0  # the number that the fit has subtracted from responses far from zero
    _mode = None  # the parameters at the mode, for `warm_start`
    # For `partial_fit` after `fit`: the prior, the centre of the columns, the number of rows and
    # their total weight.
    _origin_of_fit = None

    def _forget(self, seen, origin):
        """Drop what earlier fits have left for later ones, and keep the `RowsOfFit` `seen`.

        `origin` becomes `_origin_of_fit`.
        """
        self._past, self._seen, self._origin_of_fit, self._groups = None, seen, origin, None
        if seen is None:  # the rows lie in parts, or have groups
            self._origin_of_y = 0.0
        for name in ("n_samples_seen_", "update_error_"):
            vars(self).pop(name, None)

    @one_blas_thread
    def _conclude(self, draw, plan, prior, n_subposteriors, **data):
        """Set the fitted attributes from what ``draw(progress)`` returns: see `_draw`."""

        def so_far(draws, weights):
            return self._attributes(self._posterior(plan, draws, weights))

        progress = Progress(self, so_far, **data)
        try:
            outcome, shards, check = draw(progress)
        except SamplerDivergedError as error:
            raise SamplerDivergedError(f"{type(self).__name__}: {error}") from None
        with np.errstate(over="ignore"):  # the exponential of a sampled logarithm may overflow
            posterior = self._result(plan, outcome, prior)
        _raise_if_infinite(posterior, type(self).__name__)
        share = powered(prior, 1.0 / n_subposteriors)
        fitted = self._attributes(posterior)
        fitted["subposteriors_"] = [self._result(plan, shard, share) for shard in shards]
        fitted["subposteriors_"] = fitted["subposteriors_"] or [posterior]
        fitted["intercept_prior_"] = self._used_intercept_prior(prior, plan.labels)
        mode = None if outcome.mode is None else plan.parameters(outcome.mode)
        # An earlier fit may have had variables that this one does not have.
        for name in vars(self).get("posterior_", ()):
            vars(self).pop(f"{name}_", None)
        vars(self).update(fitted, **self._choices(outcome), combine_check_=check, _mode=mode)
        _warn_untrustworthy(posterior)
        _warn_of_unused(self, outcome.chosen["sampler"])
        _warn_of_idle(self, n_subposteriors)
        warn_if_held_back(self, posterior, prior, plan.centre)
        warn_of_half_normals(posterior, prior, plan.extras)
        warn_of_units(self, posterior, prior)
        progress.finish(fitted)
        return self

    def _posterior(self, plan, draws, weights, origin=None, scores=None, **known):
        """The `Posterior` of draws of θ, in the parameters of a plan."""
        known |= {"classes": plan.classes, "shift": plan.shift(draws)}
        scores, draws = plan.scores(draws, scores), plan.parameters(draws)
        known["edges"] = list(plan.extras) if plan.model.has_edge else ()
        shapes, labels = plan.shapes(bool(self.fit_intercept)), [*plan.labels, *plan.scales]
        return Posterior(draws, shapes, labels, origin, weights, scores, **known)

    def _result(self, plan, outcome, prior):
        """The `Posterior` of an `Outcome`, with the evidence that was measured during sampling."""
        origin, evidence = self._origin(outcome.chosen), outcome.evidence
        if not plan.scales:
            evidence = (
                evidence | outcome.conflict(prior) | outcome.heavy_tails(prior, plan.identified)
            )
        n = len(plan.labels)
        evidence = evidence | outcome.rounding(prior, range(n - len(plan.extras), n))
        known = {"scores_of": outcome.scores_of, "evidence": evidence, "moments": outcome.moments}
        draws, weights, scores = outcome.draws, outcome.weights, outcome.scores
        return self._posterior(plan, draws, weights, origin, scores, **known)

    @with_callbacks
    def expect(
        self,
        func: Callable,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        method: "MultilevelSGLD | None" = None,
    ) -> "Expectation":
        """Posterior expectation of a function of the parameters, to a stated accuracy.

        The expectation is computed by multilevel SGLD on the rows, not from the draws of the fit:
        sampling goes on until the estimated root mean square error is within the tolerance. The
        cost grows slowly with the number of rows, and like the inverse square of the tolerance: see
        `skbayes_sg.multilevel.MultilevelSGLD`.

        Parameters
        ----------
        func : callable
            A function of a posterior, as for `Posterior.expectation`: ``func(posterior)`` returns
            its values at all draws, an array of shape (n_chains, n_draws, ...), such as
            ``lambda p: p["coef"]``. The value at a draw may depend on that draw alone. The paths of
            multilevel SGLD take the place of the chains.
        rtol : float, optional
            Tolerance for the root mean square error of each component, relative to its absolute
            value. A component near zero takes long: use `atol` for it. Exactly one of `rtol` and
            `atol` must be given.
        atol : float, optional
            Tolerance for the root mean square error of each component, in the units of the value.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows of the fit, which the estimator does not keep. For other rows the expectation
            is that under their own posterior, with the estimator's prior; a `UserWarning` says so
            if that posterior is elsewhere.
        y : array-like of shape (n_rows,)
            Labels or responses of the rows.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        method : MultilevelSGLD, optional
            The settings of multilevel SGLD. None stands for the defaults, with the estimator's
            `random_state` and `n_jobs`.

        Returns
        -------
        skbayes_sg.multilevel.Expectation
            The result, with the attributes ``value``, ``standard_error`` and ``bias``, and the cost
            of the computation.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        TypeError
            If `func` is not callable, or `method` is not a `MultilevelSGLD`.
        ValueError
            For tolerances that are not positive, or if both or none are given; if `func` returns
            values that are not finite, or have another shape; for X and y that cannot be used.
        CouplingError
            If paths of neighbouring levels do not meet, if the posterior has several modes or is
            far from Gaussian, or if the result contradicts the mean of independent draws. No result
            is then returned.
        SamplerDivergedError
            If a path leaves the region in which the posterior can have its mass.
        AccuracyNotReachedError
            If the tolerance would take more than the method's `max_cost` or `max_level` allow, or
            if a callback has ended the computation. The attribute `result` of the error has the
            estimate so far.

        Warns
        -----
        LongRunWarning
            If the tolerance is predicted to take more than ten seconds, or three times as long as
            was said.
        SamplerConvergenceWarning
            If no reliable independent draws could be made to confirm the result.
        """
        from ._expect import expect

        return expect(self, func, rtol, atol, (X, y, sample_weight), method)

    def _draw(self, target, request, n_subposteriors, combiner, plan, unit, progress):
        """(outcome, outcomes of the subposteriors, check of their combination) of a target.

        The last two are empty without subposteriors. `unit` is the weight of the target's rows over
        that of the data.
        """
        if n_subposteriors == 1:
            return sample_posterior(target, request, progress), [], {}
        strata = target.data.facts[:, FACT_Y] if is_classifier(self) else None
        sharded = Sharded(target, n_subposteriors, strata, request.seed, unit)
        outcomes = sample_shards(sharded, request, watched(progress, n_subposteriors))
        outcome, check = combine_shards(outcomes, combiner, request.seed, plan.contrasts)
        if outcome.draws.size * target.n_rows <= MOST_SCORED:
            outcome = _with_scores(outcome, target)
        return outcome, outcomes, check

    @property
    def effects_(self) -> Summary:
        """Table of the effects of all levels, with their standard deviations and intervals."""
        return self._of_groups("effects_").effects.table()

    @property
    def group_levels_(self) -> dict[str, np.ndarray]:
        """The levels of each group column, by the name of the column."""
        return {own.name: own.known for own in self._of_groups("group_levels_").levels}

    def _refuse_groups(self):
        """`ValueError` if there are group effects, for methods that do not know them."""
        if self.group_effects is not None:
            raise ValueError(
                f"{type(self).__name__} with group_effects has neither expect nor fit_shards, nor "
                "scores of its draws. Leave group_effects out, or use the draws in posterior_."
            )

    def _of_groups(self, name):
        """The `Groups` of the fit; `AttributeError` for the attribute `name` if there are none."""
        if self._groups is None or self._groups.effects is None:
            raise AttributeError(
                f"This {type(self).__name__} has no {name}: it was not fitted with group_effects."
            )
        return self._groups

    def _attributes(self, posterior):
        """Fitted attributes: the posterior, its means and standard deviations.

        They have scikit-learn's shapes and names.
        """
        fitted = {"posterior_": posterior}
        zeros = np.zeros(posterior.shapes["coef"][:-1])
        for name in ("coef", "intercept"):
            known = name in posterior
            fitted[f"{name}_"] = posterior.mean(name) if known else zeros
            fitted[f"{name}_std_"] = posterior.std(name) if known else zeros
        for name in ("intercept_", "intercept_std_"):
            fitted[name] = fitted[name] if np.ndim(fitted[name]) else float(fitted[name])
        for name in set(posterior.names) - {"coef", "intercept"}:
            mean = posterior.mean(name)
            fitted[f"{name}_"] = mean if np.ndim(mean) else float(mean)
        return fitted

    def _checked(self, X, *y):
        """Checked rows for predictions (with their responses, if given), and an offset.

        The offset is `Exposures` or `GroupRows` of `skbayes_sg.groups.rows`, which are added to
        the predictors of the rows, or None.
        """
        numeric = bool(y) and not is_classifier(self)
        if self._groups is not None:
            return self._groups.checked(self, X, *y, y_numeric=numeric)
        return check_data(self, X, *y, reset=False, y_numeric=numeric), None

    def _linear_draws(self, draws):
        """Coefficients (n, K, d) and intercepts (n, K) of the K predictors, at some draws."""
        n = self.posterior_.n_chains * self.posterior_.n_draws
        B = self.posterior_["coef"].reshape(n, *np.atleast_2d(self.coef_).shape)[draws]
        b = np.zeros(B.shape[:2])
        if "intercept" in self.posterior_:
            b = self.posterior_["intercept"].reshape(-1, B.shape[1])[draws]
        return B, b

    def _blocks(self, X, offset=None, draws=slice(None)):
        """A function for blocks of predictors, and the first rows of all blocks.

        ``block(first)`` returns predictors (rows, draws, K) and their `Components`.
        """
        self.posterior_.require_draws()
        B, b = self._linear_draws(draws)
        S, K, d = B.shape
        weights = np.empty((d + 1, K * S))  # in C order, in which small products are fastest
        weights[:-1], weights[-1] = B.transpose(2, 1, 0).reshape(d, K * S), b.T.ravel()
        limit = min(BLOCK_BYTES, sklearn.get_config()["working_memory"] * 2**20 / 4)
        step = max(1, int(limit / (8 * S * K)))

        def block(first):
            rows = slice(first, first + step)
            eta = affine(X[rows], weights).reshape(-1, K, S).transpose(0, 2, 1)
            return (eta, AS_DRAWN) if offset is None else offset.added(eta, rows, draws)

        return block, range(0, X.shape[0], step)

    def _of_predictors(self, X, reduce, draws=slice(None), rng=None):
        """``reduce(eta, components)`` of all blocks of predictors, joined along the rows.

        Memory is bounded. Blocks run on the threads that BLAS would have used for one product. With
        a generator `rng` they run in order, and effects of unknown levels are drawn.
        """
        check_is_fitted(self)
        X, offset = self._checked(X)
        if rng is not None and self._groups is not None:
            offset = offset.drawn(rng, draws)
        work = lambda rows, eta, components: reduce(eta, components)  # noqa: E731
        return self._in_blocks(X, work, offset, draws, rng is not None)

    def _in_blocks(self, X, work, offset=None, draws=slice(None), in_order=False):
        """``work(rows, eta, components)`` of all blocks of predictors, joined along the rows.

        Rows whose group effects are integrated out have blocks of their own.
        """
        kinds = None if offset is None else offset.kinds
        if kinds is None or not kinds.any():
            return self._map_blocks(X, work, offset, draws, in_order)
        out = None
        for kind in np.unique(kinds):
            rows = np.flatnonzero(kinds == kind)

            def own(places, eta, components, rows=rows):
                return work(rows[places], eta, components)

            found = self._map_blocks(X[rows], own, offset.take(rows), draws, in_order)
            if out is None:
                out = np.empty((len(kinds), *found.shape[1:]), dtype=found.dtype)
            out[rows] = found
        return out

    def _map_blocks(self, X, work, offset, draws, in_order):
        """The results of `work` for all blocks, each a slice of the rows, joined along the rows."""
        block, firsts = self._blocks(X, offset, draws)

        def of(first):
            eta, components = block(first)
            return work(slice(first, first + len(eta)), eta, components)

        if len(firsts) == 1:
            return of(0)
        with one_blas_thread as n_threads:
            return np.concatenate(in_threads(of, firsts, 1 if in_order else n_threads))

    _has_one_peak = True  # whether the likelihood of a row is log-concave in its predictor
    _is_discrete = True  # whether predictions of rows are probabilities, and not densities

    def _check_rows_of_fit(self, *rows):
        """`ValueError` unless the rows are those of the fit, as far as sums over rows tell.

        `rows` are the arguments of `_read`.
        """
        found = self._difference_from_fit(*rows)
        if found:
            raise ValueError(f"The rows must be those of the fit: {type(self).__name__} {found}.")

    def _difference_from_fit(self, *rows):
        """A phrase on how rows differ from those of the fit, as far as sums over rows tell.

        It is empty if they do not, or if these sums are not known.
        """
        known = getattr(self, "_seen", None)
        if not isinstance(known, RowsOfFit):  # the rows lay in parts, or had groups
            return ""
        X, y, weight = self._read(*rows, reset=False)
        return known.difference(X, *self._fitted_plan(X, y, weight).code(y, weight))

    def _powers_of(self, y, weight):
        """The power of its likelihood with which each row is left out: its weight, at most 1.

        A row of weight 3 is three rows, of which one is left out.
        """
        del y
        return np.minimum(weight, 1.0)

    def _of_likelihoods(self, X, y, work, of_fit=False):
        """``work(rows, log_likelihood)`` of all blocks of rows, joined along the rows.

        The log-likelihoods (rows, draws) are those of each row, without its weight, at each draw.
        If X has the rows of the fit (`of_fit`), effects of levels with a single row are integrated
        out.
        """
        check_is_fitted(self)
        (X, y), offset = self._checked(X, y)
        log_likelihood = self._likelihood_of(y)
        if of_fit and self._groups is not None and self._has_one_peak:
            offset = offset.with_single_rows_integrated()

        def of_block(rows, eta, components):
            return work(rows, components.log_likelihood(partial(log_likelihood, rows), eta))

        return self._in_blocks(X, of_block, offset)

    def to_arviz(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
        random_state: RandomState = 0,
    ) -> Any:
        """Return the posterior in the format of ArviZ, with further groups on request.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features), optional
            Rows for the groups ``log_likelihood`` and ``posterior_predictive``.
        y : array-like of shape (n_rows,), optional
            Responses or labels of the rows, which become the group ``observed_data``; labels are
            given as their positions in `classes_`.
        log_likelihood : bool, default=False
            Whether to add the log-likelihood of each row under each draw, which takes memory for a
            matrix of all rows by all draws. `skbayes_sg.model_selection.loo` does not need it.
        posterior_predictive : bool, default=False
            Whether to add a predicted response for each row under each draw, a matrix of the same
            size.
        random_state : int, RandomState instance or None, default=0
            Seed of the predicted responses.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            As from `Posterior.to_arviz`. In the further groups the variable is called ``y``.
        """
        return arviz_of(self, X, y, log_likelihood, posterior_predictive, random_state)

    def _numbers_of(self, y):
        """Responses as an array of numbers (n_rows,)."""
        return column_or_1d(y)

    @property
    def _pooled_weights(self):
        """Weights of the draws of all chains, one chain after the other; None if all the same."""
        weights = self.posterior_.weights
        return None if weights is None else np.tile(weights, self.posterior_.n_chains)

    def _origin(self, chosen):
        """A dict on how the draws were made: only the sampler, if it takes no steps."""
        sampler = {"sampler": _label(chosen["sampler"], self._samplers)}
        if np.isnan(chosen["step_size"]):
            return sampler
        return sampler | {
            "gradient": _label(chosen["gradient"], GRADIENTS),
            "batch_size": chosen["batch_size"],
            "step_size": float(f"{chosen['step_size']:.4g}"),
            "thin": chosen["thin"],
        }

    def _choices(self, outcome):
        """Fitted attributes that say what every "auto" became, and what was measured."""
        chosen = outcome.chosen
        return {
            "sampler_": _label(chosen["sampler"], self._samplers),
            "gradient_": _label(chosen["gradient"], GRADIENTS),
            "subsampling_": _label(chosen["subsampling"], SUBSAMPLING | {"all_rows": AllRows}),
            "preconditioner_": chosen["preconditioner"],
            "batch_size_": int(chosen["batch_size"]),
            "batch_sizes_": np.array(outcome.batch_sizes),
            "step_size_": float(chosen["step_size"]),
            "thin_": int(chosen["thin"]),
            "n_warmup_": int(chosen["n_warmup"]),
            "n_steps_": int(chosen["n_warmup"] + chosen["thin"] * outcome.n_made),
            "diagnostics_": {name: float(v) for name, v in outcome.diagnostics.items()},
            "seconds_": dict(outcome.seconds),
        }
