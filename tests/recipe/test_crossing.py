"""What chains tell of the modes, and what fits say of it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianRobustRegression,
    Posterior,
)
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import MultimodalPosteriorWarning
from skbayes_sg.geometry.modes import Modes, find_modes
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Laplace, StudentT
from skbayes_sg.recipe import choose
from skbayes_sg.recipe.choose import frame_of
from skbayes_sg.recipe.crossing import cross, judged
from skbayes_sg.recipe.request import Outcome, Request

CAUCHY = StudentT(df=1, scale=0.01)


def pair(n=300, noise=0.1):
    """Two columns that are nearly the same, and labels."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    X = np.column_stack([z + noise * rng.normal(size=n), z + noise * rng.normal(size=n)])
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * z))


@pytest.fixture(scope="module")
def modes():
    X, y = pair(noise=0.0)
    prior = CAUCHY._table((2,))
    target = Target(X, y.astype(float), np.ones(300), Logistic(), prior, intercept=False)
    found = find_modes(frame_of(target, "hessian", True, np.random.default_rng(0)))
    assert len(found) == 2
    return found


def outcome(modes, member):
    """Draws near the modes to which they belong, (n_chains, n_draws)."""
    centres = np.array([frame.centre.theta for frame in modes.frames])
    noise = 0.1 * np.random.default_rng(0).normal(size=(*member.shape, 2))
    widths = np.array([frame.width for frame in modes.frames])
    return Outcome(centres[member] + noise * widths[member], {})


STUCK = np.repeat([0, 0, 1, 1], 500).reshape(4, 500)
CROSSING = np.random.default_rng(1).integers(0, 2, (4, 500))
MISSED = np.zeros((4, 500), int)
FEW = np.zeros((4, 500), int)  # draws in the tails of one mode that are counted as the other's
FEW[[0, 2], [100, 300]] = 1
SLOW = (np.arange(500) // 250 + np.array([0, 1, 0, 1])[:, None]) % 2


@pytest.mark.parametrize(
    "member", [STUCK, MISSED, FEW, SLOW], ids=["stuck", "missed", "few", "slow"]
)
def test_chains_that_do_not_cross_are_told(modes, member):
    with pytest.warns(MultimodalPosteriorWarning, match=r"2 modes.*50% of the evidence") as record:
        found = judged(outcome(modes, member), modes, Request(names=("a", "b")))
    assert "a is about" in str(record[0].message) or "b is about" in str(record[0].message)
    assert found.diagnostics["mode_share_0"] == np.mean(member == 0)
    verdict = Posterior(found.draws, {"coef": (2,)}, ["a", "b"], evidence=found.evidence).check()
    assert "modes" in [finding.name for finding in verdict.findings]


def test_missed_modes_matter_together():
    of_mode = np.zeros((4, 500, 3))
    of_mode[..., 0] = 1.0
    shares = np.array([1.0, 0.0, 0.0])
    assert cross(of_mode, np.array([0.993, 0.007, 0.0]), shares)
    assert not cross(of_mode, np.array([0.986, 0.007, 0.007]), shares)


@pytest.mark.parametrize(("evidence", "matters"), [(-6.0, True), (-7.3, False)])
def test_far_modes_matter_more(modes, evidence, matters):
    """Modes of 0.25 % and 0.07 %, far away: with 2000 draws, 5 and 1.4 are expected of them."""
    rare = replace(modes, log_evidence=np.array([0.0, evidence]))
    made = outcome(modes, MISSED)
    apart = np.ptp([frame.centre.theta for frame in modes.frames], axis=0)
    added = rare.shares[1] * (apart / made.draws.std(axis=(0, 1))) ** 2
    assert added.max() > 0.2
    assert rare.shares[1] < 0.01
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = judged(made, rare, Request(names=("a", "b")))
    posterior = Posterior(found.draws, {"coef": (2,)}, ["a", "b"], evidence=found.evidence)
    assert bool(told) == matters
    assert ("modes" in [f.name for f in posterior.check().findings]) == matters
    assert np.isclose(found.evidence["mode_spread"][0], added.max() if matters else 0.0, rtol=0.1)


def test_chains_that_cross_are_believed(modes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judged(outcome(modes, CROSSING), modes, Request())
    assert found.evidence["mode_gap"] == 0.0
    posterior = Posterior(found.draws, {"coef": (2,)}, ["a", "b"], evidence=found.evidence)
    assert "2 found" in posterior.check().passed["modes"]


@pytest.mark.parametrize(
    ("field", "said", "remedy"),
    [
        ("complete", "many modes.* after 1 that matters", "lighter tails"),
        ("degenerate", "rounding", "noise_prior"),
    ],
)
def test_what_the_search_has_left_is_told(modes, field, said, remedy):
    options = {"complete": True, "degenerate": False}
    options[field] = not options[field]
    left = Modes(modes.frames[:1], np.zeros(1), searched=True, **options)
    with pytest.warns(MultimodalPosteriorWarning, match=said):
        found = judged(outcome(modes, MISSED), left, Request())
    posterior = Posterior(found.draws, {"coef": (2,)}, ["a", "b"], evidence=found.evidence)
    remedies = {finding.name: finding.remedy for finding in posterior.check().findings}
    assert remedy in remedies["modes"]


# -- fits -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["hmc", "baoab"])
def test_samplers_asked_for_by_name(sampler):
    X, y = pair(noise=0.02)
    options = {"n_draws": 200, "random_state": 0, "fit_intercept": False}
    model = BayesianLogisticRegression(prior=CAUCHY, sampler=sampler, **options)
    with pytest.warns(MultimodalPosteriorWarning, match=r"sampler='auto'"):
        model.fit(X, y)
    assert not model.posterior_.check()
    assert model.diagnostics_["n_modes"] == 2.0


@pytest.mark.slow
def test_the_default_weighs_modes():
    X, y = pair(noise=0.02)
    model = BayesianLogisticRegression(prior=CAUCHY, fit_intercept=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also of heavy tails, as those of the spikes are not
        model.fit(X, y)
    first = np.abs(model.posterior_["coef"][:, :, 0, 0]) > 0.5
    shares = sorted(model.diagnostics_[f"mode_share_{m}"] for m in range(2))
    assert 0.1 < shares[0]
    assert np.isclose(min(first.mean(), 1.0 - first.mean()), shares[0], atol=0.03)
    assert "2 found" in model.posterior_.check().passed["modes"]


@pytest.mark.parametrize(
    "estimator",
    [pytest.param(BayesianRobustRegression, marks=pytest.mark.slow), BayesianLinearRegression],
)
def test_where_one_mode_is_found_draws_are_as_they_were(estimator, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X @ [1.0, -1.0] + rng.standard_t(4, size=80)
    model = estimator(prior=Laplace(scale=2.0), random_state=0, n_draws=250).fit(X, y)
    assert model.diagnostics_["n_modes"] == 1.0
    draws = model.posterior_.flat
    monkeypatch.setattr(choose, "find_modes", lambda frame: Modes((frame,), np.zeros(1)))
    assert np.array_equal(model.fit(X, y).posterior_.flat, draws)
    assert "n_modes" not in model.diagnostics_
