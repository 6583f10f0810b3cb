"""Effective sample sizes and Monte Carlo errors: what they must not depend on."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skbayes_sg.diagnostics import convergence


@pytest.mark.parametrize("unit", [1e-150, 1e100, 1e150])
@pytest.mark.parametrize("name", ["ess_bulk", "ess_mean", "ess_least", "rhat"])
def test_units_whose_fourth_powers_overflow(name, unit):
    draws = np.random.default_rng(0).standard_t(5, size=(4, 500, 2))
    measured = getattr(convergence, name)
    assert np.allclose(measured(draws * [1.0, unit]), measured(draws), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-150, 1e100, 1e150])
@pytest.mark.parametrize("name", ["mcse_mean", "mcse_sd"])
def test_errors_have_the_units_of_the_draws(name, unit):
    draws = np.random.default_rng(0).standard_t(5, size=(4, 500, 2))
    measured, units = getattr(convergence, name), np.array([1.0, unit])
    assert np.allclose(measured(draws * units) / units, measured(draws), rtol=1e-8)


@pytest.mark.parametrize("shape", [(4, 1000), (2, 7), (1, 13), (4, 99, 3)])
def test_autocovariances_are_those_of_arviz(shape):
    # Ours is of the same numbers, without a change of the filters of warnings.
    draws = np.random.default_rng(0).normal(size=shape)
    expected = array_stats.autocov(draws, axis=1)
    np.testing.assert_array_equal(convergence._stats().autocov(draws, axis=1), expected)
