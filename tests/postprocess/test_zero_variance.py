"""Zero-variance control variates: exact on Gaussians, unbiased elsewhere, honest about both."""

import numpy as np
import pytest
from scipy import integrate

from skbayes_sg.postprocess import held_out_values, zero_variance, zero_variance_basis


@pytest.fixture
def gaussian():
    """Mean, precision, and 200 points that have nothing to do with them."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    mu, precision = np.array([3.0, -1.0, 0.5]), root @ root.T + np.eye(3)
    points = 10.0 + np.clip(rng.standard_cauchy(size=(200, 3)), -5.0, 5.0)
    return mu, precision, points, -(points - mu) @ precision


def second_moments(mu, precision):
    return np.linalg.inv(precision) + np.outer(mu, mu)


def products(points):
    return points[:, :, None] * points[:, None, :]


def test_basis_is_the_stein_operator_of_monomials():
    rng = np.random.default_rng(1)
    x, s = rng.normal(size=(2, 5, 3))
    basis = zero_variance_basis(x, s, "quadratic")
    expected = [s[:, j] for j in range(3)]
    for j in range(3):
        for k in range(j, 3):  # ΔQ + ∇Q·s of Q = θ_j θ_k, or θ_j²/2
            value = x[:, j] * s[:, k] + x[:, k] * s[:, j] if j < k else 1.0 + x[:, j] * s[:, j]
            expected.append(value)
    assert np.allclose(basis, np.transpose(expected), rtol=1e-15)
    assert np.array_equal(zero_variance_basis(x, s), s)


def test_linear_gives_means_of_a_gaussian_from_any_points(gaussian):
    mu, _, points, scores = gaussian
    found = zero_variance(points, points, scores)
    assert np.abs(found.mean - mu).max() < 4e-14  # points lie at 10: 4e-15 of them
    assert np.abs(found.residuals).max() < 1e-12
    assert (found.variance_ratio < 1e-25).all()
    assert found.n_basis == 3


def test_quadratic_gives_second_moments_of_a_gaussian_from_any_points(gaussian):
    mu, precision, points, scores = gaussian
    found = zero_variance(products(points), points, scores, order="quadratic")
    assert found.mean.shape == (3, 3)
    scale = 225.0  # of the squares of the points
    assert np.abs(found.mean - second_moments(mu, precision)).max() < 5e-14 * scale


def test_as_many_points_as_unknowns_are_enough(gaussian):
    mu, precision, _, _ = gaussian
    n = 1 + 3 + 6
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3))
    s = -(x - mu) @ precision
    found = zero_variance(products(x), x, s, order="quadratic", shrinkage=None)
    assert np.abs(found.mean - second_moments(mu, precision)).max() < 2e-11


def test_scores_in_single_precision(gaussian):
    mu, _, points, scores = gaussian
    found = zero_variance(points, points, scores.astype(np.float32))
    assert np.abs(found.mean - mu).max() < 2e-7 * 10


def test_weights_are_repetitions():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 2))
    s, g, counts = -x + 0.1 * x**3, x**3 + x, np.arange(50) % 3 + 1
    weighted = zero_variance(g, x, s, weights=counts)
    repeated = zero_variance(*(np.repeat(a, counts, axis=0) for a in (g, x, s)))
    assert np.allclose(weighted.mean, repeated.mean, rtol=1e-12)


def test_chains_and_shapes_of_values():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(4, 50, 2))
    g = rng.normal(size=(4, 50, 3, 2))
    found = zero_variance(g, x, -x)
    assert found.mean.shape == found.variance_ratio.shape == (3, 2)
    flat = zero_variance(g.reshape(200, 3, 2), x.reshape(200, 2), -x.reshape(200, 2))
    assert np.array_equal(found.mean, flat.mean)
    assert zero_variance(g[..., 0, 0], x, -x).mean.shape == ()


# -- densities that are not Gaussian --------------------------------------------------------------


def skewed():
    """log p = -e^θ + 2θ, that is θ = log of Gamma(2): mean, draws, scores."""
    log_p = lambda t: 2.0 * t - np.exp(t)  # noqa: E731
    total = integrate.quad(lambda t: np.exp(log_p(t)), -20, 5)[0]
    mean = integrate.quad(lambda t: t * np.exp(log_p(t)), -20, 5)[0] / total
    draws = np.log(np.random.default_rng(5).gamma(2.0, size=(40, 500, 1)))
    return mean, draws, 2.0 - np.exp(draws)


@pytest.mark.parametrize(("order", "gain"), [("linear", 2.0), ("quadratic", 10.0)])
def test_means_of_a_skewed_density_are_right_and_scatter_less(order, gain):
    mean, draws, scores = skewed()
    pairs = zip(draws, scores, strict=True)
    found = np.array([zero_variance(x, x, s, order=order).mean[0] for x, s in pairs])
    plain = draws.mean(axis=(1, 2))
    assert abs(found.mean() - mean) < 5.0 * found.std() / np.sqrt(40)
    assert found.var() < plain.var() / gain


def test_the_stated_ratio_is_what_is_gained():
    _, draws, scores = skewed()
    results = [zero_variance(x, x, s) for x, s in zip(draws, scores, strict=True)]
    found, stated = np.array([(r.mean[0], r.variance_ratio[0]) for r in results]).T
    measured = found.var() / draws.mean(axis=(1, 2)).var()
    # each variance of 40 values has a relative sd of 0.22
    assert 0.4 < measured / stated.mean() < 2.5


def test_noise_of_the_scores_makes_no_bias():
    mean, draws, scores = skewed()
    noise = np.random.default_rng(6).normal(size=scores.shape)
    clean = [zero_variance(x, x, s) for x, s in zip(draws, scores, strict=True)]
    noisy = [zero_variance(x, x, s) for x, s in zip(draws, scores + noise, strict=True)]
    means = np.array([r.mean[0] for r in noisy])
    assert abs(means.mean() - mean) < 5.0 * means.std() / np.sqrt(40)
    ratios = [np.mean([r.variance_ratio for r in rs]) for rs in (clean, noisy)]
    assert ratios[0] < ratios[1] < 1.0


# -- few draws ------------------------------------------------------------------------------------


def test_fewer_draws_than_control_variates():
    x = np.random.default_rng(7).normal(size=(9, 3))
    with pytest.raises(
        ValueError, match="9 draws are not enough for 9 control variates: at least 10"
    ):
        zero_variance(x, x, -x, order="quadratic", shrinkage=None)
    with pytest.warns(UserWarning, match="9 draws for 9 control variates"):
        found = zero_variance(x, x, -x, order="quadratic")
    assert (found.shrinkage > 0.0).all()
    assert np.isfinite(found.mean).all()


def test_shrinkage_helps_where_draws_are_few():
    rng = np.random.default_rng(8)
    d = 20
    mu = np.zeros(d)
    errors = {None: [], "auto": [], "plain": []}
    for _ in range(60):
        x = rng.normal(size=(30, d))
        noisy = -x + 3.0 * rng.normal(size=x.shape)
        for shrinkage in (None, "auto"):
            found = zero_variance(x[:, 0], x, noisy, shrinkage=shrinkage).mean
            errors[shrinkage].append(float(found - mu[0]))
        errors["plain"].append(x[:, 0].mean())
    loss = {name: np.mean(np.square(values)) for name, values in errors.items()}
    assert loss["auto"] < 0.7 * loss[None]  # least squares fits noise
    assert loss["auto"] < 1.3 * loss["plain"]


def test_a_constant_has_no_error():
    x = np.random.default_rng(9).normal(size=(30, 2))
    found = zero_variance(np.full(30, 2.5), x, -x)
    assert np.isclose(found.mean, 2.5, rtol=1e-14)
    assert found.variance_ratio == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "cubic"}, "order must be one of"),
        ({"shrinkage": -1.0}, "shrinkage must be 'auto', None or a number >= 0, got -1.0"),
        ({"scores": np.zeros((9, 2))}, "the same shape"),
        ({"values": np.zeros(9)}, r"values must begin with the shape \(10,\)"),
        ({"values": np.full(10, np.nan)}, "values must be finite"),
        ({"weights": np.zeros(10)}, "not all zero"),
    ],
)
def test_bad_arguments(change, message):
    x = np.random.default_rng(0).normal(size=(10, 2))
    arguments = {"values": x[:, 0], "draws": x, "scores": -x} | change
    with pytest.raises(ValueError, match=message):
        zero_variance(**arguments)


# -- values with coefficients from other draws ----------------------------------------------------


def test_held_out_values_of_a_gaussian_are_its_mean(gaussian):
    mu, _, points, scores = gaussian
    x, s = np.tile(points, (4, 1)), np.tile(scores, (4, 1))
    found = held_out_values(x, x, s, shrinkage=None)
    assert np.abs(found - mu).max() < 1e-11


def test_held_out_values_by_hand():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 40, 2))
    values = np.sin(x[..., 0]) + 0.1 * rng.normal(size=(2, 40))
    found = held_out_values(values, x, -x, shrinkage=None)
    for mine, others in ((slice(20), slice(20, 40)), (slice(20, 40), slice(20))):
        psi, g = -x[:, others].reshape(-1, 2), values[:, others].ravel()
        a = np.linalg.lstsq(np.c_[np.ones(len(g)), psi], g, rcond=None)[0][1:]
        assert np.allclose(found[:, mine], values[:, mine] + x[:, mine] @ a, atol=1e-12)


def test_what_the_scores_cannot_explain_is_not_fitted_away():
    # noise and 60 scores: least squares explains a third of it in 200 draws, and nothing is true
    rng = np.random.default_rng(4)
    x, noise = rng.normal(size=(200, 60)), rng.normal(size=200)
    assert zero_variance(noise, x, -x, shrinkage=None).residuals.std() < 0.88 * noise.std()
    assert held_out_values(noise, x, -x, shrinkage=None).std() > 1.1 * noise.std()
    assert 0.97 < held_out_values(noise, x, -x).std() / noise.std() < 1.1
