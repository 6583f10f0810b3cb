"""Normal rows with the coefficients integrated out: each number against dense matrices."""

import numpy as np
import pytest
from scipy import linalg, stats

from skbayes_sg.engine.target import Target
from skbayes_sg.models import Linear
from skbayes_sg.priors import Flat, HalfNormal, Normal
from skbayes_sg.shrinkage.normal_rows import FewColumns, FewRows, NormalRows, intercept_prior

BOTH = pytest.mark.parametrize("form", [FewColumns, FewRows])
INTERCEPTS = pytest.mark.parametrize(
    "variance", [None, np.inf, 4.0], ids=["none", "flat", "normal"]
)
SHAPES = pytest.mark.parametrize("shape", [(12, 4), (5, 9)], ids=["tall", "wide"])
LOC, NOISE = 0.5, 0.6


def made(shape, variance):
    """Rows for two chains, with precisions 1/v, and their X, 1 and y."""
    rng = np.random.default_rng(0)
    n, p = shape
    sets, raw = [], []
    for _ in range(2):
        X, one, y = rng.normal(size=shape), rng.uniform(0.5, 2.0, n), rng.normal(size=n) + 2.0
        if variance is None:
            sets.append(NormalRows(X, y))
        else:
            means = one @ X / (one @ one) + 0.1  # need not be exact
            own = {"means": means, "prior": (LOC, variance)}
            sets.append(NormalRows(X - np.outer(one, means), y, one, **own))
        raw.append((X, one, y))
    return sets, np.exp(rng.normal(size=(2, p))), raw


def log_marginal(X, one, y, precision, noise, variance):
    """log N(y; 1 loc, σ² + X V Xᵀ + variance 1 1ᵀ), or its limit, for a flat prior."""
    M = noise * np.eye(len(y)) + X / precision @ X.T
    if variance is None:
        return stats.multivariate_normal.logpdf(y, np.zeros(len(y)), M)
    if np.isfinite(variance):
        return stats.multivariate_normal.logpdf(y, LOC * one, M + variance * np.outer(one, one))
    own = linalg.solve(M, np.column_stack([one, y]))
    K1, Ky, known = own[:, 0], own[:, 1], one @ own[:, 0]
    quadratic = y @ Ky - (y @ K1) ** 2 / known
    return -0.5 * (np.linalg.slogdet(M)[1] + np.log(known) + quadratic)


@BOTH
@INTERCEPTS
@SHAPES
def test_the_marginal_law_is_that_of_a_dense_matrix(form, variance, shape):
    sets, precision, raw = made(shape, variance)
    rows = form(sets, shape[0] - (variance is not None))
    noise = np.array([NOISE, 1.7])
    values = rows.marginal(precision, noise)[0]
    others = rows.marginal(precision[::-1], noise[::-1])[0]
    for c in range(2):
        expected = log_marginal(*raw[c], precision[c], noise[c], variance)
        expected -= log_marginal(*raw[c], precision[1 - c], noise[1 - c], variance)
        np.testing.assert_allclose(values[c] - others[c], expected, atol=1e-10)


@BOTH
def test_matrices_of_any_size_are_inverted_by_halves_of_at_most_64_rows(form, monkeypatch):
    """Σ v_j ∂ log p/∂ v_j and the slope by log σ hold the trace of the inverse of all columns."""
    whole, sizes = linalg.lapack.dtrtri, []

    def inverse(L, **options):
        sizes.append(len(L))
        return whole(L, **options)

    monkeypatch.setattr(linalg.lapack, "dtrtri", inverse)
    sets, precision, raw = made((150, 131), None)
    noise = np.array([NOISE, 1.7])
    _, of_scales, of_noise = form(sets, 150.0).marginal(precision, noise)
    assert max(sizes) <= 64
    for c, (X, _, y) in enumerate(raw):
        K = linalg.inv(noise[c] * np.eye(150) + X / precision[c] @ X.T)
        known = np.einsum("ij,ik,kj->j", X, K, X)
        expected = 0.5 * (np.square(X.T @ K @ y) - known) / precision[c]
        np.testing.assert_allclose(of_scales[c], expected, rtol=1e-9, atol=1e-9)
        expected = noise[c] * (np.square(K @ y).sum() - np.trace(K))
        np.testing.assert_allclose(of_noise[c], expected, rtol=1e-9)


@BOTH
@INTERCEPTS
@SHAPES
def test_its_slopes_are_those_of_differences(form, variance, shape):
    sets, precision, raw = made(shape, variance)
    rows = form(sets, shape[0] - (variance is not None))
    noise, h = np.array([NOISE, 1.7]), 1e-4
    _, of_scales, of_noise = rows.marginal(precision, noise)
    for c in range(2):

        def at(log_v, log_sigma, c=c):
            own = precision[c] * np.exp(-log_v), noise[c] * np.exp(2.0 * log_sigma)
            return log_marginal(*raw[c], *own, variance)

        steps = h * np.eye(shape[1])
        slopes = [(at(step, 0.0) - at(-step, 0.0)) / (2.0 * h) for step in steps]
        np.testing.assert_allclose(of_scales[c], slopes, atol=1e-6)
        np.testing.assert_allclose(of_noise[c], (at(0.0, h) - at(0.0, -h)) / (2.0 * h), atol=1e-6)


@BOTH
@INTERCEPTS
def test_known_noise_leaves_the_same_law_of_the_scales(form, variance):
    sets, precision, _ = made((12, 4), variance)
    noise = np.full(2, NOISE)
    known, learned = form(sets, None), form(sets, 12 - (variance is not None))
    apart = [
        own.marginal(precision, noise)[0] - own.marginal(2.0 * precision, noise)[0]
        for own in (known, learned)
    ]
    np.testing.assert_allclose(*apart, atol=1e-10)


class Probe:
    """Normals that are given: draws that are affine in them tell their mean and their factor."""

    def __init__(self, values):
        self.values = list(values)

    def standard_normal(self, shape=()):
        taken = [self.values.pop(0) for _ in range(int(np.prod(shape)))]
        return np.reshape(taken, shape) if shape != () else taken[0]


def law_of(draw, n):
    """Mean and covariance of a draw that is affine in n normals."""
    mean = draw(Probe(np.zeros(n)))
    factor = np.array([draw(Probe(unit)) - mean for unit in np.eye(n)])
    return mean, factor.T @ factor


@BOTH
@INTERCEPTS
@SHAPES
def test_draws_have_the_mean_and_covariance_of_the_posterior(form, variance, shape):
    """Of the coefficients and of the intercept, exactly."""
    sets, precision, raw = made(shape, variance)
    (n, p), (X, one, y) = shape, raw[0]
    rows = form(sets[:1], n)

    def draw(rng):
        beta = rows.draws(precision[:1], np.array([NOISE]), rng)
        return np.append(beta, rows.intercepts(beta, np.array([NOISE]), rng))

    n_normals = p if form is FewColumns else p + len(rows.A[0])
    mean, covariance = law_of(draw, n_normals + (variance is not None))
    A, Q, b = X, np.diag(precision[0]), np.zeros(p)
    if variance is not None:
        A = np.column_stack([X, one])
        Q, b = linalg.block_diag(Q, 1.0 / variance), np.append(b, LOC / variance)
    Q, b = Q + A.T @ A / NOISE, b + A.T @ y / NOISE
    np.testing.assert_allclose(mean, linalg.solve(Q, b), atol=1e-10)
    np.testing.assert_allclose(covariance, linalg.inv(Q), atol=1e-10)


@BOTH
@pytest.mark.parametrize("variance", [np.inf, 4.0])
def test_curvatures_have_the_intercept_integrated_out(form, variance):
    sets, _, raw = made((12, 4), variance)
    rows = form(sets, 11)
    for c, (X, one, _) in enumerate(raw):
        H = np.column_stack([X, one])
        H = H.T @ H / NOISE
        H[-1, -1] += 1.0 / variance
        expected = np.diag(H)[:-1] - H[:-1, -1] ** 2 / H[-1, -1]
        np.testing.assert_allclose(rows.curvature(np.full(2, NOISE))[c], expected)


@pytest.mark.parametrize(
    ("prior", "expected"), [(Normal(loc=0.5, scale=2.0), (0.5, 4.0)), (Flat(), (0.0, np.inf))]
)
def test_the_prior_of_the_intercept_is_read_from_the_table(prior, expected):
    parts = [own._table((1,)) for own in (Normal(), prior, HalfNormal(1.0))]
    target = Target(np.ones((3, 1)), np.zeros(3), np.ones(3), Linear(), np.concatenate(parts))
    assert intercept_prior(target, 1) == expected
