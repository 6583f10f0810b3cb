"""Rows that are normal given latent variables: the latent laws, and posteriors of both samplers."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sg._base import streams
from skbayes_sg.diagnostics import convergence
from skbayes_sg.engine.target import Target
from skbayes_sg.kernels.polya_gamma import polya_gamma
from skbayes_sg.models import Logistic, Poisson, Robust
from skbayes_sg.priors import Flat, HalfCauchy, HalfNormal, Horseshoe, Normal, Units
from skbayes_sg.shrinkage import augmented
from skbayes_sg.shrinkage.approximated import ApproximatedCoefficients
from skbayes_sg.shrinkage.augmented import AugmentedCoefficients, can_augment
from skbayes_sg.shrinkage.horseshoe_hmc import CoefficientsGivenScales
from skbayes_sg.shrinkage.local_scales import LocalScales
from skbayes_sg.shrinkage.reference import frame_and_collapse, reference_of

Z = 5.0


@pytest.mark.parametrize("weight", [1, 3])
@pytest.mark.parametrize("eta", [0.0, 0.5, -2.9, 3.3, 9.0, -60.0])
def test_polya_gamma_draws_have_their_laplace_transform(eta, weight):
    """E e^{-sω} = (cosh(η/2)/cosh √((η² + 2s)/4))^w; draws with 1.1 η do not have it."""
    n, size = 40_000, abs(eta)
    s = np.array([0.5, 2.0]) * (1.0 + size)

    def off(at):
        omega = np.empty(n)
        polya_gamma(np.full(n, weight), np.full(n, at), np.random.default_rng(1), omega)
        own = np.exp(-np.outer(s, omega))
        inner = np.sqrt(0.25 * (size**2 + 2.0 * s))
        log_cosh = [x + np.log1p(np.exp(-2.0 * x)) for x in (0.5 * size, inner)]
        expected = np.exp(weight * (log_cosh[0] - log_cosh[1]))
        return np.abs((own.mean(axis=1) - expected) / (own.std(axis=1) / np.sqrt(n))).max()

    assert off(eta) < Z
    assert off(1.1 * eta + 0.5) > Z


def test_rows_of_no_weight_have_no_latent_variable():
    omega = np.ones(2)
    polya_gamma(np.array([0, 1]), np.zeros(2), np.random.default_rng(0), omega)
    assert omega[0] == 0.0 < omega[1]


def target_of(kind, n=40, intercept=True, weights=None):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    w = rng.integers(1, 4, n).astype(float) if weights is None else weights
    scales = Horseshoe(n_relevant=0.5)._learned((2,), Units(columns=lambda: np.array([1.0, 2.0])))
    rest = [Normal(loc=0.3, scale=2.0)._table((1,))] * intercept
    if kind == "robust":
        y, model = X[:, 0] + rng.standard_t(3, n), Robust()
        rest += [HalfNormal(1.0)._table((1,)), HalfNormal(10.0)._table((1,))]
    else:
        y, model = (rng.random(n) < expit(1.5 * X[:, 0])).astype(float), Logistic()
    table = np.concatenate([scales.normals, *rest])
    return Target(X, y, w, model, table, intercept=intercept), scales


def test_what_can_be_augmented(monkeypatch):
    assert can_augment(target_of("logistic")[0])
    assert can_augment(target_of("robust", weights=np.full(40, 0.3))[0])
    assert not can_augment(target_of("logistic", weights=np.full(40, 0.3))[0])
    counts = target_of("logistic")[0]
    own = Target(counts.X, np.ones(40), counts.weight, Poisson(), counts.prior)
    assert not can_augment(own)
    monkeypatch.setattr(augmented, "MOST_ROWS", 39)
    assert not can_augment(target_of("robust")[0])


def chains(kind, coefficients, intercept, seed, n_draws):
    """Draws of parameters and of log τ by one of the two classes, (4, n_draws, D + 1)."""
    target, scales = target_of(kind, intercept=intercept)
    ridge = Normal(scale=HalfCauchy(1.0))._learned((2,), Units())
    s, theta = reference_of(target, ridge, streams.of_recipe(0))
    frame, _ = frame_and_collapse(target, ridge, s, streams.of_recipe(0), theta)
    rng = np.random.default_rng(seed)
    local = LocalScales(4, 2, 0.3, 2.0, rng)
    own = coefficients(frame, scales, 4, 300, rng)
    found = []
    for k in range(300 + 3 * n_draws):
        own.update(local, k < 300)
        local.update(own.beta)
        if k >= 300 and k % 3 == 0:
            found.append(np.column_stack([own.draws(), local.log_tau]))
    return np.stack(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("coefficients", [AugmentedCoefficients, ApproximatedCoefficients])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["logistic", "robust"])
def test_posteriors_are_those_of_trajectories_given_the_scales(kind, intercept, coefficients):
    """Means and means of squares of two samplers that share only the updates of λ and τ given β."""
    one = chains(kind, coefficients, intercept, 0, 2500)
    other = chains(kind, CoefficientsGivenScales, intercept, 1, 5000)

    def off(one, other):
        error = np.hypot(convergence.mcse_mean(one), convergence.mcse_mean(other))
        return (one.mean(axis=(0, 1)) - other.mean(axis=(0, 1))) / error

    centre = other.mean(axis=(0, 1))
    assert np.abs(off(one, other)).max() < 4.0
    assert np.abs(off(np.square(one - centre), np.square(other - centre))).max() < 4.0
    planted = 1.15 * (one - centre) + centre
    assert np.abs(off(np.square(planted - centre), np.square(other - centre))).max() > 4.0


def test_a_flat_intercept_and_whole_rows():
    """Rows of no weight change nothing, and a weight of two is a row that is there twice."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), (rng.random(20) < 0.5).astype(float)
    scales = Horseshoe(n_relevant=0.5)._learned((2,), Units(columns=lambda: np.ones(2)))
    table = np.concatenate([scales.normals, Flat()._table((1,))])
    w = np.ones(20)
    w[:4], w[4:8] = 2.0, 0.0
    target = Target(X, y, w, Logistic(), table)
    ridge = Normal(scale=HalfCauchy(1.0))._learned((2,), Units())
    s, theta = reference_of(target, ridge, streams.of_recipe(0))
    frame, _ = frame_and_collapse(target, ridge, s, streams.of_recipe(0), theta)
    own = AugmentedCoefficients(frame, scales, 2, 5, np.random.default_rng(0))
    rows = own._rows(np.zeros((2, 3)))
    A = np.delete(own.A + own.means, np.arange(4, 8), axis=0)
    for c, kept in enumerate(rows.sets):
        root = np.delete(kept.one, np.arange(4, 8))
        np.testing.assert_allclose(
            np.delete(kept.A, np.arange(4, 8), axis=0), root[:, None] * (A - own.means)
        )
        omega = np.square(root)
        seen = np.delete(w * (y - 0.5), np.arange(4, 8))
        z = kept.z + kept.u * kept.seen
        np.testing.assert_allclose(np.delete(z, np.arange(4, 8)) * root, seen)
        assert omega.min() > 0.0
        H = (A.T * omega) @ A - np.outer(omega @ A, omega @ A) / omega.sum()
        np.testing.assert_allclose(rows.gram[c], H, atol=1e-12)
