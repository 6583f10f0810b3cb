"""Negative binomial regression: its kernels beside sums, its posterior beside quadrature."""

import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sg import BayesianNegativeBinomialRegressor
from skbayes_sg.engine.target import Target
from skbayes_sg.models import NegativeBinomial, Poisson
from skbayes_sg.priors import Flat, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal

COUNTS = np.array([0.0, 1.0, 2.0, 15.0, 16.0, 17.0, 200.0, 50_000.0])


# -- kernels ---------------------------------------------------------------------------------------


def kernels(model, y, mu, log_alpha=None):
    """Loss, derivatives and second derivatives of single rows with exposure μ, at η = 0."""
    eta = np.zeros((1, model.n_predictors))
    eta[:, 1:] = 0.0 if log_alpha is None else log_alpha
    facts = np.array([[y, 1.0, mu]])
    target = Target(
        np.zeros((1, 1)), [[y, mu]], np.ones(1), model, Flat()._table((1 + model.n_extra,)),
        intercept=False,
    )  # fmt: skip
    loss = model.loss(facts, np.arange(1), 0, 1, eta)
    return loss, target.derivative(facts, eta)[0], target.curvature(facts, eta)[0]


def by_sums(y, mu, alpha):
    """The same by sums over j < y in extended precision."""
    y, mu, a = (np.longdouble(x) for x in (y, mu, alpha))
    j = np.arange(int(y), dtype=np.longdouble)
    m = a * mu
    L = np.log1p(m)
    loss = (y + 1 / a) * L - np.log1p(j * a).sum()
    rising, bend = (j * a / (1 + j * a)).sum(), (j * a / (1 + j * a) ** 2).sum()
    slope = y * m / (1 + m) - (L - m / (1 + m)) / a - rising
    first = [(mu - y) / (1 + m), slope]
    mixed = (y - mu) * m / (1 + m) ** 2
    last = y * m / (1 + m) ** 2 + (L - 2 * m / (1 + m) + m / (1 + m) ** 2) / a - bend
    second = [[mu * (1 + a * y) / (1 + m) ** 2, mixed], [mixed, last]]
    return float(loss), np.array(first, float), np.array(second, float)


@pytest.mark.parametrize("log_alpha", [-12.0, -5.0, -2.9, -2.7, 0.0, 3.0, 20.0, 25.0])
@pytest.mark.parametrize("y", COUNTS)
def test_kernels_against_sums(y, log_alpha):
    for mu in (1e-3, 0.5, 20.0, 1e5):
        found = kernels(NegativeBinomial(), y, mu, log_alpha)
        wanted = by_sums(y, mu, np.exp(np.longdouble(log_alpha)))
        size = 1e-13 * (1.0 + mu + y * (1.0 + abs(log_alpha)))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=size)


@pytest.mark.parametrize("log_alpha", [-40.0, -80.0, -300.0])
@pytest.mark.parametrize("y", COUNTS)
def test_without_dispersion_it_is_poisson_regression(y, log_alpha):
    for mu in (1e-3, 20.0, 1e5):
        loss, first, second = kernels(NegativeBinomial(), y, mu, log_alpha)
        loss_, first_, second_ = kernels(Poisson(), y, mu)
        size = 1e-14 * (1.0 + mu + y) + np.exp(log_alpha) * (y + mu) ** 2  # to first order in α
        options = {"rtol": 1e-12, "atol": size}
        np.testing.assert_allclose(loss, loss_, **options)
        np.testing.assert_allclose(first, [first_[0], 0.0], **options)
        np.testing.assert_allclose(second, [[second_[0, 0], 0.0], [0.0, 0.0]], **options)


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 0.5, 30.0])
def test_the_law_of_counts(alpha):
    y, mu = np.array([0.0, 1.0, 7.0, 300.0]), np.array([0.01, 3.0, 5.0, 250.0])
    law = stats.nbinom(1.0 / alpha, 1.0 / (1.0 + alpha * mu))
    law = stats.poisson(mu) if alpha < 1e-10 else law
    eta, model = np.log(mu), NegativeBinomial()
    np.testing.assert_allclose(model.mean(eta, alpha), law.mean())
    np.testing.assert_allclose(model.variance(eta, alpha), law.var(), rtol=1e-9)
    np.testing.assert_allclose(model.cdf(y, eta, alpha), law.cdf(y), rtol=1e-7)
    np.testing.assert_allclose(model.log_density(y, eta, alpha), law.logpmf(y), rtol=1e-7)
    draws = model.draw(np.random.default_rng(0), np.tile(eta, (20_000, 1)), alpha)
    error = np.sqrt(law.var() / 20_000)
    assert (np.abs(draws.mean(axis=0) - law.mean()) < 5.0 * error).all()


@pytest.mark.parametrize("log_alpha", [-300.0, -18.4, -12.0, -2.9, -2.7, 0.0, 25.0])
def test_log_densities_of_rows_and_draws_against_sums(log_alpha):
    mu, alpha = np.array([0.5, 20.0, 1e5]), np.exp([log_alpha, log_alpha - 0.1, log_alpha + 0.1])
    found = NegativeBinomial.log_density(COUNTS[:, None], np.log(mu), alpha)
    for y, of_row in zip(COUNTS, found, strict=True):
        log_y = np.log(mu.astype(np.longdouble)) * y
        log_y -= np.log(np.arange(1, int(y) + 1, dtype=np.longdouble)).sum()  # less log y!
        wanted = [float(log_y[k] - by_sums(y, mu[k], alpha[k])[0]) for k in range(3)]
        size = 1e-13 * (1.0 + mu + y * (1.0 + abs(log_alpha)))
        assert (np.abs(of_row - wanted) <= size + 1e-12 * np.abs(wanted)).all()


# -- posteriors beside quadrature ------------------------------------------------------------------


def counts(kind, seed, n=80):
    """Counts with a mean of about 3, or few events."""
    rng = np.random.default_rng(seed)
    if kind == "few events":
        return np.bincount(rng.choice(n, 3, replace=False), minlength=n).astype(float)
    rate = {"poisson": 3.0, "overdispersed": 3.0 * rng.gamma(1.5, 1 / 1.5, n)}
    rate["mostly zero"] = 3.0 * rng.gamma(0.05, 20.0, n)
    return rng.poisson(rate[kind], n).astype(float)


def log_mass(y, mean, alpha):
    """log P(Y = y | μ, α) of one count for arrays of μ and α, but for log y!."""
    ways = sum((np.log1p(j * alpha) for j in range(int(y))), np.zeros_like(alpha))
    return ways + y * np.log(mean) - (y + 1.0 / alpha) * np.log1p(alpha * mean)


def distribution_of_dispersion(y, mean, prior, jacobian=1.0):
    """F(α) of the posterior of α alone for known means: by quadrature over log α."""
    s = np.linspace(-25.0, 12.0, 6001)
    alpha = np.exp(s)
    log_p = prior.logpdf(alpha) + jacobian * s
    for value, times in zip(*np.unique(y, return_counts=True), strict=True):
        log_p = log_p + times * log_mass(value, mean, alpha)
    p = np.exp(log_p - log_p.max())
    total = integrate.cumulative_trapezoid(p, s, initial=0.0)
    return lambda a: np.interp(np.log(a), s, total / total[-1])


def uniform_scores(u):
    """How far the mean and the mean square of 12 (u - ½)² are from those of uniform numbers."""
    z = np.sqrt(12.0) * (u - 0.5)
    return np.array([z.mean(), (z**2).mean() - 1.0]) / np.sqrt(np.array([1.0, 0.8]) / len(u))


PRIORS = {
    "half_student_t": ("half_student_t", stats.t(3.0)),
    "half_cauchy": (HalfCauchy(scale=0.3), stats.cauchy(scale=0.3)),
    "half_normal": (HalfNormal(scale=2.0), stats.norm(scale=2.0)),
    "gamma": (Gamma(shape=2.0, rate=4.0), stats.gamma(2.0, scale=0.25)),
}


@pytest.mark.slow_for("half_cauchy", "half_normal")
@pytest.mark.filterwarnings("ignore:X has")
@pytest.mark.parametrize("kind", ["poisson", "overdispersed", "mostly zero", "few events"])
@pytest.mark.parametrize("name", PRIORS)
def test_the_posterior_of_the_dispersion(kind, name):
    """A column of zeros leaves the dispersion alone."""
    y, (prior, law) = counts(kind, 1), PRIORS[name]
    model = BayesianNegativeBinomialRegressor(
        dispersion_prior=prior, fit_intercept=False, prior=Normal(), random_state=0
    )
    mean = y.mean()
    model.fit(np.zeros((len(y), 1)), y, exposure=np.full(len(y), mean))
    draws, ess = model.posterior_["dispersion"].ravel(), model.diagnostics_["min_ess"]
    u = distribution_of_dispersion(y, mean, law)(draws)
    assert np.abs(uniform_scores(u)).max() < 5.0 * np.sqrt(4000 / ess)
    assert stats.kstest(u, "uniform").statistic < 2.5 / np.sqrt(ess)
    wrong = distribution_of_dispersion(y, mean, law, jacobian=0.0)(draws)  # dα/ds forgotten
    assert stats.kstest(wrong, "uniform").statistic > 2.5 / np.sqrt(ess)


COARSE = np.linspace(-6.0, 6.0, 481), np.linspace(-16.0, 6.0, 401)


def moments_by_quadrature(y, exposure, grid=COARSE):
    """Means and standard deviations of (b, log α) under the default priors, on a grid."""
    b, s = grid[0][:, None], grid[1]
    alpha = np.exp(s)
    log_p = stats.norm.logpdf(b, scale=10.0) + stats.t.logpdf(alpha, 3.0) + s
    for value, t in zip(y, exposure, strict=True):
        log_p = log_p + log_mass(value, t * np.exp(b), alpha)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = [(p * x).sum() for x in (b, s)]
    return means, [np.sqrt((p * (x - m) ** 2).sum()) for x, m in zip((b, s), means, strict=True)]


@pytest.mark.slow_except("hmc-poisson")
@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.parametrize("kind", ["poisson", "overdispersed", "few events"])
@pytest.mark.parametrize("sampler", ["auto", "hmc"])
def test_intercept_and_dispersion_with_exposures(kind, sampler):
    for seed in range(3 if sampler == "auto" else 1):
        y = counts(kind, seed, 40)
        exposure = np.random.default_rng(seed).lognormal(size=40)
        model = BayesianNegativeBinomialRegressor(sampler=sampler, random_state=seed)
        model.fit(np.zeros((40, 1)), y, exposure=exposure)
        assert_moments(model, *moments_by_quadrature(y, exposure))


def assert_moments(model, means, sds):
    """Of the intercept and of log α, within five standard errors."""
    posterior, ess = model.posterior_, model.diagnostics_["min_ess"]
    draws = [posterior["intercept"].ravel(), np.log(posterior["dispersion"].ravel())]
    for found, mean, sd in zip(draws, means, sds, strict=True):
        assert abs(found.mean() - mean) < 5.0 * sd / np.sqrt(ess)
        kurtosis = 2.0 + max(stats.kurtosis(found), 0.0)
        assert abs(found.var() / sd**2 - 1.0) < 5.0 * np.sqrt(kurtosis / ess)


@pytest.mark.parametrize("n_draws", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_few_of_many_counts_are_exact_in_the_weights(n_draws):
    """They all bend away together as α falls, which one function of log α makes up for."""
    rng = np.random.default_rng(0)
    exposure = rng.lognormal(0.0, 0.2, 6000)
    y = rng.poisson(3.0 * exposure).astype(float)
    model = BayesianNegativeBinomialRegressor(n_draws=n_draws, random_state=0)
    model.fit(np.zeros((6000, 1)), y, exposure=exposure)
    assert model.diagnostics_["rows_exact"] < 2000
    if n_draws == 20:
        return
    grid = np.log(3.0) + np.linspace(-0.06, 0.06, 25), np.linspace(-14.0, -1.0, 131)
    assert_moments(model, *moments_by_quadrature(y, exposure, grid))


@pytest.mark.slow
def test_a_flat_prior_of_the_dispersion_needs_positive_counts():
    y = np.zeros(50)
    y[:2] = 1.0
    X = np.random.default_rng(0).normal(size=(50, 1))
    flat = BayesianNegativeBinomialRegressor(dispersion_prior="flat", n_draws=50, random_state=0)
    assert np.isfinite(flat.fit(X, y).posterior_.flat).all()
    y[1] = 0.0
    with pytest.raises(
        ValueError, match="a flat prior of the dispersion, positive counts must outnumber"
    ):
        flat.fit(X, y)
    default = BayesianNegativeBinomialRegressor(n_draws=50, random_state=0)
    assert np.isfinite(default.fit(X, y).posterior_.flat).all()


@pytest.mark.slow_except("2")
@pytest.mark.parametrize("seed", range(3))
def test_counts_without_overdispersion(seed):
    """The fit says so, and its draws pass the examination although α may be zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 2))
    y = rng.poisson(np.exp(1.0 + X[:, 0]))
    model = BayesianNegativeBinomialRegressor(random_state=seed).fit(X, y)
    assert model.posterior_.quantile(0.95, "dispersion") < 0.1
    assert model.posterior_.check()
    assert np.abs(model.coef_ - [1.0, 0.0]).max() < 5.0 * model.coef_std_.max()


@pytest.mark.slow
def test_priors_of_the_dispersion_have_no_unit():
    y = counts("overdispersed", 0)
    X = np.zeros((len(y), 1))
    one = BayesianNegativeBinomialRegressor(random_state=0).fit(X, y)
    other = BayesianNegativeBinomialRegressor(
        dispersion_prior=HalfStudentT(df=3.0, scale=1.0), random_state=0
    ).fit(X, y)
    assert np.array_equal(one.posterior_.flat, other.posterior_.flat)


def test_one_count_and_one_draw_have_no_warning():
    """A future NumPy makes views of broadcast arrays read-only, and announces it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = NegativeBinomial.log_density(np.array([[3.0]]), np.array([[0.5]]), np.array([0.7]))
    law = stats.nbinom(1.0 / 0.7, 1.0 / (1.0 + 0.7 * np.exp(0.5)))
    np.testing.assert_allclose(found, law.logpmf([[3]]), rtol=1e-12)
