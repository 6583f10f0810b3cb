"""Extreme eigenvalues of operators, also of those that overflow."""

import numpy as np
import pytest

from skbayes_sg.geometry.eigenvalues import extreme_eigenvalue


@pytest.mark.parametrize(("which", "expected"), [("LA", 40.0), ("SA", 1.0)])
def test_of_a_diagonal(which, expected):
    diagonal = np.arange(1.0, 41.0)
    assert extreme_eigenvalue(lambda v: diagonal * v, 40, which) == pytest.approx(
        expected, rel=0.01
    )


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("which", "expected"), [("LA", np.inf), ("SA", 0.0)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_products_that_overflow(which, expected, value):
    assert extreme_eigenvalue(lambda v: value * v, 40, which) == expected
