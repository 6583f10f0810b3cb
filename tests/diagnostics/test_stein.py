"""Kernel Stein discrepancy: values known in closed form, and what it must not depend on."""

import copy
import pickle

import numpy as np
import pytest
from scipy.special import k0

from skbayes_sg.diagnostics import (
    coordinate_stein_discrepancy,
    kernel_stein_discrepancy,
    stein,
    stein_scale,
)
from skbayes_sg.diagnostics.stein import SteinDiscrepancy

IMQ = stein._kernel("imq", 1.0, -0.5, 1.0)


def raw(draws, scores, **options):
    return kernel_stein_discrepancy(draws, scores, standardise=False, **options)


def nodes(n=600):
    """Points and weights of a trapezoidal rule for means under N(0, 1): exact to rounding."""
    x = np.linspace(-9.0, 9.0, n)
    return x, np.exp(-0.5 * x * x)


def quadrature(mean, variance, **options):
    """KSD² of N(mean, variance) against N(0, 1), by weighted points."""
    x, w = nodes()
    x = (mean + np.sqrt(variance) * x)[:, None]
    return raw(x, -x, weights=w, **options).squared


# -- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 7])
def test_one_point(d):
    x = np.random.default_rng(d).normal(size=(1, d))
    assert np.isclose(raw(x, -x).squared, (x * x).sum() + d, rtol=1e-12)
    assert np.isclose(raw(0 * x, 0 * x), np.sqrt(d), rtol=1e-14)


def test_two_points():
    x = np.array([[1.0], [-1.0]])
    assert abs(raw(x, -x).squared - 0.534898) < 1e-6
    assert np.isclose(raw(x, -x).squared, 1.0 - 26.0 / 5.0**2.5, rtol=1e-14)
    assert abs(raw(x, -x) - 0.731367) < 1e-6


def test_shifted_gaussian_in_one_dimension():
    factor = np.exp(1 / 8) * k0(1 / 8) / (2 * np.sqrt(np.pi))
    assert abs(factor - 0.705757) < 1e-6
    for m in (0.1, 1.0, 2.5):
        assert abs(quadrature(m, 1.0) / m**2 - factor) < 1e-6


@pytest.mark.parametrize(("d", "factor"), [(2, 0.545641), (3, 0.449375), (5, 0.342314)])
def test_shifted_gaussian_in_several_dimensions(d, factor):
    # the population value by chi-square quadrature: for y = x - x' ~ N(0, 2 I) and r = |y|,
    # E k_p = |m|² E (1 + r²)^(-1/2), since all terms without m cancel
    from scipy import integrate, stats

    value = integrate.quad(
        lambda r2: (1 + r2) ** -0.5 * stats.chi2.pdf(r2 / 2, d) / 2, 0, np.inf, epsabs=1e-12
    )[0]
    assert abs(value - factor) < 1e-6
    # and by draws, without the diagonal
    x = np.random.default_rng(d).normal(size=(4000, d))
    m = np.full(d, 2.0 / np.sqrt(d))
    found = raw(x + m, -(x + m), diagonal=False).squared
    assert abs(found / 4.0 - factor) < 0.02


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
def test_gaussian_kernel(length):
    options = {"kernel": "rbf", "length_scale": length}
    m = 0.7
    expected = m**2 * length / np.sqrt(length**2 + 2.0)
    assert abs(quadrature(m, 1.0, **options) - expected) < 1e-6
    v = 0.6
    E = (1.0 + 2.0 * v / length**2) ** -0.5
    expected = (1.0 / v - 1.0) ** 2 / 4.0 * (2.0 * v * E - 2.0 * v * E**3)
    assert abs(quadrature(0.0, v, **options) - expected) < 1e-6


def test_expectation_of_the_stein_kernel_is_zero():
    x, w = nodes()
    x, w = x[:, None], w / w.sum()
    for point in (-1.3, 0.0, 2.0):
        y = np.array([[point]])
        assert abs(stein.stein_kernel(y, -y, x, -x, IMQ)[0] @ w) < 1e-10


def test_mean_under_the_target_is_two_d_over_n():
    d, n = 2, 200
    found = [
        raw(x, -x).squared
        for x in np.random.default_rng(0).normal(size=(200, n, d))
    ]  # fmt: skip
    # sd of one is about 0.005, so that of the mean 0.0004
    assert abs(np.mean(found) - 2 * d / n) < 0.0016


# -- properties ---------------------------------------------------------------------------------


@pytest.fixture
def draws():
    rng = np.random.default_rng(3)
    x = rng.standard_t(5, size=(1300, 4)) @ rng.normal(size=(4, 4))
    return x, -x + 0.3 * np.sin(x)


def dense(x, s, w=None, **kernel):
    K = stein.stein_kernel(x, s, x, s, IMQ, same=True)
    w = np.full(len(x), 1.0 / len(x)) if w is None else w / w.sum()
    return w @ K @ w


def test_matrix_is_symmetric_and_positive_semi_definite(draws):
    x, s = (a[:200] for a in draws)
    K = stein.stein_kernel(x, s, x, s, IMQ, same=True)
    assert np.abs(K - K.T).max() <= 1e-12 * np.abs(K).max()
    assert np.linalg.eigvalsh(K).min() > -1e-10 * np.abs(K).max()


def test_matrix_is_the_formula_entry_by_entry(draws):
    x, s = (a[:5] for a in draws)
    K = stein.stein_kernel(x, s, x, s, stein._kernel("imq", 1.7, -0.3, 1.0))
    c, beta, d = 1.7, -0.3, 4
    for i in range(5):
        for j in range(5):
            y = x[i] - x[j]
            q = c * c + y @ y
            k, gradient = q**beta, 2 * beta * q ** (beta - 1) * y
            trace = (
                -2 * beta * d * q ** (beta - 1) - 4 * beta * (beta - 1) * q ** (beta - 2) * y @ y
            )
            value = s[i] @ s[j] * k - s[i] @ gradient + s[j] @ gradient + trace
            assert np.isclose(K[i, j], value, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_blocks_are_the_dense_computation(draws, monkeypatch):
    x, s = draws
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(x))
    for weights in (None, w):
        expected = dense(x, s, weights)
        for block in (64, 500, 5000):
            monkeypatch.setattr(stein, "BLOCK", block)
            assert abs(raw(x, s, weights=weights).squared / expected - 1.0) < 1e-12


def test_order_of_draws_and_chains_does_not_matter(draws):
    x, s = draws
    order = np.random.default_rng(1).permutation(len(x))
    chains = x.reshape(4, -1, 4), s.reshape(4, -1, 4)
    for options in ({}, {"standardise": False}, {"diagonal": False}):
        one = kernel_stein_discrepancy(x, s, **options)
        assert abs(kernel_stein_discrepancy(x[order], s[order], **options) / one - 1.0) < 1e-12
        assert abs(kernel_stein_discrepancy(*chains, **options) / one - 1.0) < 1e-12


def test_weights_are_repetitions(draws):
    x, s = (a[:100] for a in draws)
    counts = np.arange(100) % 3 + 1
    repeated = raw(np.repeat(x, counts, axis=0), np.repeat(s, counts, axis=0))
    assert np.isclose(raw(x, s, weights=counts), repeated, rtol=1e-12)


def test_without_the_diagonal_it_is_the_mean_over_pairs(draws):
    x, s = (a[:80] for a in draws)
    K = stein.stein_kernel(x, s, x, s, IMQ, same=True)
    expected = (K.sum() - np.trace(K)) / (80 * 79)
    assert np.isclose(raw(x, s, diagonal=False).squared, expected, rtol=1e-10)


@pytest.mark.slow
def test_noise_of_the_scores_is_left_out_with_the_diagonal():
    rng, n = np.random.default_rng(5), 300
    found = []
    for _ in range(100):
        x = rng.normal(size=(n, 3))
        scores = -x, -x + rng.normal(size=x.shape)
        found.append([[raw(x, s, diagonal=d).squared for s in scores] for d in (False, True)])
    added = np.diff(found, axis=2)[:, :, 0]
    error = added.std(axis=0) / 10.0
    assert (np.abs(added.mean(axis=0) - [0.0, 3.0 / n]) < 4.0 * error).all()
    assert (error < 1.0 / n / 4.0).all()


# -- standardised coordinates -------------------------------------------------------------------


def test_scale_is_the_covariance_of_a_gaussian_whatever_the_draws_are():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3)) * np.array([[0.1], [1.0], [10.0]])
    precision = np.linalg.inv(root @ root.T)
    for draws in (rng.uniform(size=(200, 3)), rng.normal(5.0, 2.0, size=(200, 3)) @ root.T):
        S = stein_scale(draws, -(draws - 1.0) @ precision).factor
        assert np.allclose(S @ S.T @ precision, np.eye(3), atol=1e-6)


def test_half_of_the_variance_is_seen_where_the_posterior_is_narrow():
    x = 0.01 * np.random.default_rng(0).normal(size=(1000, 2))
    right, narrow, wide = (f * x for f in (1.0, np.sqrt(0.5), np.sqrt(2.0)))
    exact = kernel_stein_discrepancy(right, -right / 1e-4)
    assert kernel_stein_discrepancy(narrow, -narrow / 1e-4) > 2.0 * exact
    assert kernel_stein_discrepancy(wide, -wide / 1e-4) > 2.0 * exact
    # without standardising, the narrow ones look better than the right ones
    assert raw(narrow, -narrow / 1e-4) < raw(right, -right / 1e-4)


def test_units_of_the_parameters_do_not_matter(draws):
    x, s = draws
    A = np.random.default_rng(2).normal(size=(4, 4))
    moved = kernel_stein_discrepancy(x @ A.T + 3.0, s @ np.linalg.inv(A))
    # the factor may differ by a rotation, which the kernel does not see
    assert np.isclose(moved, kernel_stein_discrepancy(x, s), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-150, 1e100, 1e150])
def test_units_whose_squares_overflow(draws, unit):
    x, s = draws
    units = np.array([1.0, unit, 1.0, 1.0])
    moved = kernel_stein_discrepancy(x * units, s / units)
    assert np.isclose(moved, kernel_stein_discrepancy(x, s), rtol=1e-8)


def test_few_draws_are_scaled_one_parameter_at_a_time():
    x = np.random.default_rng(0).normal(size=(12, 3)) * [1e-4, 1.0, 1e4]
    scale = stein_scale(x, -x / np.array([1e-4, 1.0, 1e4]) ** 2)
    assert np.allclose(scale.factor, [1e-4, 1.0, 1e4])
    constant = np.zeros((12, 3))
    assert np.array_equal(stein_scale(constant, constant).factor, np.ones(3))


def test_few_draws_are_seen_to_be_wrong():
    x = 0.01 * np.random.default_rng(0).normal(size=(12, 3))
    right, narrow = (kernel_stein_discrepancy(f * x, -f * x / 1e-4) for f in (1.0, 0.3))
    assert narrow > right
    # standardised, it is that of unit scale
    width = stein_scale(x, -x / 1e-4).factor
    assert np.isclose(right, raw(x / width, -x / 1e-4 * width), rtol=1e-12)


def test_z_is_standard_under_the_target_and_large_off_it():
    rng = np.random.default_rng(0)
    z = [kernel_stein_discrepancy(x, -x).z for x in rng.normal(size=(100, 300, 2))]
    assert abs(np.mean(z)) < 0.5
    assert 0.5 < np.std(z) < 1.6
    x = rng.normal([0.3, 0.0], 1.0, size=(1000, 2))
    assert kernel_stein_discrepancy(x, -x).z > 10.0


# -- arguments ------------------------------------------------------------------------------------


def test_many_draws_are_thinned_with_a_warning(draws):
    x, s = draws
    with pytest.warns(UserWarning, match="100 of 1300 draws were used"):
        found = kernel_stein_discrepancy(x, s, max_draws=100)
    assert found.n_draws == 100
    assert "100 draws" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be 'imq' or 'rbf', got 'cosine'"),
        ({"c": 0.0}, r"c must be positive and beta in \(-1, 0\)"),
        ({"beta": 0.5}, r"c must be positive and beta in \(-1, 0\)"),
        ({"kernel": "rbf", "length_scale": 0.0}, "length_scale must be positive"),
        ({"max_draws": 0}, "max_draws must be a positive int"),
        ({"max_draws": True}, "max_draws must be a positive int"),
        ({"weights": [1.0, 2.0]}, r"weights must have the shape \(10,\)"),
        ({"weights": -np.ones(10)}, "finite and nonnegative"),
    ],
)
def test_bad_options(options, message):
    x = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=message):
        kernel_stein_discrepancy(x, -x, **options)


def test_bad_arrays():
    x = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="same shape"):
        kernel_stein_discrepancy(x, x[:9])
    with pytest.raises(ValueError, match=r"draws must have the shape .* got \(10,\)"):
        kernel_stein_discrepancy(x[:, 0], x[:, 0])
    with pytest.raises(ValueError, match="scores must be finite"):
        kernel_stein_discrepancy(x, np.full_like(x, np.nan))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))])
def test_a_discrepancy_is_a_float_that_can_be_copied(duplicate):
    one = duplicate(SteinDiscrepancy(-0.25, 10, 0.5, -1.0, "all rows"))
    assert (float(one), one.squared, one.n_draws, one.scores) == (0.0, -0.25, 10, "all rows")


# -- by coordinate, as eq. 20 of Putcha et al. has it ----------------------------------------------


def naive_parts(x, s):
    """Eq. 20-21 by complex steps of the kernel: π cancels, with s = ∇ log π."""
    h, n = 1e-20, len(x)

    def kernel(a, b):
        return (1.0 + ((a - b) ** 2).sum()) ** -0.5

    def slope(a, b, j):
        """The derivative by b_j, which real steps of a can then differentiate."""
        step = np.zeros(len(a), complex)
        step[j] = 1j * h
        return kernel(a, b + step).imag / h

    total, d = np.zeros(x.shape[1]), 1e-6
    for a, t in zip(x, s, strict=True):
        for b, u in zip(x, s, strict=True):
            for j, e in enumerate(np.eye(x.shape[1])):
                mixed = (slope(a + d * e, b, j) - slope(a - d * e, b, j)) / (2.0 * d)
                total[j] += t[j] * u[j] * kernel(a, b) + t[j] * slope(a, b, j)
                total[j] += u[j] * slope(b, a, j) + mixed
    return np.sqrt(total) / n


def test_parts_are_the_formula():
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    found = coordinate_stein_discrepancy(x, s, standardise=False)
    np.testing.assert_allclose(found, naive_parts(x, s), rtol=1e-7)


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("n", [40, 600])  # less and more than a block
def test_squares_of_parts_add_up(n, standardise):
    x = np.random.default_rng(n).normal(size=(n, 4)) * [1.0, 2.0, 0.3, 1.0]
    scores = -x / [1.0, 4.0, 0.1, 0.5]
    parts = coordinate_stein_discrepancy(x, scores, standardise=standardise)
    whole = kernel_stein_discrepancy(x, scores, standardise=standardise)
    assert np.isclose(np.sqrt((parts**2).sum()), whole, rtol=1e-10)
    assert whole <= parts.sum() <= 2.0 * whole


def test_parts_need_scores_of_all_draws():
    with pytest.raises(ValueError, match="same shape"):
        coordinate_stein_discrepancy(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"same shape, got \(3, 2\) and \(3, 1\)"):
        stein_scale(np.zeros((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="same shape"):
        stein_scale(np.zeros((4, 3, 1)), np.zeros((3, 4, 1)))
