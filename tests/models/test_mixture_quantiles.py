"""Fast quantiles of mixtures beside the inversion of all draws' distribution functions."""

import numpy as np
import pytest
from exact_quantiles import exact_quantiles
from scipy import stats

from skbayes_sg.kernels.mixture_nodes import N_CELLS, N_SUMS, condense
from skbayes_sg.kernels.normal_mixtures import mixture_quantiles
from skbayes_sg.models import Linear, NegativeBinomial, Poisson, Robust, predictive
from skbayes_sg.models.mixture_quantiles import mixture_of

LEVELS = np.array([0.01003, 0.05003, 0.25003, 0.50003, 0.74997, 0.94997, 0.98997])


def found_and_exact(model, eta, extras, weights=None, levels=LEVELS):
    mixture = mixture_of(model, extras, weights, eta.shape[1])
    found = mixture.quantiles(eta[:, mixture.order], levels)
    return found, exact_quantiles(model, eta, extras, weights, levels)


def check_stated_error(model, eta, extras, weights=None):
    """What `predict_quantiles` says of its error."""
    found, exact = found_and_exact(model, eta, extras, weights)
    variance = predictive.variances(model, eta, extras, weights).sum(axis=0)
    near = np.abs(found - exact) <= 0.01 * np.sqrt(variance)[:, None]
    near &= np.isfinite(variance)[:, None]
    for i, j in zip(*np.nonzero(~near), strict=True):
        off, y = 0.01 * min(LEVELS[j], 1.0 - LEVELS[j]), found[i, j]
        below = [
            np.average(model.cdf(x, eta[i], *extras), weights=weights)
            for x in (y, y - 1.0 if model.discrete else y)
        ]
        assert below[0] >= LEVELS[j] - off, (i, j, found[i], exact[i])
        assert below[1] <= LEVELS[j] + off, (i, j, found[i], exact[i])


@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 4.0, 100.0])
@pytest.mark.parametrize("shape", ["normal", "skew", "heavy"])
def test_nodes_have_the_moments_of_the_draws(shape, noise):
    rng, n = np.random.default_rng(0), 300
    x = {
        "normal": rng.normal(size=n), "skew": rng.exponential(size=n) ** 2,
        "heavy": rng.standard_t(1, size=n),
    }[shape]  # fmt: skip
    weights, nodes = rng.uniform(size=n), np.empty((2, 2 * n + 1))
    cells = np.zeros((N_CELLS, N_SUMS))
    weights /= weights.sum()
    end = condense(x, weights, 10, n, noise, cells, nodes[0], nodes[1], 1)
    own, mass = nodes[:, 1:end]
    assert not cells.any()
    assert (mass > 0.0).all()
    assert end - 1 <= 2 * (n - 10)
    scale = np.average(np.abs(x) ** 3, weights=weights) ** (1 / 3)
    for power in range(4):
        expected = (weights[10:] * (x[10:] / scale) ** power).sum()
        assert np.isclose((mass * (own / scale) ** power).sum(), expected, rtol=1e-9, atol=1e-12)


def test_cells_are_as_wide_as_the_noise():
    x, weights = np.linspace(-10.0, 10.0, 1001), np.full(1001, 1 / 1001)
    nodes, cells = np.empty((2, 2002)), np.zeros((N_CELLS, N_SUMS))
    end = condense(x, weights, 0, 1001, 1.0, cells, nodes[0], nodes[1], 0)
    assert end == 2 * 21  # from -10 ± 0.5 to 10 ± 0.5
    # Two nodes of a uniform cell lie a root of three of its half width from its middle.
    inner = nodes[0, 2 : end - 2].reshape(-1, 2)
    assert np.allclose(np.diff(inner, axis=1), 1.0 / np.sqrt(3.0), rtol=1e-2)


@pytest.mark.parametrize(("offset", "ulps"), [(1e8, 2), (-1e12, 2), (1e15, 4)])
@pytest.mark.parametrize("model", [Linear(), Robust()])
def test_quantiles_far_from_zero_are_those_near_zero(model, offset, ulps):
    rng = np.random.default_rng(0)
    eta = offset + rng.normal(scale=0.003, size=(40, 200))  # rounded as predictors are
    extras = [np.full(200, 0.01), np.full(200, 4.0)][: model.n_extra]
    far = mixture_of(model, extras, None, 200).quantiles(eta, LEVELS)
    near = mixture_of(model, extras, None, 200).quantiles(eta - offset, LEVELS)
    np.testing.assert_allclose(far - offset, near, rtol=0.0, atol=ulps * np.spacing(abs(offset)))


@pytest.mark.parametrize("model", [Linear(), Robust()])
def test_one_draw_has_its_own_quantiles(model):
    extras = (np.array([2.0]), np.array([3.0]))[: model.n_extra]
    found, _ = found_and_exact(model, np.array([[5.0]]), extras)
    law = stats.norm(5.0, 2.0) if model.n_extra == 1 else stats.t(3.0, 5.0, 2.0)
    assert np.allclose(found, law.ppf(LEVELS), atol=2e-3)


@pytest.mark.parametrize("wide", [0.0, 0.01, 0.3, 1.0, 3.0, 30.0, 1e4])
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_stated_error_for_normal_noise(wide, spread):
    rng = np.random.default_rng(1)
    sigma = np.exp(spread * rng.normal(size=2000))
    for eta in (rng.normal(size=(4, 2000)), rng.exponential(size=(4, 2000))):
        check_stated_error(Linear(), 3.0 + wide * eta * sigma, (sigma,))


def test_stated_error_where_draws_have_heavy_tails():
    rng = np.random.default_rng(2)
    sigma = 1.0 / np.sqrt(rng.chisquare(1, 2000))
    check_stated_error(Linear(), sigma * rng.normal(size=(4, 2000)), (sigma,))
    check_stated_error(Linear(), rng.standard_t(2, size=(4, 2000)), (np.full(2000, 0.5),))


@pytest.mark.parametrize("distance", [3.0, 1000.0])
def test_noise_that_depends_on_the_mode(distance):
    rng = np.random.default_rng(3)
    far = rng.random(2000) < 0.5
    eta = np.where(far, distance, 0.0) + 0.01 * rng.normal(size=(3, 2000))
    sigma = np.where(far, 1.0, 0.2)
    check_stated_error(Linear(), eta, (sigma,))
    found, exact = found_and_exact(Linear(), eta, (sigma,))
    assert np.abs(found - exact)[:, [0, 1, 2, 4, 5, 6]].max() < 5e-3


def test_draws_that_disagree_by_many_widths():
    eta, sigma = np.array([[0.0, 1000.0]]), np.array([1e-3, 5.0])
    mixture = mixture_of(Linear(), (sigma,), None, 2)
    found = mixture.quantiles(eta[:, mixture.order], np.array([0.25, 0.75]))
    assert np.allclose(found, [[0.0, 1000.0]], atol=1e-2)


@pytest.mark.parametrize("n", [2, 7, 64, 65, 200])
def test_stated_error_for_few_draws(n):
    rng = np.random.default_rng(4)
    for wide in (0.1, 2.0, 50.0):
        sigma = np.exp(0.3 * rng.normal(size=n))
        check_stated_error(Linear(), wide * rng.normal(size=(5, n)), (sigma,))


def test_draws_without_weight_do_not_count():
    rng = np.random.default_rng(5)
    eta, sigma = rng.normal(size=(3, 900)), np.exp(0.1 * rng.normal(size=900))
    weights = rng.exponential(size=900)
    weights[::3] = 0.0
    check_stated_error(Linear(), eta, (sigma,), weights)
    kept = weights > 0.0
    again, _ = found_and_exact(Linear(), eta[:, kept], (sigma[kept],), weights[kept])
    eta[:, ::3] = 1e6
    assert np.array_equal(found_and_exact(Linear(), eta, (sigma,), weights)[0], again)


@pytest.mark.parametrize("nu", [0.3, 0.7, 1.0, 2.0, 5.0, 50.0])
def test_stated_error_for_heavy_noise(nu):
    rng = np.random.default_rng(6)
    sigma = np.exp(0.1 * rng.normal(size=1000))
    df = nu * np.exp(0.2 * rng.normal(size=1000))
    for wide in (0.05, 2.0):
        check_stated_error(Robust(), wide * rng.normal(size=(2, 1000)), (sigma, df))


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.2])
def test_tails_beyond_the_table_are_powers(nu):
    law, q = stats.t(nu, 1.0, 2.0), np.array([1e-3, 0.01, 0.3, 0.99])
    mixture = mixture_of(Robust(), [np.array([2.0]), np.array([nu])], None, 1)
    found = mixture.quantiles(np.array([[1.0]]), q)[0]
    assert np.allclose(law.cdf(found), q, rtol=1e-3)
    assert np.allclose(law.sf(found), 1.0 - q, rtol=1e-3)


@pytest.mark.parametrize("mean", [1e-3, 0.3, 4.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("wide", [0.0, 0.01, 0.2, 1.0])
def test_stated_error_for_counts(mean, wide):
    rng = np.random.default_rng(7)
    check_stated_error(Poisson(), np.log(mean) + wide * rng.normal(size=(4, 1000)), ())


def test_single_counts_are_exact():
    means = np.array([1e-3, 0.5, 7.0, 29.0, 31.0, 400.0, 1e5, 1e9])
    levels = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 0.999])
    mixture = mixture_of(Poisson(), (), None, 1)
    found = mixture.quantiles(np.log(means)[:, None], levels)
    exact = stats.poisson.ppf(levels, means[:, None])
    assert np.array_equal(found[:-1], exact[:-1])
    assert np.abs(found - exact)[-1].max() <= 0.002 * np.sqrt(means[-1])


@pytest.mark.slow_except("0.0001-1.0")
@pytest.mark.parametrize(
    "mean", [0.3, *[pytest.param(m, marks=pytest.mark.slow) for m in (50.0, 1e4)]]
)
@pytest.mark.parametrize(
    "wide", [0.6, *[pytest.param(w, marks=pytest.mark.slow) for w in (0.0, 0.05)]]
)
@pytest.mark.parametrize(("alpha", "spread"), [(1e-4, 1.0), (0.02, 1.0), (0.5, 0.2), (5.0, 0.4)])
def test_stated_error_for_overdispersed_counts(mean, wide, alpha, spread):
    rng = np.random.default_rng(9)
    eta = np.log(mean) + wide * rng.normal(size=(2, 1000))
    check_stated_error(NegativeBinomial(), eta, (alpha * np.exp(spread * rng.normal(size=1000)),))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mean", [0.5, *[pytest.param(m, marks=pytest.mark.slow) for m in (0.01, 20.0, 500.0)]]
)
def test_stated_error_where_few_events_leave_much_open(mean):
    rng = np.random.default_rng(11)
    eta, alpha = np.log(mean) + 1.8 * rng.normal(size=(2, 800)), np.exp(1.3 * rng.normal(size=800))
    check_stated_error(NegativeBinomial(), eta, (alpha,))
    check_stated_error(Poisson(), eta, ())


@pytest.mark.slow
def test_dispersions_that_depend_on_the_mean():
    z = np.random.default_rng(10).normal(size=(2, 2000))
    eta, alpha = np.log(40.0) + 0.1 * z.sum(axis=0, keepdims=True), 0.5 * np.exp(0.3 * z[0])
    check_stated_error(NegativeBinomial(), eta, (alpha,))
    far = z[1] > 0.5
    alpha = np.where(far, 3.0, 0.1)
    check_stated_error(NegativeBinomial(), eta + np.where(far, 2.0, 0.0), (alpha,))


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 0.03, 0.04, 0.5, 10.0, 1e3])
@pytest.mark.parametrize("k", [0, 1, 29, 30, 31, 100, 10**4, 10**6])
def test_distribution_function_of_overdispersed_counts(k, alpha):
    reach = np.sqrt(1.0 / (k + 1.0) + alpha)
    means = (k + 1.0) * np.exp(np.r_[np.linspace(-4.0, 4.0, 41) * min(reach, 2.0), -1e-6, 0.0])
    found = np.array([NegativeBinomial.count_cdf(float(k), mean, alpha) for mean in means])
    expected = NegativeBinomial.cdf(float(k), np.log(means), alpha)
    tail = np.minimum(expected, 1.0 - expected)
    assert (np.abs(found - expected) < 2e-5 + 1e-12).all()
    assert (np.abs(found - expected) < 1e-3 * tail)[tail > 1e-3].all()


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.031, 0.033, 0.5, 10.0, 1e5])
@pytest.mark.parametrize("k", [1e12, 1e17, 1e200])
def test_distribution_function_of_counts_beyond_all_reason(k, alpha):
    # No float tells k from k + 1 there; a count is as large as its rate, which has a gamma law.
    reach = min(np.sqrt(1.0 / k + alpha), 30.0)
    means = k * np.exp(reach * np.linspace(-4.0, 4.0, 41))
    found = np.array([NegativeBinomial.count_cdf(k, mean, alpha) for mean in means])
    expected = stats.gamma(1.0 / alpha, scale=alpha).cdf((k + 0.5) / means)
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_of_counts_whose_deviation_tells_nothing(seed):
    """Their levels, against the mixture of all draws: an sd of 10⁶ is made by a few of them."""
    rng = np.random.default_rng(seed)
    eta, alpha = rng.normal(7.0, 1.0, (1, 2000)), rng.uniform(3.0, 12.0, 2000)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    for k, q in zip(
        mixture_of(NegativeBinomial(), (alpha,), None, 2000).quantiles(eta, levels)[0],
        levels,
        strict=True,
    ):
        at, before = (NegativeBinomial.cdf(y, eta[0], alpha).mean() for y in (k, k * 0.99 - 1.0))
        assert at > q - 0.003
        assert before < q + 0.003


@pytest.mark.parametrize("k", [0, 1, 29, 30, 31, 100, 10**4, 10**8])
def test_distribution_function_of_counts(k):
    means = k + 1.0 + np.sqrt(k + 1.0) * np.r_[np.linspace(-3.0, 7.0, 41), -1e-3, 0.0, 1e-3]
    means = means[means > 0.0]
    found = np.array([Poisson.count_cdf(float(k), mean, 0.0) for mean in means])
    assert np.allclose(found, stats.poisson.cdf(k, means), rtol=1e-5, atol=1e-12)
    assert np.allclose(1.0 - found, stats.poisson.sf(k, means), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("model", [Linear(), Poisson(), NegativeBinomial()])
def test_quantiles_grow_with_the_level_in_any_order(model):
    rng = np.random.default_rng(8)
    eta, sigma = rng.normal(size=(3, 500)) * [[0.01], [1.0], [5.0]], np.full(500, 0.3)
    levels = np.r_[1e-12, np.linspace(0.001, 0.999, 400), 1.0 - 1e-12]
    mixture = mixture_of(model, (sigma,)[: model.n_extra], None, 500)
    found = mixture.quantiles(eta, levels)
    assert (np.diff(found, axis=1) >= 0.0).all()
    assert np.isfinite(found).all()
    shuffled = rng.permutation(len(levels))
    assert np.array_equal(mixture.quantiles(eta, levels[shuffled]), found[:, shuffled])


@pytest.mark.parametrize("S", [1, 2, 40])
@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.999])
def test_quantiles_of_normal_mixtures_are_the_roots_of_their_distributions(S, q):
    """Weights, which may be zero, modes far from each other, and parts of very different width."""
    rng = np.random.default_rng(S)
    means, sds = 10.0 * rng.standard_cauchy((S, 3, 2)), np.exp(3.0 * rng.normal(size=(S, 3, 2)))
    weights = rng.dirichlet(np.ones(S)) if S > 2 else np.eye(S)[0]
    found = mixture_quantiles(means, sds, q, weights)
    below = np.tensordot(weights, stats.norm(means, sds).cdf(found), 1)
    np.testing.assert_allclose(below, q, rtol=1e-5)
    even = mixture_quantiles(means, sds, q)
    np.testing.assert_allclose(stats.norm(means, sds).cdf(even).mean(axis=0), q, rtol=1e-5)
