"""Parameters of components, reached through estimators whose components are names."""

import re
import warnings

import numpy as np
import pytest
from problems import binary, quick
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.dynamics import BAOAB
from skbayes_sg.exceptions import UnusedParameterWarning
from skbayes_sg.priors import Gamma, HalfNormal, HalfStudentT, Laplace, Normal, StudentT


def test_a_grid_over_the_scale_of_the_default_prior():
    pipe = make_pipeline(StandardScaler(), quick())
    grid = {"bayesianlogisticregression__prior__scale": [0.01, 1.0]}
    search = GridSearchCV(pipe, grid, cv=2, scoring="neg_log_loss").fit(*binary())
    assert search.best_params_["bayesianlogisticregression__prior__scale"] == 1.0
    best = search.best_estimator_[-1]
    assert isinstance(best.prior, Normal)
    assert best.prior.scale == 1.0
    assert pipe[-1].prior == "normal"  # searches clone


@pytest.mark.parametrize(
    "kind",
    [
        BayesianLinearRegression,
        pytest.param(BayesianRobustRegression, marks=pytest.mark.slow),
        BayesianPoissonRegressor,
    ],
)
def test_the_object_of_a_name_is_the_same_prior(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.poisson(3.0, size=60)
    options = {"n_draws": 50, "n_chains": 2, "random_state": 0}
    named = kind(prior="laplace", **options)
    made = clone(named).set_params(prior__loc=0.0)
    assert isinstance(made.prior, Laplace)
    assert made.prior.scale == "auto"
    assert np.array_equal(named.fit(X, y).posterior_.flat, made.fit(X, y).posterior_.flat)


def test_names_and_parameters_together():
    model = BayesianLogisticRegression().set_params(prior="student_t", prior__df=7.0)
    assert isinstance(model.prior, StudentT)
    assert (model.prior.df, model.prior.scale) == (7.0, 1.0)
    model.set_params(intercept_prior__scale=3.0, sampler="baoab", sampler__friction=2.0)
    assert model.intercept_prior.scale == 3.0
    assert BayesianLogisticRegression._default_priors["intercept_prior"].scale == 10.0
    assert isinstance(model.sampler, BAOAB)
    assert model.sampler.friction == 2.0
    for given in (None, "half_normal", HalfNormal(scale=1.0)):
        grouped = BayesianLogisticRegression(group_scale=given).set_params(group_scale__scale=2.0)
        assert repr(grouped.group_scale) == "HalfNormal(scale=2.0)"
    robust = BayesianRobustRegression().set_params(noise_prior__df=5.0, df_prior__rate=0.2)
    assert isinstance(robust.noise_prior, HalfStudentT)
    assert isinstance(robust.df_prior, Gamma)
    assert robust.df_prior.rate == 0.2
    kept = Normal(scale=3.0)
    assert BayesianLogisticRegression(prior=kept).set_params(prior__loc=1.0).prior is kept


def test_parameters_that_cannot_be_set():
    model = BayesianLogisticRegression()
    with pytest.raises(ValueError, match="names none"):
        model.set_params(sampler__friction=2.0)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(prior__width=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour__scale=2.0)
    with pytest.raises(ValueError, match="must be one of"):
        model.set_params(prior="norml", prior__scale=2.0)


@pytest.mark.parametrize("family", [Normal, Laplace, StudentT, HalfStudentT])
def test_a_number_alone_says_not_what_it_is(family):
    with pytest.raises(TypeError, match="positional"):
        family(2.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"noise": 1.0, "noise_prior": HalfNormal(0.5)},
            r"noise_prior=.* with noise=1.0: .*'infer'",
        ),
        ({"noise": 1.0}, None),
        ({"noise_prior": HalfNormal(0.5)}, None),
        ({"fit_intercept": False, "intercept_prior": Normal()}, "^intercept_prior=.*fit_intercept"),
        ({"fit_intercept": False}, None),
        ({"combine": "weierstrass"}, "^combine='weierstrass' has no effect with n_subposteriors=1"),
        ({"combine": "".join(["con", "sensus"])}, None),  # equal, and another object
    ],
)
def test_parameters_without_a_meaning_are_told(options, said):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BayesianLinearRegression(n_draws=20, random_state=0, **options).fit(X, X[:, 0] + X[:, 1])
    found = [str(w.message) for w in caught if w.category is UnusedParameterWarning]
    assert len(found) == (said is not None)
    assert said is None or re.search(said, found[0])


def test_shards_have_a_use_for_combine():
    X = np.random.default_rng(0).normal(size=(60, 2))
    shards = [(X[:30], X[:30, 0]), (X[30:], X[30:, 0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedParameterWarning)
        BayesianLinearRegression(combine="parametric", n_draws=50, random_state=0).fit_shards(
            shards
        )
