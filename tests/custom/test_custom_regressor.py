"""Regressions with the likelihood of a user: derivatives, refusals, predictions."""

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skbayes_sg import BayesianPoissonRegressor
from skbayes_sg.custom import CustomRegressor
from skbayes_sg.custom.law import law_of
from skbayes_sg.exceptions import PriorConflictWarning
from skbayes_sg.kernels.layout import FACT_WEIGHT, FACT_Y
from skbayes_sg.metrics import posterior_predictive_check
from skbayes_sg.priors import Normal
from skbayes_sg.recipe import choose

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 2))
COUNTS = RNG.poisson(np.exp(0.3 + X @ [0.5, -0.3])).astype(float)
FEW = {"n_draws": 100, "n_chains": 2, "random_state": 0}
PRIORS = {"prior": Normal(scale=2.5), "intercept_prior": "normal"}


def poisson(eta, y):
    return y * eta - np.exp(eta) - math.lgamma(y + 1.0)


def gaussian(eta, y, s):
    return -0.5 * ((y - eta) / s) ** 2 - np.log(s)


def poisson_slope(eta, y):
    return y - np.exp(eta)


def real_poisson(eta, y):  # `math.exp` refuses complex numbers
    return y * eta - math.exp(eta) - math.lgamma(y + 1.0)


def modulus(eta, y, sigma):  # accepts complex numbers, and is not analytic
    return -0.5 * abs((y - eta) / sigma) ** 2 - np.log(sigma)


def normal(eta, y, sigma):
    return -0.5 * ((y - eta) / sigma) ** 2 - np.log(sigma)


def normal_slope(eta, y, sigma):
    z = (y - eta) / sigma
    return z / sigma, (z * z - 1.0) / sigma


def two(eta, y, tau):
    return -0.5 * (y - eta[0]) ** 2 * np.exp(eta[1]) + 0.5 * eta[1] + np.cos(tau * eta[0])


def counts(**parameters):
    return CustomRegressor(**{"log_likelihood": poisson, **FEW, **PRIORS, **parameters})


# -- derivatives ------------------------------------------------------------------------------


LAWS = {
    "complex step": (poisson, None, 1, 0, 1e-13),
    "given": (poisson, poisson_slope, 1, 0, 1e-13),
    "finite difference": (real_poisson, None, 1, 0, 1e-9),
    "an extra": (normal, None, 1, 1, 1e-13),
    "an extra, given": (normal, normal_slope, 1, 1, 1e-13),
    "two predictors": (two, None, 2, 1, 1e-13),
}


FAST = ("complex step", "given", "two predictors")


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in LAWS]
)
@pytest.mark.slow_for("two predictors")
def test_kernels_are_derivatives_of_the_function(name):
    """Against complex steps of the same formula in NumPy, and of that again for the curvature."""
    f, derivative, K, E, tolerance = LAWS[name]
    analytic = poisson if f is real_poisson else f
    law, rng, n = law_of(f, derivative, K, E), np.random.default_rng(1), 6
    eta, u = rng.standard_normal((2, n, K + E))
    facts = np.ones((n, 3))
    facts[:, FACT_Y], facts[:, FACT_WEIGHT] = rng.poisson(2.0, n), rng.random(n)

    def at(z, y):
        return analytic(z[0] if K == 1 else z[:K], y, *np.exp(z[K:]))

    def slope(z, y):
        moved = z[:, None] + 1e-30j * np.eye(K + E)
        return np.array([at(column, y).imag for column in moved.T]) / 1e-30

    y = facts[:, FACT_Y]
    wanted = np.array([slope(z, v) for z, v in zip(eta, y, strict=True)])
    terms, product, rows = np.empty_like(eta), u.copy(), np.arange(n)
    law.derivative(facts, rows, 0, n, eta, terms)
    law.curvature(facts, rows, 0, n, eta, product)
    loss = law.loss(facts, rows, 0, n, eta)
    values = np.array([at(z, v) for z, v in zip(eta, y, strict=True)])
    assert np.allclose(loss, -facts[:, FACT_WEIGHT] @ values, rtol=1e-12)
    assert np.allclose(terms, -wanted, rtol=tolerance, atol=tolerance)
    h = 1e-3
    curved = [
        (8 * (slope(z + h * v, w) - slope(z - h * v, w)))
        - (slope(z + 2 * h * v, w) - slope(z - 2 * h * v, w))
        for z, v, w in zip(eta, u, y, strict=True)
    ]
    assert np.allclose(product, -np.array(curved) / (12 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("f", "derivative", "found"),
    [
        (poisson, None, "complex step"),
        pytest.param(poisson, poisson_slope, "given", marks=pytest.mark.slow),
        pytest.param(real_poisson, None, "finite difference", marks=pytest.mark.slow),
    ],
)
def test_the_posterior_is_that_of_the_built_in_model(f, derivative, found):
    model = counts(log_likelihood=f, derivative=derivative).fit(X, COUNTS)
    known = BayesianPoissonRegressor(**FEW, **PRIORS).fit(X, COUNTS)
    assert model.derivatives_ == found
    assert np.allclose(model.posterior_.flat, known.posterior_.flat, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_complex_steps_of_functions_that_are_not_analytic_are_found_out():
    y = X @ [1.0, -1.0] + 0.5 * RNG.standard_normal(200)
    both = [
        CustomRegressor(log_likelihood=f, extras={"sigma": "half_normal"}, **FEW).fit(X, y)
        for f in (modulus, normal)
    ]
    assert [model.derivatives_ for model in both] == ["finite difference", "complex step"]
    assert np.allclose(both[0].posterior_.flat, both[1].posterior_.flat, rtol=1e-6, atol=1e-7)


def test_functions_of_real_numbers_alone_are_known():
    """`max` of complex numbers ends in another error than other functions of them."""
    law = law_of(lambda eta, y: -max(0.0, 1.0 - y * eta), None, 1, 0)
    assert law.derivatives == "finite difference"
    z = np.array([[[0.5]], [[2.0]]])
    assert np.allclose(law.log_likelihood(z, np.ones(2)).ravel(), [-0.5, 0.0])


def test_places_where_a_derivative_divides_by_zero_do_not_count():
    """Compiled complex numbers raise an error where real numbers are infinite."""

    def inverse_gaussian(eta, y):
        m = np.exp(eta)
        return -((y - m) ** 2) / (2.0 * m * m * y)

    law = law_of(inverse_gaussian, None, 1, 0)
    assert law.derivatives == "complex step"
    assert law.disagreement(np.full(5, 1e-3), 1000.0) is None


def cauchy(eta, y):
    return -np.log(1.0 + (y - eta) ** 2)


@pytest.mark.parametrize(
    "y",
    [
        (0.0, 0.5, 1.0, 9.0, 9.4),
        pytest.param((0.0, 0.2, 0.5, 0.7, 6.0, 6.3, 6.4), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_second_mode_of_a_small_share_is_found(y):
    y, grid = np.array(y), np.linspace(-60.0, 60.0, 24001)
    log_p = cauchy(grid[:, None], y).sum(axis=1) - 0.5 * (grid / 10.0) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    model = CustomRegressor(
        log_likelihood=cauchy, prior=Normal(scale=10.0), fit_intercept=False, random_state=0
    ).fit(np.ones((len(y), 1)), y)
    draws = model.posterior_["coef"].ravel()
    assert model.diagnostics_["n_modes"] == 2  # of 2 % and of 4 %
    assert abs(draws.mean() - mean) < 0.08 * sd
    assert abs(draws.std() / sd - 1.0) < 0.08


@pytest.mark.slow
def test_kinks_do_not_keep_many_chains_busy():
    """Small steps of chains in lockstep would take 247 040 gradients; other ways take a few."""
    y = X[:, 0] + np.random.default_rng(1).laplace(size=200)
    model = CustomRegressor(
        log_likelihood=lambda eta, y, s: -abs(y - eta) / s - np.log(s),
        extras={"s": "half_normal"},
        random_state=0,
    ).fit(X, y)
    assert model.derivatives_ == "finite difference"
    assert model.diagnostics_.get("lockstep_n_gradients", 0.0) < 50_000
    assert np.allclose(model.coef_, [1.0, 0.0], atol=0.3)


@pytest.mark.slow
def test_flat_priors_need_curvature():
    def laplace(eta, y):
        return -abs(y - eta)

    y = X[:, 0] + 9.0 + np.random.default_rng(1).laplace(size=200)  # no kink at 0
    model = CustomRegressor(log_likelihood=laplace, prior="flat", fit_intercept=False, **FEW)
    with pytest.raises(ValueError, match=r"curvature of that .* is zero at 100% .* proper prior"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"columns of X .* are linearly dependent"):
        model.fit(X[:, [0, 1, 0]], y)
    model.set_params(prior=Normal(scale=100.0), fit_intercept=True).fit(X, y)
    assert np.allclose(model.coef_, [1.0, 0.0], atol=0.3)


def test_the_default_prior_of_the_intercept_is_widened_for_columns_far_from_zero():
    """As in the other regressions, and `intercept_prior_` says so."""
    far = X + np.array([1e4, 0.0])
    found = CustomRegressor(log_likelihood=poisson, **FEW).fit(far, COUNTS)
    spread, size = COUNTS.std(), COUNTS.mean()
    scale = 10.0 * max(1.0, spread, size)
    own = 2.5 * max(1.0, spread) / X[:, 0].std()
    expected = np.hypot(scale, 5.0 * far[:, 0].mean() * min(own, scale / X[:, 0].std()))
    np.testing.assert_allclose(found.intercept_prior_.scale, expected, rtol=0.02)


def test_a_wrong_derivative_is_refused():
    def wrong(eta, y):
        return y - np.exp(1.01 * eta)

    with pytest.raises(ValueError, match=r"not that of its log_likelihood: for eta = \S+ and y ="):
        counts(derivative=wrong).fit(X, COUNTS)


def test_derivatives_that_are_wrong_only_where_the_posterior_is():
    rng = np.random.default_rng(0)
    narrow = 1.0 + X[:, 0] + 0.02 * rng.normal(size=len(X))

    def wrong(eta, y, sigma):
        z = (y - eta) / sigma
        return z / sigma, (z * z - 1.0) / sigma if sigma > 0.05 else z * z / sigma

    model = counts(log_likelihood=normal, extras={"sigma": "half_normal"}, derivative=wrong)
    for options in ({}, {"sampler": "sgld", "step_size": 1e-3, "n_warmup": 50, "thin": 1}):
        with pytest.raises(ValueError, match=r"not that of its log_likelihood: .* in sigma is "):
            model.set_params(**options).fit(X, narrow)


def test_derivatives_that_are_wrong_only_at_the_mode(monkeypatch):
    """They are told before chains are run, which may take long by wrong derivatives."""
    monkeypatch.setattr(choose, "run_exact", lambda *_: pytest.fail("chains have been run"))

    def wrong(eta, y, sigma):
        z = (y - eta) / sigma
        return z / sigma, (z * z - 1.0) / sigma if sigma > 0.05 else z * z / sigma

    rng = np.random.default_rng(0)
    narrow = 1.0 + X[:, 0] + 0.02 * rng.normal(size=len(X))
    model = counts(log_likelihood=normal, extras={"sigma": "half_normal"}, derivative=wrong)
    with pytest.raises(ValueError, match="not that of its log_likelihood"):
        model.set_params(sampler="hmc").fit(X, narrow)


def test_a_derivative_in_the_logarithm_is_told():
    def of_log(eta, y, sigma):
        z = (y - eta) / sigma
        return z / sigma, z * z - 1.0

    model = counts(log_likelihood=normal, extras={"sigma": "half_normal"}, derivative=of_log)
    with pytest.raises(ValueError, match=r"in sigma is (\S+), and .* in log sigma is \1"):
        model.fit(X, COUNTS)


@pytest.mark.parametrize("found", [None, "0.0"])
def test_derivatives_that_are_no_numbers(found):
    said = f"derivative of CustomRegressor must return a number, got {found!r}"
    with pytest.raises(ValueError, match=said):
        counts(derivative=lambda eta, y: found).fit(X, COUNTS)


def test_derivatives_of_another_length_are_refused():
    both = {"log_likelihood": normal, "extras": {"sigma": "half_normal"}}
    with pytest.raises(ValueError, match=r"must return 2 numbers in a tuple .*, got 1 in a"):
        counts(**both, derivative=lambda eta, y, sigma: ((y - eta) / sigma,)).fit(X, COUNTS)
    with pytest.raises(ValueError, match="CustomRegressor must return a number, got 1 in a tuple"):
        counts(derivative=lambda eta, y: (y - np.exp(eta),)).fit(X, COUNTS)


@pytest.mark.slow
def test_predictions_of_another_shape_are_refused():
    model = counts(mean=lambda eta: 1.0, sample=lambda rng, eta: eta[0]).fit(X, COUNTS)
    with pytest.raises(ValueError, match=r"mean must return .* of shape \(3, 200\), got \(\)"):
        model.predict(X[:3])
    with pytest.raises(ValueError, match=r"sample must return .* \(3, 1\), got \(1,\)"):
        model.sample_y(X[:3])


def test_responses_that_are_impossible_are_refused():
    def support(eta, y):
        return np.log(y) * np.exp(eta) - np.exp(eta)

    with pytest.raises(ValueError, match="not finite for y = 0: at eta = 0 it is"):
        counts(log_likelihood=support).fit(X, np.where(np.arange(200) == 3, 0.0, COUNTS + 1.0))


# -- predictions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda eta, y: np.log(eta) * y - eta, r"at eta = -0\.3, y = 0: it is nan"),
        (lambda eta, y: y * eta - np.exp(eta) if eta < 1.5 else np.nan, "at eta = 2, y = 0: it is"),
        (
            lambda eta, y: y * eta - np.exp(eta) if not 0.4 < eta < 0.6 else np.nan,
            r"not finite where the mode was looked for: at the parameters \[",
        ),
    ],
    ids=["no link", "beyond a limit", "in between"],
)
@pytest.mark.slow_for("in between")
def test_likelihoods_that_are_no_numbers_are_refused(f, text):
    with pytest.raises(ValueError, match=text):
        counts(log_likelihood=f).fit(X, COUNTS)


def test_several_predictors_that_are_no_numbers_are_refused():
    def rooted(eta, y, tau):
        return -0.5 * (y - eta[0]) ** 2 * np.sqrt(eta[1]) / tau

    model = counts(log_likelihood=rooted, n_predictors=2, extras={"tau": "half_normal"})
    with pytest.raises(ValueError, match=r"at eta = -0\.3, -0\.3, tau = 1, y = 0"):
        model.fit(X, COUNTS)


@pytest.mark.slow
def test_likelihoods_may_say_that_a_response_is_impossible():
    def bounded(eta, y):
        return y * eta - np.exp(eta) if eta < 4.0 else -np.inf

    model = counts(log_likelihood=bounded).fit(X, COUNTS)
    assert np.allclose(model.coef_, [0.5, -0.3], atol=0.2)


@pytest.mark.slow
def test_predictions():
    def sample(rng, eta):
        return rng.poisson(np.exp(eta))

    model = counts(mean=np.exp, sample=sample, n_draws=500).fit(X, COUNTS)
    known = BayesianPoissonRegressor(**FEW | {"n_draws": 500}, **PRIORS).fit(X, COUNTS)
    assert np.allclose(model.predict(X), known.predict(X))
    assert np.allclose(
        model.predict(X, return_std=True)[1], known.predict_std_components(X)[0], rtol=1e-6
    )
    assert np.isclose(model.score(X, COUNTS), known.predict_log_density(X, COUNTS).mean())
    # one response for each of the 1000 draws: the probability below a quantile is within 5 sd
    median = model.predict_quantiles(X[:20], 0.5)
    below, above = (known.predict_quantiles(X[:20], q) for q in (0.5 - 0.08, 0.5 + 0.08))
    assert ((below <= median) & (median <= above)).all()
    assert model.sample_y(X[:5], 3).shape == (5, 3)
    lower, upper = model.predict_interval(X, 0.5)
    assert (lower <= upper).all()
    assert (lower < upper).any()


@pytest.mark.slow
def test_predictive_checks_ask_for_the_functions_that_they_need():
    model = counts().fit(X, COUNTS)
    with pytest.raises(TypeError, match=r"use set_params\(sample=\.\.\., mean=\.\.\.\)"):
        posterior_predictive_check(model, X, COUNTS)
    model.set_params(sample=lambda rng, eta: rng.poisson(np.exp(eta)))
    with pytest.raises(TypeError, match=r"CustomRegressor .* use set_params\(mean=\.\.\.\)"):
        posterior_predictive_check(model, X, COUNTS)
    check = posterior_predictive_check(model.set_params(mean=np.exp), X, COUNTS, n_draws=100)
    assert set(check.observed) == {"dispersion", "skewness", "tails"}


def test_methods_exist_where_their_functions_are_given():
    model = counts()
    methods = "predict", "sample_y", "predict_interval", "predict_quantiles"
    assert not any(hasattr(model, name) for name in (*methods, "predict_std_components"))
    model.set_params(mean=np.exp, sample=lambda rng, eta: rng.poisson(np.exp(eta)))
    assert all(hasattr(model, name) for name in methods)


@pytest.mark.slow
def test_several_predictors():
    """A location and a log precision, each with coefficients: against weighted least squares."""

    def located(eta, y):
        return -0.5 * (y - eta[0]) ** 2 * np.exp(eta[1]) + 0.5 * eta[1]

    rng = np.random.default_rng(3)
    Z = rng.standard_normal((2000, 2))
    y = Z @ [1.0, 0.0] + np.exp(-0.5 * (Z @ [0.0, 1.0])) * rng.standard_normal(2000)
    model = CustomRegressor(log_likelihood=located, n_predictors=2, **FEW).fit(Z, y)
    assert model.coef_.shape == (2, 2)
    assert model.posterior_.labels[1:3] == ("coef[0, x1]", "coef[1, x0]")
    truth, sd = np.array([[1.0, 0.0], [0.0, 1.0]]), model.coef_std_
    assert (np.abs(model.coef_ - truth) < 4.0 * sd).all()
    design, w = np.column_stack([Z, np.ones(2000)]), np.exp(Z @ [0.0, 1.0])
    wanted = np.sqrt(np.diag(np.linalg.inv((design * w[:, None]).T @ design)))
    assert np.allclose(sd[0], wanted[:2], rtol=0.25)
    own = stats.norm.logpdf(y, Z @ [1.0, 0.0], 1.0 / np.sqrt(w)).mean()
    assert abs(model.score(Z, y) - 0.5 * np.log(2 * np.pi) - own) < 0.01


# -- parameters, pipelines --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"log_likelihood": None}, "'log_likelihood' parameter of CustomRegressor must be a func"),
        ({"log_likelihood": 3}, "'log_likelihood'"),
        ({"derivative": 3}, "'derivative'"),
        ({"mean": "exp"}, "'mean'"),
        ({"extras": ["sigma"]}, "'extras'"),
        ({"extras": {"coef": "half_normal"}}, "'extras'"),
        ({"extras": {"sigma": "normal"}}, "'extras'"),
        ({"n_predictors": 0}, "'n_predictors'"),
        ({"log_likelihood": lambda eta: -eta}, "log_likelihood of CustomRegressor.*cannot be comp"),
        ({"log_likelihood": normal}, "log_likelihood of CustomRegressor.*cannot be compiled"),
        ({"log_likelihood": lambda eta, y: None}, "must return one number, .* got None"),
        ({"log_likelihood": lambda eta, y: np.array([eta])}, r"one number, .* of shape \(1,\)"),
        ({"log_likelihood": lambda eta, y: 1j * eta}, r"must return one number, .* got 0j"),
        (
            {"log_likelihood": lambda eta, y: eta[2] * y, "n_predictors": 2},
            "log_likelihood of CustomRegressor reads beyond its arguments: index 2",
        ),
    ],
)
def test_bad_parameters(parameters, text):
    with pytest.raises(ValueError, match=text):
        counts(**parameters).fit(X, COUNTS)


@pytest.mark.parametrize("column", ["g", 1])
def test_group_effects_of_several_predictors_are_refused(column):
    rows = np.column_stack([X[:, 0], np.arange(200) % 5])
    if column == "g":
        rows = pytest.importorskip("pandas").DataFrame(rows, columns=["x", "g"])
    model = counts(log_likelihood=two, n_predictors=2, extras={"tau": "half_normal"})
    model.set_params(group_effects=[column])
    with pytest.raises(ValueError, match=r"'group_effects' .* must be None with n_predictors=2"):
        model.fit(rows, COUNTS)


def test_branches_that_return_nothing_are_named():
    y = X[:, 0]
    odd = np.sort(y)[5]  # the function is called as it is for every tenth response

    def most(eta, y):
        if y != odd:
            return -0.5 * (y - eta) ** 2

    with pytest.raises(ValueError, match="has returned None for some row: every branch must ret"):
        counts(log_likelihood=most).fit(X, y)


@pytest.mark.slow
def test_pipelines_copies_and_stochastic_gradients():
    pipe = make_pipeline(StandardScaler(), counts(mean=np.exp))
    assert np.allclose(clone(pipe).fit(X, COUNTS).predict(X), pipe.fit(X, COUNTS).predict(X))
    model = counts(
        sampler="sgld", gradient="svrg", batch_size=20, step_size=0.05, n_warmup=100, thin=5
    ).fit(X, COUNTS)
    assert (model.gradient_, model.batch_size_) == ("svrg", 20)
    assert np.abs(model.coef_ - counts().fit(X, COUNTS).coef_).max() < 0.1
    again = pickle.loads(pickle.dumps(model))
    assert again.coef_.tobytes() == model.coef_.tobytes()


def spread_beyond_one(eta, y, t):
    return -0.5 * (y - eta) ** 2 / (1.0 + t * t) - 0.5 * np.log(1.0 + t * t)


@pytest.mark.slow
def test_extras_whose_density_is_positive_at_zero():
    x, y = np.random.default_rng(4).standard_normal((2, 30))
    model = CustomRegressor(
        log_likelihood=spread_beyond_one, extras={"t": "half_normal"}, random_state=0
    )
    posterior = model.fit(x[:, None], y).posterior_
    assert posterior.check()
    plain = float(posterior.mean("t"))
    assert posterior.mean("t", control_variate="linear") == pytest.approx(plain, abs=0.02)


@pytest.mark.slow
def test_scales_that_are_auto_follow_the_unit_of_the_response():
    """In dollars instead of thousands, a half-normal prior must not push the noise to zero."""
    rng = np.random.default_rng(4)
    y = X @ [1.0, -0.5] + 0.4 * rng.standard_normal(200)
    shared = {"log_likelihood": gaussian, "extras": {"s": "half_normal"}, "n_draws": 500}
    one, many = (CustomRegressor(random_state=0, **shared).fit(X, c * y) for c in (1.0, 1e3))
    assert np.isclose(many.s_ / 1e3, one.s_, rtol=0.02)
    assert np.allclose(many.coef_std_ / 1e3, one.coef_std_, rtol=0.1)


def location(eta, sigma):
    return eta


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_checks_of_scikit_learn():
    parameters = {"extras": {"sigma": "half_normal"}, "mean": location, "n_draws": 20}
    model = CustomRegressor(log_likelihood=normal, n_chains=1, **parameters)
    failed = [
        found["check_name"]
        for found in check_estimator(model, on_fail=None)
        if found["status"] == "failed"
    ]
    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_group_effects_begin_wherever_the_mean_is(seed):
    # No link says which predictor has a mean response below zero; and e^50 is none of mean 50.
    rng = np.random.default_rng(seed)
    g, x = rng.integers(0, 8, 120), rng.standard_normal(120)
    y = 0.5 * x + 0.7 * rng.standard_normal(8)[g] + 0.5 * rng.standard_normal(120) - 3.0
    groups, rows = {"group_effects": [1], **FEW}, np.column_stack([x, g])
    model = CustomRegressor(log_likelihood=gaussian, extras={"s": "half_student_t"}, **groups).fit(
        rows, y
    )
    assert model.coef_[0] == pytest.approx(0.5, abs=0.2)
    assert model.s_ == pytest.approx(0.5, abs=0.12)
    counts = rng.poisson(50.0 * np.exp(0.2 * x))
    model = CustomRegressor(log_likelihood=poisson, **groups).fit(rows, counts)
    assert model.intercept_ == pytest.approx(np.log(50.0), abs=0.1)


@pytest.mark.slow
def test_the_prior_of_the_intercept_of_centred_rows_is_no_conflict():
    """Julian days are centred; their intercept, at day zero, is far from any prior of it there."""
    rng = np.random.default_rng(0)
    day, x = 2.45e6 + rng.integers(0, 3650, 300), rng.standard_normal(300)
    y = x + 8e-4 * (day - 2.452e6) + 0.7 * rng.standard_normal(300)
    model = CustomRegressor(
        log_likelihood=normal, extras={"sigma": "half_normal"}, n_draws=100, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorConflictWarning)
        fit = model.fit(np.c_[x, day], y)
    assert fit.intercept_ < -1000.0
    assert fit.coef_[1] == pytest.approx(8e-4, abs=4.0 * fit.coef_std_[1])


def naive_zeros(eta, y):
    """Poisson counts with more zeros, without care for probabilities that are rounded to one."""
    p, rate = 1.0 / (1.0 + np.exp(-eta[0])), np.exp(eta[1])
    if y == 0.0:
        return np.log(p + (1.0 - p) * np.exp(-rate))
    return np.log(1.0 - p) + y * eta[1] - rate


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_the_search_steps_back_where_a_likelihood_is_nothing_but_rounding(seed):
    """There log(1 - p) has slopes of 1e16, and SciPy finds no convex quadratic."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 2))
    counts = rng.poisson(np.exp(0.6 + 0.5 * rows[:, 0])) * (rng.random(60) > 0.4)
    model = CustomRegressor(log_likelihood=naive_zeros, n_predictors=2, **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # 60 rows say little of some parameters
        fitted = model.fit(rows, counts.astype(float))
    assert np.isfinite(fitted.posterior_.flat).all()
    assert abs(fitted.coef_[1, 0] - 0.5) < 0.4
