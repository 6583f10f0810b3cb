"""Likelihoods of users that are written in torch."""

import warnings

import numba
import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from skbayes_sg.custom import CustomDensity

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (80, 1))
y = 1.0 + 0.5 * X[:, 0] + 0.3 * RNG.standard_normal(80)
LINE = {"level": "normal", "slope": "normal", "sigma": "half_normal"}


def line(theta, rows):
    z = (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / theta[2]
    return -0.5 * z * z - torch.log(theta[2])


def made(log_density):
    options = {"backend": "torch", "n_draws": 50, "n_chains": 2, "random_state": 0}
    return CustomDensity(log_density, LINE, **options)


def test_numba_says_nothing_of_what_it_compiles():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made(line).fit(X, y)
    assert not [w for w in said if issubclass(w.category, numba.errors.NumbaWarning)]


@pytest.mark.parametrize(
    ("slip", "text"),
    [
        (torch.sum, r"log-likelihood of each of these rows; it has returned the shape \(\)"),
        (lambda values: values[:, None], r"it has returned the shape \(80, 1\)"),
        (lambda values: values.detach().numpy(), "an object of type ndarray"),
        (torch.detach, "gradient by torch of CustomDensity .* hides parameters from it"),
    ],
)
def test_slips_are_told(slip, text):
    with pytest.raises(ValueError, match=text):
        made(lambda theta, rows: slip(line(theta, rows))).fit(X, y)


def test_a_parameter_that_is_hidden_in_part_is_named():
    def hiding(theta, rows):
        z = (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / theta[2].item()
        return -0.5 * z * z - torch.log(theta[2])

    with pytest.raises(ValueError, match="the derivative in sigma is"):
        made(hiding).fit(X, y)
