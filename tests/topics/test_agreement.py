"""Whether chains of topics agree: what is measured, and that fits say what check says."""

import warnings

import numpy as np
import pytest

from skbayes_sg import BayesianLDA
from skbayes_sg.diagnostics import convergence
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.topics import agreement
from skbayes_sg.topics.agreement import judgements, rhat_of_topics


def chains_of_counts(rng, shift=0.0, C=4, S=6, K=2, V=400, tokens=4000.0):
    """Conditional means and masses of φ, whose chains may be around different counts."""
    base = tokens * rng.dirichlet(np.full(V, 0.3), K)
    own = base + shift * tokens * rng.dirichlet(np.full(V, 0.3), (C, 1, 1))
    parameters = rng.gamma(own * np.ones((C, S, K, V)) + 1e-9) + 0.01
    masses = parameters.sum(axis=-1)
    return parameters / masses[..., None], masses, parameters


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_rhat_of_topics_is_that_of_draws_summed_over_words(shift):
    """Variances of φ itself within and between chains, of many draws of φ for each state of z."""
    rng = np.random.default_rng(3)
    conditional, masses, parameters = chains_of_counts(rng, shift)
    S, repeats = conditional.shape[1], 300
    draws = np.empty((repeats, *conditional.shape))
    for where in np.ndindex(masses.shape):
        draws[(slice(None), *where)] = rng.dirichlet(parameters[where], repeats)
    within_states = draws.var(axis=0, ddof=1).mean(axis=(0, 1)).sum(axis=1)
    states = draws.mean(axis=0)  # its variances have a share of those within states
    of_states = states.var(axis=1, ddof=1).mean(axis=0).sum(axis=1) - within_states / repeats
    between = states.mean(axis=1).var(axis=0, ddof=1).sum(axis=1) - within_states / repeats / S
    expected = np.sqrt(1.0 + (between - of_states / S) / (of_states + within_states))
    assert rhat_of_topics(conditional, masses) == pytest.approx(expected, rel=0.02)
    assert (expected > agreement.LIMIT).all() == (shift == 0.3)


def test_few_draws_that_agree_have_an_rhat_near_one():
    rng = np.random.default_rng(0)
    found = [rhat_of_topics(*chains_of_counts(rng)[:2]) for _ in range(50)]
    assert np.abs(np.array(found) - 1.0).max() < 0.05


@pytest.mark.parametrize("shape", [(1, 6), (4, 1)])
def test_a_single_chain_or_draw_has_no_rhat(shape):
    conditional, masses, _ = chains_of_counts(np.random.default_rng(0), C=shape[0], S=shape[1])
    assert np.isnan(rhat_of_topics(conditional, masses)).all()


@pytest.mark.slow
def test_topics_of_a_single_word_agree():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(rhat_of_topics(np.ones((4, 5, 2, 1)), np.ones((4, 5, 2))), np.ones(2))
        assert BayesianLDA(2, random_state=0).fit(np.ones((20, 1), int)).posterior_.check()


def excess(levels, evidence=None):
    """By how much each judgement exceeds its limit, as a dict."""
    of = judgements(levels, {"topics_rhat": 1.0} | (evidence or {}))
    return {judgement.name: judgement.value / judgement.limit for judgement in of}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("S", "repeats"), [(12, 300), pytest.param(5, 5000, marks=pytest.mark.slow), (50, 300)]
)
def test_few_levels_of_chains_that_agree_raise_no_alarm(S, repeats):
    rng = np.random.default_rng(0)
    name = "probability of a token"
    alarms = [excess(rng.normal(size=(4, S)))[name] > 1.0 for _ in range(repeats)]
    assert sum(alarms) <= max(1, repeats // 1000)  # 0.5 and 0.03 expected
    assert excess(rng.normal(size=(4, S)) + 9.0 * np.eye(4)[:, :1])[name] > 1.0


@pytest.mark.parametrize("shape", [(4, 1), (1, 5), (1, 1)])
def test_levels_of_a_single_chain_or_draw_cannot_be_judged(shape):
    assert np.isnan(excess(np.random.default_rng(0).normal(size=shape))["probability of a token"])
    assert np.isnan(excess(np.zeros((4, 5)))["probability of a token"])


def test_many_levels_are_judged_by_the_usual_limits():
    rng = np.random.default_rng(1)
    levels, name = rng.normal(size=(4, 200)), "probability of a token"
    assert excess(levels)[name] < 1.0
    apart = levels + np.array([0.0, 0.0, 1.0, 1.0])[:, None]
    assert excess(apart)[name] == pytest.approx(
        max(convergence.rhat(apart) / 1.05, 80.0 / convergence.ess_bulk(apart))
    )
    assert excess(apart)[name] > 1.0


def test_streams_are_judged_by_their_topics_alone():
    levels = np.random.default_rng(0).normal(size=(4, 5)) + 9.0 * np.eye(4)[:, :1]
    found = excess(levels, {"one_pass": 1.0, "topics_rhat": 1.2})
    assert found == {"R-hat of topics": 1.2 / agreement.STREAM_LIMIT}
    assert excess(levels, {"topics_rhat": 1.2})["R-hat of topics"] == pytest.approx(1.2 / 1.1)
    assert excess(levels, {"anchor_error": 0.2})["centre"] == 2.0


def corpus(seed):
    """Documents of a few topics, or of none where the seed is odd, in which chains differ."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return rng.poisson(rng.gamma(0.3, 1.0, (40, 30)) * 100.0)
    topics = rng.dirichlet(np.full(120, 0.1), 3)
    return rng.multinomial(50, rng.dirichlet(np.full(3, 0.1), 250) @ topics)


@pytest.mark.slow_except("0-options3")
@pytest.mark.parametrize("options", [{}, {"n_draws": 12}, {"sampler": "cir"}, {"stream": True}])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_what_check_finds_the_fit_warns_of(options, seed):
    """And nothing else: a fit without a warning is trustworthy."""
    options = dict(options)
    how = "partial_fit" if options.pop("stream", False) else "fit"
    model = BayesianLDA(3, random_state=seed, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplerConvergenceWarning)
        getattr(model, how)(corpus(seed))
    check = model.posterior_.check()
    assert len(caught) == (not check)
    assert all(finding.name in str(caught[0].message) for finding in check.findings)
    assert all(one.filename == __file__ for one in caught)
    if seed % 2 == 0:
        assert check
