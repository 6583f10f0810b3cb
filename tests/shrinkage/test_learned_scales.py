"""Fits with learned scales: laws by quadrature, degenerate priors, forms of X, what is refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.exceptions import (
    InvalidParameterError,
    LongRunWarning,
    SamplerConvergenceWarning,
)
from skbayes_sg.inspection.full_scores import full_scores
from skbayes_sg.model_selection import loo
from skbayes_sg.priors import (
    Flat,
    Gamma,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Laplace,
    Normal,
    StudentT,
)
from skbayes_sg.shrinkage import choose

Z = 5.0  # standard errors
LEARNED = Normal(scale=HalfCauchy(1.0))
ESTIMATORS = {
    "linear": BayesianLinearRegression,
    "robust": BayesianRobustRegression,
    "logistic": BayesianLogisticRegression,
    "softmax": BayesianLogisticRegression,
    "poisson": BayesianPoissonRegressor,
    "negative_binomial": BayesianNegativeBinomialRegressor,
}


def rows(kind, n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    eta = X @ np.linspace(-0.8, 0.8, d) + 0.3
    if kind in ("linear", "robust"):
        return X, eta + 0.7 * rng.normal(size=n)
    if kind == "logistic":
        return X, (rng.random(n) < expit(eta)).astype(int)
    if kind == "softmax":
        return X, np.array(list("abc"))[np.digitize(eta + rng.logistic(size=n), [-0.5, 0.8])]
    mean = np.exp(eta) * (rng.gamma(2.0, 0.5, n) if kind == "negative_binomial" else 1.0)
    return X, rng.poisson(mean)


def fitted(kind, prior, X, y, **options):
    return ESTIMATORS[kind](prior=prior, random_state=0, **options).fit(X, y)


def assert_same_means(one, other, sd, ess, z=Z):
    """Means of draws of so many effective ones each."""
    assert (np.abs(one - other) < z * np.maximum(sd, 1e-12) * np.sqrt(2.0 / ess)).all()


def concentrated(scale):
    return Gamma(shape=4e6, rate=4e6 / scale)  # relative sd 5e-4


@pytest.mark.slow_for("robust", "softmax", "negative_binomial")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_prior_concentrated_at_a_scale_gives_the_posterior_of_that_scale(kind):
    X, y = rows(kind)
    learned, fixed = (fitted(kind, Normal(scale=scale), X, y) for scale in (concentrated(0.3), 0.3))
    ess = min(learned.diagnostics_["min_ess"], fixed.diagnostics_["min_ess"])
    assert ess > 1500
    one, other = learned.posterior_["coef"], fixed.posterior_["coef"]
    sd = other.std(axis=(0, 1))
    assert_same_means(one.mean(axis=(0, 1)), other.mean(axis=(0, 1)), sd, ess)
    assert (np.abs(one.std(axis=(0, 1)) / sd - 1.0) < Z / np.sqrt(ess)).all()
    np.testing.assert_allclose(learned.prior_scale_, 0.3, rtol=1e-3)


@pytest.mark.parametrize("kind", [pytest.param("linear", marks=pytest.mark.slow), "logistic"])
def test_concentrated_scales_of_blocks_are_scales_of_columns(kind):
    X, y = rows(kind)
    shrunk = np.concatenate([X[:, :2] * 0.1, X[:, 2:]], axis=1)
    learned = fitted(kind, Normal(scale=concentrated(0.3), scale_groups=[0, 0, 1, 1]), shrunk, y)
    fixed = fitted(kind, Normal(scale=0.3), shrunk, y)
    ess = min(learned.diagnostics_["min_ess"], fixed.diagnostics_["min_ess"])
    assert_same_means(learned.coef_, fixed.coef_, fixed.coef_std_, ess)


def law_of_one_column(x, y, log_prior, loss):
    """(t, p, means, squares): p on a grid of log τ, and E(β | τ), E(β² | τ), by a grid in β."""
    t, beta = np.linspace(-12.0, 7.0, 400), np.linspace(-9.0, 9.0, 4001)
    log_likelihood = -loss(np.multiply.outer(beta, x), y).sum(axis=1)
    # β on the grid, and the part of the prior beyond the reach of the grid by its own integral
    log_p = log_likelihood - 0.5 * (beta / np.exp(t)[:, None]) ** 2 - t[:, None]
    narrow = np.exp(t) < 4.0 * (beta[1] - beta[0])  # the grid is too coarse: β is about 0
    at_zero = log_likelihood[len(beta) // 2] + 0.5 * np.log(2.0 * np.pi) - np.log(beta[1] - beta[0])
    top = log_p.max()
    p = np.exp(log_p - top)
    mass = np.where(narrow, np.exp(at_zero - top), p.sum(axis=1))
    mean = np.where(narrow, 0.0, p @ beta / np.maximum(p.sum(axis=1), 1e-300))
    square = np.where(narrow, np.exp(2 * t), p @ beta**2 / np.maximum(p.sum(axis=1), 1e-300))
    weight = mass * np.exp(log_prior(np.exp(t)) + t)
    return t, weight / weight.sum(), mean, square


LOSSES = {
    "logistic": lambda eta, y: np.logaddexp(0.0, eta) - y * eta,
    "poisson": lambda eta, y: np.exp(eta) - y * eta,
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("effect", [0.0, 1.2])
def test_one_column_has_the_law_of_a_grid(kind, effect):
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    eta = effect * x
    y = rng.random(40) < expit(eta) if kind == "logistic" else rng.poisson(np.exp(eta))
    model = fitted(
        kind, Normal(scale=HalfNormal(1.0)), x[:, None], y, fit_intercept=False, n_draws=5000
    )
    t, p, mean, square = law_of_one_column(x, y.astype(float), stats.halfnorm.logpdf, LOSSES[kind])
    ess = model.diagnostics_["min_ess"]
    assert ess > 5000
    tau, beta = model.posterior_["prior_scale"], model.posterior_["coef"]
    for draws, first, second in [
        (np.log(tau), p @ t, p @ t**2),
        (tau, p @ np.exp(t), p @ np.exp(2.0 * t)),
        (beta, p @ mean, p @ square),
    ]:
        sd = np.sqrt(second - first**2)
        assert abs(draws.mean() - first) < Z * sd / np.sqrt(ess)
        kurtosis = np.mean(((draws - first) / sd) ** 4)
        assert abs(draws.var() / sd**2 - 1.0) < Z * np.sqrt((kurtosis - 1.0) / ess)


@pytest.mark.parametrize("kind", ["linear", pytest.param("poisson", marks=pytest.mark.slow)])
def test_rows_of_weight_two_are_rows_twice_and_forms_of_X_do_not_matter(kind):
    X, y = rows(kind, 60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), weight)
    model = ESTIMATORS[kind](prior=LEARNED, random_state=0, n_draws=200)
    one = clone(model).fit(X, y, sample_weight=weight).posterior_.flat
    np.testing.assert_allclose(one, clone(model).fit(X[repeated], y[repeated]).posterior_.flat)
    table = sparse.csr_array(X)
    np.testing.assert_allclose(one, model.fit(table, y, sample_weight=weight).posterior_.flat)


@pytest.mark.parametrize("kind", ["linear", pytest.param("poisson", marks=pytest.mark.slow)])
def test_the_span_of_the_rows_has_the_same_posterior(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 310))
    y = rng.poisson(np.exp(0.05 * X.sum(axis=1)))
    prior = Normal(scale=HalfNormal(0.1))
    spanned = fitted(kind, prior, X, y)
    whole = fitted(kind, prior, X, y, keep=999)  # which is not for the span
    assert "span of the rows" in spanned.seconds_
    assert "span of the rows" not in whole.seconds_
    ess = min(model.diagnostics_["min_ess"] for model in (spanned, whole))
    assert ess > 400
    sd = whole.coef_std_
    assert_same_means(spanned.coef_, whole.coef_, sd, ess)
    taus = [np.log(model.posterior_["prior_scale"]) for model in (spanned, whole)]
    assert_same_means(taus[0].mean(), taus[1].mean(), taus[0].std(), ess)
    assert abs(np.log(taus[0].std() / taus[1].std())) < Z * np.sqrt(2.0 / ess)
    assert abs(np.log(spanned.coef_std_ / sd).mean()) < Z / np.sqrt(ess)


def test_columns_in_other_units_have_the_same_posterior_in_automatic_units():
    X, y = rows("linear", 60)
    units = np.array([1.0, 1e6, 1e-3, 20.0])
    one, other = (fitted("linear", Normal(scale=HalfCauchy()), A, y) for A in (X, X * units))
    np.testing.assert_allclose(one.coef_, other.coef_ * units, rtol=1e-6)
    np.testing.assert_allclose(one.prior_scale_, other.prior_scale_, rtol=1e-6)


@pytest.mark.slow
def test_what_a_fit_leaves_behind():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    groups = {"person": ["age", "sex"], "blood": list(X.columns[2:])}
    prior = Normal(scale=HalfCauchy(), scale_groups=groups)
    model = BayesianLinearRegression(prior=prior, random_state=0, n_draws=200).fit(X, y)
    posterior = model.posterior_
    assert posterior.names == ("coef", "intercept", "noise_std", "prior_scale")
    assert posterior.labels[-2:] == ("prior_scale[person]", "prior_scale[blood]")
    assert posterior["prior_scale"].shape == (4, 200, 2)
    assert model.prior_scale_.shape == (2,)
    assert posterior.summary()["ess_bulk"].shape == (14,)
    assert bool(posterior.check())
    np.testing.assert_array_equal(clone(model).fit(X, y).posterior_.flat, posterior.flat)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert loo(model, X, y).n_high_k == 0
    pytest.importorskip("arviz_base")
    assert posterior.to_arviz().posterior["prior_scale"].shape == (4, 200, 2)


@pytest.mark.slow
def test_three_classes():
    X, y = rows("softmax")
    posterior = fitted("softmax", LEARNED, X, y, n_draws=300).posterior_
    assert posterior["coef"].shape == (4, 300, 3, 4)
    np.testing.assert_allclose(posterior["coef"].sum(axis=2), 0.0, atol=1e-12)
    assert posterior.labels[-1] == "prior_scale"
    assert (posterior["prior_scale"] > 0.0).all()
    own = posterior["coef"][..., 1, :] - posterior["coef"][..., 0, :]
    np.testing.assert_allclose(posterior.contrast("b", "a")["coef"][..., 0, :], own, atol=1e-12)


def test_parameters_of_scales_can_be_set_and_searched():
    model = BayesianLogisticRegression().set_params(prior__scale=HalfNormal(1.0))
    assert isinstance(model.prior.scale, HalfNormal)
    assert model.get_params()["prior__scale__scale"] == 1.0
    assert model.set_params(prior__scale__scale=2.0).prior.scale.scale == 2.0


@pytest.mark.parametrize("keep", ["moments", 10])
def test_draws_that_are_not_kept_are_in_the_moments(keep):
    X, y = rows("linear")
    model = fitted("linear", LEARNED, X, y, keep=keep)
    whole = fitted("linear", LEARNED, X, y)
    np.testing.assert_allclose(model.prior_scale_, whole.prior_scale_)
    assert model.posterior_.n_draws == (0 if keep == "moments" else 10)


REFUSED = {
    "sampler": {"sampler": "hmc"},
    "batch_size": {"batch_size": 10},
    "preconditioner": {"preconditioner": "diagonal"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_a_sampler_of_its_own_is_refused(name):
    X, y = rows("logistic")
    with pytest.raises(ValueError, match=f"chooses its own sampler: leave.*{name}"):
        fitted("logistic", LEARNED, X, y, **REFUSED[name])


def test_what_needs_fixed_scales_is_refused():
    X, y = rows("linear")
    model = BayesianLinearRegression(prior=LEARNED, random_state=0, n_draws=50)
    with pytest.raises(InvalidParameterError, match="n_subposteriors=2 needs a prior of fixed"):
        clone(model).set_params(n_subposteriors=2).fit(X, y)
    with pytest.raises(InvalidParameterError, match="a fit of shards needs"):
        model.fit_shards([(X, y), (X, y)])
    with pytest.raises(AttributeError, match=r"partial_fit.* fixed scales.*Normal\(scale=1.0\)"):
        model.partial_fit(X, y)
    model.fit(X, y)
    for work in (
        lambda: full_scores(model, X, y),
        lambda: model.expect(lambda p: p["coef"], atol=0.1, X=X, y=y),
    ):
        with pytest.raises(InvalidParameterError, match="fixed scales"):
            work()


WRONG = {
    "laplace": (Laplace(scale=HalfCauchy(1.0)), "only of coefficients under a normal prior"),
    "student_t": (StudentT(scale=HalfCauchy(1.0)), "only of coefficients under a normal prior"),
    "flat": (Normal(scale=Flat()), "a proper prior of a positive number"),
    "fixed": (Normal(scale=1.0, scale_groups="columns"), "but its scale is fixed"),
    "negative": (
        Normal(scale=HalfCauchy(-1.0)),
        r"scale of prior__scale=HalfCauchy\(scale=-1.0\) must be a positive finite number, got -1",
    ),
    "number": (Normal(scale=HalfCauchy(1.0), scale_groups=3), "got 3"),
    "word": (Normal(scale=HalfCauchy(1.0), scale_groups="rows"), "got 'rows'"),
    "labels": (Normal(scale=HalfCauchy(1.0), scale_groups=[0, 1]), "2 labels for 4 columns"),
    "twice": (Normal(scale=HalfCauchy(1.0), scale_groups=[[0, 1], [1, 2, 3]]), "in two blocks"),
    "missing": (Normal(scale=HalfCauchy(1.0), scale_groups=[[0, 1]]), "'x2' is in no block"),
    "unknown": (Normal(scale=HalfCauchy(1.0), scale_groups={"a": ["b"]}), "no column 'b'"),
    "empty": (Normal(scale=HalfCauchy(1.0), scale_groups=[[], [0, 1, 2, 3]]), r"block 0 is \[\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_priors_that_make_no_sense_are_refused(name):
    prior, message = WRONG[name]
    with pytest.raises(InvalidParameterError, match=message):
        BayesianLogisticRegression(prior=prior).fit(*rows("logistic"))


def test_the_intercept_has_a_prior_of_fixed_scale():
    model = BayesianLogisticRegression(intercept_prior=LEARNED)
    with pytest.raises(InvalidParameterError, match=r"intercept_prior=Normal\(scale=HalfCauchy"):
        model.fit(*rows("logistic"))


def separable_by_quadrature(x, y, side=1200):
    """Grids of log τ and β/τ, and the shares of the posterior of one column without intercept."""
    s, b = np.linspace(-6.0, 14.0, side), np.linspace(-9.0, 9.0, side)
    eta = np.multiply.outer(np.multiply.outer(np.exp(s), b), x * (2.0 * y - 1.0))
    log_p = -np.logaddexp(0.0, -eta).sum(axis=-1) - 0.5 * b**2
    log_p += (s - np.logaddexp(0.0, 2.0 * s))[:, None]  # half Cauchy in τ
    p = np.exp(log_p - log_p.max())
    return s, b, p / p.sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_tail_of_a_scale_where_a_column_separates_the_classes(seed):
    """Quantiles of log τ and of log β, whose tails are heavy, against quadrature."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=12)
    y = (x > 0.0).astype(int)
    model = fitted("logistic", LEARNED, x[:, None], y, fit_intercept=False)
    s, b, p = separable_by_quadrature(x, y)
    ess = model.diagnostics_["min_ess"]
    assert ess > 500
    beta = np.exp(s)[:, None] * b
    for level in (0.05, 0.5, 0.95, 0.99):
        error = Z * np.sqrt(level * (1.0 - level) / ess)
        below = np.quantile(model.posterior_["prior_scale"], level)
        assert abs(p[s < np.log(below)].sum() - level) < error
        below = np.quantile(model.posterior_["coef"], level)
        assert abs(p[beta < below].sum() - level) < error


def test_many_scales_of_many_columns_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 510)), rng.random(50) < 0.5
    prior = Normal(scale=HalfCauchy(1.0), scale_groups="columns")
    with pytest.raises(ValueError, match="there are 511 here, and at most 500"):
        BayesianLogisticRegression(prior=prior).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], ["a", "a", "b", "b"], {"a": [0, 1], "b": [2, 3]}])
def test_blocks_may_be_given_in_many_forms(labels):
    X, y = rows("logistic")
    names = pd.Index(["u", "v", "w", "z"])
    prior = Normal(scale=HalfCauchy(1.0), scale_groups=labels)
    expected = Normal(scale=HalfCauchy(1.0), scale_groups=[["u", "v"], ["w", "z"]])
    table = pd.DataFrame(X, columns=names)
    one, other = (fitted("logistic", own, table, y, n_draws=50) for own in (prior, expected))
    np.testing.assert_array_equal(one.posterior_.flat, other.posterior_.flat)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 9), (17, 27)])
def test_few_rows_of_a_robust_regression_have_no_mode(n, d):
    X, y = rows("robust", n, d)
    with pytest.raises(ValueError, match="too few rows for so many columns"):
        fitted("robust", Normal(scale=HalfNormal(1.0)), X, y)


def test_what_is_lacking_to_a_quadrature_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 15))
    y = 1.0 + X[:, 0] + 0.5 * rng.normal(size=12)
    options = {"prior": Normal(scale=HalfNormal(0.5)), "n_draws": 100, "random_state": 0}
    intercept = Normal(loc=1.0, scale=2.0)
    with pytest.raises(ValueError, match="With intercept_prior=None, linear regression with one"):
        BayesianLinearRegression(intercept_prior=intercept, **options).fit(X, y)
    assert BayesianLinearRegression(**options).fit(X, y).sampler_ == "exact"


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_a_scale_without_bound_has_the_tail_of_its_prior(d):
    """Columns that separate the classes say nothing against any large scale."""
    X = np.random.default_rng(0).normal(size=(6, d))
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    with pytest.warns(SamplerConvergenceWarning, match=r"heavy tail.*prior_scale"):
        model = fitted("logistic", LEARNED, X, y)
    heavy = model.posterior_.evidence["heavy_tail"]
    assert heavy[model.posterior_.labels.index("prior_scale")] == 1.0
    light = fitted("logistic", Normal(scale=HalfNormal(1.0)), X, y)
    assert not light.posterior_.evidence["heavy_tail"].any()
    X, y = rows("logistic")
    assert not fitted("logistic", LEARNED, X, y).posterior_.evidence["heavy_tail"].any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_scales_of_coefficients_that_the_rows_hold_back_have_lighter_tails(kind):
    """A scale of one coefficient has the tail τ⁻³ then: k is 1/2, not that of the prior."""
    for seed in range(5):
        X, y = rows(kind, n=200, seed=seed)
        model = fitted(kind, Normal(scale=HalfCauchy(1.0), scale_groups="columns"), X, y)
        assert not model.posterior_.evidence["heavy_tail"].any()


@pytest.mark.slow
def test_a_scale_for_each_column_of_separable_classes():
    """With a huge and a tiny scale, matrices of all parameters lose their smallest eigenvalue."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 12)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[y] + 0.5 * rng.normal(size=(36, 2))
    prior = Normal(scale=HalfCauchy(1.0), scale_groups="columns")
    model = BayesianLogisticRegression(prior=prior, random_state=0, n_draws=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.prior_scale_).all()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("factor", [1e-3, 1e-9])
def test_matrices_of_many_parameters_are_told_before_they_are_factored(factor, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.random(200) < 0.5
    monkeypatch.setattr(choose, "OF_FACTOR", (factor, 0.0))
    prior = Normal(scale=HalfCauchy(), scale_groups=[[0], [1, 2]])
    model = BayesianLogisticRegression(prior=prior, random_state=0, n_draws=250)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", LongRunWarning)
        model.fit(X, y)
    said = [str(one.message) for one in told if one.category is LongRunWarning]
    assert len(said) == (factor == 1e-3)
    assert all("2 learned scales and 4 parameters is predicted to take" in one for one in said)


@pytest.mark.parametrize("seed", [1, 22, 23])
def test_coefficients_far_beyond_a_narrow_prior_of_their_scales(seed):
    """They might be noise; the search for scales from narrow ones up finds no other answer."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(35, 3))
    y = X @ [0.0, 20.0, -40.0] + 4.0 * rng.normal(size=35)
    prior = Normal(scale=InverseGamma(2.0, 0.3), scale_groups="columns")
    model = BayesianLinearRegression(prior=prior, n_draws=250, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplerConvergenceWarning)
        model.fit(X, y)
    assert model.coef_[1:] == pytest.approx([20.0, -40.0], abs=3.5)
    assert 2.5 < model.noise_std_ < 6.5
