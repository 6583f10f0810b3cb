"""From a table with group columns to the `GroupProblem` that is sampled, and its `GroupPlan`.

The effects of a level are where the columns whose slopes vary with it are zero. Columns far from
zero, such as years, are centred where they multiply these slopes: if the effects were at zero, they
would vary by the slopes times the mean of the column. Their prior, which has the scale of the
response, would hold the slopes back, and effects and slopes of a level would be all but collinear.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.names import told_apart
from .._base.validation import Parameters
from ..engine.target import Target
from ..exceptions import PriorConflictWarning
from ..groups.problem import GroupProblem
from ..priors import HalfNormal, Units
from ..priors.families import of_family, resolve_positive
from ..priors.flat import PositiveFlat
from ..recipe.choose import check_noise
from ._centring import REFUSED_FROM, centre_of
from ._shards import Plan

__all__ = ["GroupPlan", "GroupTable", "group_problem", "places_of_effects", "prior_of_all"]

# Columns whose slopes vary are centred if their means are more than so many standard deviations
# from zero.
FAR_SLOPES = 3.0
LEAST_LEVELS = 4  # fewest levels with which a flat prior of their scale has a proper posterior


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


@dataclass
class GroupTable:
    """A table with group columns as it was read.

    Parameters
    ----------
    columns : GroupColumns
    reader : estimator
        A copy of the estimator without groups, which has read the other columns.
    X : array of shape (n_rows, n_others)
        The other columns; a single column if there are none.
    y : array, or tuple of arrays
    weight : ndarray of shape (n_rows,)
    levels : list of Levels
        The levels of each column with groups.
    codes : ndarray of shape (n_rows, n_groups)
        The level of each row.
    plan : Plan
        That of the reader.
    """

    columns: Any
    reader: Any
    X: Any
    y: Any
    weight: Any
    levels: list
    codes: Any
    plan: Any


def group_problem(estimator, table):
    """The `GroupProblem` to sample, and the `GroupPlan` with the scales of the groups."""
    columns, plan = table.columns, table.plan
    only = len(columns.names) == estimator.n_features_in_  # whether there are no other columns
    centre = None if only else centre_of(table.reader, table.X, table.weight, REFUSED_FROM)
    X = table.X if centre is None else table.X - centre
    target = table.reader._target(X, table.y, table.weight, plan, estimator.n_jobs)
    if only:
        target, plan = _without_columns(target, plan)
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
    sizes = tuple(len(own.known) for own in table.levels)
    means, spreads = _moments(target, columns.slopes)
    centres = _centres(target, columns, means, spreads)
    scales = _scales(estimator, table.reader._units(target).response, sizes, spreads)
    problem = GroupProblem(target, table.codes, sizes, scales, columns.slopes, centres)
    return problem.merged(), GroupPlan(centre=centre, **parts, **_scale_names(columns))


def _without_columns(target, plan):
    """The target and the plan without the column that stands for no columns at all."""
    labels, options = target.labels(), {"intercept": target.intercept, "n_jobs": target.n_jobs}
    target = Target(target.X[:, :0], labels, target.weight, plan.model, target.prior[1:], **options)
    shape = (*plan.coef_shape[:-1], 0)
    return target, replace(plan, coef_shape=shape, labels=plan.labels[1:], centre=None)


def _centres(target, columns, means, spreads):
    """For each column with groups, what is subtracted from the columns whose slopes vary.

    It is the mean of a column far from zero, and zero for others. Without an intercept predictors
    are zero where all columns are zero, and so are the effects: `PriorConflictWarning` if a column
    is far from there.
    """
    found = []
    for k, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
        far = np.abs(mean) > FAR_SLOPES * spread
        if not target.intercept:
            for j in np.flatnonzero(far):
                _warn_of_far_slopes(columns.slope_names[k][j], abs(mean[j]) / spread[j])
            far[:] = False
        found.append(np.where(far, mean, 0.0))
    return found


def _warn_of_far_slopes(name, ratio):
    """`PriorConflictWarning` for a column that is far from zero and cannot be centred."""
    warnings.warn(
        f"The mean of the column {name!r} of group_slopes is {ratio:.3g} standard deviations from "
        "zero, where without an intercept the effects of levels are. Their prior, group_scale, may "
        "hold the slopes back. Use fit_intercept=True, or subtract the mean from the column.",
        PriorConflictWarning,
        stacklevel=2,
    )


def places_of_effects(problem, plan):
    """For each column with groups, where the columns whose slopes vary have the effects of levels.

    They are in the unit and origin of X, from which `plan.centre` was subtracted before the fit.
    """
    if plan.centre is None:
        return problem.centres
    pairs = zip(problem.slopes, problem.centres, strict=True)
    return [own + plan.centre[places] for places, own in pairs]


def prior_of_all(problem, plan):
    """The table of the priors of all parameters, those of scales and correlations included.

    A correlation has no row of its own, and that of the first scale stands in its place.
    """
    scales = [own[:1] for own in problem.scales] + [own[1:] for own in problem.scales]
    correlations = np.repeat(problem.scales[0][:1], plan.n_correlations, axis=0)
    return np.concatenate([problem.target.prior, *scales, correlations])


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
    scales = tuple(told_apart(names))  # "a:b" may be a column, and the slope of b
    return {"scales": scales, "n_groups": len(columns.names)} | numbers


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
