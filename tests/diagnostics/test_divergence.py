"""Divergences between Gaussians against quadrature, and between samples against the formula."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import linalg

from skbayes_sg.diagnostics import gaussian_kl, gaussian_wasserstein2, nearest_neighbour_kl


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 3, 3))
    return rng.normal(size=3), A @ A.T + np.eye(3), rng.normal(size=3), B @ B.T + np.eye(3)


def test_kl_is_the_integral():
    nodes, weights = hermegauss(40)
    weights = weights / weights.sum()
    x, w = np.meshgrid(nodes, nodes), np.outer(weights, weights).ravel()
    z = np.stack([x[0].ravel(), x[1].ravel()], axis=1)
    m0, m1 = np.array([0.3, -1.0]), np.array([0.0, 0.5])
    S0, S1 = np.array([[2.0, 0.4], [0.4, 0.5]]), np.array([[1.0, -0.3], [-0.3, 0.8]])

    def log_density(theta, m, S):
        r = theta - m
        return -0.5 * (np.sum(r @ np.linalg.inv(S) * r, axis=1) + np.linalg.slogdet(S)[1])

    theta = m0 + z @ np.linalg.cholesky(S0).T
    integral = w @ (log_density(theta, m0, S0) - log_density(theta, m1, S1))
    assert abs(gaussian_kl(m0, S0, m1, S1) - integral) < 1e-13 * max(1.0, integral)


def test_kl_is_zero_for_equals_and_the_same_in_all_coordinates(pair):
    m0, S0, m1, S1 = pair
    assert abs(gaussian_kl(m0, S0, m0, S0)) < 1e-14
    A = np.random.default_rng(4).normal(size=(3, 3))
    moved = gaussian_kl(A @ m0 + 1.0, A @ S0 @ A.T, A @ m1 + 1.0, A @ S1 @ A.T)
    assert np.isclose(moved, gaussian_kl(*pair), rtol=1e-10)


def test_kl_of_independent_blocks_adds_up(pair):
    m0, S0, m1, S1 = pair
    both = gaussian_kl(
        np.r_[m0, m1], linalg.block_diag(S0, S1), np.r_[m1, m0], linalg.block_diag(S1, S0)
    )
    assert np.isclose(both, gaussian_kl(*pair) + gaussian_kl(m1, S1, m0, S0), rtol=1e-12)


def test_a_variance_that_is_five_percent_off():
    kl = gaussian_kl(np.zeros(10), 1.05 * np.eye(10), np.zeros(10), np.eye(10))
    assert abs(kl / 10 - 6.05e-4) < 1e-6


def test_wasserstein_is_the_formula_with_matrix_roots(pair):
    m0, S0, m1, S1 = pair
    root = linalg.sqrtm(S1)
    cross = linalg.sqrtm(root @ S0 @ root)
    squared = np.sum((m0 - m1) ** 2) + np.trace(S0 + S1 - 2.0 * cross)
    assert np.isclose(gaussian_wasserstein2(*pair) ** 2, np.real(squared), rtol=1e-10)
    assert np.isclose(gaussian_wasserstein2(m1, S1, m0, S0), gaussian_wasserstein2(*pair))
    assert gaussian_wasserstein2(m0, S0, m0, S0) < 1e-6
    # in one dimension the distance of (mean, sd) in the plane
    assert np.isclose(gaussian_wasserstein2([1.0], [[4.0]], [4.0], [[36.0]]), 5.0)


def naive_kl(x, y, k):
    """The formula, with all distances."""
    n0, d = x.shape
    own = np.sort(np.linalg.norm(x[:, None] - x, axis=2), axis=1)[:, k]
    other = np.sort(np.linalg.norm(x[:, None] - y, axis=2), axis=1)[:, k - 1]
    return d / n0 * np.log(other / own).sum() + np.log(len(y) / (n0 - 1))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_nearest_neighbours_are_the_formula(k, d):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(60, d)), rng.normal(0.5, 1.5, size=(80, d))
    assert np.isclose(nearest_neighbour_kl(x, y, n_neighbours=k), naive_kl(x, y, k), rtol=1e-12)


def test_nearest_neighbours_estimate_the_divergence():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4000, 2)), rng.normal(size=(4000, 2)) * [1.0, 1.5] + [1.0, 0.0]
    exact = gaussian_kl(np.zeros(2), np.eye(2), [1.0, 0.0], np.diag([1.0, 2.25]))
    assert abs(nearest_neighbour_kl(x, y) - exact) < 0.06  # sd over seeds: 0.02
    assert abs(nearest_neighbour_kl(x, rng.normal(size=(4000, 2)))) < 0.05


def test_bad_arguments(pair):
    m0, S0, m1, S1 = pair
    with pytest.raises(ValueError, match=r"mean0 must have the shape \(d,\)"):
        gaussian_kl(m0, S0[:2], m1, S1)
    with pytest.raises(ValueError, match="cov1 must be finite and positive definite"):
        gaussian_wasserstein2(m0, S0, m1, -S1)
    with pytest.raises(ValueError, match="means must have the same length, got 3 and 2"):
        gaussian_kl(m0, S0, m1[:2], S1[:2, :2])
    S0[0, 2] += 0.01
    with pytest.raises(ValueError, match=r"cov0 must be symmetric, but has .* in row 0 and column"):
        gaussian_kl(m0, S0, m1, S1)
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"n_neighbours must be an int in \[1, 19\], got 2.5"):
        nearest_neighbour_kl(x, x + 1.0, n_neighbours=2.5)
    with pytest.raises(ValueError, match=r"n_neighbours must be an int in \[1, 9\], got 10"):
        nearest_neighbour_kl(x, x[:9] + 1.0, n_neighbours=10)
    with pytest.raises(ValueError, match="same parameters, got 2 and 1 columns"):
        nearest_neighbour_kl(x, x[:, :1])
    with pytest.raises(ValueError, match="40 draws are repeated 1 times or more"):
        nearest_neighbour_kl(np.repeat(x, 2, axis=0), x + 1.0, n_neighbours=1)
