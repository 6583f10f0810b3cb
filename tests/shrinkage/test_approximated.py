"""Proposals under normal rows: their law in closed form, and exact posteriors whatever they are."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sg._base import streams
from skbayes_sg.engine.target import Target
from skbayes_sg.models import Logistic, Poisson
from skbayes_sg.priors import HalfCauchy, Horseshoe, Normal, Units
from skbayes_sg.shrinkage import approximated
from skbayes_sg.shrinkage.approximated import (
    ApproximatedCoefficients,
    NormalApproximation,
    can_approximate,
)
from skbayes_sg.shrinkage.local_scales import LocalScales
from skbayes_sg.shrinkage.reference import frame_and_collapse, reference_of

ZERO = 0.5  # τ₀


class NoNoise:
    """In the place of a generator: all normal numbers are zero."""

    @staticmethod
    def standard_normal(shape):
        return np.zeros(shape)


@pytest.mark.parametrize("n_others", [0, 1, 3])
def test_the_normal_likelihood_is_the_quadratic(n_others):
    """Ũ from a gradient and a Hessian; ψ without noise is where Ũ is least given β."""
    rng, n = np.random.default_rng(0), 4
    D = n + n_others
    root, x, g = rng.normal(size=(D, D)), rng.normal(size=D), rng.normal(size=D)
    H = root @ root.T
    own = NormalApproximation.expanded(x, g, H, n)
    away = rng.normal(size=(6, D))
    off = away - x
    expected = off @ g + 0.5 * np.einsum("cd,de,ce->c", off, H, off)
    np.testing.assert_allclose(np.diff(own.values(away)), np.diff(expected))
    psi = own.others(away[:, :n], NoNoise)
    lowest = np.column_stack([away[:, :n], psi])
    np.testing.assert_allclose((g + (lowest - x) @ H)[:, n:], 0.0, atol=1e-10)
    one = [own.others(away[:1, :n], Unit(j, n_others)) - psi[:1] for j in range(n_others)]
    if one:  # the noise of ψ has the covariance H_ψψ⁻¹
        noise = np.concatenate(one)
        np.testing.assert_allclose(noise.T @ noise @ H[n:, n:], np.eye(n_others), atol=1e-10)


class Unit(NoNoise):
    """In the place of a generator: number j of each row is one."""

    def __init__(self, j, n):
        self.z = np.eye(n)[j]

    def standard_normal(self, shape):
        return np.broadcast_to(self.z, shape)


def test_directions_that_no_row_knows_are_left_out():
    """With fewer rows than coefficients, A has as many rows as H has rank."""
    X = np.random.default_rng(0).normal(size=(3, 7))
    own = NormalApproximation.expanded(np.zeros(7), -X.sum(axis=0), X.T @ X, 7)
    assert own.A.shape == (3, 7)
    np.testing.assert_allclose(own.A.T @ own.A, X.T @ X, atol=1e-10)
    np.testing.assert_allclose(own.A.T @ own.z, X.sum(axis=0), atol=1e-10)


def poisson(n=30):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(n, 1)), rng.uniform(0.5, 1.5, n)
    y = rng.poisson(np.exp(0.3 * x[:, 0])).astype(float)
    scales = Horseshoe(n_relevant=0.5)._learned((1,), Units(columns=lambda: np.array([2.0])))
    return Target(x, y, w, Poisson(), scales.normals, intercept=False), scales


def coefficients(target, scales, n_chains, n_warmup, rng):
    ridge = Normal(scale=HalfCauchy(1.0))._learned((len(scales.group),), Units())
    s, theta = reference_of(target, ridge, streams.of_recipe(0))
    frame, _ = frame_and_collapse(target, ridge, s, streams.of_recipe(0), theta)
    return ApproximatedCoefficients(frame, scales, n_chains, n_warmup, rng)


def law_of_one(target, scales, grid):
    """The distribution function of θ: log τ and log λ are summed over a grid."""
    t = np.linspace(-25.0, 25.0, 4001)
    of_tau = np.exp(t) / (1.0 + np.square(np.exp(t) / ZERO))
    of_lambda = np.exp(t - np.logaddexp(0.0, 2.0 * t))
    both = np.convolve(of_tau, of_lambda, mode="same")  # of log τ + log λ
    scale = np.exp(t)
    v = 1.0 / (scale**-2 + scales.slab**-2)
    beta = grid / scales.unit[0]
    prior = [(both / scale * np.exp(-0.5 * b**2 / v)).sum() for b in beta]
    eta = np.outer(grid, target.X[:, 0])
    y = target.data.facts[:, 0]
    losses = np.exp(eta) - y * eta
    p = np.array(prior) * np.exp(-(losses - losses.min()) @ target.weight)
    return np.cumsum(p) / p.sum()


def is_exact(n_sweeps=25, spoil=None):
    """Whether many short chains have the law of a grid; `spoil` changes the normal likelihood."""
    target, scales = poisson()
    rng, n = np.random.default_rng(3), 1500
    own = coefficients(target, scales, n, 4 * n_sweeps, rng)
    local = LocalScales(n, 1, ZERO, scales.slab, rng)
    for _ in range(n_sweeps):  # about the place where this likelihood is expanded first
        own.update(local, False)
        local.update(own.beta)
        if spoil is not None:
            spoil(own)
            spoil = None
    grid = np.linspace(-2.0, 2.0, 4000)  # not zero, where the density has a pole
    share = law_of_one(target, scales, grid)
    found = stats.kstest(own.draws()[:, 0], lambda value: np.interp(value, grid, share))
    return found.pvalue > 1e-4, own


def elsewhere(own):
    """Expand the likelihood at a wrong place, and with a wrong curvature."""
    at = own.x[:1].mean(axis=0) + 0.1
    own.every = 4
    own.normal = NormalApproximation.expanded(
        at, own._slope(at[None])[0], 0.6 * own._hessian(at), own.n
    )
    own.rows = approximated.marginal_of([approximated.NormalRows(own.normal.A, own.normal.z)], None)


@pytest.mark.parametrize("spoil", [None, elsewhere], ids=["taylor", "elsewhere"])
def test_the_posterior_is_exact_whatever_the_approximation(spoil):
    holds, own = is_exact(spoil=spoil)
    assert holds
    assert 0.2 < np.mean(own.chances) < 0.999


def test_proposals_that_are_all_accepted_are_found(monkeypatch):
    """A planted bug: without the ratio, draws have the law of the approximation."""

    def spoil(own):
        elsewhere(own)
        own._value = own.normal.values

    assert not is_exact(spoil=spoil)[0]


def test_normal_rows_accept_every_proposal():
    """Where U is the quadratic itself."""
    target, scales = poisson()
    own = coefficients(target, scales, 5, 10, np.random.default_rng(0))
    own._value = own.normal.values
    local = LocalScales(5, 1, ZERO, scales.slab, own.rng)
    own.value = own._value(own.x)
    for _ in range(5):
        own._propose(local, False)
    np.testing.assert_allclose(own.chances, 1.0)


def test_scales_stay_where_a_proposal_is_rejected():
    target, scales = poisson()
    own = coefficients(target, scales, 4, 10, np.random.default_rng(0))
    local = LocalScales(4, 1, ZERO, scales.slab, own.rng)
    own.value, x = own._value(own.x), own.x.copy()
    own._value = lambda x: np.array([0.0, np.inf, np.nan, -np.inf])
    before = local.log_lambda.copy(), local.log_tau.copy()
    own._propose(local, False)
    stay = [False, True, True, True]
    np.testing.assert_array_equal((own.x == x).all(axis=1), stay)
    np.testing.assert_array_equal((local.log_lambda == before[0]).all(axis=1), stay)
    np.testing.assert_array_equal(local.log_tau == before[1], stay)


@pytest.mark.parametrize(("accepted", "every"), [(0.05, 1), (0.8, 5), (1.0, 16)])
def test_trajectories_given_the_scales_replace_proposals_that_fail(accepted, every):
    target, scales = poisson()
    own = coefficients(target, scales, 2, 40, np.random.default_rng(0))
    local = LocalScales(2, 1, ZERO, scales.slab, own.rng)
    for _ in range(5):
        own.chances = [accepted] * 10_000
        own.update(local, True)
    assert own.every == every
    own.update(local, False)
    assert own.told["accepted_proposals"] == own.chances[0]


def test_means_of_the_warm_up_may_have_no_likelihood():
    target, scales = poisson()
    own = coefficients(target, scales, 2, 8, np.random.default_rng(0))
    before, own.looks, own.n_sweeps = own.normal, [1], 1
    own.x, own.chances = np.full((2, len(own.x[0])), 1e6), [0.5]
    own._learn()
    assert own.normal is before
    own.x, own.chances = np.zeros_like(own.x), [0.5]
    own._learn()
    assert own.normal is not before


@pytest.mark.parametrize(("share", "suits"), [([], True), ([0.0, 0.19], False), ([0.3, 0.0], True)])
def test_a_tenth_of_the_proposals_must_be_accepted(share, suits):
    target, scales = poisson()
    own = coefficients(target, scales, 2, 8, np.random.default_rng(0))
    own.chances = share
    assert own.suits == suits


def test_few_events_for_each_column_have_latent_variables():
    X, y = np.zeros((40, 2)), np.zeros(40)
    y[:5] = 1.0
    table = Horseshoe()._learned((2,), Units(columns=lambda: np.ones(2))).normals
    target = Target(X, y, np.ones(40), Logistic(), table, intercept=False)
    assert can_approximate(target, 2)
    assert not can_approximate(target, 3)
    many = Target(X, y, np.where(y == 1.0, 0.2, 59 / 35), Logistic(), table, intercept=False)
    assert can_approximate(many, 3)  # 60 rows and one event
    assert not can_approximate(many, 4)
    for rows, n in ((200, 10), (2000, 100)):
        others = Target(X, y, np.full(40, rows / 40), Poisson(), table, intercept=False)
        assert can_approximate(others, n)
        assert not can_approximate(others, n + 1)
    few = Target(X, y, np.full(40, 199 / 40), Poisson(), table, intercept=False)
    assert not can_approximate(few, 1)
