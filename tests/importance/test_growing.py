"""Mixtures that grow until they cover a posterior of few parameters."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr

from skbayes_sg.importance import growing
from skbayes_sg.importance.growing import grown_draws

N = 4000


def proposal_of(U, D, frame=None):
    """What `grown_draws` needs of a proposal: the potential at rows φ, and the frame of a mode."""
    return SimpleNamespace(n_parameters=D, exact=SimpleNamespace(values=U, n_exact=7), frame=frame)


def frame_of(centre, F, root):
    """What it needs of a frame, whose centre is θ̂ and whose Laplace approximation has a root."""
    theta, F = np.array(centre), np.array(F)
    return SimpleNamespace(centre=SimpleNamespace(theta=theta), F=F, laplace_root=np.array(root))


def bent(phi):
    """A ridge φ₂ ≈ 0.8 φ₁², of which the Laplace approximation sees a straight line."""
    return 0.5 * phi[:, 0] ** 2 + 0.5 * np.square((phi[:, 1] - 0.8 * phi[:, 0] ** 2) / 0.3)


BENT = np.array([0.0, 0.8]), np.array([1.0, 0.09 + 2 * 0.64])

MADE = np.random.default_rng(4).normal(0.7, 1.0, 400)
Y = MADE[MADE > 0.0][:60]


def cut(phi):
    """Normal y of unknown mean b and log σ, of which only positive ones are seen.

    A mean far below zero with a large σ makes y exponential: nothing but the prior ends the tail.
    """
    b, sigma = phi[:, :1], np.exp(phi[:, 1:])
    terms = 0.5 * np.square((Y - b) / sigma) + phi[:, 1:] + log_ndtr(b / sigma)
    return terms.sum(axis=1) + 0.5 * np.square(phi / [4.0, 1.0]).sum(axis=1)


def cut_moments():
    """Mean, variance and fourth central moment of b, by quadrature."""
    b, s = np.meshgrid(np.linspace(-30, 6, 501), np.linspace(-3, 4, 141), indexing="ij")
    log_p = -cut(np.column_stack([b.ravel(), s.ravel()])).reshape(b.shape)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = (p * b).sum()
    return mean, *((p * (b - mean) ** k).sum() for k in (2, 4))


def off(values, mean, variance, ess):
    """How many standard errors the mean and the variance of draws are off."""
    squares = np.square(values - mean)
    z = (values.mean() - mean) / np.sqrt(variance), (squares.mean() - variance) / squares.std()
    return np.abs(z) * np.sqrt(ess)


@pytest.mark.parametrize("is_wrong", [False, True], ids=["right", "without weights"])
def test_a_bent_ridge(is_wrong, monkeypatch):
    if is_wrong:
        certified = growing.certified
        monkeypatch.setattr(
            growing, "certified",
            lambda w: certified(w if len(w) != 4 * N else np.zeros(len(w))),
        )  # fmt: skip
        monkeypatch.setattr(growing, "WANTED", 100.0)
    found = grown_draws([proposal_of(bent, 2)], N, np.random.default_rng(0))
    assert found.phi.shape == (N, 2)
    assert found.n_exact == 7
    errors = [off(v, *moments, found.ess) for v, *moments in zip(found.phi.T, *BENT, strict=True)]
    assert (np.array(errors) < 4.5).all() != is_wrong


def test_a_tail_that_only_the_prior_ends():
    """Over ten seeds neither mean nor variance is biased, and no seed has missed the tail."""
    mean, variance, fourth = cut_moments()
    assert fourth > 12.0 * variance**2  # far from normal
    found = [
        grown_draws([proposal_of(cut, 2)], N, np.random.default_rng(seed)).phi[:, 0]
        for seed in range(10)
    ]
    means, variances = np.mean(found, axis=1), np.square(np.array(found) - mean).mean(axis=1)
    error = np.sqrt(np.array([variance, fourth - variance**2]) / (0.5 * N))
    assert (np.abs(means - mean) < 4.5 * error[0]).all()
    assert (np.abs(variances - variance) < 4.5 * error[1]).all()
    assert np.abs(variances.mean() - variance) < 4.5 * error[1] / np.sqrt(10)


def test_places_without_density():
    def U(phi):
        return np.where(phi[:, 0] > -0.5, 0.5 * np.square(phi).sum(axis=1), np.nan)

    found = grown_draws([proposal_of(U, 2)], N, np.random.default_rng(1))
    law = stats.truncnorm(-0.5, np.inf)
    assert (off(found.phi[:, 0], law.mean(), law.var(), found.ess) < 4.5).all()
    assert (off(found.phi[:, 1], 0.0, 1.0, found.ess) < 4.5).all()


@pytest.mark.parametrize("width", [1e-2, 1e-6, 1e-12])
def test_a_posterior_much_narrower_than_it_seemed(width):
    """One draw has all of the weight at first, and no width."""

    def U(phi):
        return 0.5 * np.square(phi / [1.0, width]).sum(axis=1)

    found = grown_draws([proposal_of(U, 2)], N, np.random.default_rng(0))
    if width == 1e-2:
        assert (off(found.phi[:, 1], 0.0, width**2, found.ess) < 4.5).all()
    else:
        assert found is None or (off(found.phi[:, 1], 0.0, width**2, found.ess) < 4.5).all()


def test_one_parameter_with_two_peaks():
    def U(phi):
        return -np.logaddexp(stats.norm.logpdf(phi[:, 0], 0.0), stats.norm.logpdf(phi[:, 0], 9, 2))

    found = grown_draws([proposal_of(U, 1)], N, np.random.default_rng(2))
    area, _ = integrate.quad(lambda x: x * np.exp(-U(np.array([[x]]))[0]) / 2.0, -10, 30)
    assert (off(found.phi[:, 0], area, 2.5 + 20.25, found.ess) < 4.5).all()


APART, NARROW = np.array([40.0, -30.0]), np.array([0.02, 0.5])


def two_modes(phi):
    """A standard normal law, and one of a third of the mass where no draw of the first comes."""
    one = stats.norm.logpdf(phi).sum(axis=1)
    other = stats.norm.logpdf(phi, APART, NARROW).sum(axis=1)
    return -np.logaddexp(np.log(2.0 / 3.0) + one, np.log(1.0 / 3.0) + other)


def test_modes_far_apart_have_their_shares():
    """φ are coordinates of the first frame, θ = θ̂ + F φ; the other mode is given in θ."""
    F, centre = np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([5.0, 6.0])
    first = proposal_of(two_modes, 2, frame_of(centre, F, F))
    other = frame_of(centre + F @ APART, np.eye(2), F * NARROW)
    found = grown_draws([first, proposal_of(None, 2, other)], N, np.random.default_rng(0))
    is_other = found.phi[:, 0] > 20.0
    assert (off(is_other, 1.0 / 3.0, 2.0 / 9.0, found.ess)[0] < 4.5).all()
    own = (found.phi[is_other] - APART) / NARROW
    assert np.abs(own.std(axis=0) - 1.0).max() < 4.5 / np.sqrt(2.0 * found.ess / 3.0)
    alone = grown_draws([first], N, np.random.default_rng(0))
    assert (alone.phi[:, 0] < 20.0).all()


def test_a_full_mixture_needs_fewer_even_draws(monkeypatch):
    monkeypatch.setattr(growing, "MOST_COMPONENTS", 20)
    monkeypatch.setattr(growing, "TEMPERED", (1.0,))
    monkeypatch.setattr(growing, "EVEN_ENOUGH", (1.0, 1.0))
    assert grown_draws([proposal_of(bent, 2)], N, np.random.default_rng(0)) is not None
    monkeypatch.setattr(growing, "TEMPERED", (1.5, 1.0))
    assert grown_draws([proposal_of(bent, 2)], N, np.random.default_rng(0)) is None


def test_mixtures_that_would_have_to_grow_too_far_are_given_up(monkeypatch):
    monkeypatch.setattr(growing, "MOST_COMPONENTS", 2)
    assert grown_draws([proposal_of(cut, 2)], N, np.random.default_rng(0)) is None


def test_nothing_grows_where_there_is_no_density():
    nowhere = proposal_of(lambda phi: np.full(len(phi), np.inf), 2)
    assert grown_draws([nowhere], N, np.random.default_rng(0)) is None


def test_fresh_draws_that_are_not_trusted_are_made_anew(monkeypatch):
    certified, seen = growing.certified, []

    def distrusted(log_weights):
        found = certified(log_weights)
        if len(log_weights) == N:  # fresh draws, and not those by which the mixture has grown
            seen.append(found)
            found = replace(found, pareto_k=0.6 if len(seen) < 3 else 0.1)
        return found

    monkeypatch.setattr(growing, "certified", distrusted)
    monkeypatch.setattr(growing, "MOST_PROPOSED", 1.0)
    found = grown_draws([proposal_of(bent, 2)], N, np.random.default_rng(0))
    assert len(seen) == 3
    assert len(np.unique(found.phi[:, 0])) > 1000


def test_draws_are_those_of_the_seed():
    a, b, c = (
        grown_draws([proposal_of(bent, 2)], 500, np.random.default_rng(seed)).phi
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
