"""Densities that rise without bound where there is no mass: chains begin elsewhere."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skbayes_sg.custom import CustomDensity
from skbayes_sg.densities import around, fit, modes
from skbayes_sg.densities.around import is_unbounded, mode_near, reaches, still_rising
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.priors import HalfNormal, InverseGamma, Laplace, Normal

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
ROWS = np.column_stack([EFFECTS, ERRORS, np.arange(8.0)])
WIDE = 100.0  # standard deviation of the prior of each effect, beside that of their group
NO_MAXIMUM = "no maximum: it rises without bound .* went farthest in `tau`"


def centred(theta, row):
    """One row of the eight schools: an effect N(mu, tau²), and its estimate."""
    effect, mu, tau = theta[int(row[2])], theta[8], theta[9]
    return (
        -0.5 * ((row[0] - effect) / row[1]) ** 2
        - 0.5 * ((effect - mu) / tau) ** 2
        - np.log(tau)
    )  # fmt: skip


def kink(theta, row):
    """A likelihood whose maximum is at a kink."""
    return -np.abs(row[0] - theta[0])


def schools(tau, **parameters):
    """The centred model with a prior of tau."""
    scales = {"theta": (Normal(scale=WIDE), 8), "mu": Normal(scale=20.0), "tau": tau}
    return CustomDensity(centred, scales, **{"random_state": 0, **parameters})


def searched(monkeypatch, model, rows):
    """The target, the starting points, and where the search from each ends."""
    seen = []

    def watched(target, starts, request):
        seen.append((target, starts))
        raise StopIteration

    monkeypatch.setattr(modes, "_maxima", watched)
    with pytest.raises(StopIteration):
        model.fit(rows)
    monkeypatch.undo()
    (target, starts), *_ = seen
    return target, starts, [mode_near(target, start) for start in starts]


class Funnel:
    """U = 4 x² e^(-2t) + 7 t + e^(2t)/2: effects x with a scale e^t, which is half-normal."""

    @staticmethod
    def value_and_gradient(theta):
        x, t = theta
        narrow, wide = 4.0 * x * x * np.exp(-2.0 * t), 0.5 * np.exp(2.0 * t)
        g = [8.0 * x * np.exp(-2.0 * t), 7.0 - 2.0 * narrow + 2.0 * wide]
        return narrow + 7.0 * t + wide, np.array(g)


def test_a_scale_that_becomes_zero_has_no_maximum(monkeypatch):
    """With a descent in closed form: x is zero, and t falls."""

    def curvature(target, theta):
        return np.array([8.0 * np.exp(-2.0 * theta[1]), 8.0])

    monkeypatch.setattr(around, "fisher_diagonal", curvature)
    start, end = np.array([1.0, 0.0]), np.array([0.0, -20.0])
    assert is_unbounded(Funnel, start, end)
    assert not is_unbounded(Funnel, start, np.array([0.0, -1.0]))  # not yet narrow
    request = SimpleNamespace(name_of=["x", "tau"].__getitem__)
    best = modes._best(Funnel, [np.array([1.0, 30.0]), start])
    assert best is start
    assert not modes._bounded(Funnel, best, [end])
    with pytest.warns(SamplerConvergenceWarning, match=NO_MAXIMUM):
        modes._warn_unbounded(Funnel, best, end, request)


def test_reaches():
    """From zero 4 x² changes by a quarter at 1/4 and by one at 1/2, and t by half at 1/16."""
    np.testing.assert_array_equal(reaches(Funnel, np.zeros(2)), [0.5, 0.0625])


@pytest.mark.slow
def test_searches_into_a_place_without_mass_are_seen(monkeypatch):
    target, starts, ends = searched(monkeypatch, schools(HalfNormal()), ROWS)
    assert len(ends) > 10
    assert all(is_unbounded(target, starts[0], end) for end in ends)
    assert all(still_rising(target, end).any() for end in ends)
    assert not is_unbounded(target, starts[0], starts[0])


@pytest.mark.parametrize(
    "prior",
    [Normal(), pytest.param(Laplace(scale=0.1), marks=pytest.mark.slow)],
    ids=["normal", "kink"],
)
@pytest.mark.slow
def test_kinks_are_maxima(monkeypatch, prior):
    rows = np.random.default_rng(0).normal(size=(30, 1))
    model = CustomDensity(kink, {"location": prior}, random_state=0)
    target, starts, ends = searched(monkeypatch, model, rows)
    assert not any(is_unbounded(target, starts[0], end) for end in ends)


@pytest.mark.slow
def test_a_prior_that_vanishes_at_zero_leaves_a_maximum(monkeypatch):
    model = schools(InverseGamma(alpha=10.0, beta=50.0))
    target, starts, ends = searched(monkeypatch, model, ROWS)
    assert not is_unbounded(target, starts[0], ends[0])


@pytest.mark.slow
def test_chains_begin_at_the_best_start(monkeypatch):
    begun = []

    def run(modes, request, watch=None):
        begun.append(modes.frame.centre.theta)
        raise StopIteration

    monkeypatch.setattr(fit, "run_exact", run)
    with pytest.warns(SamplerConvergenceWarning, match=NO_MAXIMUM), pytest.raises(StopIteration):
        schools(HalfNormal()).fit(ROWS)
    start = {"theta": EFFECTS, "mu": 8.0, "tau": 8.0}
    with pytest.warns(SamplerConvergenceWarning, match=NO_MAXIMUM), pytest.raises(StopIteration):
        schools(HalfNormal(), start=start).fit(ROWS)
    np.testing.assert_allclose(begun[0], np.zeros(10))  # the middle of the priors
    np.testing.assert_allclose(begun[1], [*EFFECTS, 8.0, np.log(8.0)])


def law_of_tau(scale):
    """Quartiles of tau by quadrature over tau and mu: the effects are integrated out."""
    tau = np.linspace(0.01, 6.0 * scale, 1500)[:, None]
    mu = np.linspace(-60.0, 80.0, 701)
    log_p = stats.halfnorm(scale=scale).logpdf(tau) + stats.norm(0.0, 20.0).logpdf(mu)
    for effect, error in zip(EFFECTS, ERRORS, strict=True):
        variance = 1.0 / (1.0 / tau**2 + 1.0 / WIDE**2)  # of N(mu, tau²) times N(0, WIDE²)
        log_p = log_p + stats.norm.logpdf(mu, 0.0, np.hypot(tau, WIDE))
        spread = np.sqrt(variance + error**2)
        log_p = log_p + stats.norm.logpdf(effect, variance * mu / tau**2, spread)
    mass = np.exp(log_p - log_p.max()).sum(axis=1)
    return np.interp([0.25, 0.5, 0.75], np.cumsum(mass) / mass.sum(), tau[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_eight_schools_as_they_are_written_first(seed):
    """Divergences may be left at the narrow end, and are told; the middle of tau is right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = schools(HalfNormal(scale=10.0), random_state=seed).fit(ROWS)
    found = np.quantile(model.posterior_["tau"], [0.25, 0.5, 0.75])
    np.testing.assert_allclose(found, law_of_tau(10.0), rtol=0.1)
