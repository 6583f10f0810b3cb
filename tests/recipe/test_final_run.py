"""Draws of chains, in φ, and outcomes, in θ, are two types."""

import dataclasses

import numpy as np
import pytest
from scenes import make_scene

from skbayes_sg.recipe.final_run import FinalDraws, outcome_of


@pytest.fixture
def frame():
    return make_scene("logistic").frame(kind="hessian")


def draws_of(frame, slopes=True):
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((2, 5, frame.target.n_parameters))
    found = {"thin": 1}
    slopes = rng.standard_normal(phi.shape) if slopes else None
    return FinalDraws(phi, slopes, None, np.ones((2, 5)), None, found, {"min_ess": 9.0}, "rows")


def test_the_outcome_is_in_the_parameters(frame):
    made = draws_of(frame)
    outcome = outcome_of(made, frame, {"coupled_distance": 0.1}, {"inflation": 0.2})
    np.testing.assert_array_equal(outcome.draws, frame.theta(made.phi))
    scores = frame.scores(made.slopes)
    np.testing.assert_array_equal(outcome.scores, scores.astype(np.float32))
    assert outcome.diagnostics == {"min_ess": 9.0, "coupled_distance": 0.1}
    assert outcome.evidence == {"inflation": 0.2}
    assert outcome_of(draws_of(frame, slopes=False), frame).scores is None


def test_nothing_is_changed_in_place(frame):
    made, same = draws_of(frame), draws_of(frame)
    outcome = outcome_of(made, frame, {"coupled_distance": 0.1})
    np.testing.assert_array_equal(made.phi, same.phi)
    np.testing.assert_array_equal(made.slopes, same.slopes)
    assert made.diagnostics == same.diagnostics
    for held in (made, outcome):
        with pytest.raises(dataclasses.FrozenInstanceError):
            held.weights = np.ones(5)
