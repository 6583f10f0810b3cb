"""Posteriors of the log-density of a user: derivatives, refusals, laws, predictions."""

import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from skbayes_sg.custom import CustomDensity, arrays
from skbayes_sg.custom.row_law import row_law_of
from skbayes_sg.exceptions import (
    LongRunWarning,
    MultimodalPosteriorWarning,
    PriorConflictWarning,
)
from skbayes_sg.gradients import SVRG
from skbayes_sg.kernels.layout import FACT_WEIGHT, frozen
from skbayes_sg.priors import Flat, Normal

RNG = np.random.default_rng(0)
x = RNG.uniform(-2.0, 2.0, 80)
y = 1.0 + 0.5 * x + 0.3 * RNG.standard_normal(80)
LINE = {"b": (Normal(scale=3.0), 2), "sigma": "half_normal"}
FEW = {"n_draws": 200, "n_chains": 2, "random_state": 0}


def line(theta, row):
    z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
    return -0.5 * z * z - np.log(theta[2])


def real_line(theta, row):
    z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
    return -0.5 * z * z - np.log(np.fabs(theta[2]))  # fabs takes no complex numbers


def modulus(theta, row):  # accepts complex numbers, and is not analytic
    z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
    return -0.5 * abs(z) ** 2 - np.log(theta[2])


def slope(theta, row):
    z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
    return z / theta[2], z * row[0] / theta[2], (z * z - 1.0) / theta[2]


def wrong_slope(theta, row):
    z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
    return z / theta[2], z * row[0] / theta[2], 1.1 * (z * z - 1.0) / theta[2]


def location(theta, row):
    return -0.5 * (row[0] - theta[0]) ** 2


def slope_of(theta, row):
    return -0.5 * (row[1] - theta[0] * row[0]) ** 2


def mean(theta, X):
    return theta[0] + theta[1] * X[:, 0]


def sample(rng, theta, X):
    return rng.normal(mean(theta, X), theta[2])


def made(**parameters):
    return CustomDensity(**{"log_density": line, "parameters": LINE, **FEW, **parameters})


LAWS = [(line, None), (line, slope), (real_line, None)]


@pytest.mark.parametrize(("f", "derivative"), LAWS, ids=["complex", "given", "differences"])
@pytest.mark.slow_for("differences")
def test_kernels_are_derivatives_of_the_function(f, derivative):
    law = row_law_of(f, derivative, (False, False, True), (1.0, 1.0, 1.0), 2, "numba")
    rng = np.random.default_rng(1)
    rows, z = rng.standard_normal((6, 2)), rng.standard_normal(3)
    facts = np.column_stack([np.zeros(6), rng.random(6), rows])

    def at(z):
        return np.array([line([z[0], z[1], np.exp(z[2])], row) for row in rows])

    eta, terms, order = np.tile(z, (6, 1)), np.empty((6, 3)), np.arange(6)
    law.derivative(facts, order, 0, 6, eta, terms)
    wanted = np.stack([at(z + 1e-30j * unit).imag / 1e-30 for unit in np.eye(3)], axis=1)
    assert np.allclose(terms, -wanted, rtol=1e-8 if f is real_line else 1e-12)
    loss = law.loss(facts, order, 0, 6, eta)
    assert np.isclose(loss, -facts[:, FACT_WEIGHT] @ at(z).real, rtol=1e-12)


@pytest.mark.slow
def test_sources_of_derivatives_give_the_same_draws():
    models = {
        "complex step": made(),
        "given": made(derivative=slope),
        "finite difference": made(log_density=modulus),
    }
    draws = {name: model.fit(x[:, None], y).posterior_.flat for name, model in models.items()}
    assert {name: model.derivatives_ for name, model in models.items()} == {n: n for n in models}
    for found in draws.values():
        assert np.allclose(found[:, :20], draws["given"][:, :20], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        pytest.param({"sampler": "mala", "thin": 4}, marks=pytest.mark.slow),
        pytest.param(
            {"sampler": "sgld", "gradient": "svrg", "batch_size": 20}, marks=pytest.mark.slow
        ),
        {"gradient": "saga", "batch_size": 20},
        pytest.param(
            {"gradient": SVRG(anchor_size=300, refresh=5), "batch_size": 20}, marks=pytest.mark.slow
        ),
        {"gradient": "control_variate", "batch_size": 20, "preconditioner": "diagonal"},
    ],
    ids=str,
)
@pytest.mark.slow_except("{}")
def test_the_law_of_a_normal_location(parameters):
    """Conjugate: the posterior mean and standard deviation are known."""
    X = np.random.default_rng(2).standard_normal((400, 1)) + 1.0
    model = CustomDensity(
        location, {"mu": Normal(scale=0.1)}, n_draws=1000, random_state=1, **parameters
    ).fit(X)
    precision = 400.0 + 100.0
    sd, centre = precision**-0.5, X.sum() / precision
    draws = model.posterior_["mu"]
    # ESS of 1000 at least: 5 MCSE of a mean are 0.16 sd, of an sd 0.11, and 2 % for the bias
    assert model.diagnostics_["min_ess"] > 900.0
    assert abs(draws.mean() - centre) < 0.16 * sd
    assert abs(draws.std() / sd - 1.0) < 0.13


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow_for("0", "2")
def test_densities_that_are_positive_at_zero(seed):
    """A normal law cut off at zero, where it is as high as anywhere: no score has mean zero."""
    rng = np.random.default_rng(seed)
    X, of_rows = rng.standard_normal((2, 30))
    model = CustomDensity(slope_of, {"effect": "half_normal"}, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a check that is wrong there
        posterior = model.fit(X[:, None], of_rows).posterior_
    precision = X @ X + 1.0
    centre, sd = X @ of_rows / precision, precision**-0.5
    law = stats.truncnorm(-centre / sd, np.inf, centre, sd)
    mcse = law.std() / np.sqrt(model.diagnostics_["min_ess"])
    for order, most in [("linear", 4.0 * mcse), ("quadratic", 0.015 * law.std())]:
        mean = float(posterior.mean("effect", control_variate=order))
        assert abs(mean - law.mean()) < most
    assert np.isclose(posterior.std("effect", control_variate="quadratic"), law.std(), rtol=0.03)


def test_weights_are_repeated_rows():
    weight = np.random.default_rng(3).integers(0, 3, 80)
    one = made().fit(x[:, None], y, sample_weight=weight)
    other = made().fit(np.repeat(x, weight)[:, None], np.repeat(y, weight))
    assert np.allclose(one.posterior_.mean(), other.posterior_.mean(), rtol=1e-6, atol=1e-6)


def test_two_modes_are_found_and_told():
    def both(theta, row):
        return -0.5 * ((row[0] - theta[0] * theta[0]) / 0.3) ** 2

    X = np.full((40, 1), 1.0)
    with pytest.warns(UserWarning, match="The posterior has 2 modes"):
        model = CustomDensity(both, {"root": Normal(scale=2.0)}, **FEW, n_warmup=200).fit(X)
    draws = model.posterior_["root"]
    assert model.diagnostics_["n_modes"] == 2
    assert draws.min() < -0.8
    assert draws.max() > 0.8


def cauchy(theta, row):
    return -np.log1p((row[0] - theta[0]) ** 2)


@pytest.mark.parametrize("y", [(-8.0, -7.5, 6.9, 7.6, 8.1), (-8.0, 7.0, 8.0)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_modes_far_away_are_weighed(seed, y):
    """A mode of 1 % at 15 standard deviations, where no chain begins, doubles the variance."""
    model = CustomDensity(cauchy, {"m": Normal(scale=10.0)}, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws = model.fit(np.array(y)[:, None]).posterior_["m"].ravel()
    m = np.linspace(-40.0, 40.0, 80_001)
    log_p = -np.log1p((np.array(y)[:, None] - m) ** 2).sum(axis=0) - 0.5 * (m / 10.0) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean, below = p @ m, p[m < 0.0].sum()
    assert model.sampler_ == "importance"
    assert abs((draws < 0.0).mean() - below) < 4.0 * np.sqrt(below / 2000.0)
    assert np.isclose(draws.std(), np.sqrt(p @ (m - mean) ** 2), rtol=0.15)
    assert model.posterior_.check()


def test_chains_that_are_asked_for_are_told_of_small_modes_far_away():
    def six(theta, row):
        x = theta[0] - row[0]
        far = np.exp(-0.5 * (x - 15.0) ** 2) + np.exp(-0.5 * (x + 15.0) ** 2)
        return np.log(0.99 * np.exp(-0.5 * x**2) + 0.004 * far + 1e-300)

    model = CustomDensity(six, {"m": Normal(scale=30.0)}, sampler="hmc", random_state=0)
    with pytest.warns(MultimodalPosteriorWarning, match="has 3 modes"):
        model.fit(np.zeros((1, 1)))
    assert "modes" in [finding.name for finding in model.posterior_.check().findings]


def two_means(theta, row):
    first, second = np.exp(-0.5 * (row[0] - theta[0]) ** 2), np.exp(-0.5 * (row[0] - theta[1]) ** 2)
    return np.log(0.5 * first + 0.5 * second)


@pytest.mark.parametrize("seed", [0, 5, 12, 15, 20])
@pytest.mark.slow_for("0")
def test_a_mode_that_is_the_mirror_image_of_another_is_found(seed):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(20, 1)) - 2.0, rng.normal(size=(20, 1)) + 2.0]
    model = CustomDensity(two_means, {"a": "normal", "b": "normal"}, **FEW | {"random_state": seed})
    with pytest.warns(MultimodalPosteriorWarning, match="The posterior has 2 modes"):
        model.set_params(n_warmup=100).fit(X)
    assert np.isclose(model.diagnostics_["mode_share_0"], 0.5)


def lifetime(theta, row):
    """Weibull's, in days, and right-censored where row[1] is zero."""
    shape = np.exp(theta[0])
    log_z = np.log(row[0]) - theta[1]
    return row[1] * (theta[0] - theta[1] + (shape - 1.0) * log_z) - np.exp(shape * log_z)


@pytest.mark.slow
def test_searches_from_places_far_away_arrive_or_are_given_up():
    """Powers of days differ by two hundred orders of magnitude between the starting points."""
    rng = np.random.default_rng(4)
    t, censored = 400.0 * rng.weibull(1.5, 200), rng.exponential(600.0, 200)
    rows = np.column_stack([np.minimum(t, censored), t <= censored])
    priors = {"log_shape": Normal(), "log_scale": Normal(scale=10.0)}
    for seed in range(4):
        model = CustomDensity(lifetime, priors, **(FEW | {"random_state": seed})).fit(rows)
        assert model.diagnostics_["n_modes"] == 1
        assert abs(model.posterior_["log_scale"].mean() - np.log(400.0)) < 0.3


def test_there_are_fewer_starts_for_more_rows(monkeypatch):
    model, found = made(), []
    monkeypatch.setattr(
        "skbayes_sg.custom.density.sample_density",
        lambda target, starts, *rest, **options: found.append(len(starts)) or 1 / 0,
    )
    for n in (80, 8000, 80_000):
        with pytest.raises(ZeroDivisionError):
            model.fit(np.resize(x, n)[:, None], np.resize(y, n))
    assert found == [21, 9, 5]


def test_predictions():
    model = made(mean=mean, sample=sample, n_draws=500).fit(x[:, None], y)
    rows = np.array([[-1.0], [0.5]])
    predicted, sd = model.predict(rows, return_std=True)
    b = model.posterior_["b"].reshape(-1, 2)
    values = b[:, 0] + b[:, 1] * rows
    assert np.allclose(predicted, values.mean(axis=1))
    assert np.allclose(sd, values.std(axis=1))
    lower, upper = model.predict_interval(rows)
    sigma = model.posterior_.mean("sigma")
    assert np.allclose(upper - lower, 2 * 1.645 * np.hypot(sd, sigma), rtol=0.15)
    assert model.sample_y(rows, 7).shape == (2, 7)
    flat = model.posterior_.flat.reshape(-1, 3)
    by_hand = np.log(np.mean([np.exp(line(theta, (x[0], y[0]))) for theta in flat]))
    assert np.isclose(model.predict_log_density(x[:1, None], y[:1])[0], by_hand)
    assert np.isclose(model.score(x[:, None], y), model.predict_log_density(x[:, None], y).mean())
    with pytest.raises(ValueError, match="fit got a y"):
        model.score(x[:, None])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(rows), predicted)
    assert not hasattr(made(), "predict")
    assert np.array_equal(clone(model).fit(x[:, None], y).predict(rows), predicted)


def test_a_wrong_derivative_is_refused():
    with pytest.raises(ValueError, match=r"not that of its log_density.*derivative in sigma is"):
        made(derivative=wrong_slope).fit(x[:, None], y)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"log_density": None}, "'log_density' parameter"),
        ({"log_density": lambda theta: theta[0]}, "log_density of CustomDensity.*cannot be comp"),
        ({"log_density": lambda theta, row: theta[3]}, "reads beyond its arguments: index 3"),
        ({"log_density": lambda theta, row: row[2]}, "reads beyond its arguments: index 2"),
        ({"parameters": {}}, "'parameters' parameter"),
        ({"parameters": {"b": ("normal", 0), "sigma": "half_normal"}}, "'parameters' parameter"),
        ({"parameters": {"b": ("wide", 2), "sigma": "half_normal"}}, "parameters\\['b'\\]"),
        ({"mean": 3}, "'mean'"),
        ({"backend": "tensorflow"}, "'backend'"),
        ({"backend": "jax", "derivative": slope}, "'derivative'"),
        ({"start": [1.0, 2.0]}, "an array of 3 finite numbers"),
        ({"start": [1.0, 2.0, -1.0]}, "positive where the parameter is"),
        ({"start": {"b": [1.0, 2.0]}}, "a value for each of 'b', 'sigma': 'sigma' is missing"),
        ({"start": {"b": [1.0, 2.0], "sigma": 1.0, "tau": 1.0}}, "'tau' is no parameter"),
        ({"start": {"b": 1.0, "sigma": 1.0}}, "a dict with an array of 2 numbers for 'b'"),
        ({"start": {"b": [1.0, 2.0], "sigma": -1.0}}, "positive where the parameter is"),
        ({"start": {"b": [1.0, 2.0], "sigma": "one"}}, "a dict of the parameters by name"),
        ({"log_density": lambda theta, row: theta}, r"must return one number, .* shape \(3,\)"),
        ({"log_density": lambda theta, row: None}, r"must return one number, .* got None"),
        ({"gradient": "taylor"}, "needs second derivatives"),
        ({"subsampling": "preferential"}, "for models with linear predictors"),
        ({"sampler": "hmc", "gradient": "svrg"}, "does not go with"),
        ({"n_draws": 0}, "'n_draws'"),
    ],
    ids=lambda given: given if isinstance(given, str) else ", ".join(given),
)
def test_bad_parameters(parameters, text):
    with pytest.raises(ValueError, match=text):
        made(**parameters).fit(x[:, None], y)


def test_starts_may_have_names():
    named = made(start={"sigma": 0.5, "b": np.array([1.0, 0.5])}).fit(x[:, None], y)
    listed = made(start=[1.0, 0.5, 0.5]).fit(x[:, None], y)
    assert np.array_equal(named.posterior_.flat, listed.posterior_.flat)


def test_predictions_of_another_shape_are_refused():
    model = made(mean=lambda theta, X: theta[0], sample=lambda rng, theta, X: X).fit(x[:, None], y)
    with pytest.raises(ValueError, match=r"mean must return an array of shape \(80,\), got \(\)"):
        model.predict(x[:, None])
    for method in (model.predict_interval, model.sample_y):
        with pytest.raises(ValueError, match=r"sample must return .* \(80,\), got \(80, 1\)"):
            method(x[:, None])


def test_densities_that_are_not_finite_are_refused():
    def rooted(theta, row):
        return np.log(row[0] - theta[0] * theta[0])

    with pytest.raises(ValueError, match="rows at theta"):
        CustomDensity(rooted, {"t": Normal()}, **FEW).fit(np.full((5, 1), -1.0))


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda theta, row: theta[1] - 0.5 * (row[0] - theta[0]) ** 2, "Give `b` a proper prior"),
        (lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2, "Give `b` a proper prior"),
        pytest.param(
            lambda theta, row: theta[0] + theta[1],
            "Give `a` and `b` a proper prior",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["rises", "is constant", "rises in both"],
)
@pytest.mark.slow_for("is constant")
def test_densities_without_a_maximum_are_refused(f, said):
    model = CustomDensity(f, {"a": "flat", "b": "flat"}, **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="improper: the density has no maximum.*" + said):
            model.fit(x[:, None])


def test_batches_of_all_rows_are_all_rows():
    """Drawn with replacement, they would have a noise that the step does not allow for."""
    options = {"sampler": "sgld", "n_draws": 20, "thin": 5, "n_warmup": 10}
    own = made(batch_size=len(y), **options).fit(x[:, None], y)
    full = made(gradient="full", **options).fit(x[:, None], y)
    assert (own.gradient_, own.subsampling_) == ("full", "all_rows")
    np.testing.assert_array_equal(own.posterior_.flat, full.posterior_.flat)


@pytest.mark.parametrize(
    ("times", "options", "gradient", "n"),
    [
        (2, {}, "full", 160),
        (100, {}, "svrg", 100),
        (2, {"batch_size": 20}, "svrg", 20),
        (2, {"gradient": "minibatch", "batch_size": 20}, "minibatch", 20),
        (100, {"gradient": "minibatch"}, "full", 8000),
        (1, {"gradient": "saga"}, "saga", 8),
        (1, {}, "full", 80),
        (100, {"step_size": 1e-4}, "minibatch", 100),
    ],
)
def test_rows_of_steps_are_those_that_take_the_least_time(times, options, gradient, n):
    options = {"sampler": "baoab", "n_draws": 2, "thin": 1, "n_warmup": 1} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two draws are few
        model = made(**options).fit(np.tile(x, times)[:, None], np.tile(y, times))
    assert (model.gradient_, model.batch_size_) == (gradient, n)


@pytest.mark.parametrize("options", [{}, {"sampler": "sgld", "step_size": 1e-4, "n_warmup": 9}])
def test_derivatives_that_are_wrong_only_where_the_posterior_is(options):
    def wrong(theta, row):
        z = (row[1] - theta[0] - theta[1] * row[0]) / theta[2]
        share = 1.0 if theta[2] > 0.6 else 0.6
        return z / theta[2], z * row[0] / theta[2], share * (z * z - 1.0) / theta[2]

    model = made(derivative=wrong, start=[0.0, 0.0, 1.0], **options)
    with pytest.raises(ValueError, match=r"not that of its log_density: .* derivative in sigma"):
        model.fit(x[:, None], y)


@pytest.mark.parametrize(
    ("derivative", "got"),
    [
        (lambda theta, row: slope(theta, row)[:1], "3 numbers in a tuple or array, got 1"),
        (lambda theta, row: (*slope(theta, row), 0.0), "3 numbers in a tuple or array, got 4"),
        (lambda theta, row: slope(theta, row)[0], "3 numbers in a tuple or array, got a number"),
    ],
)
def test_derivatives_of_another_length_are_refused(derivative, got):
    with pytest.raises(ValueError, match=f"derivative of CustomDensity must return {got}"):
        made(derivative=derivative).fit(x[:, None], y)


def test_memory_of_saga_is_refused_with_the_bytes(monkeypatch):
    monkeypatch.setattr("skbayes_sg.densities.fit.MOST_BYTES", 1000)
    with pytest.raises(MemoryError, match=r"80 rows: 1,920 bytes"):
        made(gradient="saga").fit(x[:, None], y)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_functions_of_other_libraries(backend):
    library = pytest.importorskip(backend)
    log = (library.numpy if backend == "jax" else library).log

    def of_rows(theta, rows):
        z = (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / theta[2]
        return -0.5 * z * z - log(theta[2])

    model = made(log_density=of_rows, backend=backend).fit(x[:, None], y)
    assert model.derivatives_ == backend
    wanted = made().fit(x[:, None], y)
    assert np.allclose(model.posterior_.flat[:, :20], wanted.posterior_.flat[:, :20], rtol=1e-4)


class NumPyLibrary:
    """In the place of JAX or PyTorch: the line of this module with its gradient, and its calls."""

    def __init__(self):
        self.rows_of_calls = []

    def functions(self, f):
        return arrays.Functions(f, self.gradients, self.sums)

    @staticmethod
    def gradients(theta, rows):
        z = (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / theta[2]
        return np.stack([z, z * rows[:, 0], z * z - 1.0], axis=1) / theta[2]

    def sums(self, theta, rows, weights):
        self.rows_of_calls.append(len(rows))
        return weights @ of_all_rows(theta, rows), weights @ self.gradients(theta, rows)


def of_all_rows(theta, rows):
    z = (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / theta[2]
    return -0.5 * z * z - np.log(theta[2])


@pytest.fixture
def library(monkeypatch):
    own = NumPyLibrary()
    row_law_of.__globals__["_row_law_of"].cache_clear()  # it has the functions of other tests
    monkeypatch.setitem(arrays.BACKENDS, "torch", own.functions)
    return own


def test_sums_of_libraries_are_those_of_their_rows(library):
    """One call for all rows, however many they are, with their weights."""
    law = row_law_of(of_all_rows, None, (False, False, True), (1.0, 1.0, 1.0), 2, "torch")
    n, z = 1000, np.array([0.3, -1.2, 0.4])
    facts = frozen(
        np.column_stack([np.zeros(n), RNG.uniform(0.5, 2.0, n), RNG.normal(size=(n, 2))])
    )
    places, terms = np.tile(z, (n, 1)), np.empty((n, 3))
    law.derivative(facts, np.arange(n), 0, n, places, terms)
    value, g = law.loss(facts, np.arange(n), 0, n, places), np.ones(3)
    assert law.sums(facts, z, True, g) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, 1.0 + facts[:, 1] @ terms, rtol=1e-12)
    assert law.sums(facts, z, False, g) == 0.0
    assert library.rows_of_calls == [n, n]


def test_chains_on_all_rows_call_a_library_once_for_each_gradient(library):
    X, response = np.tile(x, 10)[:, None], np.tile(y, 10)
    options, weights = {"sampler": "hmc", "n_draws": 50}, np.full(len(X), 0.1)
    model = made(log_density=of_all_rows, backend="torch", **options)
    model.fit(X, response, sample_weight=weights)
    assert set(library.rows_of_calls) == {len(X)}
    wanted = made(**options).fit(X, response, sample_weight=weights)
    np.testing.assert_allclose(
        model.posterior_.flat[:, :20], wanted.posterior_.flat[:, :20], rtol=1e-4
    )


@pytest.mark.parametrize("batch_size", [20, 600])
def test_batches_of_libraries(library, monkeypatch, batch_size):
    """A batch is one call, up to `Model.block` rows."""
    calls = []

    def gradients(theta, rows):
        calls.append(len(rows))
        return NumPyLibrary.gradients(theta, rows)

    monkeypatch.setattr(library, "gradients", gradients)
    X, response = np.tile(x, 10)[:, None], np.tile(y, 10)
    options = {"sampler": "sgld", "gradient": "minibatch", "batch_size": batch_size}
    model = made(log_density=of_all_rows, backend="torch", n_draws=20, **options)
    model.fit(X, response)
    assert Counter(calls).most_common(1)[0][0] == batch_size


def test_log_likelihoods_that_depend_on_other_rows_are_refused(library):
    def centred(theta, rows):
        return of_all_rows(theta, rows - rows.mean(axis=0))

    with pytest.raises(ValueError, match=r"row 0 beside other rows, .* for that row alone"):
        made(log_density=centred, backend="torch").fit(x[:, None], y)


def test_gradients_that_are_not_finite_are_told_from_hidden_ones(library, monkeypatch):
    def lost(theta, rows):
        return np.full((len(rows), 3), np.nan)

    monkeypatch.setattr(library, "gradients", lost)
    with pytest.raises(ValueError, match="where one branch of `where` is not"):
        made(log_density=of_all_rows, backend="torch").fit(x[:, None], y)


def test_long_runs_of_stochastic_gradients_are_told():
    model = made(sampler="sgld", step_size=1e-4, thin=10_000, n_draws=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongRunWarning)  # before it begins
        with pytest.raises(LongRunWarning, match=r"A run of .* with 80 rows each is predicted"):
            model.fit(x[:, None], y)


def test_libraries_that_are_missing_are_named(monkeypatch):
    def missing(f):
        raise ImportError

    monkeypatch.setitem(arrays.BACKENDS, "torch", missing)
    with pytest.raises(ValueError, match=r"needs the package torch, .*: pip install torch"):
        made(log_density=lambda theta, rows: rows, backend="torch").fit(x[:, None], y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_checks_of_scikit_learn():
    priors = {"mu": Normal(scale=10.0)}
    model = CustomDensity(location, priors, n_draws=20, n_chains=1, n_warmup=20)
    failed = [
        found["check_name"]
        for found in check_estimator(model, on_fail=None)
        if found["status"] == "failed"
    ]
    assert failed == []


def test_flat_priors_of_reals():
    model = CustomDensity(line, {"b": (Flat(), 2), "sigma": "half_normal"}, **FEW)
    model.fit(x[:, None], y)
    wanted = np.linalg.lstsq(np.column_stack([np.ones(80), x]), y, rcond=None)[0]
    assert np.abs(model.posterior_.mean("b") - wanted).max() < 0.01


def away(theta, row):
    return -0.005 * (row[0] - theta[0]) ** 2


@pytest.mark.parametrize("prior", ["normal", ("normal", 1), Normal(scale=1.0)])
@pytest.mark.parametrize("size", [1.0, 30.0])
@pytest.mark.slow_for("normal")
def test_priors_without_a_unit_that_hold_a_parameter_back_are_told(prior, size):
    rows = size * (2.0 + np.random.default_rng(0).normal(size=(20, 1)))
    model = CustomDensity(away, {"m": prior}, n_draws=200, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PriorConflictWarning)
        model.fit(rows)
    told = [w for w in caught if w.category is PriorConflictWarning]
    assert bool(told) == (size > 1.0 and not isinstance(prior, Normal))
    if told:
        assert "Normal(scale=...)" in str(told[0].message)
