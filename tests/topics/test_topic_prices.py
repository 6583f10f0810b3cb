"""The prices of topic models that are told before they run."""

import numpy as np
import pytest

from skbayes_sg import BayesianLDA
from skbayes_sg.topics import sampling

COUNTS = np.random.default_rng(0).poisson(0.5, (60, 20))
QUICK = {"n_components": 3, "n_chains": 2, "n_draws": 2, "thin": 1, "n_warmup": 4}


def told_of(X, monkeypatch, **options):
    """The predicted seconds of a fit."""
    told = []
    monkeypatch.setattr(sampling, "warn_if_long", lambda seconds, *_: told.append(seconds))
    BayesianLDA(**QUICK | options, random_state=0).fit(X)
    (seconds,) = told
    return seconds


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Most entries of X")
def test_sweeps_over_tokens_with_weights_have_a_price_of_their_own(monkeypatch):
    n_visits = 2 * COUNTS.sum() * 6  # a count c - 0.1 has as many tokens as c
    weighted = np.where(COUNTS > 0, COUNTS - 0.1, 0.0)
    whole = sampling.VISIT_SECONDS + 3 * sampling.TOPIC_SECONDS
    slow = sampling.WEIGHTED_VISIT_SECONDS + 3 * sampling.WEIGHTED_TOPIC_SECONDS
    assert slow > 10.0 * whole
    assert told_of(COUNTS, monkeypatch) == pytest.approx(n_visits * whole)
    assert told_of(weighted, monkeypatch) == pytest.approx(n_visits * slow)


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Most entries of X")
def test_steps_take_logarithms_at_their_start_only(monkeypatch):
    n_tokens = 2 * COUNTS.sum()
    weighted = np.where(COUNTS > 0, COUNTS - 0.1, 0.0)
    whole = sampling.VISIT_SECONDS + 3 * sampling.TOPIC_SECONDS
    slow = sampling.WEIGHTED_VISIT_SECONDS + 3 * sampling.WEIGHTED_TOPIC_SECONDS
    found = told_of(weighted, monkeypatch, sampler="cir")
    steps = 6 * sampling.VISITS  # a batch is all 60 documents, on which chains start too
    start = sampling.GIBBS_PLAN.n_warmup
    assert found == pytest.approx(n_tokens * (steps * whole + start * slow))
