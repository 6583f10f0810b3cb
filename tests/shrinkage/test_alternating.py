"""Chains that move coefficients and one scale in turn: derivatives, and the law of a grid."""

import warnings

import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor
from skbayes_sg.diagnostics import convergence
from skbayes_sg.importance import lockstep, potential
from skbayes_sg.priors import HalfCauchy, Normal
from skbayes_sg.shrinkage import alternating, choose
from skbayes_sg.shrinkage.alternating import Alternating
from skbayes_sg.shrinkage.collapse import REACH

Z = 5.0  # standard errors


def proposal_of(monkeypatch, estimator, prior, X, y, **params):
    """The proposal of a fit, which ends there."""
    found = []

    def caught(proposal, *_, **__):
        found.append(proposal)
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(choose, "certified_draws", caught)
        with pytest.raises(InterruptedError):
            estimator(prior=prior, **params).fit(X, y)
    return found[0]


def made_rows(kind, n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind is BayesianPoissonRegressor:
        return X, rng.poisson(np.exp(0.5 * X[:, 0]))
    return X, np.digitize(X[:, 0] + rng.normal(size=n), [-0.5, 0.5])


@pytest.fixture(params=[BayesianLogisticRegression, BayesianPoissonRegressor])
def motion(request, monkeypatch):
    """Chains of three classes, or of counts, whose coefficients have a mean that is not zero."""
    X, y = made_rows(request.param)
    prior = Normal(loc=0.3, scale=HalfCauchy(1.0))
    proposal = proposal_of(monkeypatch, request.param, prior, X, y, random_state=0)
    start = np.random.default_rng(1).normal(size=(6, proposal.n_parameters))
    return proposal.other_motion(proposal.warps.position(start)[0], np.random.default_rng(2))


def scaled(motion, x, steps):
    """Rows x after steps (a, wa) of the logarithms of the scale and of the intercepts' factor."""
    motion.phi = x
    log_factors = np.multiply.outer(steps, np.ones(len(x)))
    return motion._scaled(x, motion._rays(), log_factors)[0]


@pytest.mark.parametrize("w", [0.0, 0.3, 1.0])
def test_moves_of_scale_and_coefficients_have_their_determinant(motion, w):
    """(n + wm) a is the logarithm of the determinant of the map, whose inverse is that of -a."""
    x, h = motion.phi[0], 1e-5
    steps = 0.7 * np.array([1.0, w])

    def there(row, steps=steps):
        return scaled(motion, row[None], steps)[0]

    columns = [(there(x + h * e) - there(x - h * e)) / (2.0 * h) for e in np.eye(len(x))]
    found = np.linalg.slogdet(np.transpose(columns))[1]
    np.testing.assert_allclose(found, motion.n_moved @ steps, rtol=1e-7)
    np.testing.assert_allclose(there(there(x), -steps), x, atol=1e-10)


def test_coefficients_over_their_scale_stay_where_they_are(motion):
    """And so does the mean of several intercepts, whose deviations from it are multiplied."""
    frame, scales, begun = motion.potential.base.frame, motion.path.scales, motion.phi
    x = scaled(motion, begun, np.array([-1.3, -0.4]))
    before, after = (frame.theta(own[:, :-1]) for own in (begun, x))
    n = len(scales.loc)
    ratio = (after[:, :n] - scales.loc) / (before[:, :n] - scales.loc)
    np.testing.assert_allclose(ratio, np.exp(-1.3), rtol=1e-9)
    mean = before[:, n:].mean(axis=1, keepdims=True) if before.shape[1] > n + 1 else 0.0
    expected = mean + np.exp(-0.4) * (before[:, n:] - mean)
    np.testing.assert_allclose(after[:, n:], expected, atol=1e-10)
    np.testing.assert_allclose(x[:, -1], begun[:, -1] - 1.3)


@pytest.mark.parametrize("most", [0, 1 << 24])
def test_potentials_along_rays_are_those_of_where_these_lead(motion, monkeypatch, most):
    """With the predictors of all rows kept, and with products for each place."""
    monkeypatch.setattr(potential, "MOST_ALONG", most)
    base, rng = motion.potential.base, np.random.default_rng(7)
    phi, rays = motion.phi[:, :-1], rng.normal(size=(2, *motion.phi[:, :-1].shape))
    values = base.along_rays(phi, list(rays))
    for _ in range(2):
        c = rng.normal(size=(2, len(phi), 1))
        expected = base.values(phi + (c * rays).sum(axis=0))
        np.testing.assert_allclose(values(c), expected, rtol=1e-12)


@pytest.mark.slow_for("BayesianLogisticRegression")
def test_potentials_of_chains_are_those_of_where_they_are(motion):
    for _ in range(20):
        motion.trajectory(0.3)
        np.testing.assert_allclose(motion.value, motion.potential.values(motion.phi), rtol=1e-9)


def test_short_steps_keep_the_energy(motion, monkeypatch):
    """Of two steps at fixed scales: the error of the energy is of third order."""
    monkeypatch.setattr(alternating, "MOST", 2)
    kept, value, lost = motion.phi, motion.value, []
    for epsilon in (0.02, 0.01):
        motion.rng = np.random.default_rng(3)
        chance = motion.move_coefficients(epsilon)
        np.testing.assert_array_equal(motion.phi[:, -1], kept[:, -1])
        motion.phi, motion.value = kept, value
        lost.append(-np.log(chance.min()))
    assert 0.0 < lost[1] < 0.3 * lost[0]


def shares_of_a_grid(x, y, sides=(90, 90, 81)):
    """log τ and β of the posterior of a column and an intercept ~ N(0, 10²), and their shares."""
    s, z = np.linspace(-7.0, 12.0, sides[0]), np.linspace(-6.0, 6.0, sides[1])
    b = np.linspace(-40.0, 40.0, sides[2])
    beta = np.multiply.outer(np.exp(s), z)
    log_p = np.zeros((*beta.shape, len(b)))
    for value, one in zip(x, 2.0 * y - 1.0, strict=True):
        log_p -= np.logaddexp(0.0, -one * (beta[..., None] * value + b))
    log_p += -0.5 * z[:, None] ** 2 - 0.5 * (b / 10.0) ** 2
    log_p += (s - np.logaddexp(0.0, 2.0 * s))[:, None, None]  # half Cauchy
    p = np.exp(log_p - log_p.max()).sum(axis=2)
    return s, beta, p / p.sum()


@pytest.mark.parametrize("separable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_chains_have_the_law_of_a_grid(monkeypatch, separable):
    """Of the scale, in whose tail coefficients lie behind walls, and of the coefficient."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=12)
    y = (x + (0.0 if separable else 1.0) * rng.normal(size=12) > 0.3).astype(int)
    prior = Normal(scale=HalfCauchy(1.0))
    proposal = proposal_of(
        monkeypatch, BayesianLogisticRegression, prior, x[:, None], y, random_state=0
    )
    width = proposal.n_parameters
    start = rng.normal(size=(64, width))
    monkeypatch.setattr(lockstep, "SMALL", np.inf)
    found = lockstep.run_lockstep(
        proposal.surrogate, proposal.warps, start, 64 * 200, rng, other=proposal.other_motion
    )
    assert isinstance(found.motion, Alternating)
    theta = proposal.frame.theta(found.phi.reshape(-1, width)[:, :-1])
    s, beta, p = shares_of_a_grid(x, y)
    draws = {"s": found.phi[:, :, -1], "beta": theta[:, 0].reshape(64, 200)}
    for name, places in (("s", s[:, None] + 0.0 * beta), ("beta", beta)):
        ess = convergence.ess_least(draws[name][:, :, None])[0]
        assert ess > 500
        for level in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99):
            error = Z * np.sqrt(level * (1.0 - level) / ess) + 0.005  # and cells of the grid
            below = np.quantile(draws[name], level)
            assert abs(p[places < below].sum() - level) < error


@pytest.mark.slow
def test_separated_classes_are_sampled_far_into_the_tail_of_the_scale():
    """The chance of a scale beyond t falls like that of its prior, as 1/t."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] + 0.3 * X[:, 1] > 0.0
    prior = Normal(scale=HalfCauchy(1.0))
    model = BayesianLogisticRegression(prior=prior, fit_intercept=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.diagnostics_["max_rhat"] < 1.1
    assert model.diagnostics_["min_ess"] > 500
    tau = model.posterior_["prior_scale"].ravel()
    first = np.quantile(tau, 0.9)
    assert 0.04 < (tau > 10.0 * first).mean() / 0.1 < 0.2


def test_scales_beyond_the_digits_of_the_potential_are_not_reached(motion):
    """There U loses what tells of the prior of the scale, and chains would wander off."""
    motion.phi[:, -1] = motion.path.log_scales + REACH - 0.01
    motion.width = 20.0
    for _ in range(10):
        motion.move_together()
        motion.move_alone()
        assert (motion.phi[:, -1] < motion.path.log_scales + REACH).all()
