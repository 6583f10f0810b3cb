"""Subposteriors are multiplied: closed forms and enumeration of all choices of draws."""

import importlib
import itertools
import re
import warnings

import numpy as np
import pytest
from scipy import linalg, special, stats
from sklearn.base import clone

from skbayes_sg import combine
from skbayes_sg.combine import _base, kde_product, weierstrass
from skbayes_sg.exceptions import InvalidParameterError, SubposteriorWarning

cumulants = importlib.import_module("skbayes_sg.combine.agreement")

PRODUCTS = {
    "consensus": lambda x, **o: combine.consensus_average(x),
    "parametric": combine.gaussian_product,
    "nonparametric": combine.kernel_product,
    "semiparametric": combine.semiparametric_product,
    "weierstrass": combine.weierstrass_product,
}
RANDOM = [name for name in PRODUCTS if name != "consensus"]


def regression_shards(S=3, n=30, d=2, seed=0):
    """Precisions and means of the shards of a linear regression, and of all rows: exact."""
    rng = np.random.default_rng(seed)
    X, sigma2, prior = rng.normal(size=(n, d)), 0.7, np.diag([2.0, 0.5])[:d, :d]
    y = X @ np.arange(1.0, d + 1.0) + rng.normal(size=n)

    def law(X, y, share):
        P = X.T @ X / sigma2 + share * prior
        return P, linalg.solve(P, X.T @ y / sigma2)

    cuts = np.array_split(np.arange(n), S)
    return [law(X[c], y[c], 1.0 / S) for c in cuts], law(X, y, 1.0)


def with_moments(rng, n, mean, covariance):
    """n draws that have this mean and covariance exactly."""
    d = len(mean)
    z = rng.normal(size=(n, d))
    z -= z.mean(axis=0)
    z = linalg.solve_triangular(
        linalg.cholesky(np.cov(z.T).reshape(d, d), lower=True), z.T, lower=True
    ).T
    return mean + z @ linalg.cholesky(covariance, lower=True).T


def uncorrelated_draws(laws, n, seed=1):
    """Draws of all shards, with the exact moments of independent ones between shards as well."""
    d = len(laws[0][1])
    S = len(laws)
    joint = with_moments(
        np.random.default_rng(seed), n, np.concatenate([m for _, m in laws]),
        linalg.block_diag(*[linalg.inv(P) for P, _ in laws]),
    )  # fmt: skip
    return [joint[:, s * d : (s + 1) * d] for s in range(S)]


# -- Gaussian shards ------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_consensus_is_exact_for_gaussian_shards(given):
    laws, (P, mean) = regression_shards()
    draws = uncorrelated_draws(laws, 200)
    precisions = np.stack([p for p, _ in laws]) if given else None
    found = combine.consensus_average(draws, precisions=precisions)
    np.testing.assert_allclose(found.mean(axis=0), mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.cov(found.T), linalg.inv(P), rtol=0, atol=1e-12)


def test_product_of_gaussians_is_the_posterior_of_all_rows():
    laws, (P, mean) = regression_shards()
    found, covariance = _base.product_of_gaussians(
        np.stack([m for _, m in laws]), np.stack([p for p, _ in laws])
    )
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(covariance, linalg.inv(P), rtol=0, atol=1e-12)


def test_full_prior_on_every_shard_is_seen():
    """The planted bug of the theory: what S shares too many of the prior do."""
    laws, (P, mean) = regression_shards()
    extra = np.diag([2.0, 0.5]) * (2.0 / 3.0)  # of each of 3 shards
    wrong = [(p + extra, linalg.solve(p + extra, p @ m)) for p, m in laws]
    found, covariance = _base.product_of_gaussians(
        np.stack([m for _, m in wrong]), np.stack([p for p, _ in wrong])
    )
    sd = np.sqrt(np.diag(linalg.inv(P)))
    assert np.abs((found - mean) / sd).max() > 0.05
    assert (np.sqrt(np.diag(covariance)) < sd).all()


def test_an_unweighted_average_is_seen():
    laws, (P, _) = regression_shards()
    draws = uncorrelated_draws(laws, 200)
    plain = np.mean(draws, axis=0)
    assert np.trace(P @ np.cov(plain.T)) / 2 > 1.01  # variance above the least that there is


def test_draws_that_are_all_the_same_average_to_themselves():
    x = np.random.default_rng(0).normal(size=(50, 3))
    precisions = np.stack([np.diag([1.0, 2.0, 3.0]), np.eye(3) + 0.5])
    found = combine.consensus_average([x, x], precisions=precisions)
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-13)


def test_diagonal_weights_are_inverse_variances():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), 3.0 * rng.normal(size=(40, 2))
    u, v = 1.0 / x.var(axis=0, ddof=1), 1.0 / y.var(axis=0, ddof=1)
    wanted = (u * x + v * y) / (u + v)
    np.testing.assert_allclose(combine.consensus_average([x, y], diagonal=True), wanted, atol=1e-13)
    np.testing.assert_allclose(
        combine.consensus_average([x, y], precisions=[u, v]), wanted, atol=1e-13
    )


def test_plug_in_weights_have_the_variance_of_the_formula():
    # Var(mean) W T = 1 + 2 Σ W_s² (μ_s - μ)² / W in one dimension; relative error of a variance
    # from R repetitions: sqrt(2 / R).
    rng, T, R = np.random.default_rng(3), 300, 4000
    means, variances = np.array([-1.0, 1.5, 0.3]), np.array([1.0, 0.5, 2.0])
    w = 1.0 / variances
    mean = (w @ means) / w.sum()
    x = means[:, None, None] + np.sqrt(variances)[:, None, None] * rng.normal(size=(3, R, T))
    weights = 1.0 / x.var(axis=2, ddof=1)
    found = (weights * x.mean(axis=2)).sum(axis=0) / weights.sum(axis=0)
    own = combine.consensus_average([x[s, 0][:, None] for s in range(3)]).mean()
    assert own == pytest.approx(found[0], abs=1e-12)
    predicted = 1.0 + 2.0 * (w**2 * (means - mean) ** 2).sum() / w.sum()
    assert predicted > 2.0
    assert found.var() * w.sum() * T == pytest.approx(predicted, rel=5.0 * np.sqrt(2.0 / R) + 0.02)


@pytest.mark.slow_for("nonparametric", "semiparametric")
@pytest.mark.parametrize("name", RANDOM)
def test_random_products_of_gaussian_shards(name):
    laws, (P, mean) = regression_shards(n=300)
    draws, options = uncorrelated_draws(laws, 4000), {}
    if name in ("nonparametric", "semiparametric"):
        options["bandwidth"] = 0.3
    if name == "nonparametric":  # kernels add their covariance to each shard's
        covariances = np.stack([linalg.inv(p) for p, _ in laws])
        smoothed = np.linalg.inv(covariances + 0.3**2 * covariances.mean(axis=0))
        mean, covariance = _base.product_of_gaussians(np.stack([m for _, m in laws]), smoothed)
        P = linalg.inv(covariance)
    found = PRODUCTS[name](draws, 20_000, random_state=0, **options)
    white = (found - mean) @ linalg.cholesky(P, lower=False).T
    assert np.abs(white.mean(axis=0)).max() < 0.08
    assert np.abs(np.cov(white.T) - np.eye(2)).max() < 0.1


# -- kernel products: all choices of draws ---------------------------------------------------------


def small(semiparametric, S=3, T=4, d=2, seed=5):
    rng = np.random.default_rng(seed)
    shards = [rng.normal(0.3 * s, 1.0 + 0.2 * s, (T, d)) for s in range(S)]
    coordinates, mixture = kde_product.build(shards, semiparametric)
    white = [linalg.solve(coordinates.F, (x - coordinates.origin).T).T for x in shards]
    choices = np.array(list(itertools.product(*(range(T * s, T * (s + 1)) for s in range(S)))))
    return mixture, white, choices


def density_of_shard(z, points, h, semiparametric):
    """A kernel estimate; with semiparametric=True times the Gaussian, over it at the points."""
    kernels = np.prod(stats.norm.pdf(z[:, None], points, h), axis=2)
    if not semiparametric:
        return kernels.mean(axis=1)
    own = stats.multivariate_normal(points.mean(axis=0), np.cov(points.T))
    return (kernels / own.pdf(points)).mean(axis=1) * own.pdf(z)


def log_weight(mixture, choice, h):
    """log w_t or log W_t of a choice of points, up to a constant: the formulas of the module."""
    x, P = mixture.points[choice], mixture.precision
    mean = x.mean(axis=0)
    misfit = P * (mean - mixture.mean) ** 2 / (1.0 + P * h**2 / len(choice))
    own = mixture.own[choice].sum()
    return -own - 0.5 * ((x - mean) ** 2).sum() / h**2 - 0.5 * misfit.sum()


def density_of_mixture(z, mixture, choices, h):
    S, d = choices.shape[1], mixture.points.shape[1]
    total = np.zeros(len(z))
    for choice in choices:
        mean, sd = np.empty(d), np.empty(d)
        sums = mixture.points[choice].sum(axis=0)
        kde_product.component(mixture, sums, S, h, mean, sd)
        weight = np.exp(log_weight(mixture, choice, h))
        total += weight * np.prod(stats.norm.pdf(z, mean, sd), axis=1)
    return total


@pytest.mark.parametrize("h", [0.3, 1.0])
@pytest.mark.parametrize("semiparametric", [False, True])
def test_density_of_all_64_components_is_the_product(h, semiparametric):
    mixture, white, choices = small(semiparametric)
    assert len(choices) == 64
    z = np.random.default_rng(0).normal(size=(20, 2))
    found = density_of_mixture(z, mixture, choices, h)
    wanted = np.prod([density_of_shard(z, p, h, semiparametric) for p in white], axis=0)
    ratio = found / wanted  # one constant for all z
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


def transition(mixture, choices, h, s):
    """Matrix of one update of the choice from shard s."""
    S = choices.shape[1]
    number = {tuple(c): i for i, c in enumerate(choices)}
    P = np.zeros((len(choices), len(choices)))
    first, last = mixture.starts[s], mixture.starts[s + 1]
    for i, choice in enumerate(choices):
        sums = mixture.points[choice].sum(axis=0)
        for new in range(first, last):
            other = (*choice[:s], new, *choice[s + 1 :])
            log_ratio = kde_product.log_ratio(mixture, sums, choice[s], new, S, h)
            accept = min(1.0, np.exp(log_ratio)) / (last - first)
            P[i, number[other]] += accept
            P[i, i] += 1.0 / (last - first) - accept
    return P


@pytest.mark.parametrize("semiparametric", [False, True])
def test_a_sweep_leaves_the_weights(semiparametric):
    mixture, _, choices = small(semiparametric)
    h = 0.6
    pi = np.exp([log_weight(mixture, c, h) for c in choices])
    pi /= pi.sum()
    P = np.linalg.multi_dot([transition(mixture, choices, h, s) for s in range(3)])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(pi @ P, pi, rtol=0, atol=1e-12)
    assert np.abs(np.full(64, 1 / 64) @ P - 1 / 64).max() > 1e-3  # it moves what is not stationary


@pytest.mark.parametrize("semiparametric", [False, True])
def test_runs_are_sweeps_with_the_numbers_of_the_stream(semiparametric):
    """The loop, said again without running sums."""
    mixture, _, choices = small(semiparametric)
    bandwidths, choice = kde_product.annealed("anneal", 30, 2), choices[17].copy()
    found, rng = np.empty((2, 20, 2)), np.random.Generator(np.random.SFC64(4))
    visits, same = np.zeros(12, int), np.random.Generator(np.random.SFC64(4))
    accepted = kde_product.run(same, mixture, bandwidths, 2, 10, choice.copy(), *found, visits)
    wanted, count, seen = [], 0, []
    for t, h in enumerate(bandwidths):
        assert h == pytest.approx((t + 1.0) ** (-1.0 / 6.0))
        for s in (0, 1, 2, 0, 1, 2):
            new = choice.copy()
            new[s] = mixture.starts[s] + int(rng.random() * 4)
            change = log_weight(mixture, new, h) - log_weight(mixture, choice, h)
            if np.log(rng.random()) < change:
                choice, count = new, count + 1
            if t >= 10 and s == 2:
                seen.extend(choice)
        if t >= 10:
            mean, sd = np.empty(2), np.empty(2)
            kde_product.component(mixture, mixture.points[choice].sum(axis=0), 3, h, mean, sd)
            wanted.append([mean, sd])
    assert accepted == count
    np.testing.assert_array_equal(visits, np.bincount(seen, minlength=12))
    np.testing.assert_allclose(found, np.swapaxes(wanted, 0, 1), rtol=0, atol=1e-12)


def test_draws_are_of_the_components_and_do_not_depend_on_the_signs_of_axes():
    rng = np.random.default_rng(0)
    shards = [rng.normal(s, 1.0, (60, 2)) for s in range(3)]
    coordinates, mixture = kde_product.build(shards, semiparametric=True)
    flip = np.array([-1.0, 1.0])
    flipped = coordinates._replace(F=coordinates.F * flip, axes=coordinates.axes * flip)
    mirrored = mixture._replace(points=mixture.points * flip)
    one, other = (
        kde_product._chain(np.random.default_rng(3), *built, 4000, 0.5, 1)[0]
        for built in ((coordinates, mixture), (flipped, mirrored))
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    generator, h = np.random.default_rng(3), np.full(8000, 0.5)
    choice = mixture.starts[:-1] + (generator.random(3) * 60).astype(np.int64)
    means, sds = np.empty((2, 4000, 2))
    kde_product.run(generator, mixture, h, 1, 4000, choice, means, sds, np.zeros(180, int))
    z = linalg.solve(coordinates.F, (one - coordinates.origin).T).T
    noise = (z - means) / sds
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5.0 / np.sqrt(4000)


def of_a_product(product, draws, **options):
    """(draws, messages) of a product."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = product(draws, random_state=0, **options)
    assert all(warning.category is SubposteriorWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return found, [str(warning.message) for warning in caught]


KERNEL_PRODUCTS = [combine.kernel_product, combine.semiparametric_product]


@pytest.mark.parametrize("product", KERNEL_PRODUCTS)
@pytest.mark.parametrize("seed", range(5))
def test_products_that_rest_on_few_draws_come_with_a_warning(product, seed):
    """Gaussian shards that hardly overlap: means are off by up to 1.4 standard deviations."""
    rng = np.random.default_rng(seed)
    draws = [rng.normal(6.0, 2.0, (1000, 2)), rng.normal(1.0, 1.0, (1000, 2))]
    _, (message,) = of_a_product(product, draws)
    assert re.search(r"rests on few draws of shard [01]: .* is \d+\.\d of 1000", message)


@pytest.mark.parametrize("product", KERNEL_PRODUCTS)
@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize(
    ("S", "d", "n"), [(2, 1, 200), (2, 20, 5000), (4, 5, 3000), (10, 1, 1000), (10, 2, 5000)]
)
def test_products_of_shards_that_overlap_come_without_a_warning(product, skew, S, d, n):
    """Shards of random rows: normal means, or logarithms of rates of gamma laws."""
    rng = np.random.default_rng(0)
    a = rng.uniform(4.0, 12.0, S)
    if skew:
        draws = [np.log(rng.gamma(shape, 1.0 / shape, (n, d))) for shape in a]
        mean, sd = special.digamma(a.sum()) - np.log(a.sum()), special.polygamma(1, a.sum()) ** 0.5
    else:
        means = np.sqrt(1.0 - 1.0 / S) * rng.normal(size=(S, d))
        draws = [m + rng.normal(size=(n, d)) for m in means]
        mean, sd = np.mean(means, axis=0), S**-0.5
    found, messages = of_a_product(product, draws, n_sweeps=20)
    assert not messages
    assert np.sqrt((((found.mean(axis=0) - mean) / sd) ** 2).mean()) < 0.3


def test_effective_draws_are_those_of_the_visits():
    visits = np.array([4, 4, 4, 4, 9, 0, 3, 1])
    found = kde_product.effective_draws(visits, np.array([0, 4, 6, 8]))
    np.testing.assert_allclose(found, [4.0, 1.0, 1.6])


def test_few_draws_that_were_asked_for_are_no_reason_for_a_warning():
    draws = list(np.random.default_rng(0).normal(size=(3, 300, 1)))
    for product in KERNEL_PRODUCTS:
        for n_draws in (1, 3, 1000):
            assert not of_a_product(product, draws, n_draws=n_draws)[1]


@pytest.mark.slow
def test_kernel_products_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    draws = [rng.normal(s, 1.0, (60, 2)) for s in range(3)]
    A = np.array([[3.0, 1.0], [0.0, 0.01]])
    for product in (combine.kernel_product, combine.semiparametric_product):
        # Up to the signs and order of axes, which draws of a symmetric law do not know either.
        whole = product(draws, 4000, bandwidth=0.5, random_state=0)
        other = linalg.solve(
            A, product([x @ A.T for x in draws], 4000, bandwidth=0.5, random_state=0).T
        ).T
        np.testing.assert_allclose(other.mean(axis=0), whole.mean(axis=0), atol=0.15)
        np.testing.assert_allclose(np.cov(other.T), np.cov(whole.T), atol=0.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("product", KERNEL_PRODUCTS)
def test_kernel_products_of_parameters_in_far_units(product):
    rng = np.random.default_rng(0)
    draws, units = rng.normal(size=(2, 300, 2)), np.array([1e-8, 1e8])
    whole = product(draws, 200, bandwidth=0.5, random_state=0)
    other = product(draws * units, 200, bandwidth=0.5, random_state=0)
    np.testing.assert_allclose(other / units, whole, rtol=0, atol=1e-9)


# -- Weierstrass -----------------------------------------------------------------------------------


def gaussian_pair(h, smooth, m=(-0.5, 1.0), v=(1.0, 0.5), n=80):
    """Mean and variance of a merger of two Gaussians, by quadrature over both draws."""
    x, w = np.polynomial.hermite_e.hermegauss(n)
    pair = weierstrass.pair_of(np.array(v)[:, None, None])
    t1, t2 = (
        grid.ravel()[:, None]
        for grid in np.meshgrid(m[0] + v[0] ** 0.5 * x, m[1] + v[1] ** 0.5 * x)
    )
    weight = np.outer(w, w).ravel() * np.exp(-0.5 * weierstrass.distances(pair, t1, t2) / h**2)
    centre = weierstrass.centres(pair, t1, t2)[:, 0]
    mean = weight @ centre / weight.sum()
    variance = weight @ (centre - mean) ** 2 / weight.sum()
    return mean, variance + (h**2 * pair.covariance[0, 0] if smooth else 0.0)


@pytest.mark.parametrize("h", [0.7, 1.0, 3.0])
def test_merger_of_gaussians_has_the_law_of_the_formula(h):
    P = 1.0 / ((1.0 + h**2) * np.array([1.0, 0.5]))  # 1 / (Σ_s + h² Σ_s)
    mean = P @ np.array([-0.5, 1.0]) / P.sum()
    found = gaussian_pair(h, smooth=True)
    np.testing.assert_allclose(found, [mean, 1.0 / P.sum()], rtol=0, atol=1e-12)
    exact = [mean, 1.0 / (1.0 + h**2) / P.sum()]
    np.testing.assert_allclose(gaussian_pair(h, smooth=False), exact, rtol=0, atol=1e-12)


def test_smoothing_vanishes_with_the_square_of_the_bandwidth():
    exact = 1.0 / 3.0
    errors = [gaussian_pair(h, smooth=True, n=150)[1] - exact for h in (1.0, 0.5)]
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_pairs_of_draws_make_the_product_of_smoothed_densities(d):
    rng, h = np.random.default_rng(0), 0.8
    shards = [rng.normal(size=(4, d)), rng.normal(0.5, 1.5, (4, d))]
    covariances = np.stack([np.cov(x.T).reshape(d, d) for x in shards])
    pair, z = weierstrass.pair_of(covariances), rng.normal(size=(10, d))
    i, j = (index.ravel() for index in np.indices((4, 4)))
    weight = np.exp(-0.5 * weierstrass.distances(pair, shards[0][i], shards[1][j]) / h**2)
    centre = weierstrass.centres(pair, shards[0][i], shards[1][j])
    kernel = stats.multivariate_normal(np.zeros(d), h**2 * pair.covariance)
    found = (weight * kernel.pdf((z[:, None] - centre).reshape(-1, d)).reshape(10, 16)).sum(axis=1)
    wanted = 1.0
    for x, C in zip(shards, covariances, strict=True):
        own = stats.multivariate_normal(np.zeros(d), h**2 * C)
        wanted = wanted * own.pdf((z[:, None] - x).reshape(-1, d)).reshape(10, 4).sum(axis=1)
    np.testing.assert_allclose(found / wanted, (found / wanted)[0], rtol=1e-12)


def test_the_sampler_keeps_pairs_with_their_probability():
    rng, h = np.random.default_rng(0), 0.5
    shards = [np.array([[-1.0], [0.2], [1.0]]), np.array([[0.0], [0.7], [1.5]])]
    pair = weierstrass.pair_of(_base.moments(shards)[1])
    i, j = (index.ravel() for index in np.indices((3, 3)))
    centre = weierstrass.centres(pair, shards[0][i], shards[1][j])[:, 0]
    p = np.exp(-0.5 * weierstrass.distances(pair, shards[0][i], shards[1][j]) / h**2)
    draws, used, rate = weierstrass.merge(rng, *shards, 50_000, bandwidth=h)
    assert used == h
    assert rate == pytest.approx(p.mean(), abs=5 * np.sqrt(0.25 / 60_000))
    counts = np.array([np.isclose(draws[:, 0], c).sum() for c in centre])
    assert stats.chisquare(counts, 50_000 * p / p.sum()).pvalue > 1e-6


def test_the_bandwidth_is_that_of_the_acceptance():
    distance = np.random.default_rng(0).chisquare(3, 5000)
    h = weierstrass.bandwidth_for(distance, 0.1)
    assert np.exp(-0.5 * distance / h**2).mean() == pytest.approx(0.1, abs=1e-9)
    assert h == pytest.approx(
        (0.1 ** (-2.0 / 3.0) - 1.0) ** -0.5, rel=0.05
    )  # the formula for Gaussians


def test_wide_kernels_are_consensus_and_narrow_ones_the_product():
    """On mixtures with modes at ±3, of which the product has two as well, and averages a third."""
    rng = np.random.default_rng(0)
    shards = [rng.normal(3.0 * rng.choice([-1, 1], 4000), 1.0)[:, None] for _ in range(2)]
    between = [
        (
            np.abs(combine.weierstrass_product(shards, 4000, bandwidth=h, random_state=0)) < 1.5
        ).mean()
        for h in (0.1, 100.0)
    ]
    assert between[0] < 0.05
    assert between[1] == pytest.approx(0.5, abs=0.05)


def test_shards_that_do_not_overlap_are_an_error_for_small_bandwidths():
    x = np.random.default_rng(0).normal(size=(2, 100, 1))
    with pytest.raises(ValueError, match=r"bandwidth=0.01 accepts 0 of .* pairs.*do not overlap"):
        combine.weierstrass_product([x[0], x[1] + 50.0], bandwidth=0.01)
    assert np.isfinite(combine.weierstrass_product([x[0], x[1] + 50.0])).all()


@pytest.mark.slow
def test_a_product_of_twenty_shards(monkeypatch):
    # sorted by their means, the halves that lie apart would meet last
    def rms():
        off, spread = [], []
        for run in range(16):
            rng = np.random.default_rng(run)
            means = rng.normal(size=(20, 2))
            shards = [m + rng.normal(size=(1000, 2)) for m in means]
            draws = combine.weierstrass_product(shards, random_state=run)
            off.append((draws.mean(axis=0) - means.mean(axis=0)) * np.sqrt(20.0))
            spread.append(draws.var(axis=0) * 20.0)
        return np.sqrt(np.mean(np.square(off))), np.mean(spread)

    error, spread = rms()
    assert error < 0.25
    assert 0.85 < spread < 1.15
    monkeypatch.setattr(weierstrass, "_shuffled", lambda shards, rng: weierstrass.in_order(shards))
    assert rms()[0] > 1.25 * error


# -- what all have in common -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SubposteriorWarning")
@pytest.mark.parametrize("name", PRODUCTS)
def test_order_of_shards_makes_no_difference(name):
    rng = np.random.default_rng(0)
    shards = [rng.normal(s, 1.0 + s, (80, 2)) for s in range(5)]
    one, other = (PRODUCTS[name](x, random_state=0) for x in (shards, shards[::-1]))
    if name == "consensus":
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(one, other)
        assert (PRODUCTS[name](shards, random_state=1) != one).any()


@pytest.mark.parametrize("name", ["consensus", "weierstrass"])
def test_one_shard_is_itself(name):
    x = np.random.default_rng(0).normal(size=(30, 2))
    np.testing.assert_array_equal(PRODUCTS[name]([x], random_state=0), x)


def test_kernel_product_of_one_shard_is_its_kernel_estimate():
    x = np.random.default_rng(0).normal(size=(40, 1))
    coordinates, mixture = kde_product.build([x], semiparametric=False)
    assert [log_weight(mixture, np.array([i]), 0.5) for i in range(40)] == [0.0] * 40
    mean, sd = np.empty(1), np.empty(1)
    kde_product.component(mixture, mixture.points[3], 1, 0.5, mean, sd)
    assert coordinates.origin + coordinates.F[0] * mean == pytest.approx(x[3])
    assert sd[0] == 0.5


@pytest.mark.parametrize("name", combine.COMBINERS)
def test_objects_combine_chains_as_the_functions_do(name):
    rng = np.random.default_rng(0)
    shards = rng.normal(np.arange(3)[:, None, None, None], 1.0, (3, 2, 50, 2))
    combiner = clone(combine.COMBINERS[name]())
    draws, found = combiner._combine(shards, np.random.default_rng(1))
    assert draws.shape == (2, 50, 2)
    assert all(isinstance(value, float) for value in found.values())
    again, _ = combiner._combine(shards, np.random.default_rng(1))
    np.testing.assert_array_equal(draws, again)
    if name == "consensus":  # chain by chain, with weights of all chains
        weights = _base.inverses(_base.moments(list(shards.reshape(3, 100, 2)))[1])
        for k in range(2):
            wanted = combine.consensus_average(list(shards[:, k]), precisions=weights)
            np.testing.assert_allclose(draws[k], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(
    ("draws", "text"),
    [
        ([], "at least one shard"),
        ([np.zeros((5, 2)), np.zeros((5, 3))], r"shard 1 has the shape \(5, 3\)"),
        ([np.zeros(5)], r"shard 0 has the shape \(5,\)"),
        ([np.eye(3), np.full((3, 3), np.nan)], "shard 1 must be finite"),
        ([np.random.default_rng(0).normal(size=(3, 3))] * 2, "3 draws of 3 parameters"),
        ([np.outer(np.arange(9.0), [1.0, 1.0])] * 2, "shard 0 is singular"),
    ],
    ids=["none", "parameters", "1d", "nan", "few draws", "singular"],
)
def test_draws_that_cannot_be_combined(name, draws, text):
    with pytest.raises(ValueError, match=text):
        PRODUCTS[name](draws, random_state=0)


def test_parameters_that_are_not_accepted():
    x = np.random.default_rng(0).normal(size=(2, 50, 1))
    for product in (combine.kernel_product, combine.semiparametric_product):
        for bad in ("wide", 0.0, -1.0, np.inf, True):
            with pytest.raises(InvalidParameterError, match="bandwidth must be 'anneal'"):
                product(list(x), bandwidth=bad)
    with pytest.raises(InvalidParameterError, match="bandwidth must be None"):
        combine.weierstrass_product(list(x), bandwidth=0.0)
    for bad in (0.0, 1.0, "half"):
        with pytest.raises(InvalidParameterError, match="acceptance must lie strictly"):
            combine.weierstrass_product(list(x), acceptance=bad)
    with pytest.raises(ValueError, match=r"same number of draws from each shard, got \[50, 49\]"):
        combine.consensus_average([x[0], x[1, :49]])
    with pytest.raises(
        ValueError, match=r"precisions must be finite and have the shape \(2, 1, 1\)"
    ):
        combine.consensus_average(list(x), precisions=np.ones((3, 1)))
    with pytest.raises(
        InvalidParameterError, match=r"diagonal=True is for .* precisions are given"
    ):
        combine.consensus_average(list(x), precisions=np.ones((2, 1)), diagonal=True)


@pytest.mark.parametrize("product", [combine.kernel_product, combine.semiparametric_product])
@pytest.mark.parametrize("n_warmup", [-1, 2.5, True, "auto"])
def test_warm_ups_that_are_refused(product, n_warmup):
    x = list(np.random.default_rng(0).normal(size=(2, 50, 1)))
    with pytest.raises(InvalidParameterError, match="n_warmup must be None or an int of at least"):
        product(x, n_warmup=n_warmup)
    assert np.isfinite(product(x, n_warmup=0, random_state=0)).all()


@pytest.mark.parametrize("n_draws", [1, 10])
def test_few_draws_of_many_shards(n_draws):
    """Covariances of the shards that are merged on the way are known all the same."""
    x = list(np.random.default_rng(0).normal(size=(4, 200, 1)))
    found = [combine.weierstrass_product(x, n_draws, random_state=seed) for seed in range(100)]
    assert found[0].shape == (n_draws, 1)
    assert abs(np.std(found) / 0.5 - 1.0) < 0.3


@pytest.mark.parametrize("value", [-1, np.nan, "wide", None])
def test_bandwidths_of_predictions_that_are_refused(value):
    x = np.random.default_rng(0).normal(size=(2, 50, 1))
    with pytest.raises(InvalidParameterError, match="The bandwidth of agreement must be a number"):
        combine.agreement(x, bandwidth=value)
    with pytest.raises(InvalidParameterError, match="The effective_size of agreement must be a"):
        combine.agreement(x, effective_size=value if value is not None else 0)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("n_draws", [0, -1, 2.0, "many", True], ids=repr)
@pytest.mark.parametrize("n_shards", [1, 2])
def test_numbers_of_draws_that_are_refused(name, n_draws, n_shards):
    x = np.random.default_rng(0).normal(size=(n_shards, 50, 1))
    with pytest.raises(ValueError, match=rf"n_draws must be an int in \[1, inf\), got {n_draws!r}"):
        PRODUCTS[name](list(x), n_draws=n_draws)


@pytest.mark.parametrize("n_draws", [1, 40, 100, 1000])
def test_a_single_shard_has_as_many_draws_as_are_asked_for(n_draws):
    x = np.random.default_rng(0).normal(size=(100, 2))
    found = combine.weierstrass_product([x], n_draws, random_state=0)
    assert found.shape == (n_draws, 2)
    places = np.searchsorted(np.sort(x[:, 0]), found[:, 0])
    np.testing.assert_array_equal(x[np.argsort(x[:, 0])][places], found)
    if n_draws <= 100:
        assert len(set(places.tolist())) == n_draws  # none twice
    else:  # draws with equal chances
        counts = np.bincount(places, minlength=100)
        assert stats.chisquare(counts).pvalue > 1e-3
    again = combine.weierstrass_product([x], n_draws, random_state=0)
    np.testing.assert_array_equal(found, again)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 50])
def test_parameters_that_are_constant_in_a_shard_are_named(n):
    x = np.random.default_rng(0).normal(size=(3, 50, 2))
    x[1, :, 1] = 0.1
    x = [x[0], x[1][:n], x[2]] if n == 50 else list(x[1:2, :1]) * 2
    s, j = (1, 1) if n == 50 else (0, 0)
    said = rf"Parameter {j} has the same value, .* in all {n} draws of shard {s}"
    with pytest.raises(ValueError, match=said):
        combine.consensus_average(x, diagonal=True)


# -- agreement -------------------------------------------------------------------------------------


def white(n, d, seed=0):
    """n draws of mean 0 and covariance I, by 1/n."""
    z = np.random.default_rng(seed).gamma(2.0, size=(n, d))
    z = z - z.mean(axis=0)
    return linalg.solve_triangular(
        linalg.cholesky(np.cov(z.T, ddof=0), lower=True), z.T, lower=True
    ).T


def test_contractions_of_cumulants_by_hand():
    z, eye = white(50, 3), np.eye(3)
    A = np.array([[1.0, 0.3, 0.0], [0.3, -2.0, 0.1], [0.0, 0.1, 0.5]])
    third = np.einsum("ni,nj,nk->ijk", z, z, z) / 50
    fourth = np.einsum("ni,nj,nk,nl->ijkl", z, z, z, z) / 50
    fourth -= np.einsum("ij,kl->ijkl", eye, eye) + np.einsum("ik,jl->ijkl", eye, eye)
    fourth -= np.einsum("il,jk->ijkl", eye, eye)
    found = cumulants.third_cumulants(z, A)
    np.testing.assert_allclose(found, np.einsum("ijk,jk->i", third, A), atol=1e-12)
    found = cumulants.fourth_cumulants(z)
    np.testing.assert_allclose(found, np.einsum("ijkk->ij", fourth), atol=1e-12)


def test_noise_of_third_cumulants():
    rng, A = np.random.default_rng(0), np.diag([1.0, -2.0, 0.5]) + 0.3
    found = np.stack([cumulants.third_cumulants(white_normal(rng, 400, 3), A) for _ in range(800)])
    wanted = cumulants.third_cumulants_noise(A) / 400
    np.testing.assert_allclose(found.var(axis=0), np.diag(wanted), rtol=0.2)


def white_normal(rng, n, d):
    z = rng.normal(size=(n, d))
    z -= z.mean(axis=0)
    root = linalg.cholesky(np.cov(z.T, ddof=0), lower=True)
    return linalg.solve_triangular(root, z.T, lower=True).T


def test_predicted_error_where_shards_differ():
    """Shards of counts: e^θ with k events each; the product has all of them."""
    counts, rng = np.array([60.0, 80.0, 100.0, 75.0]), np.random.default_rng(0)
    draws = np.log(rng.gamma(counts[:, None, None], 1.0, (4, 300_000, 1)))
    mean = special.digamma(counts.sum()) - np.log(4.0)
    sd = np.sqrt(special.polygamma(1, counts.sum()))
    error = (combine.consensus_average(draws).mean() - mean) / sd
    found = combine.agreement(draws)
    assert abs(error) > 0.1
    assert found["mean_shift"] == pytest.approx(abs(error), rel=0.15)
    # What is wrong without the distance between the shards:
    same = np.log(rng.gamma(counts.mean(), 1.0, (4, 300_000, 1)))
    assert abs(combine.agreement(same)["mean_shift"] / abs(error) - 1.0) > 0.3


def test_predicted_error_of_the_mean_is_that_of_consensus():
    """Shards Gamma(k), whose product is Gamma(S (k - 1) + 1) at rate S."""
    rng, S, k = np.random.default_rng(0), 4, 50.0
    draws = rng.gamma(k, 1.0, (S, 200_000, 1))
    a = S * (k - 1.0) + 1.0
    mean, sd = a / S, np.sqrt(a) / S
    error = (combine.consensus_average(draws).mean() - mean) / sd
    found = combine.agreement(draws)
    assert error == pytest.approx((k - mean) / sd, abs=0.02)
    assert found["mean_shift"] == pytest.approx(error, rel=0.1)
    assert found["mean_shift"] > 0.1 + 3 * found["mean_shift_error"]


@pytest.mark.parametrize("off", [1.0, 0.0, -0.5])
def test_predicted_error_of_the_variance_is_that_of_consensus(off):
    """Shards of c + θ and c - θ, both Gamma(k) at rate 1: the product is (c² - θ²)^(k - 1).

    They overshoot if their means are more than c: each is skewed away from the other.
    """
    rng, k = np.random.default_rng(0), 200.0
    c = k - off * np.sqrt(k)
    draws = np.array([[[1.0]], [[-1.0]]]) * (rng.gamma(k, 1.0, (2, 400_000, 1)) - c)
    error = combine.consensus_average(draws).var() / (c**2 / (2.0 * k + 1.0)) - 1.0
    found = combine.agreement(draws)
    assert abs(error) > 0.05 or not off
    assert found["spread_shift"] == pytest.approx(error, abs=0.015)


def test_error_of_the_predicted_variance():
    rng = np.random.default_rng(0)
    means = np.array([[1.0, 0.0], [-0.5, 0.7], [0.2, -1.5]])
    found = [combine.agreement(rng.normal(size=(3, 500, 2)) + means[:, None]) for _ in range(300)]
    shifts = [one["spread_shift"] for one in found]
    error = np.mean([one["spread_shift_error"] for one in found])
    assert np.std(shifts) == pytest.approx(error, rel=0.2)
    assert abs(np.mean(shifts)) < 0.3 * error
    shift = combine.agreement(rng.exponential(size=(3, 500, 2)) + 9.0 * means[:, None])
    assert shift["spread_shift"] <= 9.0


@pytest.mark.parametrize("h", [1.0, *[pytest.param(h, marks=pytest.mark.slow) for h in (0.5, 2.0)]])
@pytest.mark.parametrize("counts", [(50.0, 50.0), (40.0, 60.0)])
def test_predicted_error_of_the_mean_is_that_of_weierstrass(counts, h):
    """e^θ with so many events in each of two shards: the product has all of them."""
    rng, total = np.random.default_rng(0), sum(counts)
    draws = [np.log(rng.gamma(k, 1.0, (400_000, 1))) for k in counts]
    product = combine.weierstrass_product(draws, 400_000, bandwidth=h, random_state=0)
    mean, sd = special.digamma(total) - np.log(2.0), np.sqrt(special.polygamma(1, total))
    error = abs(product.mean() - mean) / sd
    wanted = pytest.approx(error, abs=0.012 + 0.05 * error)  # 4 standard errors, second order
    assert combine.agreement(draws, bandwidth=h)["mean_shift"] == wanted
    assert h > 0.5 or combine.agreement(draws)["mean_shift"] != wanted


def test_kernels_without_width_are_predicted_to_be_exact():
    found = combine.agreement(np.random.default_rng(0).gamma(3.0, size=(2, 1000, 1)), bandwidth=0.0)
    shifts = found["mean_shift"], found["variance_shift"], found["spread_shift"]
    assert shifts == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("d", [1, 5, 20])
def test_gaussian_shards_agree_within_the_errors_stated(d):
    rng = np.random.default_rng(d)
    scale = rng.normal(size=(4, d, d)) + 2.0 * np.eye(d)
    draws = [rng.normal(size=(2000, d)) @ A for A in scale]
    found = combine.agreement(draws)
    assert found["mean_shift"] < 6.0 * found["mean_shift_error"]
    assert found["mean_shift_p"] > 1e-3
    assert found["variance_shift"] < 4.0 * found["variance_shift_error"]


@pytest.mark.parametrize(("d", "distant"), [(2, True), (10, False)])
@pytest.mark.slow
def test_the_error_of_estimated_weights_is_predicted(d, distant):
    rng = np.random.default_rng(0)
    S, n = 4, 400
    means = np.zeros((S, d))
    means[0, 0] = 4.0 * distant
    means += rng.standard_normal((S, d))
    precise, found = [], []
    for _ in range(200):
        draws = means[:, None] + rng.standard_normal((S, n, d))
        eye = np.broadcast_to(np.eye(d), (S, d, d))
        exact = combine.consensus_average(draws, precisions=eye).mean(axis=0)
        precise.append(np.sqrt(S) * (combine.consensus_average(draws).mean(axis=0) - exact))
        found.append(combine.agreement(draws)["weights_error"])
    assert np.std(precise, axis=0).max() == pytest.approx(np.mean(found), rel=0.15)


@pytest.mark.slow
def test_distance_of_shards():
    """One, on average, for means drawn as rows draw them; many for other modes."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(50, 3))
    draws = rng.normal(means[:, None], 1.0, (50, 4000, 3))
    found = combine.agreement(draws)
    assert found["distance"] == pytest.approx(1.0, abs=5 * np.sqrt(2 / 147))
    assert found["distance_p"] > 1e-6
    far = combine.agreement(draws + 5.0 * rng.choice([-1, 1], (50, 1, 1)))
    assert far["distance"] > 10.0
    assert far["distance_p"] < 1e-12
