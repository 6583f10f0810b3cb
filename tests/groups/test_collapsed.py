"""The collapsed coordinates: the change of variables and the derivatives."""

import numpy as np
import pytest
from group_tables import EXTRAS, problem_of
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.groups import covariance
from skbayes_sg.groups.collapsed import CollapsedRows, Factor, Reference, Workspace
from skbayes_sg.groups.covariance import n_scales
from skbayes_sg.kernels.layout import FACT_WEIGHT
from skbayes_sg.models import Logistic
from skbayes_sg.priors.table import prior_value

KINDS = pytest.mark.parametrize("kind", EXTRAS, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


def factor_of(problem, k=0, seed=0):
    """A `Factor` at a random reference, and a random state (θ, ψ, ζ, effects)."""
    rng = np.random.default_rng(seed)
    rows, D = CollapsedRows(problem), problem.target.n_parameters
    shapes = list(zip(problem.sizes, problem.widths, strict=True))
    reference = Reference(
        rows, 0.3 * rng.standard_normal(D), [0.5 * rng.standard_normal(own) for own in shapes]
    )
    u = [0.5 * rng.standard_normal(own) for own in shapes]
    factor = Factor(reference, k, u, Workspace(rows))
    psi = 0.5 * rng.standard_normal(n_scales(shapes[k][1])) - 0.3
    return factor, 0.4 * rng.standard_normal(D), psi, rng.standard_normal(shapes[k]), u


CASES = pytest.mark.parametrize(
    ("k", "slopes"), [(0, [[], []]), (1, [[], []]), (0, [[1], []]), (1, [[0], [0, 1]])],
    ids=["first", "second", "a slope", "two slopes"],
)  # fmt: skip


@KINDS
@CASES
def test_the_gradient_is_that_of_differences(kind, k, slopes):
    problem = problem_of(kind, sizes=(7, 4), slopes=slopes)
    factor, theta, psi, zeta, _ = factor_of(problem, k)
    x, D = np.r_[theta, psi], len(theta)
    _, g = factor.potential(theta, psi, zeta)
    for j in range(len(x)):
        ends = [x + sign * 1e-5 * np.eye(len(x))[j] for sign in (1.0, -1.0)]
        up, down = (factor.potential(end[:D], end[D:], zeta)[0] for end in ends)
        assert np.isclose((up - down) / 2e-5, g[j], rtol=1e-6, atol=1e-6)


@KINDS
@CASES
def test_the_potential_is_that_of_the_joint_law_and_of_the_volume(kind, k, slopes):
    factor, theta, psi, zeta, u = factor_of(problem_of(kind, sizes=(7, 4), slopes=slopes), k)
    problem = factor.rows.problem  # its rows are sorted
    target, q = problem.target, problem.widths[k]

    def naive(theta, psi, zeta):
        """The determinant of the map from ζ is that of differences."""
        own, n = list(u), problem.n_coefficients
        own[k] = factor.u_of(theta, psi, zeta)
        eta = np.empty((target.n_rows, target.model.n_predictors))
        eta[:, 0] = problem.design @ theta[:n]
        for j, columns in enumerate(problem.slopes):
            Z = np.column_stack([np.ones(target.n_rows), problem.design[:, columns]])
            eta[:, 0] += (Z * own[j][problem.codes[:, j]]).sum(axis=1)
        eta[:, 1:] = theta[n:]
        value = target.model.loss(target.data.facts, np.arange(len(eta)), 0, len(eta), eta)
        C, log_p, _ = covariance.factor_of(psi[:q], psi[q:])
        value -= stats.multivariate_normal.logpdf(own[k], np.zeros(q), C @ C.T).sum()
        for level in range(len(zeta)):
            steps = [factor.u_of(theta, psi, zeta + np.eye(q)[j])[level] for j in range(q)]
            value -= np.linalg.slogdet(np.array(steps) - own[k][level])[1]
        value += prior_value(np.repeat(problem.scales[k : k + 1], q, axis=0), psi[:q]) - log_p
        return value + prior_value(target.prior, theta)

    found = (
        factor.potential(theta, psi, zeta)[0] - factor.potential(0.9 * theta, psi + 0.4, zeta)[0]
    )
    wanted = naive(theta, psi, zeta) - naive(0.9 * theta, psi + 0.4, zeta)
    assert np.isclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("slopes", [[[]], [[0, 1]]], ids=["none", "two"])
def test_zeta_and_u_are_inverse_and_rows_are_summed(slopes):
    factor, theta, psi, zeta, _ = factor_of(problem_of(Logistic, n=700, sizes=(3,), slopes=slopes))
    problem = factor.rows.problem
    u = factor.u_of(theta, psi, zeta)
    np.testing.assert_allclose(factor.zeta_of(theta, psi, u), zeta, atol=1e-12)
    losses = factor.losses(theta, u, u + 0.5)
    facts, n = problem.target.data.facts, problem.n_coefficients
    Z = np.column_stack([np.ones(700), problem.design[:, slopes[0]]])
    for shift, column in ((0.5, 1), (0.0, 0)):
        eta = problem.design @ theta[:n] + (Z * (u + shift)[problem.codes[:, 0]]).sum(axis=1)
        rows = facts[:, FACT_WEIGHT] * (np.logaddexp(0.0, eta) - facts[:, 0] * eta)
        wanted = np.bincount(problem.codes[:, 0], rows)
        np.testing.assert_allclose(losses[:, column], wanted, rtol=1e-10)
    state = factor.state(theta, u, losses[:, 0].sum())
    residuals = facts[:, FACT_WEIGHT] * (1.0 / (1.0 + np.exp(-eta)) - facts[:, 0])
    np.testing.assert_allclose(state.residuals, residuals, atol=1e-12)
    fresh, known = factor.potential(theta, psi, zeta), factor.potential(theta, psi, zeta, state)
    np.testing.assert_allclose(known[0], fresh[0])
    np.testing.assert_allclose(known[1], fresh[1], atol=1e-9)


@pytest.mark.parametrize("slopes", [[[]], [[0]]], ids=["none", "one"])
def test_proposals_come_with_the_ratio_of_their_densities(slopes):
    problem = problem_of(Logistic, n=300, sizes=(40,), slopes=slopes)
    factor, theta, psi, _, u = factor_of(problem)
    share, wider, broad = 0.5, 1.1, 2.0
    rng = np.random.default_rng(0)
    proposed, gain = factor.proposals(theta, psi, u[0], rng, (share, wider, broad))
    q, D = u[0].shape[1], factor.S.shape[2]
    Sigma = np.linalg.inv(covariance.Covariance(psi, q).omega)
    for level in range(40):
        P = factor.H[level] + np.linalg.inv(Sigma)
        m = np.linalg.solve(P, factor.t[level] - factor.S[level] @ theta[:D])
        near = stats.multivariate_normal(m, wider**2 * np.linalg.inv(P))
        far = stats.multivariate_normal(m, broad**2 * Sigma)
        wanted = 0.0
        for sign, place in ((1.0, proposed[level]), (-1.0, u[0][level])):
            density = share * near.pdf(place) + (1.0 - share) * far.pdf(place)
            prior = stats.multivariate_normal(np.zeros(q), Sigma).logpdf(place)
            wanted += sign * (prior - np.log(density))
        assert np.isclose(gain[level], wanted, atol=1e-8)
    assert np.unique(gain).size == 40
