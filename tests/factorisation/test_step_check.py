"""What Gibbs sweeps from some of the draws say of the bias that a step size causes."""

import warnings

import numpy as np
import pytest

from skbayes_sg import BayesianPMF
from skbayes_sg.exceptions import StepSizeWarning
from skbayes_sg.factorisation import Gibbs
from skbayes_sg.factorisation import setup as setups
from skbayes_sg.factorisation.factor_posterior import FactorPosterior
from skbayes_sg.factorisation.step_check import biases, places

RNG = np.random.default_rng(0)
PAIRS = np.unique(RNG.integers(0, [60, 40], size=(1500, 2)), axis=0)
_P, _Q = RNG.normal(size=(60, 2)), RNG.normal(size=(40, 2))
RATINGS = (_P[PAIRS[:, 0]] * _Q[PAIRS[:, 1]]).sum(axis=1) + 0.5 * RNG.normal(size=len(PAIRS))


class Stepped(Gibbs):
    """Gibbs sampling that is examined as if it had a step size."""

    def time_of_a_pass(self):
        return 1.0


def fitted(n_draws=100, thin=4, **parameters):
    model = BayesianPMF(rank=2, n_draws=n_draws, thin=thin, random_state=0, **parameters)
    return model.fit(PAIRS, RATINGS)


def quietly(**parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(**parameters)


@pytest.fixture(scope="module")
def exact():
    return fitted(noise="common", sampler="gibbs")


@pytest.mark.parametrize(
    ("sampler", "h"), [("sgld", 1.0), ("sgld", 3.5), ("sghmc", 3.0), ("user_block", 3.5)]
)
def test_biases_are_those_against_exact_draws(exact, sampler, h):
    with pytest.warns(StepSizeWarning, match="step and spread of predictions: standard deviat"):
        model = fitted(noise="common", sampler=sampler, step_size=h)
    found = model.diagnostics_
    ours, theirs = (m.predict_std_components(PAIRS)[0] for m in (model, exact))
    assert found["sd_bias"] == pytest.approx(np.sqrt((ours**2 / theirs**2).mean()) - 1.0, rel=0.3)
    true = model.noise_std_ / exact.noise_std_ - 1.0
    assert found["noise_ratio"] == pytest.approx(true, rel=0.25, abs=0.01)
    assert not model.posterior_.check()
    assert "sampler='gibbs'" in repr(model.posterior_.check())


def test_an_automatic_step_is_judged_as_well(exact):
    with pytest.warns(StepSizeWarning, match="step and noise: noise_std is about .* too large"):
        model = fitted(noise="common", sampler="sgld", keep="predictive", n_chains=2)
    moved = (model.noise_std_ - exact.noise_std_) / exact.posterior_["noise_std"].std()
    assert model.diagnostics_["noise_bias"] == pytest.approx(moved, abs=0.4)
    assert 0.5 < model.diagnostics_["noise_bias"] < 1.5


@pytest.mark.parametrize("noise", ["common", "hierarchical", 0.5])
def test_exact_draws_have_no_bias(noise):
    found = fitted(noise=noise, sampler=Stepped(), n_chains=2).diagnostics_
    names = ["sd_bias"] + ["noise_bias"] * (noise != 0.5)
    assert [name for name in found if name.endswith("_bias")] == names
    for name in names:
        assert abs(found[name]) < 4.0 * found[f"{name}_mcse"] < 0.5


def test_exact_samplers_are_not_examined(exact):
    assert "sd_bias" not in exact.diagnostics_
    assert len(places(Gibbs(), 4, 1000, 5000)) == 0


def test_draws_are_the_same_without_an_examination(monkeypatch):
    options = {"sampler": "sgld", "n_draws": 10, "thin": 2}
    before = quietly(**options)
    monkeypatch.setattr(setups, "places", lambda *_: np.empty(0, int))
    after = quietly(**options)
    assert "sd_bias" in before.diagnostics_
    assert "sd_bias" not in after.diagnostics_
    np.testing.assert_array_equal(before.draws_["F"], after.draws_["F"])


def test_examined_draws_take_a_tenth_of_the_time():
    sampler = Stepped()
    assert len(places(sampler, 1, 1000, 2000)) == 100
    assert len(places(sampler, 4, 1000, 2000)) == 25
    assert len(places(sampler, 1, 300, 320)) == 24  # four sweeps each, a third of a pass
    assert places(sampler, 1, 100, 110)[[0, -1]].tolist() == [0, 99]
    assert len(places(sampler, 1, 1, 20)) == 1


def test_biases_and_their_errors():
    rng, sizes, errors = np.random.default_rng(0), (2, 50, 40), []
    noise = rng.normal(0.5, 0.01, size=(2, 400))
    for _ in range(40):
        after = rng.standard_normal(sizes)
        before = 1.2 * (after + 0.5 * rng.standard_normal(sizes)) / np.sqrt(1.25)
        change = 0.02 + 0.01 * rng.standard_normal(sizes[:2])
        misfits = np.stack([change, np.zeros(sizes[:2])], axis=-1)
        found = biases(np.stack([before, after], axis=2), misfits, noise)
        truth = {"sd_bias": 0.2, "noise_bias": 0.02 * noise.mean() / noise.std()}
        errors.append([(found[k] - v) / found[f"{k}_mcse"] for k, v in truth.items()])
    assert np.all(np.abs(np.mean(errors, axis=0)) < 0.6)
    assert np.all(np.abs(np.log(np.std(errors, axis=0))) < 0.4)
    assert biases(np.ones((1, 1, 2, 5)), np.ones((1, 1, 2)), noise) == {}
    assert biases(np.ones((1, 9, 2, 5)), np.ones((1, 9, 2)), noise) == {}


def test_a_negligible_bias_of_the_noise_is_a_note():
    rng = np.random.default_rng(0)
    noise, probes = rng.normal(size=(2, 100)), rng.normal(size=(2, 100, 50))
    found = {"noise_bias": 3.0, "noise_bias_mcse": 0.1}

    def judged(share):
        evidence = found | {"noise_ratio": share}
        return FactorPosterior(noise, noise, probes, {}, evidence).check()

    assert judged(0.009)
    assert judged(0.009).findings[0].is_note
    assert not judged(-0.011)


def test_standard_deviations_may_be_too_small():
    rng = np.random.default_rng(0)
    noise, probes = rng.normal(size=(2, 100)), rng.normal(size=(2, 100, 50))
    check = FactorPosterior(noise, noise, probes, {}, {"sd_bias": -0.2, "sd_bias_mcse": 0.03})
    said = "standard deviations are about 20% too small, the limit is 15%"
    assert said in check.check().findings[0].text
