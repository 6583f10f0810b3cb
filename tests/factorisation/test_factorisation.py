"""Gibbs sampling of factorisations: every conditional law against its formula."""

import numpy as np
import pytest
import ratings
from naive import complex_step
from numpy.testing import assert_allclose
from scipy import linalg, stats

from skbayes_sg.factorisation import FixedNormal, NormalGamma, NormalWishart, noise
from skbayes_sg.factorisation.chains import new_chain, predictions
from skbayes_sg.factorisation.draws import FactorDraws, Moments, snapshot
from skbayes_sg.factorisation.gibbs import Gibbs
from skbayes_sg.factorisation.gibbs_updates import draw_column
from skbayes_sg.factorisation.hyperpriors import wishart
from skbayes_sg.factorisation.prediction_kernels import predictive
from skbayes_sg.factorisation.problem import blocks, make_problem
from skbayes_sg.kernels.normal_mixtures import mixture_quantiles

SIZES = [(6,), (6, 5), (5, 4, 3)]


class Recorder:
    """In the place of a generator: gives what it is told to, remembers what it was asked for."""

    def __init__(self, normals=None, uniform=0.5):
        self.normals, self.uniform, self.shapes = normals, uniform, []

    def standard_normal(self, size):
        return np.broadcast_to(0.0 if self.normals is None else self.normals, size).copy()

    def standard_gamma(self, shape, size=None):
        self.shapes.append(np.copy(shape))
        return np.broadcast_to(shape, size or np.shape(shape)).astype(float)

    def random(self):
        return self.uniform


def scene(sizes, seed=0):
    n = min(25, int(np.prod(sizes)))
    problem = ratings.made_problem(sizes, n, seed=seed)
    return problem, ratings.made_chain(problem, seed), ratings.made_model(problem)


def normal_law(problem, chain, row):
    """Mean and covariance of a row of F given the others, from the density by its derivatives."""

    def density(x):
        F = chain.F.astype(complex)
        F[row] = x
        return ratings.log_density(F, problem, chain)

    def slope(x):  # the density is quadratic in a row: differences of slopes are exact
        return complex_step(density, x)

    D = problem.width
    at_zero = slope(np.zeros(D))
    H = np.stack([at_zero - slope(e) for e in np.eye(D)])
    return linalg.solve(H, at_zero), linalg.inv(H)


@pytest.mark.parametrize("sizes", SIZES)
def test_rows_given_all_others_have_the_law_of_the_density(sizes):
    problem, chain, model = scene(sizes)
    before = chain.F.copy()
    for column in range(len(sizes)):
        rows = problem.rows(column)
        law = [normal_law(problem, chain, row) for row in range(rows.start, rows.stop)]
        chain.rng = Recorder()
        means = draw_column(model, chain, column)
        assert_allclose(means, [m for m, _ in law], rtol=1e-9, atol=1e-9)
        assert_allclose(chain.F[rows], means, rtol=1e-12, atol=1e-12)
        shifts = []
        for e in np.eye(problem.width):
            chain.rng = Recorder(e)
            draw_column(model, chain, column)
            shifts.append(chain.F[rows] - means)
        roots = np.stack(shifts, axis=-1)  # x = m + R ε, so the covariance is R Rᵀ
        assert_allclose(roots @ roots.transpose(0, 2, 1), [S for _, S in law], rtol=1e-8, atol=1e-9)
        chain.F[:] = before


def test_the_gradient_is_that_of_the_conditional_law():
    problem, chain, _ = scene((6, 5))
    g = ratings.gradient(chain.F, problem, chain)
    for row in (0, 7):
        mean, covariance = normal_law(problem, chain, row)
        assert_allclose(g[row], -linalg.solve(covariance, chain.F[row] - mean), rtol=1e-9)


def test_a_row_without_ratings_is_drawn_from_its_prior():
    problem, chain, _ = scene((6, 5))
    others = problem.codes[:, 0] != 2
    alone = make_problem(problem.codes[others], problem.y[others], problem.offsets, problem.rank)
    chain.rng = Recorder()
    means = draw_column(ratings.made_model(alone), chain, 0)
    assert_allclose(means[2], chain.hyper[0][0], rtol=1e-12)
    assert np.diff(alone.groups[0].indptr)[2] == 0
    assert alone.n_ratings == problem.n_ratings - np.diff(problem.groups[0].indptr)[2]


# -- (μ, Λ) ---------------------------------------------------------------------------------------


def test_wishart_has_its_mean_and_variance():
    inverse, df, n = np.array([[2.0, 0.6], [0.6, 1.0]]), 5.0, 3_000
    rng, W = np.random.default_rng(0), linalg.inv(np.array([[2.0, 0.6], [0.6, 1.0]]))
    draws = np.stack([wishart(rng, df, inverse) for _ in range(n)])
    variance = df * (W**2 + np.outer(np.diag(W), np.diag(W)))
    assert np.abs((draws.mean(axis=0) - df * W) / np.sqrt(variance / n)).max() < 5.0
    assert_allclose(draws.var(axis=0), variance, rtol=0.12)


def log_normal_rows(rows, mean, precision):
    return stats.multivariate_normal(mean, linalg.inv(precision)).logpdf(rows).sum()


def density_ratio(hyperprior, log_prior, points, rows):
    """log of prior times likelihood, less log of the law that is drawn from, at each point."""
    return [log_prior(*p) + log_normal_rows(rows, *p) - hyperprior(*p) for p in points]


def hyper_points(D):
    rng = np.random.default_rng(3)
    for _ in range(4):
        A = rng.standard_normal((D, D))
        yield rng.standard_normal(D), A @ A.T + np.eye(D)


def test_normal_wishart_is_conjugate():
    # The parameters of the law that is drawn from are read off the draws' own two ingredients.
    rng = np.random.default_rng(0)
    rows, D, n = rng.normal(1.0, 0.7, (8, 2)), 2, 8
    prior = NormalWishart(beta=3.0, scale=0.5)
    mean = rows.mean(axis=0)
    S = (rows - mean).T @ (rows - mean)
    inverse = np.eye(D) / 0.5 + S + 3.0 * n / (3.0 + n) * np.outer(mean, mean)

    def log_prior(m, L):
        return stats.wishart(D, 0.5 * np.eye(D)).logpdf(L) + log_normal_rows(
            np.zeros((1, D)), m, 3.0 * L
        )

    def log_posterior(m, L):
        return stats.wishart(D + n, linalg.inv(inverse)).logpdf(L) + log_normal_rows(
            (n / (3.0 + n) * mean)[None], m, (3.0 + n) * L
        )

    ratio = density_ratio(log_posterior, log_prior, hyper_points(D), rows)
    assert_allclose(ratio, ratio[0], rtol=1e-10)

    draws = [prior.draw(rng, rows) for _ in range(4000)]
    precision = np.stack([L for _, L in draws])
    W = linalg.inv(inverse)
    sd = np.sqrt((D + n) * (W**2 + np.outer(np.diag(W), np.diag(W))) / 4000)
    assert np.abs((precision.mean(axis=0) - (D + n) * W) / sd).max() < 5.0
    white = np.stack(
        [linalg.cholesky((3.0 + n) * L).dot(m - n / (3.0 + n) * mean) for m, L in draws]
    )
    assert np.abs(white.mean(axis=0)).max() < 5.0 / np.sqrt(4000)
    assert np.abs(white.T @ white / 4000 - np.eye(D)).max() < 5.0 * np.sqrt(2.0 / 4000)


def test_normal_gamma_is_conjugate():
    rows = np.random.default_rng(0).normal(1.0, 0.7, (8, 1))
    n, x, beta, a, b = 8, float(rows.mean()), 3.0, 1.5, 0.4
    rng = Recorder(np.ones(1))
    mean, precision = NormalGamma(beta=beta, shape=a, rate=b).draw(rng, rows)
    shape = rng.shapes[0]
    rate = shape / precision[0, 0]  # the recorder gives the shape for a draw
    scale = (mean[0] - n * x / (beta + n)) ** 2 * precision[0, 0]

    def log_prior(m, L):
        return stats.gamma(a, scale=1 / b).logpdf(L).item() + log_normal_rows(
            np.zeros((1, 1)), m, beta * L
        )

    def log_posterior(m, L):
        centre = np.array([[n * x / (beta + n)]])
        return stats.gamma(shape, scale=1 / rate).logpdf(L).item() + log_normal_rows(
            centre, m, L / scale
        )

    ratio = density_ratio(log_posterior, log_prior, hyper_points(1), rows)
    assert_allclose(ratio, ratio[0], rtol=1e-10)


# -- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SIZES)
def test_squared_residuals(sizes):
    problem, chain, _ = scene(sizes)
    e2 = noise.squares_of_residuals(problem, chain.F)
    order = np.argsort(problem.codes[:, 0], kind="stable")
    naive = (problem.y - ratings.expected(chain.F, problem.codes)) ** 2
    assert_allclose(e2, naive[order], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("sizes", SIZES)
def test_noise_given_residuals(sizes):
    problem, chain, model = scene(sizes)
    e2 = (problem.y - ratings.expected(chain.F, problem.codes)) ** 2
    w, alpha, nu = chain.noise.w.copy(), chain.noise.alpha, 4.0
    chain.rng = Recorder()
    noise.draw_noise(model, chain)

    def weights(column):
        new = w.copy()
        for row in range(*problem.offsets[column : column + 2]):
            mine = problem.codes[:, column] == row
            rest = np.delete(problem.codes[mine], column, axis=1)
            S = (alpha * w[rest].prod(axis=1) * e2[mine]).sum()
            new[row] = (nu + 0.5 * mine.sum()) / (nu + 0.5 * S)
        return new

    w = weights(0)
    total = (w[problem.codes].prod(axis=1) * e2).sum()
    alpha = (1.0 + 0.5 * len(e2)) / (1.0 + 0.5 * total)
    for column in range(1, len(sizes)):
        w = weights(column)
    assert_allclose(chain.noise.w, w, rtol=1e-12)
    assert_allclose(chain.noise.alpha, alpha, rtol=1e-12)


def test_common_and_known_noise_leave_the_weights():
    for kind, changed in (("common", True), ("known", False)):
        problem, chain, _ = scene((6, 5))
        w = chain.noise.w.copy()
        noise.draw_noise(ratings.made_model(problem, kind), chain)
        assert np.array_equal(chain.noise.w, w)
        assert (chain.noise.alpha != 1.7) == changed


def test_shape_of_the_weights_has_its_law_on_the_grid():
    w = stats.gamma(6.0, scale=1 / 6.0).rvs(40, random_state=0)
    log_p = np.array([stats.gamma(nu, scale=1 / nu).logpdf(w).sum() for nu in noise.GRID])
    p = np.exp(log_p - log_p.max())
    cumulated = np.cumsum(p / p.sum())
    for k in np.flatnonzero(p / p.sum() > 1e-6):
        low = cumulated[k - 1] if k else 0.0
        middle = Recorder(uniform=0.5 * (low + cumulated[k]))
        assert noise._draw_shape(middle, w) == noise.GRID[k]


# -- the sweep ------------------------------------------------------------------------------------


def geweke(sampler, n_draws, seed=0):
    """Σ f² of all cells where ratings and states are drawn in turn, and under the prior alone."""
    problem = ratings.made_problem((3, 3), 8, rank=1)
    model = ratings.made_model(problem, "known", FixedNormal(2.0))
    chain = new_chain(model, seed, 0)
    rng = np.random.default_rng(seed + 1)
    y = [grouped.y.copy() for grouped in problem.groups]
    orders = [np.argsort(problem.codes[:, c], kind="stable") for c in range(2)]
    object.__setattr__(
        problem, "groups",
        tuple(g._replace(y=own) for g, own in zip(problem.groups, y, strict=True)),
    )  # fmt: skip
    cells = np.stack(np.meshgrid(np.arange(3), np.arange(3, 6)), axis=-1).reshape(-1, 2)
    found, prior = np.empty(n_draws), np.empty(n_draws)
    for k in range(n_draws):
        new = predictions(chain.F[problem.codes]) + rng.standard_normal(8)
        for own, order in zip(y, orders, strict=True):
            own[:] = new[order]
        sampler.sweep(model, chain)
        found[k] = (predictions(chain.F[cells]) ** 2).sum()
        F = np.sqrt(0.5) * rng.standard_normal(chain.F.shape)
        prior[k] = (predictions(F[cells]) ** 2).sum()
    return found, prior


class HalvedNoise(Gibbs):
    """A planted bug: rows are drawn with half of their spread."""

    def sweep(self, model, chain, n_jobs=None):
        for column in (1, 0):
            means = draw_column(model, chain, column)
            rows = model.problem.rows(column)
            chain.F[rows] = means + 0.5 * (chain.F[rows] - means)


def joint_z(sampler, n_draws):
    """z of the difference of the means of log Σ f², by batches."""
    found, prior = (np.log(x) for x in geweke(sampler, n_draws))
    batches = found.reshape(50, -1).mean(axis=1)
    return (found.mean() - prior.mean()) / np.sqrt(batches.var() / 50 + prior.var() / n_draws)


@pytest.mark.slow
def test_joint_law_of_ratings_and_rows():
    assert abs(joint_z(Gibbs(), 20_000)) < 4.5
    assert abs(joint_z(HalvedNoise(), 20_000)) > 10.0


def test_blocks_cover_all_categories(monkeypatch):
    monkeypatch.setattr("skbayes_sg.factorisation.problem.BLOCK", 3)
    indptr = np.array([0, 1, 1, 9, 9, 10, 14])
    pieces = blocks(indptr)
    assert [a for first, stop in pieces for a in range(first, stop)] == list(range(6))
    assert len(pieces) > 1


# -- predictions ----------------------------------------------------------------------------------


def gauss_hermite(mean, covariance):
    """Points and weights that integrate polynomials of degree 5 exactly."""
    x, w = np.polynomial.hermite_e.hermegauss(3)
    D = len(mean)
    grid = np.stack(np.meshgrid(*[x] * D, indexing="ij"), -1).reshape(-1, D)
    weights = np.stack(np.meshgrid(*[w / w.sum()] * D, indexing="ij"), -1).reshape(-1, D).prod(1)
    return mean + grid @ linalg.cholesky(covariance), weights


@pytest.mark.parametrize(
    ("sizes", "new"),
    [((6, 5), ()), ((6, 5), (0,)), ((6, 5), (1,)), ((6, 5), (0, 1)), ((4, 3, 2), (0, 2))],
)
def test_predictions_of_new_categories_are_integrals_over_their_prior(sizes, new):
    problem = ratings.made_problem(sizes, 12, rank=1)
    chain = ratings.made_chain(problem)
    chain.means = chain.F[problem.rows(0)] + 0.1
    codes = problem.codes[:1].copy()
    points, weights = [chain.F[codes[0]]], np.ones(1)
    for c in new:
        mean, precision = chain.hyper[c]
        x, w = gauss_hermite(mean, linalg.inv(precision))
        points = [np.concatenate([p[:c], [own], p[c + 1 :]]) for p in points for own in x]
        weights = np.repeat(weights, len(w)) * np.tile(w, len(weights))
        codes[0, c] = -1
    f_at = predictions(np.stack(points))
    mean = weights @ f_at
    f, g, spread, variance = predictive(snapshot(chain, with_means=True).at(None), codes)
    assert_allclose(f[0, 0], mean, rtol=1e-5)
    assert_allclose(spread[0, 0], weights @ (f_at - mean) ** 2, rtol=1e-5, atol=1e-12)
    factor = [4.0 / 3.0 if c in new else 1.0 / chain.noise.w[k] for c, k in enumerate(codes[0])]
    assert_allclose(variance[0, 0], np.prod(factor) / chain.noise.alpha, rtol=1e-5)
    if 0 not in new:
        rows = np.stack(
            [chain.hyper[c][0] if c in new else chain.F[k] for c, k in enumerate(codes[0])]
        )
        rows[0] = chain.means[codes[0, 0]]
        assert_allclose(g[0, 0], predictions(rows[None])[0], rtol=1e-5)
    else:
        assert g[0, 0] == f[0, 0]


def test_predictions_are_the_formula():
    for sizes in SIZES:
        problem, chain, _ = scene(sizes)
        naive = ratings.expected(chain.F, problem.codes)
        assert_allclose(predictions(chain.F[problem.codes]), naive, rtol=1e-10, atol=1e-12)
        f = predictive(snapshot(chain, with_means=True).at(None), problem.codes)[0]
        assert_allclose(f[0], naive, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("q", [0.01, 0.05, 0.5, 0.95])
def test_quantiles_of_mixtures(q):
    rng = np.random.default_rng(0)
    means, variances = 3.0 * rng.standard_normal((7, 40)), rng.uniform(0.01, 2.0, (7, 40))
    means[:, 0], variances[:, 1] = 0.0, 1e-12  # one normal; seven spikes
    x = mixture_quantiles(means, np.sqrt(variances), q)
    share = stats.norm.cdf(x, means, np.sqrt(variances)).mean(axis=0)
    assert_allclose(share[np.arange(40) != 1], q, rtol=1e-6)


def test_moments_are_those_of_the_draws():
    problem, chain, model = scene((6, 5))
    draws, moments = FactorDraws.empty(problem, (5,), True), Moments(problem.codes)
    for k in range(5):
        Gibbs().sweep(model, chain)
        draws.write(k, snapshot(chain, with_means=True))
        moments.write(k, snapshot(chain, with_means=True))
    f, g, spread, variance = predictive(draws, problem.codes)
    assert_allclose(moments.sums, [g.sum(0), f.sum(0), (f**2).sum(0), (spread + variance).sum(0)])
