"""Warps to the marginal laws of draws, along the directions of rows, and chains on them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats

from skbayes_sg.diagnostics import convergence
from skbayes_sg.engine.target import Target
from skbayes_sg.importance import sample
from skbayes_sg.importance.directions import cluster_directions
from skbayes_sg.importance.fit import fit_proposal
from skbayes_sg.importance.lockstep import Budget, run_lockstep
from skbayes_sg.importance.warps import OF_DRAWS, SMOOTHED, warps_of_draws
from skbayes_sg.models import Softmax
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import frame_of


def oblique_axes(seed=0):
    """Two unit vectors in four dimensions, at an angle of 53 degrees."""
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0][:2]
    axes[1] = 0.8 * axes[1] + 0.6 * axes[0]
    return axes


def test_tables_are_smoothed_quantiles():
    """T(ψ) is the mean of the quantile function at ψ + h z, z normal."""
    law = stats.gamma(2.0)
    s = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    warps = warps_of_draws(np.eye(1), s[::-1, None])
    psi = np.linspace(-OF_DRAWS, OF_DRAWS, 9)
    place = warps.at(psi[:, None])
    for value, at in zip(place.phi[:, 0], psi, strict=True):

        def quantile(z, at=at):
            return law.ppf(stats.norm.cdf(at + SMOOTHED * z)) * stats.norm.pdf(z)

        expected, _ = integrate.quad(quantile, -8.0, 8.0)
        assert value == pytest.approx(expected, rel=2e-3)
    assert (place.slope > 0.0).all()


def test_the_normal_law_is_carried_to_itself():
    draws = np.random.default_rng(0).normal(size=(50_000, 4))
    psi = np.random.default_rng(1).normal(size=(100, 4))
    phi, log_det = warps_of_draws(oblique_axes(), draws).position(psi)
    assert np.abs(phi - psi).max() < 0.1
    assert np.abs(log_det).max() < 0.2


def test_projections_on_oblique_axes_are_moved_each_by_its_own_table():
    """Qφ = T(Qψ), and what is orthogonal to both axes stays."""
    axes = oblique_axes()
    draws = np.random.default_rng(0).standard_exponential((2000, 4))
    warps = warps_of_draws(axes, draws)
    psi = np.random.default_rng(1).normal(size=(50, 4))
    phi = warps.at(psi).phi
    tables = [spline(s) for spline, s in zip(warps.splines, (psi @ axes.T).T, strict=True)]
    inside = (np.abs(psi @ axes.T) < OF_DRAWS).all(axis=1)
    assert inside.sum() > 40
    np.testing.assert_allclose((phi @ axes.T)[inside], np.array(tables).T[inside], atol=1e-12)
    rest = np.eye(4) - np.linalg.pinv(axes) @ axes
    np.testing.assert_allclose(phi @ rest, psi @ rest, atol=1e-12)
    back, log_det = warps.inverse(phi)
    np.testing.assert_allclose(back[inside], psi[inside], atol=1e-3)
    np.testing.assert_allclose(log_det[inside], warps.at(psi).log_det[inside], atol=1e-2)


def test_means_of_clusters_are_their_directions():
    rng = np.random.default_rng(0)
    axes = oblique_axes()
    vectors = axes[np.arange(100) % 2] + 0.01 * rng.normal(size=(100, 4))
    orthonormal, _, means = cluster_directions(vectors, np.ones(100))
    assert len(means) == 2
    np.testing.assert_allclose(orthonormal @ orthonormal.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 1.0, atol=1e-12)
    assert np.abs(means @ axes.T).max(axis=0).min() > 0.9999


def walls(n=400, n_levels=12, seed=0):
    """Four classes of which most levels have one or two, in standardised columns."""
    rng = np.random.default_rng(seed)
    level = rng.choice(n_levels, n, p=np.arange(n_levels, 0, -1) / (n_levels * (n_levels + 1) / 2))
    X = np.c_[rng.normal(size=(n, 2)), np.eye(n_levels)[level]]
    eta = 3.0 * rng.normal(size=(n_levels, 4))[level] + np.outer(X[:, 0], [1.0, 0.0, -1.0, 0.0])
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    prior = np.concatenate([Normal(scale=3.0)._table((4 * X.shape[1],)), Normal()._table((4,))])
    target = Target(X, y.astype(float), np.ones(n), Softmax(4), prior)
    return frame_of(target, "hessian", True, np.random.default_rng(0))


@pytest.mark.slow
def test_chains_on_any_tables_have_the_same_law():
    """Tables of draws that are far from the posterior cost steps, and no accuracy."""
    proposal = fit_proposal(walls())
    start = np.random.default_rng(0).normal(size=(64, proposal.n_parameters))
    first = run_lockstep(proposal.exact, proposal.warps, start, 64 * 200, np.random.default_rng(1))
    last = first.phi[:, -1]
    found = [first.phi[:, 20:]]
    for draws in (first.phi[:, 100:], 0.7 * first.phi[:, 100:] + 0.3):
        warps = proposal.warps_of_draws(draws.reshape(-1, draws.shape[2]))
        psi, _ = warps.inverse(last)
        n = 64 * 200
        found.append(
            run_lockstep(proposal.exact, warps, psi, n, np.random.default_rng(2)).phi[:, 20:]
        )
    flat = [phi.reshape(-1, phi.shape[2]) for phi in found]
    ess = [convergence.ess_least(phi) for phi in found]
    for k in (1, 2):
        sd = flat[0].std(axis=0)
        error = sd * np.sqrt(1.0 / ess[0] + 1.0 / ess[k])
        assert (np.abs(flat[k].mean(axis=0) - flat[0].mean(axis=0)) < 5.0 * error).all()
        allowed = 5.0 * np.sqrt(1.0 / ess[0] + 1.0 / ess[k])
        assert (np.abs(flat[k].std(axis=0) / sd - 1.0) < allowed).all()


def test_walls_are_sampled_on_marginals():
    """With tables along lines through the centre the chains disagree; with those of draws not."""
    found = {}
    for marginal in (False, True):
        proposal = fit_proposal(walls())
        if not marginal:
            proposal.warps_of_draws = lambda phi: None
        rng = np.random.default_rng(3)
        found[marginal] = sample.draws_of_chains(proposal, 4000, rng, lambda _: Budget(60_000.0))
    assert found[True].holds
    assert found[True].ess > 1.5 * found[False].ess


class Chains:
    """Stand-ins for chains in lockstep, with a number of gradients."""

    phi, n_gradients = np.arange(24.0).reshape(2, 6, 2), 300

    def __init__(self, name):
        self.name = name


def of(ess, rhat, k=0.1):
    """A stand-in for `CertifiedDraws`."""
    return SimpleNamespace(ess=ess, rhat=rhat, certificate=SimpleNamespace(pareto_k=k))


@pytest.mark.parametrize(
    ("ess", "rhat", "again"), [(100.0, 1.01, True), (500.0, 1.01, False), (500.0, 1.2, True)]
)
def test_chains_that_mix_slowly_or_disagree_run_on_marginals(monkeypatch, ess, rhat, again):
    better = of(600.0, 1.0)
    monkeypatch.setattr(sample, "run_lockstep", lambda *_: Chains("first"))
    monkeypatch.setattr(sample, "_weighed", lambda *_: of(ess, rhat))
    monkeypatch.setattr(sample, "_on_marginals", lambda *_: (Chains("second"), better, Budget()))
    proposal = SimpleNamespace(surrogate=None, warps=None, other_motion=None)
    found = sample._in_lockstep(proposal, np.zeros((64, 2)), 1000, None, lambda _: Budget())
    assert (found is better) == again


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ((10.0, 1.5, 0.1), (9.0, 1.01, 0.1), "second"),  # chains that agree are better
        ((10.0, 1.01, 0.1), (9.0, 1.5, 0.1), "first"),
        ((10.0, 1.01, 0.1), (11.0, 1.05, 0.1), "second"),
        ((10.0, np.inf, 0.1), None, "first"),  # the budget does not allow others
        ((10.0, 1.01, 0.8), (9.0, 1.01, 0.1), "second"),  # weights to be trusted are better
    ],
)
def test_the_better_chains_are_kept(monkeypatch, first, second, kept):
    given, seen, told = Chains("first"), {}, []

    def run(potential, warps, psi, n_draws, rng, budget):
        seen.update(potential=potential, psi=psi, budget=budget)
        return None if second is None else Chains("second")

    def fit(phi):
        seen["draws"] = phi
        return SimpleNamespace(inverse=lambda phi: (phi + 0.5, 0.0))

    monkeypatch.setattr(sample, "run_lockstep", run)
    monkeypatch.setattr(sample, "_weighed", lambda *_: of(*second))
    few, every = SimpleNamespace(n_exact=20), SimpleNamespace(n_exact=50)
    proposal = SimpleNamespace(surrogate=few, exact=every, warps_of_draws=fit)
    budget = Budget(most=1000.0, tell=told.append, others=900.0)
    made = sample._on_marginals(proposal, given, of(*first), 12, None, budget)
    chains, found, allowed = made
    assert chains.name == kept
    assert (found.ess, found.rhat) == (first if kept == "first" else second)[:2]
    np.testing.assert_array_equal(seen["draws"], given.phi[:, 3:].reshape(-1, 2))
    np.testing.assert_array_equal(seen["psi"], given.phi[:, -1] + 0.5)
    weights_fail = first[2] > 0.7
    assert seen["potential"] is (every if weights_fail else few)
    dearer = 2.5 if weights_fail else 1.0  # gradients of all rows cost more
    assert (seen["budget"].most, seen["budget"].others) == (700.0 / dearer, 600.0 / dearer)
    if kept == "second":
        assert allowed is seen["budget"]
    else:  # less what the others have taken
        assert allowed.most == (1000.0 if second is None else 700.0)
    seen["budget"].tell(100.0)
    assert told == [100.0 * dearer]
