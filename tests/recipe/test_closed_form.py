"""Linear regression in closed form: formulas of textbooks and quadrature, to rounding."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, sparse, stats

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import LongRunWarning, SamplerConvergenceWarning
from skbayes_sg.models import Linear, LinearKnownNoise
from skbayes_sg.priors import Flat, HalfCauchy, HalfNormal, HalfStudentT, InverseGamma, Normal
from skbayes_sg.priors.families import of_family, resolve_positive
from skbayes_sg.recipe import closed_form
from skbayes_sg.recipe.request import Request

NOISE_PRIORS = {
    "half_normal": (HalfNormal(scale=0.8), lambda v: stats.halfnorm(scale=0.8).logpdf(v)),
    "half_student_t": (
        HalfStudentT(df=3.0, scale=0.8),
        lambda v: stats.t(3.0, scale=0.8).logpdf(v),
    ),
    "half_cauchy": (HalfCauchy(scale=0.8), lambda v: stats.halfcauchy(scale=0.8).logpdf(v)),
    "inverse_gamma": (
        InverseGamma(1.5, 0.7),
        lambda v: stats.invgamma(1.5, scale=0.7).logpdf(v**2) + np.log(v),
    ),
    "flat": (resolve_positive("flat"), lambda v: 0.0 * v),
}


HALF_NORMAL = HalfNormal(scale=0.8)


def problem(n=12, d=3, *, prior="normal", noise=HALF_NORMAL, intercept=True, X=None):
    """A target with weights, and the design with its column of ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) if X is None else X
    n, d = X.shape
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    y = A @ rng.normal(size=A.shape[1]) + 0.5 * rng.normal(size=n)
    weight = rng.uniform(0.5, 2.0, n)
    table = {
        "normal": Normal(loc=rng.normal(size=A.shape[1]), scale=rng.uniform(0.5, 2.0, A.shape[1])),
        "flat": Flat(),
    }[prior]._table((A.shape[1],))
    model = LinearKnownNoise() if noise is None else Linear()
    if noise is not None:
        table = np.concatenate([table, noise._table((1,))])
    return Target(X, y, weight, model, table, intercept=intercept), A


def precision_and_shift(target, A, sigma):
    """Λ and Λ m of the coefficients given σ, by the textbook."""
    y, w = target.data.facts[:, 0], target.weight
    prior = target.prior[: A.shape[1]]
    of_prior = np.where(of_family(prior, Flat), 0.0, prior[:, 2] ** -2.0)
    precision = (A.T * w) @ A / sigma**2 + np.diag(of_prior)
    return precision, A.T @ (w * y) / sigma**2 + of_prior * prior[:, 1]


def log_evidence(target, A, sigma):
    """log p(y | σ) up to a constant, by the textbook."""
    y, w = target.data.facts[:, 0], target.weight
    precision, shift = precision_and_shift(target, A, sigma)
    mean = linalg.solve(precision, shift, assume_a="pos")
    prior = target.prior[: A.shape[1]]
    of_prior = np.where(of_family(prior, Flat), 0.0, prior[:, 2] ** -2.0)
    misfit = (w * (y - A @ mean) ** 2).sum() / sigma**2
    misfit += (of_prior * (mean - prior[:, 1]) ** 2).sum()
    return -w.sum() * np.log(sigma) - 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * misfit


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("prior", ["normal", "flat"])
def test_known_noise_by_the_textbook(prior, intercept):
    target, A = problem(prior=prior, noise=None, intercept=intercept)
    conditional = closed_form.conditional_of(target)
    precision, shift = precision_and_shift(target, A, 1.0)
    covariance = linalg.inv(precision)
    assert np.abs(conditional.mean(0.0) - covariance @ shift).max() < 1e-10
    assert np.abs(conditional.variance(0.0) / np.diag(covariance) - 1.0).max() < 1e-10


@pytest.mark.parametrize("prior", ["normal", "flat"])
@pytest.mark.parametrize("sigma", [0.05, 0.5, 20.0])
def test_coefficients_given_the_noise(prior, sigma):
    target, A = problem(prior=prior)
    conditional = closed_form.conditional_of(target)
    precision, shift = precision_and_shift(target, A, sigma)
    covariance = linalg.inv(precision)
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((conditional.mean(np.log(sigma)) - covariance @ shift) / scale).max() < 1e-10
    assert np.abs(conditional.variance(np.log(sigma)) / scale**2 - 1.0).max() < 1e-10
    change = conditional.log_likelihood(np.log([sigma, 1.0]))
    expected = log_evidence(target, A, sigma) - log_evidence(target, A, 1.0)
    assert abs(change[0] - change[1] - expected) < 1e-10 * max(1.0, abs(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name if name == "half_student_t" else pytest.param(name, marks=pytest.mark.slow)
        for name in NOISE_PRIORS
    ],
)
@pytest.mark.parametrize("prior", ["normal", pytest.param("flat", marks=pytest.mark.slow)])
def test_law_of_the_noise_by_quadrature(name, prior):
    noise, log_prior = NOISE_PRIORS[name]
    target, A = problem(prior=prior, noise=noise)
    conditional = closed_form.conditional_of(target)
    law = closed_form.noise_law(conditional, target.prior[-1])

    def density(sigma):
        return np.exp(log_evidence(target, A, sigma) + log_prior(sigma) - top)

    top = 0.0
    places = np.exp(np.linspace(-4.0, 3.0, 200))
    top = max(log_evidence(target, A, s) + log_prior(s) for s in places)
    options = {"epsabs": 0.0, "epsrel": 1e-11, "limit": 500}
    pieces = [0.0, 0.2, 0.5, 1.0, 3.0, 20.0, np.inf]

    def integral(g):
        parts = itertools.pairwise(pieces)
        return sum(integrate.quad(lambda s: g(s) * density(s), *ab, **options)[0] for ab in parts)

    mass = integral(lambda s: 1.0)
    sigma = np.exp(law.places)
    moments = [(1.0 / sigma, lambda s: 1.0 / s), (np.log(sigma), np.log)]
    for values, g in moments:
        assert abs(law.mean(values) - integral(g) / mass) < 1e-9
    below = integrate.quad(density, 1e-9, 0.5, **options)[0] / mass
    assert abs(np.interp(np.log(0.5), law.places, law.share) - below) < 1e-5


def test_normal_inverse_gamma():
    # A flat prior of the coefficients and an inverse gamma prior of σ² are conjugate: with a_n and
    # b_n of the textbook E σ² = b_n/(a_n - 1), and the coefficients are Student t.
    alpha, beta = 1.5, 0.7
    target, A = problem(prior="flat", noise=InverseGamma(alpha, beta))
    conditional = closed_form.conditional_of(target)
    law = closed_form.noise_law(conditional, target.prior[-1])
    y, w = target.data.facts[:, 0], target.weight
    S = (A.T * w) @ A
    mean = linalg.solve(S, A.T @ (w * y))
    a_n = alpha + 0.5 * (w.sum() - A.shape[1])
    b_n = beta + 0.5 * (w * (y - A @ mean) ** 2).sum()
    assert abs(law.mean(np.exp(2.0 * law.places)) / (b_n / (a_n - 1.0)) - 1.0) < 1e-10
    assert np.abs(law.mean(conditional.mean(law.places)) - mean).max() < 1e-10
    variance = law.mean(conditional.variance(law.places))
    expected = b_n / (a_n - 1.0) * np.diag(linalg.inv(S))
    assert np.abs(variance / expected - 1.0).max() < 1e-10


def test_draws_have_these_laws():
    target, _ = problem(noise=HalfStudentT(df=3.0, scale=0.8))
    conditional = closed_form.conditional_of(target)
    law = closed_form.noise_law(conditional, target.prior[-1])
    rng, n = np.random.default_rng(0), 100_000
    log_sigma = law.quantile(rng.random(n))
    draws = np.column_stack([conditional.draw(rng, log_sigma), log_sigma])
    means = conditional.mean(law.places)
    mean = np.append(law.mean(means), law.mean(law.places))
    between = law.mean((means - mean[:-1]) ** 2)
    variance = law.mean(conditional.variance(law.places)) + between
    variance = np.append(variance, law.mean((law.places - mean[-1]) ** 2))
    error = (draws.mean(axis=0) - mean) / np.sqrt(variance / n)
    assert np.abs(error).max() < 5.0
    fourth = ((draws - mean) ** 4).mean(axis=0) / variance**2
    error = (draws.var(axis=0) / variance - 1.0) / np.sqrt((fourth - 1.0) / n)
    assert np.abs(error).max() < 5.0
    # Twins: draws that leave out what σ not being known adds, and what it moves.
    stuck = conditional.draw(rng, np.full(n, law.quantile(0.5)))
    assert np.abs((stuck.var(axis=0) / variance[:-1] - 1.0) / np.sqrt(2.0 / n)).max() > 5.0


@pytest.mark.parametrize("condition", [1e2, 1e6])
def test_badly_scaled_columns(condition):
    # Orthogonal transformations square no condition number: flat priors, units over 12 decades.
    rng = np.random.default_rng(1)
    U, _, V = linalg.svd(rng.normal(size=(40, 5)), full_matrices=False)
    X = (U * np.geomspace(1.0, 1.0 / condition, 5)) @ V
    target, _ = problem(X=X, prior="flat", noise=None, intercept=False)
    conditional = closed_form.conditional_of(target)
    w = np.sqrt(target.weight)
    expected = linalg.lstsq(w[:, None] * X, w * target.data.facts[:, 0])[0]
    R = linalg.qr(w[:, None] * X, mode="r")[0][:5]
    sd = np.sqrt(np.square(linalg.inv(R)).sum(axis=1))
    assert np.abs((conditional.mean(0.0) - expected) / sd).max() < 1e-6
    assert np.abs(np.sqrt(conditional.variance(0.0)) / sd - 1.0).max() < 1e-6


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, lambda X: X.astype(np.float32)])
def test_few_rows_say_all(kind):
    rng = np.random.default_rng(2)
    X = np.float32(rng.normal(size=(5000, 4)) * (rng.random((5000, 4)) < 0.6))
    target, _ = problem(X=X.astype(np.float64))
    same = Target(
        kind(X.astype(np.float64)), target.data.facts[:, 0], target.weight, target.model,
        target.prior,
    )  # fmt: skip
    few = closed_form.few_rows(same)
    assert few.n_rows == 6
    for seed in range(3):
        theta = np.random.default_rng(seed).normal(size=6)
        value, g = target.value_and_gradient(theta)
        found, slope = few.value_and_gradient(theta)
        assert abs(found - value) < 1e-10 * abs(value)
        assert np.abs(slope - g).max() < 1e-9 * np.abs(g).max()


def test_more_columns_than_rows():
    target, A = problem(n=4, d=9)
    conditional = closed_form.conditional_of(target)
    for sigma in (0.3, 3.0):
        precision, shift = precision_and_shift(target, A, sigma)
        assert np.abs(conditional.mean(np.log(sigma)) - linalg.solve(precision, shift)).max() < 1e-9


def test_two_modes_are_both_found():
    # A narrow prior far off: either σ is small and the prior is wrong, or σ is large.
    def f(s):
        return np.logaddexp(-0.5 * ((s + 3.0) / 0.02) ** 2, np.log(0.5) - 0.5 * (s - 1.0) ** 2)

    law = closed_form.NoiseLaw(f, -40.0, 20.0)
    mass = [0.02, 0.5]
    expected = (mass[0] * -3.0 + mass[1] * 1.0) / sum(mass)
    assert abs(law.mean(law.places) - expected) < 1e-4


def log_density_falls(target, places=(20.0, 21.0)):
    """By how much log p(log σ | y) falls between two places in the tail."""
    s, conditional = np.array(places), closed_form.conditional_of(target)
    values = conditional.log_likelihood(s) + closed_form.log_prior(target.prior[-1], s)
    return -np.diff(values)[0] / np.diff(s)[0]


@pytest.mark.parametrize("noise", [HalfCauchy(), InverseGamma(1.0, 0.7)])
@pytest.mark.parametrize("n_flat", [1, 4])
@pytest.mark.parametrize("weight", [0.4, 1.0])
def test_flat_coefficients_have_the_tail_of_the_noise(weight, n_flat, noise):
    rng = np.random.default_rng(0)
    tables = Flat()._table((n_flat,)), Normal()._table((4 - n_flat,)), noise._table((1,))
    X, y, w = rng.normal(size=(9, 3)), rng.normal(size=9), np.full(9, weight)
    target = Target(X, y, w, Linear(), np.concatenate(tables), intercept=True)
    found = closed_form.heavy_tail(target)["heavy_tail"]
    np.testing.assert_allclose(found[-1], 1.0 / log_density_falls(target), rtol=1e-9)
    np.testing.assert_array_equal(found[:-1], np.where(np.arange(4) < n_flat, found[-1], 0.0))
    outcome = closed_form.run_closed_form(target, Request(n_chains=1, n_draws=4))
    np.testing.assert_array_equal(outcome.evidence["heavy_tail"], found)


def test_other_posteriors_have_no_heavy_tail():
    for noise in (None, HALF_NORMAL):
        found = closed_form.heavy_tail(problem(prior="flat", noise=noise)[0])
        assert not np.any(found.get("heavy_tail", 0.0))
    assert closed_form.heavy_tail(problem(prior="normal", noise=HalfCauchy())[0]) == {}


def test_a_posterior_without_a_mean_comes_with_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = BayesianLinearRegression(prior="flat", noise_prior=HalfCauchy(), random_state=0)
    said = r"degenerate\. heavy tail: the density falls as that of Student's t with df=1 "
    with pytest.warns(SamplerConvergenceWarning, match=said):
        model.fit(X, y, sample_weight=np.full(40, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sample_weight=np.full(40, 0.2))


def test_mode_is_near_the_mode():
    target, _ = problem(n=200)
    start = closed_form.mode(target)
    found = optimize.minimize(
        lambda t: target.value_and_gradient(t)[0], start,
        jac=lambda t: target.value_and_gradient(t)[1],
    ).x  # fmt: skip
    g = [[target.value_and_gradient(found + e)[1] for e in h * np.eye(5)] for h in (1e-5, -1e-5)]
    H = (np.array(g[0]) - np.array(g[1])) / 2e-5
    distance = start - found
    assert distance @ H @ distance < 0.3**2


@pytest.mark.parametrize(
    ("limits", "is_exact"),
    [
        ({"DENSE_LIMIT": 3}, True),
        ({"DENSE_LIMIT": 3, "LARGEST": 7}, True),
        pytest.param({"DENSE_LIMIT": 3, "LARGEST": 6}, False, marks=pytest.mark.slow),
        ({"DENSE_LIMIT": 3, "MOST_SECONDS": 0.0}, False),
        ({"LARGEST": 0, "MOST_SECONDS": 0.0}, True),
    ],
)
def test_with_many_parameters_it_has_to_be_affordable(limits, is_exact, monkeypatch):
    """Five columns, an intercept and the noise, which are many if the limit is three."""
    for name, value in limits.items():
        monkeypatch.setattr(closed_form, name, value)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + rng.normal(size=40)
    model = BayesianLinearRegression(n_draws=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few draws of chains
        model.fit(X, y)
        assert (model.sampler_ == "exact") == is_exact
        assert model.set_params(sampler="hmc").fit(X, y).sampler_ == "hmc"


def test_the_price_is_told(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3))
    monkeypatch.setattr(closed_form, "TOLD_SECONDS", 0.0)
    with pytest.warns(LongRunWarning, match="closed form, with 5 parameters, is predicted"):
        BayesianLinearRegression(n_draws=20, random_state=0).fit(X, X[:, 0] + X[:, 1])
