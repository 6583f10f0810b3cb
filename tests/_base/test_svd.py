"""Singular values where the faster algorithm of LAPACK gives up."""

import numpy as np
import pytest
from scipy import linalg

from skbayes_sg import BayesianLinearRegression
from skbayes_sg._base.svd import svd


def test_it_is_that_of_scipy():
    A = np.random.default_rng(0).standard_normal((7, 4))
    for own, other in zip(svd(A), linalg.svd(A), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.fixture
def _divide_and_conquer_fails(monkeypatch):
    """What 18 000 rows of one-hot columns with 263 levels did in a library of BLAS."""
    known = linalg.svd

    def failing(A, *, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise linalg.LinAlgError("SVD did not converge")
        return known(A, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(linalg, "svd", failing)


@pytest.mark.usefixtures("_divide_and_conquer_fails")
def test_another_algorithm_takes_over():
    A = np.random.default_rng(0).standard_normal((7, 4))
    U, s, Vt = svd(A, full_matrices=False, check_finite=False)
    np.testing.assert_allclose((U * s) @ Vt, A, atol=1e-14)


@pytest.mark.usefixtures("_divide_and_conquer_fails")
def test_a_fit_does_not_depend_on_it():
    rng = np.random.default_rng(0)
    X = np.eye(5)[rng.integers(0, 5, 60)]
    model = BayesianLinearRegression(n_draws=50, random_state=0).fit(
        X, X[:, 0] + rng.normal(size=60)
    )
    assert model.sampler_ == "exact"
