"""The models of the demonstration: a pipeline, a grid search, and a point estimate."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._base.names import told_apart
from ..estimators import BayesianLogisticRegression
from ..exceptions import SamplerDivergedError
from ..metrics import neg_log_predictive_density_scorer
from ..posterior import Posterior
from ..priors import Normal

__all__ = ["Fits", "fit_all", "named_posterior", "new_pipeline", "new_preparation", "renamed"]

SEARCH_SHARE = 0.25  # draws of each fit of the grid search, as a share of those of the final fit


@dataclass
class Fits:
    """The search, the posterior for the best parameters, and a search for point estimates."""

    search: Any
    bayes: Any
    point: Any


def new_pipeline(table, n_draws, seed):
    """A pipeline of the preparation that the table needs, and the Bayesian classifier."""
    classifier = BayesianLogisticRegression(
        prior=Normal(), n_draws=n_draws, random_state=seed, n_jobs=-1
    )
    return Pipeline([("prepare", new_preparation(table)), ("clf", classifier)])


def new_preparation(table):
    """A transformer with scaling, and with imputation and encoding if the table needs them."""
    numeric = StandardScaler()
    if np.isnan(table.X[:, ~table.is_text].astype(float)).any():
        numeric = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), numeric)
    if not table.is_text.any():
        return numeric
    levels = {"max_categories": 20, "handle_unknown": "infrequent_if_exist", "drop": "if_binary"}
    names = {"feature_name_combiner": _name_of_level}
    categorical = OneHotEncoder(**levels, **names, sparse_output=False)
    parts = [
        ("numbers", numeric, np.flatnonzero(~table.is_text)),
        ("categories", categorical, np.flatnonzero(table.is_text)),
    ]
    return ColumnTransformer(parts, verbose_feature_names_out=False)


def _name_of_level(name, level):
    """The name of the column for a level of a text column, such as ``colour=red``."""
    return f"{name}={'(rare)' if level == 'infrequent_sklearn' else level}"


def fit_all(table, X, y, args):
    """The `Fits`: a search for the prior's scale, the posterior for it, and point estimates.

    The point estimates come from a search over penalties that correspond to the same priors.
    """
    folds = StratifiedKFold(args.folds, shuffle=True, random_state=args.seed)
    options = {"scoring": neg_log_predictive_density_scorer, "cv": folds}
    few = max(10, int(SEARCH_SHARE * args.draws))
    pipeline = new_pipeline(table, few, args.seed)
    grid = {"clf__step_size": args.step_sizes, "clf__prior__scale": args.prior_scales}
    search = searched(GridSearchCV(pipeline, grid, refit=False, **options), X, y)
    bayes = clone(pipeline).set_params(
        clf__prior__scale=search.best_params_["clf__prior__scale"], clf__n_draws=args.draws
    )
    point = GridSearchCV(
        Pipeline(
            [("prepare", new_preparation(table)), ("clf", LogisticRegression(max_iter=10_000))]
        ),
        {"clf__C": [scale**2 for scale in args.prior_scales]},
        **options,
    )
    return Fits(search, bayes.fit(X, y), point.fit(X, y))


def searched(search, X, y):
    """The fitted search; `SamplerDivergedError` if each of its models has a fit that diverged.

    Scikit-learn marks a model of which a fit ends in an error by the score NaN, and raises a
    `ValueError` with all tracebacks if no fit succeeds. The first error is raised instead.
    """
    try:
        search.fit(X, y)
    except ValueError:
        return _first_error(search, X, y)
    if np.isnan(search.cv_results_["mean_test_score"]).all():
        return _first_error(search, X, y)
    return search


def _first_error(search, X, y):
    """Search once more, up to the error of the first fit that does not succeed."""
    try:
        return clone(search).set_params(error_score="raise").fit(X, y)
    except SamplerDivergedError as error:
        steps = " ".join(map(str, search.param_grid["clf__step_size"]))
        raise SamplerDivergedError(
            f"--step-sizes {steps}: for each prior and step size, a fit of the grid search "
            f"diverged; the first one: {error}"
        ) from error


def named_posterior(bayes, table):
    """The posterior of a pipeline's classifier, with parameters named after the features."""
    names = bayes[:-1].get_feature_names_out(table.names)
    classifier = bayes[-1]
    posterior, classes = classifier.posterior_, classifier.classes_
    if len(classes) == 2:
        labels = [*names, "intercept"]
    else:
        labels = [f"{label}: {name}" for label in classes for name in names]
        labels += [f"{label}: intercept" for label in classes]
    return renamed(posterior, labels)


def renamed(posterior, labels):
    """A posterior of the same draws, weights and evidence, with other labels."""
    known = {"weights": posterior.weights, "evidence": posterior.evidence}
    labels = told_apart(labels)  # a column may be called "intercept"
    return Posterior(posterior.flat, posterior.shapes, labels, posterior.origin, **known)
