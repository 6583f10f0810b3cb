"""The collapsed coordinates: the change of variables and the derivatives."""

import numpy as np
import pytest
from collapsed_state import At
from group_tables import EXTRAS, problem_of
from scipy import stats

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.groups import covariance
from skbayes_sg.kernels.layout import FACT_WEIGHT
from skbayes_sg.models import Logistic, Poisson
from skbayes_sg.priors.table import prior_value

KINDS = pytest.mark.parametrize("kind", EXTRAS, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def _like_a_fit():
    with one_blas_thread:
        yield


CASES = pytest.mark.parametrize(
    ("k", "slopes"), [(0, [[], []]), (1, [[], []]), (0, [[1], []]), (1, [[0], [0, 1]])],
    ids=["first", "second", "a slope", "two slopes"],
)  # fmt: skip


@KINDS
@CASES
def test_the_gradient_is_that_of_differences(kind, k, slopes):
    problem = problem_of(kind, sizes=(7, 4), slopes=slopes)
    at = At(problem, k)
    _, g = at.potential()
    for j in range(len(g)):
        ends = [at.x + sign * 1e-5 * np.eye(len(g))[j] for sign in (1.0, -1.0)]
        up, down = (at.potential(end)[0] for end in ends)
        assert np.isclose((up - down) / 2e-5, g[j], rtol=1e-6, atol=1e-6)


@KINDS
@CASES
def test_the_potential_is_that_of_the_joint_law_and_of_the_volume(kind, k, slopes):
    at = At(problem_of(kind, sizes=(7, 4), slopes=slopes), k)
    problem = at.rows.problem  # its rows are sorted
    target, q = problem.target, problem.widths[k]

    def naive(x):
        """The determinant of the map from ζ is that of differences."""
        own, n, theta, psi = list(at.u), problem.n_coefficients, x[: at.D], x[at.D :]
        own[k] = at.effects(x)
        eta = np.empty((target.n_rows, target.model.n_predictors))
        eta[:, 0] = problem.design @ theta[:n]
        for j, columns in enumerate(problem.slopes):
            Z = np.column_stack([np.ones(target.n_rows), problem.design[:, columns]])
            eta[:, 0] += (Z * own[j][problem.codes[:, j]]).sum(axis=1)
        eta[:, 1:] = theta[n:]
        value = target.model.loss(target.data.facts, np.arange(len(eta)), 0, len(eta), eta)
        law = covariance.Covariance(psi, q)
        C, log_p = law.C, law.log_p
        value -= stats.multivariate_normal.logpdf(own[k], np.zeros(q), C @ C.T).sum()
        for level in range(len(at.zeta)):
            steps = [at.effects(x, at.zeta + np.eye(q)[j])[level] for j in range(q)]
            value -= np.linalg.slogdet(np.array(steps) - own[k][level])[1]
        value += prior_value(problem.scales[k], psi[:q]) - log_p
        return value + prior_value(target.prior, theta)

    other = np.concatenate([0.9 * at.x[: at.D], at.x[at.D :] + 0.4])
    found = at.potential()[0] - at.potential(other)[0]
    assert np.isclose(found, naive(at.x) - naive(other), rtol=1e-9)


@pytest.mark.parametrize("slopes", [[[]], [[0, 1]]], ids=["none", "two"])
def test_zeta_and_u_are_inverse_and_rows_are_summed(slopes):
    at = At(problem_of(Logistic, n=700, sizes=(3,), slopes=slopes))
    problem, u = at.rows.problem, at.effects()
    np.testing.assert_allclose(at.whitened(u), at.zeta, atol=1e-12)
    losses = at.losses(u, u + 0.5)
    facts, n = problem.target.data.facts, problem.n_coefficients
    Z = np.column_stack([np.ones(700), problem.design[:, slopes[0]]])
    for shift, column in ((0.5, 1), (0.0, 0)):
        eta = problem.design @ at.x[:n] + (Z * (u + shift)[problem.codes[:, 0]]).sum(axis=1)
        rows = facts[:, FACT_WEIGHT] * (np.logaddexp(0.0, eta) - facts[:, 0] * eta)
        wanted = np.bincount(problem.codes[:, 0], rows)
        np.testing.assert_allclose(losses[:, column], wanted, rtol=1e-10)
    wanted = facts[:, FACT_WEIGHT] * (1.0 / (1.0 + np.exp(-eta)) - facts[:, 0])
    fresh = at.potential()
    np.testing.assert_allclose(at.residuals(u), wanted, atol=1e-12)
    known = at.potential(known=losses[:, 0].sum())
    np.testing.assert_allclose(known[0], fresh[0])
    np.testing.assert_allclose(known[1], fresh[1], atol=1e-9)


def test_trajectories_are_reversible_and_keep_the_energy():
    at = At(problem_of(Poisson, sizes=(7, 4), slopes=[[1], []]))
    momentum = 0.3 * np.random.default_rng(4).standard_normal(len(at.x))
    errors, before = [], at.potential()[0] + 0.5 * momentum @ momentum
    for n_steps in (4, 8, 16):
        x, p = at.trajectory(at.x, (n_steps, 0.02 / n_steps), momentum)
        assert np.abs(x - at.x).max() > 0.02
        errors.append(at.potential(x)[0] + 0.5 * p @ p - before)
        back, p = at.trajectory(x, (n_steps, 0.02 / n_steps), -p)
        np.testing.assert_allclose(back, at.x, atol=1e-11)
        np.testing.assert_allclose(-p, momentum, atol=1e-11)
    ratios = np.divide(errors[:-1], errors[1:])
    np.testing.assert_allclose(ratios, 4.0, rtol=0.1)  # an error of second order


@pytest.mark.parametrize(("axis", "sign"), [(0, 1.0), (0, -1.0), (3, -1.0)])
def test_trajectories_to_where_the_potential_is_not_finite_are_rejected(axis, sign):
    """Counts overflow, or the scale of the effects is zero, at an end that is not too far away."""
    at = At(problem_of(Poisson, sizes=(7,), offset=5.0))
    momentum, options = sign * 9e4 * np.eye(len(at.x))[axis], {"width": 2.0 if axis == 3 else 0.2}
    end, _ = at.trajectory(at.x, (1, 0.01), momentum, **options)
    assert np.abs(end - at.x).max() > 100.0
    x, _ = at.trajectory(at.x, (1, 0.01), momentum, accept_uniform=0.0, **options)
    assert at.probability == 0.0
    np.testing.assert_array_equal(x, at.x)


@pytest.mark.parametrize("slopes", [[[]], [[0]]], ids=["none", "one"])
def test_proposals_come_with_the_ratio_of_their_densities(slopes):
    problem = problem_of(Logistic, n=300, sizes=(40,), slopes=slopes)
    at, (share, wider, broad) = At(problem), (0.5, 1.1, 2.0)
    proposed, gain = at.proposed((share, wider, broad))
    factor, u, q, D = at.factor, at.u, at.u[0].shape[1], at.factor.S.shape[2]
    Sigma = np.linalg.inv(covariance.Covariance(at.x[at.D :], q).omega)
    for level in range(40):
        P = factor.H[level] + np.linalg.inv(Sigma)
        m = np.linalg.solve(P, factor.t[level] - factor.S[level] @ at.x[:D])
        near = stats.multivariate_normal(m, wider**2 * np.linalg.inv(P))
        far = stats.multivariate_normal(m, broad**2 * Sigma)
        wanted = 0.0
        for sign, place in ((1.0, proposed[level]), (-1.0, u[0][level])):
            density = share * near.pdf(place) + (1.0 - share) * far.pdf(place)
            prior = stats.multivariate_normal(np.zeros(q), Sigma).logpdf(place)
            wanted += sign * (prior - np.log(density))
        assert np.isclose(gain[level], wanted, atol=1e-8)
    assert np.unique(gain).size == 40
