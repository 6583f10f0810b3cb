"""Where chains of group effects begin."""

import warnings

import numpy as np
import pytest
from group_tables import problem_of

from skbayes_sg import BayesianNegativeBinomialRegressor
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.groups import start
from skbayes_sg.groups.collapsed import CollapsedRows, Reference
from skbayes_sg.groups.covariance import Covariance
from skbayes_sg.models import Logistic, Robust


def test_a_precision_that_bends_down_keeps_its_size():
    rng = np.random.default_rng(0)
    axes, size = np.linalg.qr(rng.standard_normal((3, 3)))[0], np.array([1.0, 1e3, 1e-3])
    inner = axes @ np.diag([2.0, 0.7, -0.4]) @ axes.T
    unit = np.sqrt(np.abs(np.diag(inner)))
    found = start._positive(inner * np.outer(size, size))
    values = np.linalg.eigvalsh(inner / np.outer(unit, unit))
    own = np.linalg.eigvalsh(found / np.outer(size * unit, size * unit))
    np.testing.assert_allclose(np.sort(own), np.sort(np.abs(values)), rtol=1e-9)
    assert values.min() < 0.0


@pytest.mark.parametrize("slopes", [[[]], [[0]]], ids=["effects", "slopes"])
def test_effects_are_at_most_as_wide_as_their_prior(slopes):
    rows = CollapsedRows(problem_of(Logistic, sizes=(5,), slopes=slopes))
    problem, q = rows.problem, 1 + len(slopes[0])
    own = Covariance(np.random.default_rng(1).standard_normal(q * (q + 1) // 2), q)
    u = np.random.default_rng(2).standard_normal((5, q))
    reference = Reference(rows, np.zeros(problem.target.n_parameters), [u])
    system = start.System(reference, 0, own, problem.target.prior)
    usual = system.squares(u) - u.T @ u
    system.precision = 1e-9 * system.precision
    wide = system.squares(u) - u.T @ u
    np.testing.assert_allclose(wide, 5 * own.C @ own.C.T, rtol=1e-6, atol=1e-9)
    assert (np.linalg.eigvalsh(own.omega @ wide - own.omega @ usual).real > 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [17, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (13, 14)]]
)
def test_overdispersed_counts_with_a_level_in_each_row(seed):
    # The log-likelihood bends down along the dispersion at the first place: the scale of the
    # effects went to e^4.4, and chains began at a dispersion of e^600.
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(21, 2)), np.arange(21)])
    y = rng.poisson(np.exp(X[:, 0] + 0.5 * rng.normal(size=21) - 0.5) * rng.gamma(1.0, size=21))
    model = BayesianNegativeBinomialRegressor(group_effects=[2], n_draws=500, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", SamplerConvergenceWarning)
        model.fit(X, y)
    assert model.posterior_["group_std[x2]"].mean() < 3.0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_noise_is_told_from_effects_that_are_much_larger(tau):
    # Without groups the noise contains the effects, and steps from there stopped early.
    rng, n = np.random.default_rng(1), 3000
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 20, n)
    y = X[:, 0] + tau * rng.normal(size=20)[codes] + 0.01 * rng.standard_t(3, size=n)
    problem = problem_of(Robust, n=n, d=3, sizes=(20,))
    problem.codes[:, 0] = codes
    problem.target = Target(X, y, np.ones(n), Robust(), problem.target.prior)
    found = start.found_start(CollapsedRows(problem))
    assert found.theta[-2] == pytest.approx(np.log(0.01), abs=0.1)
    np.testing.assert_allclose(found.theta[:3], [1.0, 0.0, 0.0], atol=0.01)


def test_a_wide_prior_of_scales_does_not_decide_where_chains_begin():
    """Effects of 1e-6 under the prior HalfNormal(1) are as those of 1 under one of 1e6."""
    found = [
        start.found_start(CollapsedRows(problem_of(Logistic, n=300, scale=scale))).psi[0]
        for scale in (1e2, 1e6)
    ]
    np.testing.assert_allclose(*found, atol=0.1)
