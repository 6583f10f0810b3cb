"""The regularised horseshoe: each update against its law, and fits against known coefficients."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from horseshoe_nuts import NUTS
from scipy import stats
from scipy.special import expit

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg._base import streams
from skbayes_sg.diagnostics import convergence
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import (
    InvalidParameterError,
    LongRunWarning,
    SamplerConvergenceWarning,
)
from skbayes_sg.models import Linear, Logistic
from skbayes_sg.priors import HalfCauchy, HalfNormal, Horseshoe, Normal, Units
from skbayes_sg.shrinkage import approximated, horseshoe
from skbayes_sg.shrinkage.effective import curvature_along, log_effective_number
from skbayes_sg.shrinkage.horseshoe import tau_zero
from skbayes_sg.shrinkage.horseshoe_hmc import CoefficientsGivenScales, acceptance_of
from skbayes_sg.shrinkage.local_scales import LocalScales
from skbayes_sg.shrinkage.reference import frame_and_collapse, reference_of

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "benchmarks"))
import horseshoe_references

Z = 5.0  # standard errors
SEEN, NOISE = np.array([0.1, -0.4, 1.5, 0.3]), 0.3  # β̂ and its standard error


def exact_law(tau_zero, slab):
    """Of log τ, on a grid, and E(β | τ): the λ_j are independent given τ."""
    t, s = np.linspace(-14.0, 9.0, 1200), np.linspace(-16.0, 16.0, 3000)
    log_p, means = t - np.log1p((np.exp(t) / tau_zero) ** 2), []
    prior = s - np.log1p(np.exp(2.0 * s))
    for seen in SEEN:
        scale = np.exp(2.0 * (t[:, None] + s))
        v = 1.0 / (1.0 / scale + slab**-2)
        own = prior + 0.5 * np.log(v / scale) + stats.norm.logpdf(seen, 0.0, np.sqrt(v + NOISE**2))
        top = own.max(axis=1)
        p = np.exp(own - top[:, None])
        log_p = log_p + top + np.log(p.sum(axis=1))
        means.append((p * v / (v + NOISE**2)).sum(axis=1) / p.sum(axis=1) * seen)
    p = np.exp(log_p - log_p.max())
    return t, p / p.sum(), np.array(means).T


def test_sweeps_have_the_law_of_a_grid():
    """Many short chains, with the β of four columns seen with known noise."""
    rng, n, zero, slab = np.random.default_rng(0), 2500, 0.4, 1.2
    local = LocalScales(n, len(SEEN), zero, slab, rng)
    for _ in range(100):
        Q = local.precision + NOISE**-2
        mean = SEEN / NOISE**2 / Q
        beta = mean + rng.standard_normal(mean.shape) / np.sqrt(Q)
        local.update(beta)
    t, p, means = exact_law(zero, slab)
    expected = p @ t
    sd = np.sqrt(p @ (t - expected) ** 2)
    assert abs(local.log_tau.mean() - expected) < Z * sd / np.sqrt(n)
    fourth = p @ ((t - expected) / sd) ** 4
    assert abs(local.log_tau.var() / sd**2 - 1.0) < Z * np.sqrt((fourth - 1.0) / n)
    assert (np.abs(mean.mean(axis=0) - p @ means) < Z * mean.std(axis=0) / np.sqrt(n)).all()


def scales_of(p, **options):
    return Horseshoe(**options)._learned((p,), Units(columns=lambda: np.linspace(0.5, 2.0, p)))


def linear(intercept=True, n=9, p=3):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, p)), rng.uniform(0.5, 2.0, n)
    y = X @ [1.0, -0.5, 0.2] + 1.0 + 0.5 * rng.normal(size=n)
    scales = scales_of(p)
    rest = [Normal(loc=0.5, scale=2.0)._table((1,))] * intercept + [HalfNormal(1.0)._table((1,))]
    table = np.concatenate([scales.normals, *rest])
    return Target(X, y, w, Linear(), table, intercept=intercept), scales


def test_trajectories_leave_the_law_of_the_coefficients():
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(25, 1)), rng.uniform(0.5, 1.5, 25)
    y = (rng.random(25) < expit(1.5 * x[:, 0])).astype(float)
    scales = Horseshoe(n_relevant=0.5)._learned((1,), Units(columns=lambda: np.array([2.0])))
    target = Target(x, y, w, Logistic(), scales.normals, intercept=False)
    ridge = Normal(scale=HalfCauchy(1.0))._learned((1,), Units())
    s, theta = reference_of(target, ridge, streams.of_recipe(0))
    frame, _ = frame_and_collapse(target, ridge, s, streams.of_recipe(0), theta)
    n = 600
    own = CoefficientsGivenScales(frame, scales, n, 15, rng)
    local = LocalScales(n, 1, 1.0, scales.slab, rng)
    local.log_tau[:] = -0.5 * np.log(0.7 - scales.slab**-2)
    for k in range(30):
        own.update(local, k < 15)
    theta, grid = own.draws()[:, 0], np.linspace(-4.0, 8.0, 4001)
    losses = np.logaddexp(0.0, np.outer(grid, x[:, 0])) - y * np.outer(grid, x[:, 0])
    log_p = -losses @ w - 0.5 * 0.7 * (grid / scales.unit[0]) ** 2
    p = np.exp(log_p - log_p.max())
    share = np.cumsum(p) / p.sum()
    assert stats.kstest(theta, lambda value: np.interp(value, grid, share)).pvalue > 1e-5
    assert 0.5 < own.told["acceptance"] <= 1.0


def test_the_effective_number_is_the_formula():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 4)) + 2.0
    X = np.column_stack([A, np.ones(30)])
    h = curvature_along(X.T @ X, 4)
    np.testing.assert_allclose(h, np.square(A - A.mean(axis=0)).sum(axis=0))
    v = rng.uniform(0.01, 1.0, (3, 4))
    kappa = 1.0 / (1.0 + h * v)
    np.testing.assert_allclose(np.exp(log_effective_number(h, 1.0 / v)), (1.0 - kappa).sum(axis=1))


def test_the_global_scale_is_that_of_the_formula():
    target, _ = linear()
    scales, total = scales_of(3, n_relevant=1), target.weight.sum()
    np.testing.assert_allclose(tau_zero(target, scales), 0.5 / np.sqrt(total))
    binary = Target(target.X, target.X[:, 0] > 0, target.weight, Logistic(), scales.normals)
    np.testing.assert_allclose(tau_zero(binary, scales), 1.0 / np.sqrt(total))


def rows(kind, n, p, k, seed=0):
    rng = np.random.default_rng(seed)
    X, beta = rng.normal(size=(n, p)), np.zeros(p)
    beta[:k] = 1.5 * (-1.0) ** np.arange(k)
    eta = X @ beta
    if kind == "logistic":
        return X, rng.random(n) < expit(eta), beta
    if kind == "poisson":
        return X, rng.poisson(np.exp(0.4 * eta)), 0.4 * beta
    return X, eta + (rng.standard_t(3, n) if kind == "robust" else rng.normal(size=n)), beta


ESTIMATORS = {
    "linear": BayesianLinearRegression,
    "robust": BayesianRobustRegression,
    "logistic": BayesianLogisticRegression,
    "poisson": BayesianPoissonRegressor,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k != "linear")) for k in ESTIMATORS]
)
def test_few_coefficients_of_many_are_found(kind):
    X, y, beta = rows(kind, 300, 30, 3)
    sparse, ridge = (
        ESTIMATORS[kind](prior=prior, random_state=0, n_draws=500).fit(X, y)
        for prior in (Horseshoe(n_relevant=3), Normal(scale=HalfCauchy(1.0)))
    )
    errors = [np.square(np.ravel(model.coef_) - beta).mean() ** 0.5 for model in (sparse, ridge)]
    assert errors[0] < 0.6 * errors[1]
    assert 3.0 < sparse.m_eff_ < 15.0
    assert sparse.diagnostics_["max_rhat"] < 1.03
    labels = sparse.posterior_.labels
    assert labels[-2:] == ("prior_scale", "m_eff")
    assert bool(sparse.posterior_.check())
    lower, upper = sparse.posterior_.interval(0.99, "coef")
    assert ((np.ravel(lower) < beta) & (beta < np.ravel(upper))).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", pytest.param("poisson", marks=pytest.mark.slow)])
def test_a_column_may_be_far_from_zero(kind):
    """The Hessian has no digits left for it: its curvature is 1e-11 of that of the intercept."""
    X, y, _ = rows(kind, 150, 3, 2)
    options = {"prior": "horseshoe", "n_draws": 150, "thin": 5, "random_state": 0}
    away = np.array([1e6, 0.0, 0.0])
    near, far = (
        ESTIMATORS[kind](**options).fit(X + shift, y).posterior_["coef"].reshape(4, 150, 3)
        for shift in (0.0, away)
    )
    assert convergence.rhat(far).max() < 1.05
    error = np.hypot(convergence.mcse_mean(near), convergence.mcse_mean(far))
    apart = near.mean(axis=(0, 1)) - far.mean(axis=(0, 1))
    assert np.abs(apart / error).max() < Z


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_latent_variables_take_over_where_proposals_are_not_accepted(kind, monkeypatch):
    X, y, _ = rows(kind, 120, 3, 1)
    model = BayesianLogisticRegression if kind == "logistic" else BayesianPoissonRegressor
    model = model(prior="horseshoe", n_draws=100, n_warmup=40, thin=1, random_state=0)
    told = model.fit(X, y).diagnostics_
    assert told["accepted_proposals"] > 0.1
    monkeypatch.setattr(approximated, "LEAST_ACCEPTED", 1.1)
    told = model.fit(X, y).diagnostics_
    assert ("accepted_proposals" in told) == (kind == "poisson")


def test_draws_repeat_and_names_work():
    X, y, _ = rows("linear", 40, 6, 1)
    options = {"random_state": 0, "n_draws": 50, "thin": 2, "n_warmup": 50}
    one = BayesianLinearRegression(prior="horseshoe", **options).fit(X, y)
    other = BayesianLinearRegression(prior=Horseshoe(), **options).fit(X, y)
    np.testing.assert_array_equal(one.posterior_.flat, other.posterior_.flat)
    assert (one.sampler_, one.thin_, one.n_warmup_) == ("horseshoe_gibbs", 2, 50)
    assert one.set_params(prior__slab=1.0).prior.slab == 1.0
    with pytest.raises(AttributeError, match="partial_fit"):
        other.set_params(prior="horseshoe").partial_fit(X, y)


@pytest.mark.slow
def test_one_scale_a_column_has_an_effective_number_too():
    X, y, _ = rows("logistic", 300, 8, 2)
    prior = Normal(scale=HalfCauchy(0.1), scale_groups="columns")
    model = BayesianLogisticRegression(prior=prior, random_state=0, n_draws=250).fit(X, y)
    assert model.posterior_.names[-2:] == ("prior_scale", "m_eff")
    assert 2.0 < model.m_eff_ < 8.0
    large = np.ravel(model.prior_scale_)[:2].min()
    assert large > 2.0 * np.ravel(model.prior_scale_)[2:].mean()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (Horseshoe(n_relevant=6), "less than that of the coefficients, 6"),
        (Horseshoe(n_relevant=0), "n_relevant"),
        (Horseshoe(n_relevant="few"), "n_relevant"),
        (Horseshoe(slab=-1.0), "slab"),
        (Horseshoe(slab=np.nan), "slab"),
    ],
)
def test_wrong_parameters_are_told(prior, message):
    X, y, _ = rows("linear", 40, 6, 1)
    with pytest.raises(InvalidParameterError, match=message):
        BayesianLinearRegression(prior=prior).fit(X, y)


def test_intercepts_have_no_horseshoe():
    X, y, _ = rows("linear", 40, 6, 1)
    with pytest.raises(InvalidParameterError, match="is for coefficients"):
        BayesianLinearRegression(intercept_prior="horseshoe").fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_posteriors_are_those_of_another_sampler(kind):
    """Means, and means of squares by their standard deviations, of long runs of NUTS."""
    X, y = horseshoe_references.made(kind)
    options = {"intercept_prior": Normal(scale=2.0), "random_state": 0, "n_draws": 4000}
    if kind == "linear":
        options["noise_prior"] = HalfNormal(1.0)
    prior = Horseshoe(n_relevant=horseshoe_references.RELEVANT, slab=horseshoe_references.SLAB)
    model = ESTIMATORS[kind](prior=prior, **options).fit(X, y)
    posterior = model.posterior_
    draws = [posterior["coef"].reshape(4, 4000, -1), posterior["intercept"].reshape(4, 4000, -1)]
    draws.append(np.log(posterior["prior_scale"]).reshape(4, 4000, -1))
    if kind == "linear":
        draws.append(posterior["noise_std"].reshape(4, 4000, -1))
    draws = np.concatenate(draws, axis=2)
    mean, sd, ess = np.array(NUTS[kind]).T
    own = convergence.ess_mean(draws)
    off = (draws.mean(axis=(0, 1)) - mean) / (sd * np.sqrt(1.0 / own + 1.0 / ess))
    assert (np.abs(off) < 4.0).all(), off
    squares = np.square(draws - mean)
    kurtosis = np.square(squares).mean(axis=(0, 1)) / sd**4 - 1.0
    error = np.sqrt(kurtosis * (1.0 / convergence.ess_mean(squares) + 2.0 / ess))
    ratio = squares.mean(axis=(0, 1)) / sd**2 - 1.0
    assert (np.abs(ratio) < 4.0 * error).all(), ratio
    planted = draws.mean(axis=(0, 1)) + 0.2 * sd - mean
    assert (np.abs(planted) > 4.0 * sd * np.sqrt(1.0 / own + 1.0 / ess)).all()


@pytest.mark.slow
def test_a_fit_judges_what_check_judges():
    """Scales and m_eff as they are, and not their logarithms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    model = BayesianLinearRegression(prior="horseshoe", n_draws=100, n_chains=2, random_state=0)
    model.fit(X, X[:, 0] + rng.normal(size=30))
    sizes = convergence.ess_least(model.posterior_.flat)
    np.testing.assert_allclose(model.diagnostics_["min_ess"], sizes.min())


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [BayesianLinearRegression, BayesianLogisticRegression])
def test_a_long_run_is_told_before_it_begins(estimator, monkeypatch):
    monkeypatch.setattr(horseshoe, "seconds_of_update", lambda n, p: 0.1)
    monkeypatch.setattr(approximated, "seconds_of_update", lambda n, p: 0.1)
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = estimator(prior=Horseshoe(), n_draws=200, n_warmup=300, random_state=0)
    with pytest.warns(LongRunWarning, match="horseshoe prior with 40 rows"):
        model.fit(X, (X[:, 0] > 0).astype(int))


@pytest.mark.slow
def test_robust_regression_has_the_law_of_any_unit():
    """The curvature along an intercept of 1e9 is nothing beside that along log σ."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((120, 4))
    y = 2.0 * rows[:, 0] + 0.5 + rng.standard_t(4.0, 120)
    fits = [
        BayesianRobustRegression(prior="horseshoe", n_draws=50, random_state=0).fit(rows, unit * y)
        for unit in (1.0, 1e9)
    ]
    for name in ("intercept_", "intercept_std_", "noise_std_", "coef_"):
        small, large = (getattr(fit, name) for fit in fits)
        np.testing.assert_allclose(large / 1e9, small, rtol=1e-4)


@pytest.mark.parametrize(("away", "noise"), [(1e7, 0.1), (0.0, 1e-8)])
def test_noise_keeps_its_digits(away, noise):
    """Far from zero, or nearly none: sums of squares of the response would have none left."""
    rng = np.random.default_rng(0)
    X, e = rng.standard_normal((60, 2)), rng.standard_normal(60)
    options = {"prior": "horseshoe", "intercept_prior": Normal(scale=1e9), "random_state": 0}
    y = X[:, 0] + noise * e + away
    model = BayesianLinearRegression(n_draws=50, n_warmup=150, **options).fit(X, y)
    assert 0.8 < model.noise_std_ / noise < 1.2


def test_equal_columns_may_fit_the_rows_exactly():
    """Matrices are singular to rounding there; the posterior has a named warning."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    model = BayesianLinearRegression(prior="horseshoe", n_draws=30, n_warmup=50, random_state=0)
    with pytest.warns(SamplerConvergenceWarning, match="no noise"):
        model.fit(np.column_stack([X, X]), X[:, 0])
    assert abs(model.coef_[[0, 2]].sum() - 1.0) < 1e-6


@pytest.mark.parametrize(
    ("seconds", "most"), [(1e-4, 21), (0.01, 10), (0.1, 1)], ids=["cheap", "dear", "once"]
)
def test_sweeps_are_doubled_while_they_are_cheap(seconds, most):
    """180 seconds are 18 sweeps of 0.01 s for each of 1000 draws: they are doubled up to 16."""
    own, request = SimpleNamespace(thin=1, seconds=seconds), SimpleNamespace(n_draws=1000)
    assert horseshoe._most_thin(own, request) == most


@pytest.mark.parametrize("accepted", [[], [0.5, 1.0]])
def test_acceptance_rates_are_told_if_there_are_any(accepted):
    """With a draw or two, all trajectories after the warm-up may be short ones, or none."""
    assert acceptance_of(accepted) == ({"acceptance": 0.75} if accepted else {})
