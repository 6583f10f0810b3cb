"""Means of class probabilities, beside SciPy's functions of one number at a time."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayes_sg.models.probabilities import mean_probabilities


@pytest.mark.parametrize("size", [1e-12, 0.1, 1.0, 30.0, 300.0])
@pytest.mark.parametrize("shift", [0.0, -40.0, 40.0, -600.0])
def test_two_classes_to_full_relative_precision(size, shift):
    eta = shift + size * np.random.default_rng(0).normal(size=(7, 1001))
    found = mean_probabilities(eta[:, :, None], None)
    # x - k log 2 is rounded as x is: e^x has the relative error of some |x| units of rounding
    assert np.allclose(found[:, 1], expit(eta).mean(axis=1), rtol=1e-13, atol=1e-300)
    assert np.allclose(found[:, 0], expit(-eta).mean(axis=1), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("eta", [0.0, -0.0, 1e-300, 708.5, -708.5, 1e4, -1e4, 1e300, -1e300])
def test_single_numbers(eta):
    found = mean_probabilities(np.full((1, 1, 1), eta), None)[0]
    assert np.allclose(found, expit([-eta, eta]), rtol=1e-12, atol=1e-307)
    assert abs(found.sum() - 1.0) < 1e-15


def test_what_is_not_a_number_stays_so():
    assert np.isnan(mean_probabilities(np.array([[[1.0], [np.nan], [-2.0]]]), None)).all()


def test_weights_count():
    rng = np.random.default_rng(1)
    eta, weights = rng.normal(size=(3, 8)), np.array([0.0, 1.0, 2.0, -0.5, 3.0, 1.0, 0.5, 1.0])
    found = mean_probabilities(eta[:, :, None], weights)
    assert np.allclose(found[:, 1], expit(eta) @ weights / weights.sum(), rtol=1e-13)
    assert np.allclose(found.sum(axis=1), 1.0, rtol=1e-14)


def test_several_classes():
    eta = np.random.default_rng(2).normal(size=(4, 50, 3))
    assert np.allclose(mean_probabilities(eta, None), softmax(eta, axis=-1).mean(axis=1))
