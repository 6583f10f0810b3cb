"""Base of the estimators with a row model: sampling and fitted attributes."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from .._base.callbacks import CallbackSupportMixin, Progress, with_callbacks
from .._base.threads import one_blas_thread
from .._base.typing import ArrayLike, MatrixLike, RandomState
from ..dynamics import Importance
from ..engine import equal_rows
from ..engine.scores import scores_of_all_rows
from ..engine.target import Target
from ..exceptions import SamplerDivergedError
from ..geometry.preconditioning import DENSE_LIMIT
from ..kernels.layout import FACT_Y
from ..posterior import Posterior, Summary
from ..priors import Flat
from ..priors.table import powered
from ..recipe.choose import sample_posterior
from ..recipe.final_run import in_single_precision
from ..recipe.tuning import FEW_ROWS
from ..shards.sample import Sharded, combine_shards, sample_shards
from ..subsampling import AllRows
from ._arviz import arviz_of
from ._at_all_draws import AtAllDraws
from ._centring import centre_of, warn_if_held_back
from ._changed import asked_prior, of_likelihood
from ._chosen import chosen_pieces, origin_of
from ._fit_warnings import raise_if_infinite, warn_of_idle, warn_of_unused, warn_untrustworthy
from ._parameters import GLMParameters
from ._prior_conflicts import warn_of_half_normals, warn_of_units, warn_of_wide_prior
from ._rows_of_fit import RowsOfFit
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


class BayesianGLM(FromShards, AtAllDraws, CallbackSupportMixin, GLMParameters):
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
        origin += asked_prior(self, plan), of_likelihood(self)
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
    # their total weight, and what `asked_prior` and `of_likelihood` return.
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
        raise_if_infinite(posterior, type(self).__name__)
        share = powered(prior, 1.0 / n_subposteriors)
        fitted = self._attributes(posterior)
        fitted["subposteriors_"] = [self._result(plan, shard, share) for shard in shards]
        fitted["subposteriors_"] = fitted["subposteriors_"] or [posterior]
        fitted["intercept_prior_"] = self._used_intercept_prior(prior, plan.labels)
        mode = None if outcome.mode is None else plan.parameters(outcome.mode)
        # An earlier fit may have had variables that this one does not have.
        for name in vars(self).get("posterior_", ()):
            vars(self).pop(f"{name}_", None)
        vars(self).update(fitted, **chosen_pieces(outcome, self._samplers))
        self.batch_sizes_, self.combine_check_ = np.array(outcome.batch_sizes), check
        self._mode = mode
        warn_untrustworthy(posterior)
        warn_of_unused(self, outcome.chosen["sampler"])
        warn_of_idle(self, n_subposteriors)
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
        origin, evidence = origin_of(chosen_pieces(outcome, self._samplers)), outcome.evidence
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
