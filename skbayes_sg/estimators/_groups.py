"""Fits and predictions of tables with group effects, for all estimators with one predictor.

The columns with groups are taken out before the others are read. A copy of the estimator without
groups, the *reader*, treats the numeric columns and the response: it checks them, and says what the
model and its parameters are (`_group_problem`; what is refused, `_group_checks`).
"""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names, _check_n_features

from .._base.validation import Parameters, check_data
from ..groups.columns import GroupColumns
from ..groups.effects import FittedEffects
from ..groups.rows import GroupRows
from ..posterior.moments import RunningMoments
from ..recipe.request import Outcome, chosen_without_steps
from ._group_checks import check_levels, check_parameters, dense, warn_of_indicators
from ._group_problem import GroupTable, group_problem, places_of_effects, prior_of_all
from ._shards import first_label
from ._store import check_draw_store

__all__ = ["Groups", "fit_groups"]


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
        rows = dense(found[0] if y else found)
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

    check_parameters(estimator, X, rows)
    table = _read(estimator, X, rows)
    request = estimator._request(len(table.X))
    problem, plan = group_problem(estimator, table)
    _check_store(request, problem)
    request.names, request.parameters = [*plan.labels, *plan.scales], plan.parameters
    found = []

    def draw(progress):
        with request.timed("group effects"):
            found.append(sample_groups(problem, request, progress))
        return _outcome(len(table.X), request, found[0]), [], {}

    _begin(estimator, table, problem, plan)
    prior = prior_of_all(problem, plan)
    estimator._conclude(draw, plan, prior, 1, X=X, y=first_label(table.y))
    effects, scales = estimator._groups.effects, estimator.posterior_["group_std"]
    effects.draws, effects.moments = found[0].effects, found[0].moments
    effects.factors = found[0].factors or [
        scales[..., k].reshape(-1, 1, 1) for k in range(problem.n_factors)
    ]
    return estimator


def _read(estimator, X, rows):
    """The `GroupTable` of a table X and of the dict `rows` of `fit_groups`, checked."""
    owner, fail = type(estimator).__name__, Parameters(estimator).fail
    columns = GroupColumns(X, estimator.group_effects, estimator.group_slopes, fail)
    others, values = columns.divided(X)
    _check_feature_names(estimator, X, reset=True)
    _check_n_features(estimator, X, reset=True)
    reader = clone(estimator).set_params(group_effects=None, group_scale=None, group_slopes=None)
    others = others if others is not None else np.zeros((len(values[0]), 1))
    others, y, weight = reader._read(others, *rows.values())
    values = _weighted(values, rows.get("sample_weight"), len(others))
    levels, codes = columns.learn(values, owner)
    plan = reader._first_plan(others, y, weight)
    if plan.model.n_linear > 1:
        raise ValueError(
            f"{owner}: group_effects is for responses of two classes, got {len(plan.classes)}."
        )
    check_levels(levels, codes, first_label(y), plan.model, owner)
    warn_of_indicators(levels, codes, others)
    return GroupTable(columns, reader, others, y, weight, levels, codes, plan)


def _weighted(values, sample_weight, n_rows):
    """The group columns without the rows of weight zero, which the reader has left out."""
    if len(values[0]) == n_rows:
        return values
    kept = np.asarray(sample_weight, dtype=np.float64) > 0.0
    return [column[kept] for column in values]


def _check_store(request, problem):
    """`DrawStoreWarning`, or an error, if the kept draws of all effects are many."""
    kept = request.n_draws if request.keep is None else request.keep
    n_effects = sum(L * width for L, width in zip(problem.sizes, problem.widths, strict=True))
    check_draw_store(request.n_chains, kept, n_effects, 4)


def _begin(estimator, table, problem, plan):
    """Give an estimator the attributes that it has before draws are made."""
    reader = table.reader
    vars(estimator).update({k: v for k, v in vars(reader).items() if k == "classes_"})
    if hasattr(reader, "_has_exposure"):
        estimator._has_exposure = reader._has_exposure
    estimator._forget(None, None)
    groups = Groups(table.columns, reader, table.levels)
    centres, names = places_of_effects(problem, plan), table.columns.slope_names
    groups.effects = FittedEffects(table.levels, names, centres, _weights(problem), [], [], [])
    estimator._groups = groups


def _weights(problem):
    """Total weight of the rows of each level: one array (n_levels,) for each column."""
    weight = problem.target.weight
    return [
        np.bincount(problem.codes[:, k], weight, problem.sizes[k]) for k in range(problem.n_factors)
    ]


def _outcome(n_rows, request, found):
    """The `Outcome` of what the samplers of group effects have found, for a table of `n_rows`."""
    draws, moments = found.draws, None
    if request.keep is not None:
        moments = RunningMoments(*draws.shape)
        moments.add(request.parameters(draws))
        draws = draws[:, found.kept]
    chosen = chosen_without_steps(found.sampler, "none", n_rows)
    chosen |= {"n_warmup": found.n_warmup, "step_size": found.step_size}
    chosen["thin"] = found.thin
    sizes = np.full(draws.shape[:2], float(n_rows))
    return Outcome(
        draws, chosen, found.diagnostics, sizes, moments=moments, seconds=request.seconds,
        evidence=found.evidence,
    )  # fmt: skip
