"""Draws from posteriors with two modes, against quadrature, and what must not matter to them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, PchipInterpolator

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.modes import find_modes
from skbayes_sg.importance import mixture
from skbayes_sg.importance.fit import fit_proposal
from skbayes_sg.importance.mixture import mixed_draws
from skbayes_sg.importance.warps import Warps, fit_warp
from skbayes_sg.models import Logistic
from skbayes_sg.priors import StudentT
from skbayes_sg.recipe.choose import frame_of

SIGMAS = 5.0
N = 4000


class Bimodal:
    """Two columns that are nearly the same, under priors of which one coefficient is enough."""

    def __init__(self, df=1.0, scale=0.05):
        rng = np.random.default_rng(4)
        z = rng.normal(size=60)
        X = z[:, None] + 0.1 * rng.normal(size=(60, 2))
        y = (rng.random(60) < 1.0 / (1.0 + np.exp(-2.0 * z))).astype(float)
        prior = StudentT(df=df, scale=scale)._table((2,))
        target = Target(X, y, np.ones(60), Logistic(), prior, intercept=False)
        modes = find_modes(frame_of(target, "hessian", True, np.random.default_rng(0)))
        frames = modes.frames[:2]  # a third has no mass
        self.proposals = [fit_proposal(frame, local=True) for frame in frames]
        self._tabulate(X, 2.0 * y - 1.0, df, scale)

    def _tabulate(self, X, sign, df, scale):
        """Probabilities of the cells of a grid, on which sinh makes room for the spikes."""
        u = np.linspace(-1.0, 1.0, 601) * np.arcsinh(15.0 / scale)
        self.grid = scale * np.sinh(u)
        log_prior = stats.t.logpdf(self.grid / scale, df) + np.log(np.cosh(u))
        eta = [np.outer(X[:, j], self.grid) for j in range(2)]
        log_p = log_prior[:, None] + log_prior
        for s, a, b in zip(sign, *eta, strict=True):
            log_p = log_p - np.logaddexp(0.0, -s * (a[:, None] + b))
        p = np.exp(log_p - log_p.max())
        self.p = p / p.sum()

    def expected(self):
        """Means, standard deviations, and the probability that the first is the larger."""
        sides = self.p.sum(axis=1), self.p.sum(axis=0)
        mean = np.array([side @ self.grid for side in sides])
        square = np.array([side @ self.grid**2 for side in sides])
        first = np.abs(self.grid)[:, None] > np.abs(self.grid)
        return mean, np.sqrt(square - mean**2), self.p[first].sum()

    def draw(self, seed, proposals=None):
        """θ of draws, and what is known of them."""
        proposals = proposals or self.proposals
        found = mixed_draws(proposals, N, np.random.default_rng(seed))
        return proposals[0].frame.theta(found.phi), found

    def agrees(self, theta, ess):
        """Whether means, variances and the shares of the modes are right, by five errors."""
        mean, sd, share = self.expected()
        first = np.mean(np.abs(theta[:, 0]) > np.abs(theta[:, 1]))
        fourth = np.mean((theta - mean) ** 4, axis=0)
        error = np.sqrt((fourth - sd**4) / ess)
        return (
            (np.abs(theta.mean(axis=0) - mean) < SIGMAS * sd / np.sqrt(ess)).all()
            and (np.abs(np.mean((theta - mean) ** 2, axis=0) - sd**2) < SIGMAS * error).all()
            and abs(first - share) < SIGMAS * np.sqrt(share * (1.0 - share) / ess)
        )


@pytest.fixture(scope="module")
def bimodal():
    problem = Bimodal()
    share = problem.expected()[2]
    assert 0.1 < share < 0.9
    return problem


@pytest.mark.slow_for("0")
@pytest.mark.parametrize("seed", range(4))
def test_two_modes_against_quadrature(bimodal, seed):
    theta, found = bimodal.draw(seed)
    assert found.holds
    assert bimodal.agrees(theta, found.ess)
    assert np.isclose(found.shares.sum(), 1.0)


def test_the_same_mode_twice_is_counted_once(bimodal):
    first, second = bimodal.proposals
    theta, found = bimodal.draw(0, [first, first, second, second])
    assert found.holds
    assert bimodal.agrees(theta, found.ess)


@pytest.mark.parametrize("seed", range(2))
def test_warps_that_reach_too_little_cost_efficiency_only(bimodal, seed):
    """The boxes of local warps need not hold all of the mass: here 1.2 widths to each side."""
    knots = np.linspace(-7.0, 7.0, 201)
    bounded = CubicSpline(knots, 1.2 * np.tanh(knots / 1.2))
    warps = Warps(np.eye(2), [bounded, bounded])
    proposals = [replace(proposal, warps=warps) for proposal in bimodal.proposals]
    theta, found = bimodal.draw(seed, proposals)
    assert bimodal.agrees(theta, found.ess)


def test_any_partition_of_unity_is_exact(bimodal, monkeypatch):
    """Functions t_m that are not q_m cost efficiency: here halves of the plane, with a margin."""

    def log_t(component, theta):
        side = component.proposal.frame.centre.theta @ [1.0, -1.0] > 0.0
        return -np.logaddexp(0.0, (-4.0 if side else 4.0) * (theta @ [1.0, -1.0]))

    monkeypatch.setattr(mixture._Component, "log_t", log_t)
    theta, found = bimodal.draw(2)
    assert bimodal.agrees(theta, found.ess)


@pytest.mark.parametrize("bug", ["no identity", "responsible for all"])
def test_a_wrong_partition_is_seen(bimodal, monkeypatch, bug):
    right = mixture._log_partition

    def wrong(components, log_pi, theta):
        log_r = right(components, log_pi, theta)
        if bug == "responsible for all":
            return np.zeros_like(log_r)  # harmless only where modes do not overlap
        return log_r + np.log(2.0) * np.arange(len(log_r))[:, None]

    monkeypatch.setattr(mixture, "_log_partition", wrong)
    first, second = bimodal.proposals
    proposals = [first, first, second] if bug == "responsible for all" else [first, second]
    theta, found = bimodal.draw(0, proposals)
    assert not (found.holds and bimodal.agrees(theta, found.ess))


def test_without_a_density_the_law_of_psi_is_seen(bimodal, monkeypatch):
    """A planted bug: the half of the draws that are Student's t are weighed as if normal."""
    monkeypatch.setattr(
        mixture.HalfT, "log_density", lambda law, psi: -0.5 * np.square(psi).sum(axis=1)
    )
    theta, found = bimodal.draw(0)
    assert not (found.holds and bimodal.agrees(theta, found.ess))


def test_the_law_of_psi_is_a_density():
    law = mixture.HalfT(np.array([0.5, -1.0]), np.array([[1.5, 0.0], [-0.4, 0.7]]))
    axis = np.linspace(-60.0, 60.0, 2401)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    p = np.exp(law.log_density(np.column_stack([x.ravel(), y.ravel()])))
    total = p.sum() * (axis[1] - axis[0]) ** 2
    assert np.isclose(total, 2.0, rtol=2e-3)  # of two halves; the tails are cut
    psi = law.draw(np.random.default_rng(0), 40_000)
    assert np.allclose(psi.mean(axis=0), [0.25, -0.5], atol=0.05)
    w = np.exp(-0.5 * np.square(psi).sum(axis=1) - law.log_density(psi)) / (2.0 * np.pi)
    assert np.isclose(w.mean(), 0.5, atol=0.01)


def test_tables_invert_warps(bimodal):
    for proposal in bimodal.proposals:
        assert len(proposal.warps) > 0
        psi = 3.0 * np.random.default_rng(0).normal(size=(2000, 2))
        phi, log_det = proposal.warps.position(psi)
        found, found_det = proposal.warps.inverse(phi)
        assert np.median(np.abs(found - psi).max(axis=1)) < 1e-3
        assert np.median(np.abs(found_det - log_det)) < 1e-2


def test_a_local_warp_ends_at_the_barrier():
    """A spike of Student's t, and a wider mode behind a barrier that is not its own."""

    def f(s):
        spike = 2.5 * np.log1p(s**2 / 4.0)
        return -np.logaddexp(-spike, 3.0 - 0.5 * ((s - 400.0) / 20.0) ** 2)

    whole, local = fit_warp(f), fit_warp(f, local=True)
    assert whole(3.0) > 300.0
    assert local(6.9) < 330.0
    below = local(np.array([-1.0, 0.0, 1.0]))
    assert np.allclose(stats.t.cdf(below, 4.0), stats.norm.cdf([-1, 0, 1]), atol=2e-3)


@pytest.mark.parametrize("width", [0.3, 1.0, 8.0])
def test_a_local_warp_of_a_tail_that_hardly_falls(width):
    """A Cauchy tail on one side and a wall on the other, as of a level that has no event."""

    def f(s):
        return np.log1p((s / width) ** 2) + np.exp(np.minimum(2.0 * (s - 2.0), 500.0))

    def mass(low, high):
        return quad(lambda u: np.exp(-f(np.sinh(u))) * np.cosh(u), low, high, limit=400)[0]

    psi = np.linspace(-2.5, 2.5, 11)
    places = np.arcsinh(fit_warp(f, local=True)(psi))
    below = np.array([mass(-30.0, place) for place in places]) / mass(-30.0, 4.0)
    assert np.allclose(below, stats.norm.cdf(psi), atol=2e-3)


@pytest.mark.parametrize("df", [1.0, 4.0])
def test_heavy_tails_are_drawn_efficiently(df):
    """Separable data: no row is quadratic where a warp has the tail of the prior."""
    x = np.round(np.random.default_rng(0).normal(size=60), 1)
    x = x[x != 0.0]
    prior = StudentT(df=df)._table((1,))
    target = Target(x[:, None], (x > 0) * 1.0, np.ones(len(x)), Logistic(), prior, intercept=False)
    frame = frame_of(target, "hessian", True, np.random.default_rng(0))
    found = mixed_draws([fit_proposal(frame, local=True)], N, np.random.default_rng(1))
    assert found.holds
    assert found.ess > 0.9 * N


def test_warps_of_what_is_no_number(bimodal):
    """Trajectories that diverge are rejected, not a crash."""
    psi = np.array([[np.nan, 0.0], [np.inf, -np.inf], [0.1, 0.2]])
    with np.errstate(all="ignore"):
        for proposal in bimodal.proposals:
            phi, log_det = proposal.warps.position(psi)
            assert np.isnan(phi[0]).any()
            assert np.isfinite(phi[2]).all()
            assert np.isfinite(log_det[2])


def test_a_flat_warp_is_inverted_to_far_away():
    """A table may end in a slope of zero, beyond which no ψ leads."""
    x = np.linspace(-7.0, 7.0, 200)
    flat = Warps(np.eye(1), [PchipInterpolator(x, np.minimum(x, 5.0))])
    psi, log_det = flat.inverse(np.array([[0.5], [900.0]]))
    assert np.isclose(psi[0, 0], 0.5, atol=1e-3)
    assert psi[1, 0] > 7.0
    assert np.isfinite(psi).all()
    assert np.isfinite(log_det).all()  # else other modes would have no share r of their own places


@pytest.mark.slow
def test_students_t_priors_have_the_tails_that_they_leave():
    """Separable data: the posterior of a coefficient falls like its prior, far beyond the mode."""
    x = np.linspace(0.2, 2.0, 20) * np.where(np.arange(20) % 2, 1.0, -1.0)
    X = np.column_stack([x, np.random.default_rng(0).normal(size=20)])
    grid = np.stack(np.meshgrid(np.linspace(-2, 80, 821), np.linspace(-40, 40, 401)), axis=-1)
    grid = grid.reshape(-1, 2)
    signs = np.where(x > 0.0, 1.0, -1.0)
    log_p = -np.logaddexp(0.0, -(grid @ X.T) * signs).sum(axis=1)
    log_p += stats.t.logpdf(grid, 4).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    options = {"prior": StudentT(df=4), "fit_intercept": False}
    for seed in range(3):
        fit = BayesianLogisticRegression(**options, random_state=seed).fit(X, x > 0.0)
        assert fit.sampler_ == "importance"
        draws = fit.posterior_["coef"].reshape(-1, 2)
        for q in (0.05, 0.5, 0.95, 0.99):
            error = 5.0 * np.sqrt(q * (1.0 - q) / fit.diagnostics_["min_ess"])
            below = [p[grid[:, j] <= np.quantile(draws[:, j], q)].sum() for j in range(2)]
            assert np.abs(np.array(below) - q).max() < error + 0.005  # of the grid
