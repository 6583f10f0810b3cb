"""Batches one after the other, against one fit on all rows."""

import pickle
import warnings

import estimators
import numpy as np
import pytest
from scipy import linalg, sparse, special, stats
from sklearn.base import clone

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.engine.memory import Quadratic, left_out, summarised
from skbayes_sg.engine.target import Target
from skbayes_sg.estimators import _online
from skbayes_sg.exceptions import UpdateWarning
from skbayes_sg.models import LinearKnownNoise, Logistic, Softmax
from skbayes_sg.priors import HalfNormal, HalfStudentT, Laplace, Normal, StudentT

FEW = {"n_draws": 250, "random_state": 0}


def table(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(-1.0, 1.0, d) + 0.3, rng


def in_batches(model, X, y, n_batches, **more):
    for rows in np.array_split(np.arange(len(y)), n_batches):
        own = {name: value if name == "classes" else value[rows] for name, value in more.items()}
        model.partial_fit(X[rows], y[rows], **own)
    return model


def off(one, other):
    """Distances of posterior means in standard deviations, and ratios of the latter."""
    a, b = one.posterior_, other.posterior_
    return np.abs(a.mean() - b.mean()) / b.std(), a.std() / b.std()


def responses(name, eta, rng):
    return estimators.ESTIMATORS[name].response(eta, rng)


# -- quadratics -----------------------------------------------------------------------------------


def flat_target(model, X, y, n_parameters, weight=None):
    prior = np.concatenate([Normal(scale=1e8)._table((n_parameters,))])
    weight = np.ones(len(y)) if weight is None else weight
    return Target(X, y, weight, model, prior, intercept=True)


def test_a_quadratic_likelihood_is_its_own_quadratic():
    X, eta, rng = table(50)
    target = flat_target(LinearKnownNoise(), X, eta, 4, rng.uniform(0.5, 2.0, size=50))
    mean, root = rng.normal(size=4), rng.normal(size=(4, 4))
    found = summarised(target, mean, root @ root.T)
    theta = rng.normal(size=(5, 4))
    values = [target.likelihood(t)[0] - target.likelihood(mean)[0] for t in theta]
    assert np.allclose([found.value(t) for t in theta], values, rtol=1e-10)
    assert np.allclose(found.slope(theta[0]), target.likelihood(theta[0])[1], rtol=1e-10)
    assert left_out(target, found, theta) < 1e-10
    other = Quadratic(theta[1], rng.normal(size=4), np.eye(4), 3.0)
    total = found + other
    assert total.total == found.total + 3.0
    assert np.allclose(total.slope(theta[2]), found.slope(theta[2]) + other.slope(theta[2]))


@pytest.mark.parametrize(
    ("model", "K"), [(Logistic(), 1), pytest.param(Softmax(3), 3, marks=pytest.mark.slow)]
)
def test_slopes_and_curvatures_are_means_over_the_law(model, K):
    X, eta, rng = table(20, 2)
    target = flat_target(model, X, (eta > 0).astype(float), 3 * K)
    mean, root = 0.3 * rng.normal(size=3 * K), 0.1 * rng.normal(size=(3 * K, 3 * K))
    found = summarised(target, mean, root @ root.T)
    draws = mean + rng.normal(size=(4000, 3 * K)) @ root.T
    draws = np.concatenate([draws, 2.0 * mean - draws])
    slope = np.mean([target.likelihood(t)[1] for t in draws], axis=0)
    H = np.mean([target.likelihood_hessian(t) for t in draws[::8]], axis=0)
    scale = np.sqrt(np.diag(H))
    assert np.allclose(found.gradient / scale, slope / scale, rtol=0, atol=0.02)
    assert np.allclose(
        found.hessian / np.outer(scale, scale), H / np.outer(scale, scale), atol=0.02
    )


def test_a_target_with_a_memory_has_its_derivatives():
    X, eta, rng = table(30)
    target = flat_target(Logistic(), X, (eta > 0).astype(float), 4)
    root = rng.normal(size=(4, 4))
    past = Quadratic(rng.normal(size=4), rng.normal(size=4), root @ root.T, 7.0)
    both, theta = target.with_memory(past), rng.normal(size=4)
    value, g = both.value_and_gradient(theta)
    alone, own = target.value_and_gradient(theta)
    assert value - alone == pytest.approx(past.value(theta))
    assert np.allclose(g - own, past.slope(theta))
    _, gradient, H = both.expansion(theta, dense=True)
    assert np.allclose(gradient, target.expansion(theta, dense=True)[1] + past.slope(theta))
    assert np.allclose(H, both.likelihood_hessian(theta))
    assert np.allclose(np.diag(H), both.likelihood_curvature(theta))
    assert np.allclose(H - target.likelihood_hessian(theta), past.hessian)
    assert both.total_weight == 37.0


# -- linear regression: exact ---------------------------------------------------------------------

LINEAR = {
    "default": {},
    "known noise": {"noise": 0.7, "prior": Normal(scale=2.0)},
    "no intercept": {"fit_intercept": False},
    "laplace": {"prior": "laplace"},
    "hmc": {"sampler": "hmc"},
    "half normal": {"noise_prior": HalfNormal(scale=1.0)},
}


@pytest.mark.slow_for("hmc", "laplace")
@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("n_batches", [2, pytest.param(37, marks=pytest.mark.slow)])
def test_batches_of_linear_regression_are_all_rows(name, n_batches):
    X, eta, rng = table(200)
    y, w = 5.0 + eta + rng.normal(size=200), rng.uniform(0.5, 2.0, size=200)
    order = np.argsort(y)
    X, y, w = X[order] * [1.0, 100.0, 0.01], y[order], w[order]
    options = FEW | LINEAR[name] | {"n_draws": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        online = in_batches(BayesianLinearRegression(**options), X, y, n_batches, sample_weight=w)
        model = BayesianLinearRegression(**options).fit(X, y, w)
    scale = model.posterior_.std()
    same = np.abs(online.posterior_.flat - model.posterior_.flat) / scale
    assert same.max() < (1e-8 if model.sampler_ == "exact" else 0.5)
    assert np.abs(online.posterior_.mean() - model.posterior_.mean()).max() < 0.2 * scale.max()
    assert online.n_samples_seen_ == 200
    assert online.update_error_ == 0.0


def test_columns_far_from_zero_stay_centred():
    X, eta, rng = table(200)
    X = X + np.array([0.0, 1.7e9, 0.0])
    y = eta + rng.normal(size=200)
    online = in_batches(BayesianLinearRegression(**FEW), X, y, 4)
    model = BayesianLinearRegression(**FEW).fit(X, y)
    assert np.abs((online.coef_ - model.coef_) / model.coef_std_).max() < 1e-3  # other axes
    assert np.abs(online.coef_std_ / model.coef_std_ - 1.0).max() < 0.02


# -- other models ---------------------------------------------------------------------------------

OTHERS = {
    "BayesianLogisticRegression": BayesianLogisticRegression,
    "BayesianRobustRegression": BayesianRobustRegression,
    "BayesianPoissonRegressor": BayesianPoissonRegressor,
    "BayesianNegativeBinomialRegressor": BayesianNegativeBinomialRegressor,
}


def keep_few_rows(monkeypatch, n_rows, good=1e300):
    """Represent more rows by quadratics, if they are as good as that."""
    monkeypatch.setattr(_online, "KEPT_ROWS", n_rows)
    monkeypatch.setattr(_online, "GOOD", good)


@pytest.mark.slow_for("BayesianRobustRegression", "BayesianNegativeBinomialRegressor")
@pytest.mark.parametrize("name", OTHERS)
def test_few_rows_are_those_of_a_fit(name):
    X, eta, rng = table(60)
    y = responses(name, eta, rng)
    classes = {"classes": [0, 1]} if "Logistic" in name else {}
    online = in_batches(OTHERS[name](**FEW), X, y, 3, **classes)
    model = OTHERS[name](**FEW).fit(X, y)
    assert np.allclose(online.posterior_.flat, model.posterior_.flat, rtol=0, atol=1e-9)
    assert online.update_error_ == 0.0


@pytest.mark.slow_except("BayesianLogisticRegression")
@pytest.mark.parametrize("name", OTHERS)
def test_many_rows_have_about_the_posterior_of_a_fit(name, monkeypatch):
    keep_few_rows(monkeypatch, 150)
    X, eta, rng = table(900)
    y = responses(name, eta, rng)
    classes = {"classes": [0, 1]} if "Logistic" in name else {}
    online = in_batches(OTHERS[name](**FEW), X, y, 12, **classes)
    model = OTHERS[name](**FEW).fit(X, y)
    shift, ratio = off(online, model)
    chance = 5.0 * np.sqrt(2.0 / 500)  # half of the draws are effective at least
    assert 0.0 < online.update_error_ < 1.0
    assert shift.max() < online.update_error_ + chance
    assert np.abs(ratio - 1.0).max() < 0.1 + chance / np.sqrt(2.0)
    assert online.n_samples_seen_ == 900
    assert "earlier rows" in online.posterior_.check().passed


@pytest.mark.slow
def test_many_classes(monkeypatch):
    keep_few_rows(monkeypatch, 150)
    X, eta, rng = table(900)
    y = np.array(["a", "b", "c"])[(eta + rng.normal(size=900) > [[-0.5], [0.5]]).sum(axis=0)]
    online = in_batches(BayesianLogisticRegression(**FEW), X, y, 9, classes=["c", "a", "b"])
    model = BayesianLogisticRegression(**FEW).fit(X, y)
    shift, ratio = off(online, model)
    assert shift.max() < online.update_error_ + 5.0 * np.sqrt(2.0 / 500)
    assert np.abs(ratio - 1.0).max() < 0.3
    assert np.abs(online.predict_proba(X) - model.predict_proba(X)).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("good", "exact"), [(1e-3, True), (1e300, False)])
def test_rows_are_kept_until_a_quadratic_stands_for_them(good, exact, monkeypatch):
    """A dispersion near zero has a likelihood that 200 rows do not make a quadratic."""
    keep_few_rows(monkeypatch, 200, good)
    X, eta, rng = table(1000)
    y = rng.poisson(np.exp(0.5 * eta) * rng.gamma(10.0, 0.1, 1000))
    online = in_batches(BayesianNegativeBinomialRegressor(**FEW), X, y, 5)
    model = BayesianNegativeBinomialRegressor(**FEW).fit(X, y)
    same = np.allclose(online.posterior_.flat, model.posterior_.flat, rtol=0, atol=1e-9)
    assert same == exact == (online.update_error_ == 0.0)


@pytest.mark.parametrize("prior", ["laplace", pytest.param("student_t", marks=pytest.mark.slow)])
def test_other_priors_stay_exact(prior, monkeypatch):
    keep_few_rows(monkeypatch, 150)
    X, eta, rng = table(600)
    y = (eta + rng.logistic(size=600) > 0).astype(int)
    online = in_batches(BayesianLogisticRegression(prior=prior, **FEW), X, y, 6, classes=[0, 1])
    model = BayesianLogisticRegression(prior=prior, **FEW).fit(X, y)
    shift, _ = off(online, model)
    assert shift.max() < online.update_error_ + 5.0 * np.sqrt(2.0 / 500)


def test_exposures_and_sparse_rows(monkeypatch):
    keep_few_rows(monkeypatch, 100)
    X, eta, rng = table(600)
    t = rng.uniform(0.5, 5.0, size=600)
    y = rng.poisson(t * np.exp(eta))
    model = BayesianPoissonRegressor(**FEW).fit(X, y, exposure=t)
    online = in_batches(BayesianPoissonRegressor(**FEW), sparse.csr_array(X), y, 6, exposure=t)
    shift, _ = off(online, model)
    assert shift.max() < online.update_error_ + 5.0 * np.sqrt(2.0 / 500)


@pytest.mark.slow
def test_rows_in_the_order_of_y_are_told(monkeypatch):
    """Quadratics of one class are wrong where the other class then moves the posterior."""
    keep_few_rows(monkeypatch, 50)
    X, eta, rng = table(600)
    y = (eta + rng.logistic(size=600) > 0).astype(int)
    order = np.argsort(y, kind="stable")
    model = BayesianLogisticRegression(**FEW).fit(X, y)
    online = BayesianLogisticRegression(**FEW)
    with pytest.warns(UpdateWarning, match="Put rows into random order"):
        in_batches(online, X[order], y[order], 4, classes=[0, 1])
    shift, _ = off(online, model)
    assert shift.max() > 1.0  # or there would be nothing to be told of
    assert online.update_error_ > shift.max()
    assert not online.posterior_.check()


@pytest.mark.slow
def test_a_class_without_rows_is_waited_for_and_then_told_of(monkeypatch):
    keep_few_rows(monkeypatch, 20)
    X, eta, rng = table(600)
    y = (eta + rng.logistic(size=600) > 2.5).astype(int)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = BayesianLogisticRegression(**FEW)
    in_batches(model, X[:150], y[:150], 3, classes=[0, 1])
    assert model.update_error_ == 0.0
    assert np.array_equal(model._past.rows[0], X[:150])
    with pytest.warns(UpdateWarning):
        in_batches(model, X[150:], y[150:], 5)
    assert model.update_error_ == np.inf


@pytest.mark.slow
def test_classes_that_come_late_are_told():
    """Also where all rows before them were kept, while a column drifts."""
    rng = np.random.default_rng(2)
    X, n = rng.normal(size=(2000, 4)), 2000
    X[:, 0] *= np.linspace(0.2, 8.0, n)
    X[:, 3] += np.linspace(0.0, 20.0, n)
    y = np.digitize(X[:, 1] + rng.logistic(size=n), [-1.0, 1.0])
    y[:600] = np.minimum(y[:600], 1)
    online = BayesianLogisticRegression(**FEW)
    with pytest.warns(UpdateWarning):
        in_batches(online, X, y, 20, classes=[0, 1, 2])
    shift, _ = off(online, BayesianLogisticRegression(**FEW).fit(X, y))
    assert shift.max() > 2.0
    assert online.update_error_ > 0.5 * shift.max()
    assert not online.posterior_.check()


@pytest.mark.parametrize(
    ("n_rows", "totals", "late"),
    [
        (600, [50.0, 30.0, 20.0], True),
        (600, [50.0, 49.0, 1.0], False),  # as if it were a single row by chance
        (10, [5.0, 3.0, 2.0], False),  # ten rows may lack a class of a tenth
        (100, [5.0, 3.0, 2.0], True),
        (10, [0.0, 0.0, 9.0], True),
    ],
)
def test_classes_are_late_where_chance_does_not_explain_it(n_rows, totals, late):
    own = {"classes": np.arange(3), "class_totals": np.array(totals)}
    assert _online._comes_late(_online.Past(n_rows, None, {"classes": np.arange(2)}), own) == late
    assert not _online._comes_late(_online.Past(n_rows, None, {"classes": np.arange(3)}), own)
    assert not _online._comes_late(_online.Past(n_rows, None, {"size": 1.0}), {"size": 2.0})


@pytest.mark.slow
def test_a_batch_may_be_a_row_or_a_class_or_zeros():
    X, _, _ = table(12)
    y = np.repeat([0, 1], 6)
    online = in_batches(BayesianLogisticRegression(**FEW), X, y, 12, classes=[0, 1])
    assert np.allclose(
        online.posterior_.flat,
        BayesianLogisticRegression(**FEW).fit(X, y).posterior_.flat,
        rtol=0,
        atol=1e-9,
    )
    counts = in_batches(BayesianPoissonRegressor(**FEW), X, y, 2)
    assert counts.n_samples_seen_ == 12


# -- the interface --------------------------------------------------------------------------------


def test_it_goes_on_after_a_pickle_and_begins_anew_with_a_fit():
    X, eta, rng = table(60)
    y = eta + rng.normal(size=60)
    online = pickle.loads(pickle.dumps(BayesianLinearRegression(**FEW).partial_fit(X[:30], y[:30])))
    online.partial_fit(X[30:], y[30:])
    assert online.n_samples_seen_ == 60
    online.fit(X, y)
    assert not hasattr(online, "n_samples_seen_")
    assert clone(online).partial_fit(X, y).n_samples_seen_ == 60


@pytest.mark.slow_for("BayesianRobustRegression", "BayesianNegativeBinomialRegressor")
@pytest.mark.parametrize("name", [*OTHERS, "BayesianLinearRegression"])
def test_it_goes_on_after_a_fit(name):
    X, eta, rng = table(900)
    X[:, 1] += 3.0
    y = responses(name, eta, rng)
    make = OTHERS.get(name, BayesianLinearRegression)
    online = make(n_draws=1000, random_state=0).fit(X[:600], y[:600])
    online.partial_fit(X[600:], y[600:])
    shift, ratio = off(online, make(**FEW).fit(X, y))
    assert online.n_samples_seen_ == 900
    assert 0.0 < online.update_error_ < 1.0
    assert shift.max() < online.update_error_ + 5.0 * np.sqrt(2.0 / 500)
    assert np.abs(ratio - 1.0).max() < 0.3


# Priors that are peaked where the likelihood is not.
PEAKED = {
    "normal": (Normal(scale=0.3), lambda b: 0.5 * (b / 0.3) ** 2),
    "laplace": (Laplace(scale=0.1), lambda b: np.abs(b) / 0.1),
    "student_t": (StudentT(df=4.0, scale=0.2), lambda b: 2.5 * np.log1p((b / 0.2) ** 2 / 4.0)),
    "narrow": (StudentT(df=4.0, scale=0.1), lambda b: 2.5 * np.log1p((b / 0.1) ** 2 / 4.0)),
}


@pytest.mark.parametrize("kind", PEAKED)
def test_the_likelihood_follows_from_draws_and_prior(kind):
    # Draws of one parameter at the quantiles of e^(-2 (θ - 0.4)² - P), where the likelihood is a
    # quadratic: it is found, and leaves nothing out.
    prior, P = PEAKED[kind]
    grid = np.linspace(-3.0, 3.0, 600_001)
    density = np.exp(-2.0 * (grid - 0.4) ** 2 - P(grid))
    below = np.cumsum(density) / density.sum()
    draws = np.interp((np.arange(20_000) + 0.5) / 20_000, below, grid)[:, None]
    found, precision, error = _online._likelihood_of_draws(draws, prior._table((1,)), 7.0)
    assert found.hessian == pytest.approx(4.0, rel=0.02)
    assert found.slope(np.array([0.4])) == pytest.approx(0.0, abs=0.02)
    assert precision == pytest.approx(1.0 / draws.var(), rel=1e-3)
    assert error == pytest.approx(np.sqrt(1.0 / 19_999), abs=0.02)
    assert found.total == 7.0


def test_a_skewed_likelihood_is_told_whatever_the_prior():
    # e^(-e^θ + 2 θ), which is gamma for e^θ, beside a wide prior: skewness γ and kurtosis κ of
    # log-gamma, whose Edgeworth term is (γ²/6 + κ²/24)^½.
    draws = np.log(special.gammaincinv(2.0, (np.arange(20_000) + 0.5) / 20_000))[:, None]
    gamma, kappa = stats.skew(draws[:, 0]), stats.kurtosis(draws[:, 0])
    for prior in (Normal(scale=100.0), StudentT(df=3.0, scale=100.0)):
        _, _, error = _online._likelihood_of_draws(draws, prior._table((1,)), 1.0)
        assert error == pytest.approx(np.sqrt(gamma**2 / 6 + kappa**2 / 24), rel=0.05)


@pytest.mark.slow_except("laplace")
@pytest.mark.parametrize("kind", PEAKED)
def test_priors_that_are_not_normal_count_once_after_a_fit(kind):
    prior, P = PEAKED[kind]
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    y = (rng.random(100) < special.expit(0.2 + 0.8 * x)).astype(int)
    b, a = np.meshgrid(np.linspace(-2, 3, 401), np.linspace(-2, 3, 301), indexing="ij")
    potential = P(b) + 0.5 * (a / 10.0) ** 2
    for x_i, y_i in zip(x, y, strict=True):
        potential += np.logaddexp(0.0, a + b * x_i) - y_i * (a + b * x_i)
    mass = np.exp(potential.min() - potential)
    mean = (mass * b).sum() / mass.sum()
    std = np.sqrt((mass * (b - mean) ** 2).sum() / mass.sum())
    X = x[:, None]
    model = BayesianLogisticRegression(prior=prior, random_state=0).fit(X[:60], y[:60])
    model.partial_fit(X[60:], y[60:])
    assert abs(model.coef_.item() - mean) < 0.12 * std
    assert model.coef_std_.item() == pytest.approx(std, rel=0.1)


@pytest.mark.slow
def test_after_a_fit_of_many_classes_or_far_columns():
    X, eta, rng = table(900)
    y = (eta + rng.normal(size=900) > [[-0.5], [0.5]]).sum(axis=0)
    online = BayesianLogisticRegression(random_state=0).fit(X[:600], y[:600])
    online.partial_fit(X[600:], y[600:])
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert np.abs(online.predict_proba(X) - model.predict_proba(X)).max() < 0.03
    far, y = X + np.array([0.0, 1.7e9, 0.0]), eta + rng.normal(size=900)
    online = BayesianLinearRegression(random_state=0).fit(far[:600], y[:600])
    online.partial_fit(far[600:], y[600:])
    expected = BayesianLinearRegression(random_state=0).fit(far, y)
    assert np.abs((online.coef_ - expected.coef_) / expected.coef_std_).max() < 0.3


def test_an_error_leaves_everything_as_it_was():
    X, eta, rng = table(60)
    y = eta + rng.normal(size=60)
    online = BayesianLinearRegression(**FEW).partial_fit(X[:30], y[:30])
    before = online.posterior_
    with pytest.raises(ValueError, match="NaN"):
        online.partial_fit(np.full((2, 3), np.nan), [1.0, 2.0])
    with pytest.raises(ValueError, match="X has 2 features, but BayesianLinearRegression"):
        online.partial_fit(X[:, :2], y)
    assert online.posterior_ is before
    assert online.partial_fit(X[30:], y[30:]).n_samples_seen_ == 60


def test_classes_are_told_in_the_first_call():
    X, eta, _ = table(20)
    y = np.where(eta > 0, "yes", "no")
    model = BayesianLogisticRegression(**FEW)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.partial_fit(X, y, classes=["yes"])
    with pytest.raises(ValueError, match="y has the label 'yes', and the classes are"):
        model.partial_fit(X, y, classes=["no", "maybe"])
    model.partial_fit(X, y, classes=["yes", "no"])
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="not the same as in the first call"):
        model.partial_fit(X, y, classes=["yes", "no", "maybe"])
    model.partial_fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "sgld"},
        {"batch_size": 10},
        {"n_subposteriors": 2},
        {"keep": "moments"},
        {"class_weight": "balanced"},
    ],
)
def test_what_makes_no_updates_has_no_method(options):
    model = BayesianLogisticRegression(**options)
    assert not hasattr(model, "partial_fit")
    (name,) = options
    with pytest.raises(AttributeError) as error:
        model.partial_fit(None, None)
    assert f"has no partial_fit with {name}=" in str(error.value)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_parameters_that_no_longer_are_those_of_the_earlier_rows(first):
    X, eta, rng = table()
    model = BayesianLinearRegression(**FEW)
    getattr(model, first)(X, eta + rng.normal(size=300))
    for changed in ({"fit_intercept": False}, {"noise": 1.0}):
        own = {name: getattr(model, name) for name in changed}
        name = "intercept" if "fit_intercept" in changed else "noise_std"
        before = model.posterior_
        with pytest.raises(ValueError, match=f"earlier rows, which was sampled with '{name}'"):
            model.set_params(**changed).partial_fit(X, eta)
        assert model.set_params(**own).posterior_ is before


CHANGED = {
    "BayesianLinearRegression": {"prior": Normal(scale=0.1), "noise_prior": HalfNormal(scale=0.2)},
    "BayesianRobustRegression": {"prior": Laplace(scale=0.05), "df_prior": HalfNormal(scale=10.0)},
    "BayesianLogisticRegression": {"prior": Normal(scale=0.2)},
    "BayesianPoissonRegressor": {"intercept_prior": Normal(loc=0.5, scale=0.05)},
    "BayesianNegativeBinomialRegressor": {"dispersion_prior": HalfNormal(scale=0.1)},
}


@pytest.mark.slow_for("BayesianRobustRegression", "BayesianNegativeBinomialRegressor")
@pytest.mark.parametrize("name", CHANGED)
def test_priors_that_have_changed_after_a_fit_are_those_of_all_rows(name):
    X, eta, rng = table(900)
    y = responses(name, eta, rng)
    make = OTHERS.get(name, BayesianLinearRegression)
    online = make(n_draws=1000, random_state=0).fit(X[:600], y[:600])
    online.set_params(**CHANGED[name]).partial_fit(X[600:], y[600:])
    shift, ratio = off(online, make(**FEW, **CHANGED[name]).fit(X, y))
    assert shift.max() < online.update_error_ + 5.0 * np.sqrt(2.0 / 500)
    assert np.abs(ratio - 1.0).max() < 0.3
    unchanged, _ = off(online, make(**FEW).fit(X, y))
    assert unchanged.max() > 2.0 * shift.max()


def test_priors_of_three_classes_that_have_changed_after_a_fit():
    X, eta, rng = table(300)
    y = np.digitize(eta + rng.logistic(size=300), [-1.0, 1.0])
    online = BayesianLogisticRegression(random_state=0).fit(X[:200], y[:200])
    prior = Normal(scale=[0.01, 1.0, 1.0])
    online.set_params(prior=prior).partial_fit(X[200:], y[200:])
    assert np.abs(online.coef_[:, 0]).max() < 0.03
    assert np.abs(online.coef_[:, 2]).max() > 0.5


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"prior": Normal(scale="auto")}),
        ({"prior": Laplace(scale="auto")}, {"prior": "laplace"}),
        ({"noise_prior": "half_student_t"}, {"noise_prior": HalfStudentT(scale="auto")}),
        ({}, {"intercept_prior": "flat"}),
    ],
)
def test_priors_that_mean_the_same_after_a_fit_change_no_draw(first, then):
    X, eta, rng = table(80)
    y = 100.0 * (eta + rng.normal(size=80))
    model = BayesianLinearRegression(n_draws=50, random_state=0, **first).fit(X[:50], y[:50])
    other = clone(model).fit(X[:50], y[:50]).set_params(**then)
    model.partial_fit(X[50:], y[50:])
    assert np.array_equal(other.partial_fit(X[50:], y[50:]).posterior_.flat, model.posterior_.flat)


@pytest.mark.parametrize(
    ("name", "first", "then"),
    [
        ("BayesianLinearRegression", Normal(scale=1.0), "laplace"),
        ("BayesianLinearRegression", "normal", StudentT(df=4.0, scale="auto")),
        ("BayesianLinearRegression", HalfNormal(scale=1.0), "half_student_t"),
        ("BayesianLogisticRegression", Normal(scale=5.0), None),
    ],
)
def test_priors_that_would_follow_from_the_rows_of_a_fit_are_refused(name, first, then):
    X, eta, rng = table(80)
    y = responses(name, eta, rng)
    positive = isinstance(first, HalfNormal)
    parameter = "noise_prior" if positive else "prior" if then else "intercept_prior"
    model = OTHERS.get(name, BayesianLinearRegression)(n_draws=50, random_state=0)
    model.set_params(**{parameter: first}).fit(X, y)
    before = model.posterior_
    with pytest.raises(ValueError, match=f"partial_fit after fit: {parameter}=.*fixed scales"):
        model.set_params(**{parameter: then}).partial_fit(X, y)
    assert model.posterior_ is before
    assert model.set_params(**{parameter: first}).partial_fit(X, y).n_samples_seen_ == 160


def test_a_wider_prior_after_a_narrow_one_is_told():
    """Draws from a narrow posterior say little of the likelihood beyond it."""
    X, eta, rng = table(300)
    y, wide = eta + rng.normal(size=300), Normal(scale=1.0)
    online = BayesianLinearRegression(prior=Normal(scale=1e-3), noise=1.0, **FEW)
    past = _online.past_of(online.fit(X[:200], y[:200]), online._plan_for(3))
    with pytest.warns(UpdateWarning):
        online.set_params(prior=wide).partial_fit(X[200:], y[200:])
    step = online.posterior_.mean() - past.memory.origin
    square = step @ past.precision @ step
    widened = np.sqrt(linalg.eigvalsh(past.precision, online._past.precision)[-1])
    assert widened > 10.0
    assert online.update_error_ == pytest.approx(past.error * (1.0 + square - 4.0) * widened)
    shift, _ = off(online, BayesianLinearRegression(prior=wide, noise=1.0, **FEW).fit(X, y))
    assert online.update_error_ > shift.max()


def test_a_flat_prior_of_three_classes_after_a_fit_is_refused():
    X, _, _ = table(60)
    model = BayesianLogisticRegression(n_draws=50, random_state=0).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match=r"prior='flat' is not .* it leaves open"):
        model.set_params(prior="flat").partial_fit(X, np.arange(60) % 3)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_a_known_noise_that_has_changed_is_refused(first):
    X, eta, _ = table(40)
    model = getattr(BayesianLinearRegression(noise=0.5, n_draws=50), first)(X, eta)
    with pytest.raises(ValueError, match=r"with noise=0\.5, got noise=2\.0"):
        model.set_params(noise=2.0).partial_fit(X, eta)
    assert model.set_params(noise=0.5).partial_fit(X, eta).n_samples_seen_ == 80


def test_weights_of_classes_may_change_as_long_as_rows_are_kept(monkeypatch):
    X, eta, rng = table(60)
    y = (eta + rng.logistic(size=60) > 0).astype(int)
    online, weights = BayesianLogisticRegression(n_draws=50, random_state=0), {0: 1.0, 1: 3.0}
    online.partial_fit(X[:30], y[:30], classes=[0, 1])
    online.set_params(class_weight=weights).partial_fit(X[30:], y[30:])
    model = clone(online).fit(X, y)
    assert np.allclose(online.posterior_.flat, model.posterior_.flat, rtol=0, atol=1e-9)
    keep_few_rows(monkeypatch, 20)
    online.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"with class_weight=\{0: 1\.0.* got class_weight=None"):
        online.set_params(class_weight=None).partial_fit(X, y)


def test_a_prior_of_an_intercept_that_is_centred_is_refused():
    X, eta, rng = table(60)
    X, y = X + np.array([0.0, 1.7e9, 0.0]), eta + rng.normal(size=60)
    for first in ("fit", "partial_fit"):
        model = getattr(BayesianLinearRegression(n_draws=50, random_state=0), first)(X, y)
        with pytest.raises(ValueError, match=r"intercept_prior=Normal.* columns far from zero"):
            model.set_params(intercept_prior=Normal(scale=1.0)).partial_fit(X, y)


def test_after_a_fit_of_learned_scales():
    X, eta, rng = table()
    y = eta + rng.normal(size=300)
    model = BayesianLinearRegression(prior=Normal(scale=HalfNormal()), **FEW).fit(X, y)
    with pytest.raises(ValueError, match="which was sampled with 'prior_scale"):
        model.set_params(prior="normal").partial_fit(X, y)


def test_exposures_of_some_batches_alone():
    X, eta, rng = table()
    y = rng.poisson(np.exp(eta))
    with_, without = BayesianPoissonRegressor(**FEW), BayesianPoissonRegressor(**FEW)
    with pytest.raises(ValueError, match="rows of the fit had exposures, and these have none"):
        with_.partial_fit(X, y, exposure=np.full(300, 2.0)).partial_fit(X, y)
    with pytest.raises(ValueError, match="rows of the fit had none, and these have exposures"):
        without.partial_fit(X, y).partial_fit(X, y, exposure=np.full(300, 2.0))
