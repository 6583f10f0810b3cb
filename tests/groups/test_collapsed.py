"""The collapsed coordinates: the change of variables and the derivatives."""

import numpy as np
import pytest
from group_tables import EXTRAS, problem_of
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.groups.collapsed import CollapsedRows, Factor, Reference, Workspace
from skbayes_sg.kernels.layout import FACT_WEIGHT
from skbayes_sg.models import Logistic
from skbayes_sg.priors.table import prior_value

KINDS = pytest.mark.parametrize("kind", EXTRAS, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def factor_of(problem, k=0, seed=0):
    """A `Factor` at a random reference, and a random state (θ, log τ, z, effects)."""
    rng = np.random.default_rng(seed)
    rows, D = CollapsedRows(problem), problem.target.n_parameters
    reference = Reference(
        rows, 0.3 * rng.standard_normal(D), [0.5 * rng.standard_normal(L) for L in problem.sizes]
    )
    u = [0.5 * rng.standard_normal(L) for L in problem.sizes]
    factor = Factor(reference, k, u, Workspace(rows))
    return factor, 0.4 * rng.standard_normal(D), -0.3, rng.standard_normal(problem.sizes[k]), u


@KINDS
@pytest.mark.parametrize("k", [0, 1])
def test_the_gradient_is_that_of_differences(kind, k):
    factor, theta, log_tau, z, _ = factor_of(problem_of(kind, sizes=(7, 4)), k)
    x = np.r_[theta, log_tau]
    _, g = factor.potential(theta, log_tau, z)
    for j in range(len(x)):
        for h in (1e-5,):
            ends = [x + sign * h * np.eye(len(x))[j] for sign in (1.0, -1.0)]
            up, down = (factor.potential(end[:-1], end[-1], z)[0] for end in ends)
            assert np.isclose((up - down) / (2.0 * h), g[j], rtol=1e-6, atol=1e-6)


@KINDS
def test_the_potential_is_that_of_the_joint_law_and_of_the_volume(kind):
    factor, theta, log_tau, z, u = factor_of(problem_of(kind, sizes=(7, 4)), 1)
    problem = factor.rows.problem  # its rows are sorted
    target = problem.target

    def naive(theta, log_tau, z):
        own = [u[0], factor.u_of(theta, log_tau, z)]
        n = problem.n_coefficients
        eta = np.empty((target.n_rows, target.model.n_predictors))
        eta[:, 0] = problem.design @ theta[:n]
        eta[:, 0] += sum(own[k][problem.codes[:, k]] for k in range(2))
        eta[:, 1:] = theta[n:]
        loss = target.model.loss(target.data.facts, np.arange(len(eta)), 0, len(eta), eta)
        P = factor.law(theta, log_tau)[1]
        value = loss - stats.norm.logpdf(own[1], 0.0, np.exp(log_tau)).sum()
        value += 0.5 * np.log(P).sum() + prior_value(target.prior, theta)
        return value + prior_value(problem.scales[1:], np.array([log_tau]))

    found = factor.potential(theta, log_tau, z)[0] - factor.potential(0.9 * theta, 0.4, z)[0]
    wanted = naive(theta, log_tau, z) - naive(0.9 * theta, 0.4, z)
    assert np.isclose(found, wanted, rtol=1e-9)


def test_z_and_u_are_inverse_and_losses_are_those_of_the_rows():
    factor, theta, log_tau, z, _ = factor_of(problem_of(Logistic, n=700, sizes=(3,)))
    problem = factor.rows.problem
    u = factor.u_of(theta, log_tau, z)
    np.testing.assert_allclose(factor.z_of(theta, log_tau, u), z, atol=1e-12)
    losses = factor.losses(theta, u, u + 0.5)
    facts, n = problem.target.data.facts, problem.n_coefficients
    for shift, column in ((0.0, 0), (0.5, 1)):
        eta = problem.design @ theta[:n] + (u + shift)[problem.codes[:, 0]]
        rows = facts[:, FACT_WEIGHT] * (np.logaddexp(0.0, eta) - facts[:, 0] * eta)
        wanted = np.bincount(problem.codes[:, 0], rows)
        np.testing.assert_allclose(losses[:, column], wanted, rtol=1e-10)
