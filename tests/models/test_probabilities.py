"""Means of class probabilities, beside SciPy's functions of one number at a time."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logsumexp, softmax

from skbayes_sg.models.class_likelihood import class_log_likelihood
from skbayes_sg.models.probabilities import (
    class_probabilities,
    log_mean_probabilities,
    mean_probabilities,
)


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


def with_first(eta):
    return np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)


@pytest.mark.parametrize("n_classes", [3, 7, 40])
@pytest.mark.parametrize("size", [1e-12, 1.0, 30.0, 600.0, 1e5])
def test_several_classes(n_classes, size):
    rng = np.random.default_rng(2)  # 300 draws are more than a block
    eta = size * rng.normal(size=(4, 300, n_classes - 1)) + rng.normal(size=(4, 300, 1)) * size
    weights = rng.uniform(size=300)
    each = softmax(with_first(eta), axis=-1)
    assert np.allclose(class_probabilities(eta), each, rtol=1e-11, atol=1e-300)
    for w in (None, weights):
        expected = np.average(each, axis=1, weights=w)
        found = mean_probabilities(eta, w)
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-300)
        assert np.allclose(found.sum(axis=1), 1.0, rtol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("size", [1.0, 200.0, 1e5])
def test_logarithms(n_classes, size):
    rng = np.random.default_rng(3)
    eta = size * rng.normal(size=(50, 20, n_classes - 1)) + size * rng.normal(size=(50, 1, 1))
    weights = rng.uniform(size=20)
    for w in (None, weights):
        b = np.ones(20) if w is None else w
        logs = log_softmax(with_first(eta), axis=-1)
        expected = logsumexp(logs, axis=1, b=(b / b.sum())[:, None])
        found = log_mean_probabilities(eta, w)
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)
        assert (found.min() < -1e3) == (size == 1e5)


def test_several_classes_that_are_not_numbers():
    eta = np.zeros((2, 5, 2))
    eta[0, 2, 1] = np.nan
    found = mean_probabilities(eta, None)
    assert np.isnan(found[0]).all()
    assert np.allclose(found[1], 1.0 / 3.0)


def test_draws_in_any_order_of_memory():
    eta = np.random.default_rng(4).normal(size=(3, 2, 7)).transpose(0, 2, 1)
    expected = softmax(with_first(eta), axis=-1)
    assert np.allclose(class_probabilities(eta), expected, rtol=1e-13)
    assert np.allclose(mean_probabilities(eta, None), expected.mean(axis=1), rtol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("size", [1e-12, 1.0, 30.0, 1e3, 1e5])
def test_log_likelihoods_of_labels(n_classes, size):
    rng = np.random.default_rng(5)
    eta, codes = size * rng.normal(size=(40, 9, n_classes - 1)), rng.integers(0, n_classes, 40)
    expected = log_softmax(with_first(eta), axis=-1)[np.arange(40), :, codes]
    found = class_log_likelihood(eta, codes)
    rounding = 2e-14 + 2e-16 * np.abs(eta).max()
    assert np.allclose(found, expected, rtol=1e-12, atol=rounding)
