"""Fits and predictions of tables with group effects, for all estimators with one predictor.

The columns with groups are taken out before the others are read. A copy of the estimator without
groups, the *reader*, treats the numeric columns and the response: it checks them, and says what the
model and its parameters are.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names, _check_n_features

from .._base.validation import Parameters, check_data
from ..engine.target import Target
from ..exceptions import PriorConflictWarning
from ..groups.columns import GroupColumns
from ..groups.effects import FittedEffects
from ..groups.problem import GroupProblem
from ..groups.rows import GroupRows
from ..models import Linear, Logistic, NegativeBinomial, Robust
from ..posterior.moments import RunningMoments
from ..priors import HalfNormal, Units
from ..priors.families import of_family, resolve_positive
from ..priors.flat import PositiveFlat
from ..recipe.choose import check_noise
from ..recipe.request import Outcome, chosen_without_steps
from ..shards.dask import is_dask
from ._centring import REFUSED_FROM, centre_of
from ._shards import Plan, first_label
from ._store import check_draw_store

__all__ = ["Groups", "fit_groups", "has_groups"]

# Constructor parameters of steps, which must be "auto" with group effects.
OF_STEPS = "sampler", "gradient", "subsampling", "batch_size", "step_size", "preconditioner"
# Columns whose slopes vary are centred if their means are more than so many standard deviations
# from zero.
FAR_SLOPES = 3.0
LEAST_LEVELS = 4  # fewest levels with which a flat prior of their scale has a proper posterior
LOOKED_AT = 1000  # rows that are compared first, to tell a group column from the response


def has_groups(estimator):
    """Whether an estimator has group effects; an error for parameters that need them."""
    if estimator.group_effects is not None:
        return True
    for name in ("group_scale", "group_slopes"):
        if getattr(estimator, name) is not None:
            Parameters(estimator).fail(name, "None where group_effects is None")
    return False


@dataclass
class GroupPlan(Plan):
    """A plan whose scales are those of group effects.

    Parameters
    ----------
    n_groups : int
        Number of columns with groups, each of which has a standard deviation of its effects.
    n_slopes : int
        Number of columns whose slopes vary, each of which has one more standard deviation.
    n_correlations : int
        Number of correlations between the effects of a level, which are the last of `scales`.
    """

    n_groups: int = 0
    n_slopes: int = 0
    n_correlations: int = 0

    def shapes(self, intercept):
        """Variables of the posterior, with their shapes."""
        shapes = super().shapes(intercept)
        shapes |= {"group_std": (self.n_groups,)}
        if not self.n_slopes:
            return shapes
        return shapes | {
            "group_slope_std": (self.n_slopes,),
            "group_correlation": (self.n_correlations,),
        }

    def parameters(self, theta):
        """Parameters in the order of the labels, from the sampled θ (..., n_sampled).

        Correlations are sampled as they are, and not as logarithms.
        """
        found = super().parameters(theta)
        if self.n_slopes:
            found[..., -self.n_correlations :] = theta[..., -self.n_correlations :]
        return found


class Groups:
    """The group columns, levels and effects of a fitted estimator.

    Parameters
    ----------
    columns : GroupColumns
    reader : estimator
        A copy of the estimator without groups, which has read the other columns.
    levels : list of Levels
        The levels of each column with groups.
    """

    def __init__(self, columns, reader, levels):
        self.columns, self.reader, self.levels = columns, reader, levels
        self.effects = None

    def checked(self, estimator, X, *y, y_numeric):
        """Checked rows of X without group columns (and y), and their `GroupRows`."""
        _check_feature_names(estimator, X, reset=False)
        _check_n_features(estimator, X, reset=False)
        others, values = self.columns.divided(X)
        rows = others if others is not None else np.zeros((len(values[0]), 1))
        found = check_data(self.reader, rows, *y, reset=False, y_numeric=y_numeric)
        rows = found[0] if y else found
        rows = rows if others is not None else rows[:, :0]
        pairs = [own.encode(column) for own, column in zip(self.levels, values, strict=True)]
        codes, new = (np.stack(part, axis=1) for part in zip(*pairs, strict=True))
        columns = [
            np.column_stack([np.ones(len(rows)), rows[:, own] - centre])
            for own, centre in zip(self.columns.slopes, self.effects.centres, strict=True)
        ]
        return ((rows, found[1]) if y else rows), GroupRows(self.effects, codes, new, columns)


def fit_groups(estimator, X, rows):
    """Fit an estimator to a table X with group columns, and return it.

    `rows` is a dict with y, sample_weight and what else the estimator takes for each row, in the
    order of `_row_items`.
    """
    from ..groups.choose import sample_groups  # it has many kernels that only this function needs

    _refuse(estimator, X, rows)
    owner, fail = type(estimator).__name__, Parameters(estimator).fail
    columns = GroupColumns(X, estimator.group_effects, estimator.group_slopes, fail)
    others, values = columns.divided(X)
    _check_feature_names(estimator, X, reset=True)
    _check_n_features(estimator, X, reset=True)
    reader = clone(estimator).set_params(group_effects=None, group_scale=None, group_slopes=None)
    table = others if others is not None else np.zeros((len(values[0]), 1))
    table, y, weight = reader._read(table, *rows.values())
    values = _weighted(values, rows.get("sample_weight"), len(table))
    levels, codes = columns.learn(values, owner)
    plan = reader._first_plan(table, y, weight)
    if plan.model.n_linear > 1:
        raise ValueError(
            f"{owner}: group_effects is for responses of two classes, got {len(plan.classes)}."
        )
    _check_levels(levels, codes, first_label(y), plan.model, owner)
    request = estimator._request(len(table))
    problem, plan = _problem(estimator, reader, columns, (table, y, weight), codes, levels, plan)
    kept = request.n_draws if request.keep is None else request.keep
    n_effects = sum(L * width for L, width in zip(problem.sizes, problem.widths, strict=True))
    check_draw_store(request.n_chains, kept, n_effects, 4)
    request.names, request.parameters = [*plan.labels, *plan.scales], plan.parameters
    groups, found = Groups(columns, reader, levels), []

    def draw(progress):
        with request.timed("group effects"):
            found.append(sample_groups(problem, request, progress))
        return _outcome(problem, request, found[0]), [], {}

    vars(estimator).update({k: v for k, v in vars(reader).items() if k == "classes_"})
    if hasattr(reader, "_has_exposure"):
        estimator._has_exposure = reader._has_exposure
    estimator._forget(None, None)
    scales = [own[:1] for own in problem.scales] + [own[1:] for own in problem.scales]
    correlations = np.repeat(problem.scales[0][:1], plan.n_correlations, axis=0)
    prior = np.concatenate([problem.target.prior, *scales, correlations])
    centres = _centres(problem, plan)
    groups.effects = FittedEffects(
        levels, columns.slope_names, centres, _weights(problem), [], [], []
    )
    estimator._groups = groups
    estimator._conclude(draw, plan, prior, 1, X=X, y=first_label(y))
    effects, factors = groups.effects, estimator.posterior_["group_std"]
    effects.draws, effects.moments = found[0].effects, found[0].moments
    effects.factors = found[0].factors or [
        factors[..., k].reshape(-1, 1, 1) for k in range(problem.n_factors)
    ]
    return estimator


def _weighted(values, sample_weight, n_rows):
    """The group columns without the rows of weight zero, which the reader has left out."""
    if len(values[0]) == n_rows:
        return values
    kept = np.asarray(sample_weight, dtype=np.float64) > 0.0
    return [column[kept] for column in values]


def _weights(problem):
    """Total weight of the rows of each level: one array (n_levels,) for each column."""
    weight = problem.target.weight
    return [
        np.bincount(problem.codes[:, k], weight, problem.sizes[k]) for k in range(problem.n_factors)
    ]


def _problem(estimator, reader, columns, rows, codes, levels, plan):
    """The `GroupProblem` to sample, and the `GroupPlan` with the scales of the groups."""
    X, y, weight = rows
    only = len(columns.names) == estimator.n_features_in_  # whether there are no other columns
    centre = None if only else centre_of(reader, X, weight, REFUSED_FROM)
    if centre is not None:
        X = X - centre
    target = reader._target(X, y, weight, plan, estimator.n_jobs)
    if only:
        plan = replace(
            plan, coef_shape=(*plan.coef_shape[:-1], 0), labels=plan.labels[1:], centre=None
        )
        options = {"intercept": target.intercept, "n_jobs": target.n_jobs}
        labels, prior = target.labels(), target.prior[1:]
        target = Target(X[:, :0], labels, target.weight, plan.model, prior, **options)
    check_noise(target)
    if target.n_parameters == plan.model.n_extra:
        raise ValueError(
            f"{type(estimator).__name__}: without other columns group_effects needs an intercept. "
            "Use fit_intercept=True."
        )
    names = ("model", "coef_shape", "labels", "extras", "code", "classes")
    parts = {name: getattr(plan, name) for name in names}
    if not only:  # the numbers in the labels of columns are those of the whole table
        first = [f"coef[{name}]" for name in columns.others]
        parts["labels"] = first + plan.labels[len(first) :]
    parts |= _scale_names(columns)
    sizes = tuple(len(own.known) for own in levels)
    means, spreads = _moments(target, columns.slopes)
    if not target.intercept:
        _warn_of_far_slopes(columns, means, spreads)
        means = [np.zeros(len(own)) for own in means]
    centres = [
        np.where(_is_far(mean, spread), mean, 0.0)
        for mean, spread in zip(means, spreads, strict=True)
    ]
    scales = _scales(estimator, reader._units(target).response, sizes, spreads)
    problem = GroupProblem(target, codes, sizes, scales, columns.slopes, centres)
    return problem, GroupPlan(centre=centre, **parts)


def _centres(problem, plan):
    """For each column with groups, where the columns whose slopes vary have the effects of levels.

    They are in the unit and origin of X, from which `plan.centre` was subtracted before the fit.
    """
    if plan.centre is None:
        return problem.centres
    pairs = zip(problem.slopes, problem.centres, strict=True)
    return [own + plan.centre[places] for places, own in pairs]


def _scale_names(columns):
    """The fields of a `GroupPlan` on the standard deviations and correlations of effects."""
    names = [f"group_std[{name}]" for name in columns.names]
    slopes = [
        f"{group}:{slope}"
        for group, own in zip(columns.names, columns.slope_names, strict=True)
        for slope in own
    ]
    names += [f"group_slope_std[{slope}]" for slope in slopes]
    pairs = []
    for group, own in zip(columns.names, columns.slope_names, strict=True):
        all_ = [group, *(f"{group}:{slope}" for slope in own)]
        pairs += [f"{all_[i]}, {all_[j]}" for i in range(len(all_)) for j in range(i)]
    names += [f"group_correlation[{pair}]" for pair in pairs]
    numbers = {"n_slopes": len(slopes), "n_correlations": len(pairs)}
    return {"scales": tuple(names), "n_groups": len(columns.names)} | numbers


def _moments(target, slopes):
    """Means and standard deviations of the columns whose slopes vary, for each group column.

    They are 0 and 1 for constant columns.
    """
    if not any(slopes):
        return [np.empty(0) for _ in slopes], [np.empty(0) for _ in slopes]
    _, mean, variance = target.column_moments()
    varies = variance > 0.0
    mean, spread = np.where(varies, mean, 0.0), np.sqrt(np.where(varies, variance, 1.0))
    return [mean[own] for own in slopes], [spread[own] for own in slopes]


def _is_far(mean, spread):
    """Which columns with varying slopes are far from zero.

    There the effects of levels, if they were where the column is zero, would vary by the slopes
    times the mean of the column. Their prior, which has the scale of the response, would hold the
    slopes back, and effects and slopes of a level would be all but collinear.
    """
    return np.abs(mean) > FAR_SLOPES * spread


def _warn_of_far_slopes(columns, means, spreads):
    """`PriorConflictWarning` for columns far from zero where they cannot be centred.

    Without an intercept predictors are zero where all columns are zero.
    """
    for names, mean, spread in zip(columns.slope_names, means, spreads, strict=True):
        for j in np.flatnonzero(_is_far(mean, spread)):
            warnings.warn(
                f"The mean of the column {names[j]!r} of group_slopes is "
                f"{abs(mean[j]) / spread[j]:.3g} standard deviations from zero, where without an "
                "intercept the effects of levels are. Their prior, group_scale, may hold the "
                "slopes back. Use fit_intercept=True, or subtract the mean from the column.",
                PriorConflictWarning,
                stacklevel=2,
            )


def _scales(estimator, response, sizes, spreads):
    """For each column with groups the priors of the scales of effects: rows (1 + n_slopes, 5).

    `sizes` has the numbers of levels, with `ValueError` for a flat prior and too few of them. A
    scale that is "auto" is that of the response; of slopes it is that over the spread of the
    column, so that it does not depend on the unit of the column.
    """
    value, name = estimator.group_scale, "group_scale"
    asked = value if isinstance(value, (list, tuple)) else [value] * len(sizes)
    if len(asked) != len(sizes):
        Parameters(estimator).fail(name, f"one prior, or a list of {len(sizes)} of them")
    priors = [resolve_positive(HalfNormal() if p is None else p, name) for p in asked]
    tables = [
        np.concatenate(
            [prior._table((1,), name, Units(response=response / spread)) for spread in (1.0, *own)]
        )
        for prior, own in zip(priors, spreads, strict=True)
    ]
    for table, L in zip(tables, sizes, strict=True):
        if of_family(table[:1], PositiveFlat)[0] and L < LEAST_LEVELS:
            raise ValueError(
                f"Improper posterior: a flat prior of group_scale needs at least {LEAST_LEVELS} "
                f"levels, got {L}. Use a proper prior, such as HalfNormal()."
            )
    return tables


def _outcome(problem, request, found):
    """The `Outcome` of what the samplers of group effects have found."""
    draws, moments = found.draws, None
    if request.keep is not None:
        moments = RunningMoments(*draws.shape)
        moments.add(request.parameters(draws))
        draws = draws[:, found.kept]
    N = problem.target.n_rows
    chosen = chosen_without_steps(found.sampler, "none", N)
    chosen |= {"n_warmup": found.n_warmup, "step_size": found.step_size}
    chosen["thin"] = found.thin
    sizes = np.full(draws.shape[:2], float(N))
    return Outcome(
        draws, chosen, found.diagnostics, sizes, moments=moments, seconds=request.seconds,
        evidence=found.evidence,
    )  # fmt: skip


# -- what is refused --------------------------------------------------------------------------


def _refuse(estimator, X, rows):
    """Raise an error for data and parameters that do not go with group effects."""
    owner = type(estimator).__name__
    if hasattr(estimator, "n_predictors"):
        n = Parameters(estimator).integer("n_predictors", 1)
        if n > 1:
            Parameters(estimator).fail("group_effects", f"None with n_predictors={n}")
    if is_dask(X, *rows.values()):
        raise ValueError(f"{owner}: group_effects is not for data on a Dask cluster.")
    for name in OF_STEPS:
        value = getattr(estimator, name)
        if not (isinstance(value, str) and value == "auto"):
            raise ValueError(
                f"{owner}: {name}={value!r} does not go with group_effects, which has samplers of "
                f"its own. Leave {name} to 'auto'."
            )
    estimator._refuse_learned_scales("group_effects", "Leave group_effects out")
    if estimator.n_subposteriors != 1:
        raise ValueError(f"{owner}: group_effects does not go with n_subposteriors > 1.")
    if Parameters(estimator).flag("warm_start"):
        raise ValueError(
            f"{owner}: group_effects does not go with warm_start=True, because its samplers do not "
            "look for a mode of all effects."
        )


def _check_levels(levels, codes, y, model, owner):
    """Errors and warnings for a group column with one level, one row a level, or equal to y."""
    for own, code in zip(levels, codes.T, strict=True):
        L, which = len(own.known), f"{owner}: the group column {own.name!r}"
        if L == 1:
            raise ValueError(
                f"{which} has a single level, {own.known.tolist()[0]!r}, whose effect is that of "
                "the intercept. Leave the column out."
            )
        if _is_response(code, y, L):
            raise ValueError(
                f"{which} is the response under other names: all rows of a level have the same y, "
                "and no two levels have the same. Leave the column out."
            )
        if L == len(code):
            _check_levels_of_one_row(which, model)


def _is_response(code, y, n_levels):
    """Whether levels and values of y determine each other, and some level has several rows.

    Some rows are compared first, since all may be many.
    """
    some = slice(0, LOOKED_AT)
    return n_levels < len(y) and _is_one_to_one(code[some], y[some]) and _is_one_to_one(code, y)


def _is_one_to_one(code, y):
    """Whether each level has one value of y, and each value one level."""
    levels, code = np.unique(code, return_inverse=True)
    values, own = np.unique(y, return_inverse=True)
    partner = np.empty(len(levels), dtype=int)
    partner[code] = own
    return len(levels) == len(values) and bool((partner[code] == own).all())


def _check_levels_of_one_row(which, model):
    """`ValueError` or a warning for a column each level of which has a single row."""
    said = f"{which} has a level of its own in every row"
    if isinstance(model, (Linear, Robust)):
        raise ValueError(
            f"{said}: its effects cannot be told from the noise. Leave the column out; or, if the "
            "variances of the rows are known, use BayesianLinearRegression(noise=1.0) with their "
            "inverses as sample_weight."
        )
    if isinstance(model, (Logistic, NegativeBinomial)):
        warnings.warn(
            f"{said}: the prior alone determines the scale of its effects.",
            UserWarning,
            stacklevel=4,
        )
