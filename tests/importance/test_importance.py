"""Independent draws with a certificate: exact identities of each part, then laws by quadrature."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from problems import binary
from scipy import integrate, special, stats
from scipy.interpolate import CubicSpline

from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor, Posterior
from skbayes_sg.custom import CustomRegressor
from skbayes_sg.diagnostics import check_draws, convergence
from skbayes_sg.diagnostics.convergence import pareto_smoothed
from skbayes_sg.engine.target import Target
from skbayes_sg.exceptions import SamplerConvergenceWarning
from skbayes_sg.importance import directions, lockstep, sample
from skbayes_sg.importance.certificate import LIGHT, Certificate, certified, resampled
from skbayes_sg.importance.directions import ALIGNED, cluster_directions
from skbayes_sg.importance.fit import fit_proposal
from skbayes_sg.importance.lockstep import Budget, run_lockstep
from skbayes_sg.importance.potential import Potential
from skbayes_sg.importance.proposal import matched_normals
from skbayes_sg.importance.remainders import chosen_rows, covariances, row_laws
from skbayes_sg.importance.sample import CertifiedDraws, certified_draws
from skbayes_sg.importance.warps import Warps, fit_warp, unwarped
from skbayes_sg.models import LinearKnownNoise, Logistic, Poisson, Robust, Softmax
from skbayes_sg.priors import HalfNormal, Laplace, Normal
from skbayes_sg.recipe import independent
from skbayes_sg.recipe.choose import frame_of


def posterior(model, n=60, d=3, prior=None, seed=0, weight=None):
    """A frame in Hessian coordinates of made rows."""
    rng = np.random.default_rng(seed)
    X, K = rng.normal(size=(n, d)), model.n_linear
    y = {
        "Logistic": lambda: (rng.random(n) < special.expit(X[:, 0] - 1.0)).astype(float),
        "Softmax": lambda: rng.integers(0, K, n).astype(float),
        "Poisson": lambda: rng.poisson(np.exp(0.5 * X[:, 0])).astype(float),
        "LinearKnownNoise": lambda: X[:, 0] + rng.normal(size=n),
        "Robust": lambda: X[:, 0] + rng.standard_t(4, n),
    }[type(model).__name__]()
    tables = [(prior or Normal(scale=2.0))._table((K * d,)), Normal(scale=3.0)._table((K,))]
    if model.n_extra:
        tables.append(HalfNormal(scale=2.0)._table((model.n_extra,)))
    weight = np.ones(n) if weight is None else weight(rng, n)
    target = Target(X, y, weight, model, np.concatenate(tables))
    return frame_of(target, "hessian", True, np.random.default_rng(0))


MODELS = [Logistic(), Softmax(3), Poisson(), Robust(), LinearKnownNoise()]
NAMES = [type(model).__name__ for model in MODELS]


def potential_energy(frame, phi):
    """U - U(θ̂) and its gradient in φ, one draw after the other."""
    found = [frame.target.value_and_gradient(theta) for theta in frame.theta(phi)]
    origin, _ = frame.target.value_and_gradient(frame.centre.theta)
    return np.array([v - origin for v, _ in found]), np.array([frame.F.T @ g for _, g in found])


# -- potential ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
@pytest.mark.parametrize(
    "prior", [Normal(scale=2.0), Laplace(scale=0.7)], ids=["normal", "laplace"]
)
def test_all_rows_exact_is_the_posterior(model, prior):
    frame = posterior(model, prior=prior, weight=lambda rng, n: rng.integers(1, 4, n).astype(float))
    phi = np.random.default_rng(1).normal(size=(7, frame.target.n_parameters))
    value, gradient = potential_energy(frame, phi)
    exact = Potential(frame)
    assert np.allclose(exact.values(phi), value, rtol=0.0, atol=1e-9)
    assert np.allclose(exact.gradients(phi), gradient, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_rows_that_are_not_exact_are_quadratic(model):
    """Value, gradient and curvature at the centre are those of all rows, whichever are exact."""
    frame = posterior(model)
    some, D = Potential(frame, np.array([3, 8, 20, 21])), frame.target.n_parameters
    units, step = np.eye(D), 1e-4
    origin = np.zeros((1, D))
    _, gradient = potential_energy(frame, origin)
    assert abs(some.values(origin)[0]) < 1e-12
    assert np.allclose(some.gradients(origin), gradient, atol=1e-9)
    H = (some.gradients(step * units) - some.gradients(-step * units)) / (2.0 * step)
    assert np.allclose(H, np.eye(D), atol=1e-5)
    # Far from the centre it is not the posterior, except for a Gaussian one.
    phi = np.full((1, D), 2.0)
    far = abs(some.values(phi) - potential_energy(frame, phi)[0])[0]
    assert far < 1e-9 if isinstance(model, LinearKnownNoise) else far > 1e-3


def test_a_correction_makes_it_exact_along_an_axis():
    frame = posterior(Logistic())
    some, D = Potential(frame, np.array([3, 8, 20, 21])), frame.target.n_parameters
    axis, places = np.eye(D)[1], np.linspace(-4.0, 4.0, 101)
    on_axis = np.multiply.outer(places, axis)
    values, slopes = potential_energy(frame, on_axis)
    assert np.abs(some.values(on_axis) - values).max() > 0.1
    some.correct_along(axis, places, values, slopes)
    assert np.allclose(some.values(on_axis), values, atol=1e-9)
    assert np.allclose(some.gradients(on_axis[10:-10]), slopes[10:-10], atol=1e-4)
    between = on_axis[30:70] + 0.03 * axis
    value, slope = potential_energy(frame, between)
    assert np.allclose(some.values(between), value, atol=1e-6)
    assert np.allclose(some.gradients(between), slope, atol=1e-4)
    phi, step = np.random.default_rng(1).normal(size=(6, D)), 1e-5
    phi[0, 1] = 9.0  # beyond the axis' end, from which on the correction stays the same
    for unit, slope in zip(np.eye(D), some.gradients(phi).T, strict=True):
        change = some.values(phi + step * unit) - some.values(phi - step * unit)
        assert np.allclose(slope, change / (2.0 * step), atol=1e-6)


def test_single_precision_is_right_to_a_thousandth():
    frame = posterior(Logistic(), n=5000)
    phi = np.random.default_rng(1).normal(size=(9, 4))
    exact = Potential(frame)
    assert exact.dtype == np.float32
    assert np.abs(exact.values(phi) - potential_energy(frame, phi)[0]).max() < 1e-3


def test_heavy_rows_are_in_double_precision():
    frame = posterior(Logistic(), n=5000, weight=lambda rng, n: np.full(n, 1e4))
    assert Potential(frame).dtype == np.float64


# -- remainders and directions --------------------------------------------------------------------


def test_scores_are_root_mean_squares_by_quadrature():
    frame = posterior(Logistic(), n=6, d=1)
    scores = row_laws(frame)[0][:, 0]
    A = np.column_stack([frame.target.X, np.ones(6)])
    for a, score in zip(A, scores, strict=True):
        width, eta = np.linalg.norm(a @ frame.F), a @ frame.centre.theta
        p = special.expit(eta)

        def square(z, eta=eta, width=width, p=p):
            u = width * z
            r = np.logaddexp(0.0, eta + u) - np.logaddexp(0.0, eta) - p * u
            return (r - 0.5 * p * (1.0 - p) * u**2) ** 2 * stats.norm.pdf(z)

        assert np.isclose(score, np.sqrt(integrate.quad(square, -9.0, 9.0)[0]), rtol=0.03)


@pytest.mark.parametrize("model", MODELS[:3], ids=NAMES[:3])
def test_drifts_are_what_the_average_gradient_is_beyond_that_at_the_centre(model):
    frame = posterior(model, n=100)
    target, (_, drifts) = frame.target, row_laws(frame)
    total = target.row_sum(target.design(np.arange(target.n_rows)), drifts)
    psi = matched_normals(np.random.default_rng(0), 8_000, target.n_parameters)
    average = Potential(frame).gradients(psi).mean(axis=0)  # a normal prior adds only its slope
    at_centre = Potential(frame).gradients(np.zeros((1, target.n_parameters)))[0]
    expected, found = average - at_centre, frame.F.T @ total
    assert np.linalg.norm(expected) > 0.01
    assert np.linalg.norm(found - expected) < 0.1 * np.linalg.norm(expected)


def test_with_drifts_the_quadratic_rows_leave_less():
    frame = posterior(Logistic(), n=2000)
    phi = matched_normals(np.random.default_rng(0), 2000, frame.target.n_parameters)
    proposal = fit_proposal(frame)
    exact, n = proposal.exact.values(phi), len(proposal.hard)
    assert n < 1000
    without = np.std(exact - Potential(frame, proposal.hard).values(phi))
    assert np.std(exact - proposal.of_hard_rows.values(phi)) < 0.7 * without


@pytest.mark.parametrize("n", [2000, 2001])
def test_chains_in_lockstep_know_all_rows_if_they_are_few(n):
    """In tails rows leave their quadratics, and chains that do not go there cannot say so."""
    proposal = fit_proposal(posterior(Logistic(), n=n))
    assert (proposal.surrogate is proposal.exact) == (n == 2000)
    assert (proposal.surrogate is proposal.of_hard_rows) == (n == 2001)
    assert proposal.surrogate.n_exact == (n if n == 2000 else len(proposal.hard))


def test_fewest_rows_that_leave_what_is_allowed():
    scores = np.array([0.1, 3.0, 0.2, 0.05, 1.0])
    assert chosen_rows(scores, 0.3, 10).tolist() == [1, 4, 2]
    assert chosen_rows(scores, 0.3, 2).tolist() == [1, 4]
    assert chosen_rows(scores, 5.0, 10).tolist() == []


def test_clusters_are_the_levels():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    level = rng.integers(0, 3, 200)
    vectors = Q[level] * rng.choice([-1.0, 1.0], 200)[:, None] + 0.01 * rng.normal(size=(200, 5))
    axes, members, _ = cluster_directions(vectors, np.where(level == 1, 3.0, 1.0))
    assert np.allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert set(level[members[0]]) == {1}
    assert all(len(set(level[m])) == 1 for m in members)
    assert np.allclose(np.abs(axes @ Q[:3].T).max(axis=0), 1.0, atol=1e-2)


def naive_clusters(vectors, scores):
    """The members of all clusters, from the cosines of all directions to each seed and mean."""
    units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    left, found = scores.copy(), []
    while left.any():
        seed = int(np.argmax(left))
        cos = units @ units[seed]
        near = (np.abs(cos) > ALIGNED) & (left > 0.0)
        mean = (left * np.sign(cos))[near] @ units[near]
        cos = units @ mean / np.linalg.norm(mean)
        own = {seed, *np.flatnonzero((np.abs(cos) > ALIGNED) & (left > 0.0)).tolist()}
        left[list(own)] = 0.0
        found.append(own)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_those_of_all_cosines(seed):
    """Most directions are compared with the seed of a cluster only, and many at a time."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((600, 12))
    vectors[:300] += 6.0 * np.eye(12)[rng.integers(0, 6, 300)]
    scores = 0.05 + rng.gamma(0.5, size=600)
    known = naive_clusters(vectors, scores)
    _, members, _ = cluster_directions(vectors, scores)
    assert len(members) > 6
    assert all(set(own.tolist()) in known for own in members)


def test_axes_that_depend_on_each_other_are_left_out():
    one, two = np.array([1.0, 0.0, 0.0]), np.array([0.9, np.sqrt(0.19), 0.0])
    three = np.array([0.0, 0.0, 1.0])
    found = directions.independent([one, two, three])
    assert np.array_equal(found, [one, three])
    axes, _, _ = cluster_directions(np.eye(3), np.zeros(3), found)
    assert np.array_equal(axes, [one, three])


@pytest.mark.slow
def test_positive_parameters_that_depend_on_each_other_are_sampled():
    """The shape and the power of a generalised gamma law have nearly the same direction in φ."""

    def log_density(eta, y, k, p):
        z = p * (math.log(y) - eta)
        return math.log(p) + k * z - math.exp(z) - math.lgamma(k) - math.log(y)

    rng = np.random.default_rng(101)
    X = rng.normal(size=(17, 1))
    y = rng.gamma(2.0, 1.0, 17) * np.exp(0.5 * X[:, 0])
    extras = {"k": "half_student_t", "p": "half_normal"}
    model = CustomRegressor(log_likelihood=log_density, extras=extras, n_draws=300, random_state=0)
    model.fit(X, y)
    assert model.diagnostics_["max_rhat"] < 1.05
    assert (
        np.corrcoef(np.log(model.posterior_["k"]).ravel(), np.log(model.posterior_["p"]).ravel())[
            0, 1
        ]
        < -0.8
    )


@pytest.mark.parametrize(("n_light", "found"), [(90, 1), (110, 0)])
def test_many_light_clusters_end_the_search(n_light, found):
    """Each of a single row, and heavier than every row of the only cluster that has an axis."""
    vectors = np.eye(n_light + 1)[np.r_[np.arange(n_light), np.full(100, n_light)]]
    scores = np.r_[np.full(n_light, 0.015), np.full(100, 0.001)]
    axes, members, _ = cluster_directions(vectors, scores)
    assert len(axes) == len(members) == found
    assert all(len(own) == 100 for own in members)


@pytest.mark.parametrize("K", [2, 11])
def test_covariances_of_predictors(K):
    J = np.random.default_rng(0).standard_normal((K, 7, 5))
    assert np.allclose(covariances(list(J)), np.einsum("and,bnd->nab", J, J), rtol=1e-12)


# -- warps ----------------------------------------------------------------------------------------

DENSITIES = {  # f, and the distribution function of e^-f
    "normal": (lambda s: 0.5 * s**2, stats.norm.cdf),
    "wall and tail": (lambda s: np.exp(-20.0 * s) + 0.02 * s**2 + 0.3 * s, None),
    "gumbel": (lambda s: s + np.exp(-s), stats.gumbel_r.cdf),
    "far": (lambda s: 0.5 * ((s - 60.0) / 9.0) ** 2, stats.norm(60.0, 9.0).cdf),
    "two modes": (lambda s: -np.logaddexp(-0.5 * (s + 3) ** 2, -0.5 * (s - 3) ** 2), None),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_a_warp_carries_the_normal_law_to_the_density(name):
    f, cdf = DENSITIES[name]
    spline = fit_warp(f)
    psi = np.linspace(-4.0, 4.0, 33)
    if cdf is None:
        total = integrate.quad(lambda s: np.exp(-f(s)), -40.0, 60.0, points=[-3, 0, 3], limit=400)[
            0
        ]
        own = [
            integrate.quad(
                lambda s: np.exp(-f(s)), -40.0, float(spline(p)), points=[-3, 0, 3], limit=400
            )[0]
            for p in psi
        ]
        found = np.array(own) / total
    else:
        found = cdf(spline(psi))
    tolerance = 5e-3 if name == "two modes" else 2e-4  # the table is coarse where nothing is
    assert np.abs(found - stats.norm.cdf(psi)).max() < tolerance
    assert (spline(np.linspace(-6.5, 6.5, 2000), 1) > 0.0).all()


@pytest.mark.parametrize("oblique", [False, True])
def test_jacobian_and_pull_back_are_derivatives(oblique):
    rng = np.random.default_rng(0)
    axes, duals = np.linalg.qr(rng.normal(size=(4, 4)))[0][:2], None
    if oblique:
        axes[1] = 0.6 * axes[1] + 0.8 * axes[0]
        duals = np.linalg.pinv(axes)
    splines = [fit_warp(DENSITIES[name][0]) for name in ("gumbel", "wall and tail")]
    warps = Warps(axes, splines, duals)
    frame = posterior(Logistic())
    potential, psi, step = Potential(frame), rng.normal(size=(5, 4)), 1e-5

    def energy(at):
        phi, log_det = warps.position(at)
        return potential.values(phi) - log_det

    place = warps.at(psi)
    g = place.pull_back(potential.gradients(place.phi))
    for k, (one, value) in enumerate(zip(psi, place.log_det, strict=True)):
        moved = [warps.position(one + step * sign * np.eye(4))[0] for sign in (1.0, -1.0)]
        J = (moved[0] - moved[1]) / (2.0 * step)
        assert np.isclose(np.linalg.slogdet(J)[1], value, atol=1e-6)
        slopes = (energy(one + step * np.eye(4)) - energy(one - step * np.eye(4))) / (2.0 * step)
        assert np.allclose(slopes, g[k], atol=1e-4)


# -- proposal, weights, resampling ----------------------------------------------------------------


@pytest.mark.parametrize("n", [400, 401])
def test_moments_are_those_of_the_normal_law(n):
    psi = matched_normals(np.random.default_rng(0), n, 7)
    assert psi.shape == (n, 7)
    assert np.abs(psi.mean(axis=0)).max() < 1e-12
    assert np.abs(psi.T @ psi / n - np.eye(7)).max() < 1e-12


def test_pareto_k_is_that_of_the_largest_weights():
    """The sign matters: ArviZ's function takes log likelihoods."""
    rng = np.random.default_rng(0)
    heavy = 0.9 * rng.exponential(size=4000)  # weights u^-0.9: k = 0.9
    smooth, k = pareto_smoothed(heavy)
    assert 0.7 < k < 1.1
    assert np.corrcoef(smooth, heavy)[0, 1] > 0.99
    assert np.isclose(np.exp(smooth).sum(), 1.0)
    assert pareto_smoothed(-heavy)[1] < 0.0


def test_hardly_any_weight_is_no_tail():
    log_weights = np.r_[-1.0 * np.arange(10), np.full(490, -1e150)]
    smooth, k = pareto_smoothed(log_weights)
    assert k == np.inf
    np.testing.assert_allclose(np.exp(smooth).sum(), 1.0)
    assert certified(log_weights).ess < 3.0


def test_few_draws_of_many_parameters_are_independent():
    psi = matched_normals(np.random.default_rng(0), 150, 93)
    assert np.linalg.matrix_rank(psi) == 93


def test_certificates():
    rng = np.random.default_rng(0)
    same = certified(np.full(500, -3.0))
    assert same.pareto_k == -np.inf
    assert same.ess == 500.0
    assert np.array_equal(same.weights, np.ones(500))
    assert certified(1.2 * rng.exponential(size=4000)).pareto_k > 0.7
    assert certified(np.full(100, np.nan)).pareto_k == np.inf
    assert certified(np.append(0.1 * rng.normal(size=400), -np.inf)).weights[-1] == 0.0
    few = certified(2.0 * rng.normal(size=4000))  # finite variance, and few of them
    assert few.ess < 2000


def test_resampling_is_unbiased_and_equal_weights_stay_as_they_are():
    rng = np.random.default_rng(0)
    assert np.array_equal(resampled(rng, np.ones(1000)), np.arange(1000))
    weights = rng.exponential(size=50)
    weights /= weights.mean()
    counts = np.array([np.bincount(resampled(rng, weights), minlength=50) for _ in range(20_000)])
    assert (np.abs(counts - weights) < 1.0).all()
    assert np.abs(counts.mean(axis=0) - weights).max() < 5.0 * 0.5 / np.sqrt(20_000)


def test_gaussian_posterior_is_exact_for_any_seed():
    frame = posterior(LinearKnownNoise(), n=40)
    H = frame.centre.hessian + np.diag(frame.prior_curvature)
    mode = frame.centre.theta - np.linalg.solve(
        H, frame.centre.gradient + frame.target.prior_gradient(frame.centre.theta)
    )
    for seed in range(3):
        found = certified_draws(fit_proposal(frame), 1000, np.random.default_rng(seed))
        theta = frame.theta(found.phi)
        assert found.certificate.ess > 999.9
        assert np.allclose(theta.mean(axis=0), mode, atol=1e-4)
        assert np.allclose(np.cov(theta.T, ddof=0) @ H, np.eye(4), atol=1e-3)


@pytest.mark.slow
def test_a_wrong_warp_costs_efficiency_and_not_correctness():
    frame = posterior(Logistic(), n=40)
    right = fit_proposal(frame)
    knots = np.linspace(-7.0, 7.0, 50)
    wrong = Warps(np.eye(4)[:1], [CubicSpline(knots, 0.6 * knots + 0.2 * np.tanh(knots))])
    planted = replace(right, warps=wrong)
    a = certified_draws(right, 8_000, np.random.default_rng(0))
    phi, _ = wrong.position(matched_normals(np.random.default_rng(1), 8_000, 4))
    b = certified_draws(planted, 8_000, np.random.default_rng(1))
    assert b.ess < 0.9 * a.ess
    assert np.abs(a.phi.mean(axis=0) - b.phi.mean(axis=0)).max() < 0.05
    assert np.abs(a.phi.std(axis=0) / b.phi.std(axis=0) - 1.0).max() < 0.05
    # Without the Jacobian the twin is wrong.
    values = Potential(frame).values(phi)
    psi = matched_normals(np.random.default_rng(1), 8_000, 4)
    broken = certified(0.5 * np.square(psi).sum(axis=1) - values)
    mean = (broken.weights[:, None] * phi).mean(axis=0)
    sd = np.sqrt((broken.weights[:, None] * (phi - mean) ** 2).mean(axis=0))
    off = max(np.abs(mean - a.phi.mean(axis=0)).max(), np.abs(sd / a.phi.std(axis=0) - 1.0).max())
    assert off > 0.05 or broken.ess < b.ess


def test_chains_in_lockstep_have_the_law_of_the_potential():
    """On a Gaussian without warps a step is exact: all moves are accepted."""
    frame = posterior(LinearKnownNoise(), n=40)
    start = np.random.default_rng(0).normal(size=(64, 4))
    none = Warps(np.empty((0, 4)), [])
    found = run_lockstep(Potential(frame), none, start, 64 * 200, np.random.default_rng(1))
    assert found.acceptance > 0.999
    flat = found.phi.reshape(-1, 4)
    assert np.abs(flat.mean(axis=0) - -frame.offset).max() < 0.05
    assert np.abs(np.cov(flat.T) - np.eye(4)).max() < 0.05


# -- laws by quadrature ---------------------------------------------------------------------------


def one_parameter(n, kind, seed=0):
    """Counts of ones, or events, in n rows of a constant column; and the law of the coefficient."""
    rng = np.random.default_rng(seed)
    events = {"logistic": min(n - 1, 3), "poisson": 3, "none": 0}[kind]
    y = np.zeros(n)
    y[:events] = 1.0
    grid = np.linspace(-40.0, 20.0, 400_001)
    row = np.exp(np.minimum(grid, 50.0)) if kind == "poisson" else np.logaddexp(0.0, grid)
    log_p = events * grid - n * row - 0.5 * (grid / 10.0) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    return rng.permutation(y), mean, np.sqrt(p @ (grid - mean) ** 2), grid, np.cumsum(p)


@pytest.mark.parametrize("kind", ["logistic", "poisson", "none"])
@pytest.mark.parametrize("n", [5, 300, pytest.param(30_000, marks=pytest.mark.slow)])
def test_one_parameter_against_quadrature(kind, n):
    y, mean, sd, grid, below = one_parameter(n, kind)
    if kind == "none":
        y[:] = 0.0
        y[0] = 1.0  # a second class, which weighs nothing
        weight = np.where(np.arange(n) == 0, 1e-9, 1.0)
        weight *= n / weight.sum()
    else:
        weight = None
    estimator = BayesianPoissonRegressor if kind == "poisson" else BayesianLogisticRegression
    model = estimator(prior=Normal(scale=10.0), fit_intercept=False, n_draws=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplerConvergenceWarning)
        model.fit(np.ones((n, 1)), y, sample_weight=weight)
    draws = model.posterior_["coef"].ravel()
    assert model.sampler_ == "importance"
    assert abs(draws.mean() - mean) < 0.05 * sd
    assert abs(draws.std() / sd - 1.0) < 0.05
    expected = np.interp([0.05, 0.95], below, grid)
    assert np.abs(np.quantile(draws, [0.05, 0.95]) - expected).max() < 0.15 * sd


@pytest.mark.slow
def test_by_name_it_warns_where_it_cannot_be_trusted(monkeypatch):
    """Chains that do not agree, for fewer rows than columns."""
    agree = lockstep._drawn

    def apart(*arguments):
        found = agree(*arguments)
        return replace(found, phi=found.phi + np.arange(len(found.phi))[:, None, None])

    monkeypatch.setattr(lockstep, "_drawn", apart)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 100)), np.arange(40) % 2
    model = BayesianLogisticRegression(
        prior=Normal(scale=20.0), sampler="importance", n_draws=25, n_chains=2, random_state=0
    )
    with pytest.warns(SamplerConvergenceWarning, match="Pareto k is .* and R-hat is"):
        model.fit(X, y)
    assert np.isfinite(model.posterior_.flat).all()


def test_by_name_weights_that_cannot_be_trusted_are_told(monkeypatch):
    weighed = independent.weighed_draws

    def heavy(*arguments):
        found = weighed(*arguments)
        return replace(found, certificate=replace(found.certificate, pareto_k=2.0))

    monkeypatch.setattr(independent, "weighed_draws", heavy)
    monkeypatch.setattr(independent, "grown_draws", lambda *_: None)
    model = BayesianLogisticRegression(sampler="importance", n_draws=20, random_state=0)
    with pytest.warns(SamplerConvergenceWarning, match=r"Pareto k is 2\.00"):
        model.fit(*binary(40, 2))


@pytest.mark.slow
def test_chains_in_lockstep_end_before_they_take_too_long():
    frame = posterior(Logistic(), n=30, d=12, prior=Normal(scale=30.0))
    proposal = fit_proposal(frame)
    start = np.random.default_rng(0).normal(size=(8, frame.target.n_parameters))

    def run(most):
        rng = np.random.default_rng(1)
        return run_lockstep(proposal.surrogate, proposal.warps, start, 0, rng, Budget(most))

    needed = run(np.inf).n_gradients
    assert run(needed + 800) is not None
    assert run(needed // 4) is None
    gradients, spent = proposal.surrogate.gradients, []
    proposal.surrogate.gradients = lambda phi: (spent.append(len(phi)), gradients(phi))[1]
    assert run(3200) is None  # long before: a quarter is for finding a step, and a trajectory
    assert 100 < len(spent) <= 100 + lockstep.MOST_STEPS


def test_chains_that_begin_where_the_potential_is_steep_move_as_well():
    """The acceptance of the others does not make up for theirs."""
    frame = posterior(Poisson(), n=30, d=3)
    start = np.random.default_rng(0).normal(size=(64, frame.target.n_parameters))
    start[:4] *= 12.0
    potential, none = Potential(frame), unwarped(frame.target.n_parameters)
    begun = potential.values(start)
    assert begun[:4].max() > 1e4
    found = run_lockstep(potential, none, start, 64 * 64, np.random.default_rng(1))
    assert not found.has_stuck
    assert convergence.worst_rhat(found.phi)[0] < sample.RHAT
    ends = potential.values(found.phi[:, -1])
    assert ends.max() < 20.0


@pytest.mark.parametrize("stuck", [False, True])
def test_a_chain_that_has_not_moved_is_noticed(stuck):
    class Motion:
        phi = np.zeros((8, 3))

        def trajectory(self, epsilon):
            self.phi = self.phi + (np.arange(8) != (3 if stuck else 8))[:, None]
            return np.ones(8)

        def distances(self):
            return np.zeros(8)

    assert lockstep._drawn(Motion(), 0.5, 10, 2).has_stuck == stuck


@pytest.mark.slow
def test_few_chains_go_on_where_trajectories_are_long_and_gradients_dear(monkeypatch):
    """As many draws in all, and those of the law."""
    frame = posterior(Logistic(), n=30, d=12, prior=Normal(scale=30.0))
    proposal = fit_proposal(frame)
    D = frame.target.n_parameters
    start = np.random.default_rng(0).normal(size=(64, D))
    assert proposal.exact.work == 30 * 12 + D**2
    found = {}
    for dear in (False, True):
        monkeypatch.setattr(lockstep, "DEAR", 100.0 if dear else 1e6)
        monkeypatch.setattr(lockstep, "MANY_STEPS", 2.0)
        rng = np.random.default_rng(1)
        found[dear] = run_lockstep(proposal.exact, unwarped(D), start, 16_000, rng)
    few, many = found[True], found[False]
    assert few.phi.shape == (lockstep.FEW_CHAINS, 1000, D)
    assert many.phi.shape == (64, 250, D)
    assert few.n_gradients < 1.05 * many.n_gradients
    own = [run.phi.reshape(-1, D) for run in (few, many)]
    ess = [convergence.ess_least(run.phi).min() for run in (few, many)]
    error = own[1].std(axis=0) * np.sqrt(sum(1.0 / n for n in ess))
    assert (np.abs(own[0].mean(axis=0) - own[1].mean(axis=0)) < 5.0 * error).all()


def test_chains_may_take_longer_where_others_would_as_well():
    budget = Budget(most=100.0, others=10.0)
    assert budget.allows(10.0, 1.0)
    assert not budget.allows(10.5, 3.0)
    assert budget.allows(20.0, 6.0)
    assert not budget.allows(20.5, 6.0)
    assert budget.allows(100.0, 64.0)
    assert not budget.allows(101.0, 64.0)


@pytest.mark.slow
def test_the_price_of_chains_in_lockstep_is_told_when_it_is_about_known():
    frame, told = posterior(Logistic(), n=30, d=12, prior=Normal(scale=30.0)), []
    proposal = fit_proposal(frame)
    start = np.random.default_rng(0).normal(size=(8, frame.target.n_parameters))
    gradients, taken = proposal.surrogate.gradients, []
    proposal.surrogate.gradients = lambda phi: (taken.append(0), gradients(phi))[1]
    budget = Budget(tell=lambda n: told.append((n, len(taken))))
    rng = np.random.default_rng(1)
    chains = run_lockstep(proposal.surrogate, proposal.warps, start, 800, rng, budget)
    [(expected, then)] = told
    assert 8 * then < 0.35 * chains.n_gradients
    assert 0.7 < expected / chains.n_gradients < 1.4
    first = chains.n_gradients
    longer = chains.thinned([3], budget)
    assert longer.thin == 3
    assert longer.phi.shape == chains.phi.shape
    kept = chains.phi.shape[1] // 3
    np.testing.assert_array_equal(longer.phi[:, :kept], chains.phi[:, 2::3])
    assert 8 * told[1][1] == first
    assert 0.8 < told[1][0] / chains.n_gradients < 1.2


@pytest.mark.parametrize(("rhat", "n_runs"), [(1.0, 2), (1.5, 2), (1.7, 1), (np.inf, 1)])
def test_chains_that_thinning_cannot_save_are_not_thinned(monkeypatch, rhat, n_runs):
    """R² - 1 falls like 1/n: eight times the length makes 1.08 of 1.5, and 1.11 of 1.7."""
    runs = []

    class Chains:
        thin, phi = 1, np.zeros((64, 4, 2))

        def thinned(self, thins, budget):
            self.thin *= thins[0]
            return self

    def weighed(*_):
        runs.append(rhat)
        certificate = SimpleNamespace(pareto_k=0.1)
        return SimpleNamespace(
            ess=50.0 if len(runs) == 1 else 500.0, rhat=rhat, certificate=certificate
        )

    monkeypatch.setattr(sample, "run_lockstep", lambda *_: Chains())
    monkeypatch.setattr(sample, "_weighed", weighed)
    none = {"surrogate": None, "warps": None, "other_motion": None}
    proposal = SimpleNamespace(**none, warps_of_draws=lambda phi: None)
    sample._in_lockstep(proposal, np.zeros((64, 2)), 1000, None, lambda _: Budget())
    assert len(runs) == n_runs


@pytest.mark.slow
def test_draws_are_thinned_as_far_as_the_budget_allows():
    frame = posterior(Logistic(), n=30, d=12, prior=Normal(scale=30.0))
    proposal, rng = fit_proposal(frame), np.random.default_rng(1)
    start = np.random.default_rng(0).normal(size=(8, frame.target.n_parameters))
    chains = run_lockstep(proposal.surrogate, proposal.warps, start, 800, rng)
    each = chains.n_gradients  # more than the draws took, and less than two further series take
    longer = chains.thinned(range(8, 1, -1), Budget(most=4.0 * each))
    assert 1 < longer.thin < 8
    assert chains.thinned(range(8, 1, -1), Budget(most=1.0 * chains.n_gradients)) is None


def scaled(proposal, factor):
    """The proposal with all draws farther from the centre, or nearer, by a factor."""
    knots, D = np.linspace(-7.0, 7.0, 50), proposal.frame.target.n_parameters
    return replace(proposal, warps=Warps(np.eye(D), [CubicSpline(knots, factor * knots)] * D))


def test_more_draws_are_proposed_where_few_are_effective():
    frame = posterior(Logistic(), n=40)
    right = certified_draws(fit_proposal(frame), 4000, np.random.default_rng(1))
    wide = scaled(fit_proposal(frame), 1.9)
    found = certified_draws(wide, 4000, np.random.default_rng(0))
    assert found.chains == {}
    assert found.holds
    assert len(found.certificate.weights) > 8000
    assert 1200 < found.ess < 3000
    error = 5.0 * right.phi.std(axis=0) / np.sqrt(found.ess)
    assert (np.abs(found.phi.mean(axis=0) - right.phi.mean(axis=0)) < error).all()
    assert np.abs(found.phi.std(axis=0) / right.phi.std(axis=0) - 1.0).max() < 0.1


def test_chains_begin_where_the_posterior_is():
    frame = posterior(Poisson(), n=40)
    wide, rng = scaled(fit_proposal(frame), 40.0), np.random.default_rng(0)
    psi, phi, log_q = sample._proposed(wide, 500, rng)
    log_weights = -wide.exact.values(phi) - log_q
    assert sample.certified(log_weights).ess < 5.0  # the best of draws that are all far away
    start = sample._starts(wide, psi, log_weights, rng)
    value = wide.exact.values(wide.warps.position(start)[0])
    assert value.max() < 2.0 + 8.0 * np.sqrt(2.0)  # four parameters
    assert len(np.unique(start, axis=0)) == len(start) == 64


@pytest.mark.parametrize("levels", [pytest.param(True, marks=pytest.mark.slow), False])
def test_directions_of_many_columns_are_warped_if_these_are_levels(levels):
    rng = np.random.default_rng(0)
    n, d = 700, 350
    X = np.eye(d)[rng.permutation(n) % d] if levels else rng.normal(size=(n, d))
    prior = np.concatenate([Normal(scale=9.0)._table((d,)), Normal(scale=1.0)._table((1,))])
    target = Target(X, rng.poisson(1.0, n).astype(float), np.ones(n), Poisson(), prior)
    frame = frame_of(target, "hessian", True, rng)
    assert bool(len(fit_proposal(frame).warps)) == levels


def test_chains_in_lockstep_have_the_law_of_independent_draws():
    frame = posterior(Logistic(), n=40)
    proposal = fit_proposal(frame)
    right = certified_draws(proposal, 4000, np.random.default_rng(1))
    start = np.random.default_rng(2).standard_normal((64, frame.target.n_parameters))
    for planted in (unwarped(4), proposal.warps):
        own, rng = replace(proposal, warps=planted), np.random.default_rng(0)
        found = sample._in_lockstep(own, start, 4000, rng, lambda *arguments: Budget())
        assert found.holds
        assert found.chains["n_gradients"] > 100
        error = 5.0 * right.phi.std(axis=0) / np.sqrt(found.ess)
        assert (np.abs(found.phi.mean(axis=0) - right.phi.mean(axis=0)) < error).all()
        assert np.abs(found.phi.std(axis=0) / right.phi.std(axis=0) - 1.0).max() < 0.1


@pytest.mark.parametrize(
    ("k", "share", "chains"),
    [(0.3, 0.65, 0), (0.3, 0.55, 1), (0.15, 0.55, 0), (0.5, 0.65, 1), (0.5, 0.95, 0)],
)
def test_chains_make_up_for_heavy_tails_of_weights_where_that_is_asked_for(
    monkeypatch, k, share, chains
):
    def made(log_weights):
        n = len(log_weights)
        return Certificate(k, share * n, np.ones(n))

    monkeypatch.setattr(sample, "certified", made)
    proposal = fit_proposal(posterior(Logistic(), n=40))
    for light in (False, True):
        found = certified_draws(proposal, 1000, np.random.default_rng(0), light=light)
        assert bool(found.chains) == bool(light and chains)


def test_a_proposal_that_is_too_narrow_is_not_believed():
    narrow = scaled(fit_proposal(posterior(Logistic(), n=40)), 0.4)
    alone = certified_draws(narrow, 4000, np.random.default_rng(0), lambda *arguments: Budget(0.0))
    assert alone.chains == {}
    assert not alone.holds


@pytest.mark.parametrize("seconds", [0.5, 50.0])
def test_few_effective_draws_are_kept_where_chains_would_take_long(monkeypatch, seconds):
    def few(modes, proposals, n, rng, most):
        phi = rng.normal(size=(n, modes.frame.target.n_parameters))
        return CertifiedDraws(phi, Certificate(0.1, float(n), np.ones(n)), 0.0, 0, 0.05 * n)

    monkeypatch.setattr(independent, "weighed_draws", few)
    monkeypatch.setattr(independent, "grown_draws", lambda *_: None)
    monkeypatch.setattr(independent, "seconds_of_chains", lambda *_: seconds)
    X, y = np.random.default_rng(0).standard_normal((200, 2)), np.arange(200) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BayesianLogisticRegression(n_draws=100, random_state=0).fit(X, y)
    assert model.sampler_ == ("hmc" if seconds < 1.0 else "importance")
    told = [str(w.message) for w in caught if w.category is SamplerConvergenceWarning]
    assert any("Only 20 of 400 draws are effective" in text for text in told) == (seconds > 1.0)


def test_it_is_refused_where_there_are_too_many_parameters():
    X, y = np.random.default_rng(0).standard_normal((30, 2100)), np.arange(30) % 2
    with pytest.raises(ValueError, match="at most 2000 parameters"):
        BayesianLogisticRegression(sampler="importance", n_draws=10).fit(X, y)


@pytest.mark.parametrize(
    "parameters", [{"step_size": 0.1}, {"gradient": "saga"}, {"subsampling": "blocks"}]
)
def test_it_takes_no_steps(parameters):
    with pytest.raises(ValueError, match="independent draws take no steps"):
        BayesianLogisticRegression(sampler="importance", **parameters).fit(*binary())


def test_what_is_known_of_the_draws():
    model = BayesianLogisticRegression(n_draws=500, random_state=0).fit(*binary(300, 4))
    found = model.diagnostics_
    assert found["pareto_k"] < 0.7
    assert 1000 < found["weights_ess"] <= 2000
    assert found["rows_exact"] == len(np.unique(binary(300, 4)[0], axis=0))
    assert found["min_ess"] <= found["weights_ess"]
    again = BayesianLogisticRegression(n_draws=500, random_state=0, n_jobs=2).fit(*binary(300, 4))
    assert np.array_equal(again.posterior_.flat, model.posterior_.flat)


def test_draws_whose_certificate_does_not_hold_are_not_believed():
    def draws(k, ess, rhat=1.0):
        own = Certificate(k, ess, np.ones(4000))
        return CertifiedDraws(np.zeros((4000, 1)), own, 0.0, 100, ess, rhat)

    assert draws(0.6, 500.0).holds
    assert not draws(0.8, 4000.0).holds
    assert not draws(0.1, 300.0).holds
    assert draws(0.1, 300.0).is_sound
    assert not draws(0.1, 4000.0, 1.2).is_sound


@pytest.mark.slow
def test_draws_that_come_twice_count_once():
    """Effective sizes and Monte Carlo errors of the summary are those of the weights."""
    posterior = (
        BayesianLogisticRegression(n_draws=500, random_state=0).fit(*binary(300, 4)).posterior_
    )
    share = posterior.evidence["resampled_share"]
    plain = Posterior(posterior.flat, {"all": (5,)}, list("abcde"))
    assert (share < 1.0).all()
    for column, factor in [("ess_bulk", share), ("ess_tail", share), ("mcse_mean", share**-0.5)]:
        assert np.allclose(posterior.summary()[column], factor * plain.summary()[column])


def test_the_verdict_looks_at_pareto_k():
    draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    good, bad = (
        check_draws(draws, -draws, evidence={"pareto_k": np.full(2, k)}) for k in (0.5, 0.9)
    )
    assert good.trustworthy
    assert [finding.name for finding in bad.findings] == ["importance weights"]


@pytest.mark.slow
def test_the_seconds_of_each_part_are_told():
    X, y = binary(500, 3)
    parts = {"centre", "proposal", "weighing", "scores"}
    fit = BayesianLogisticRegression(n_draws=300, random_state=0).fit(X, y)
    assert set(fit.seconds_) == parts
    assert min(fit.seconds_.values()) > 0.0
    twice = BayesianLogisticRegression(n_draws=300, n_subposteriors=2, random_state=0).fit(X, y)
    assert set(twice.seconds_) == parts
    other = BayesianLogisticRegression(n_draws=300, sampler="hmc", random_state=0).fit(X, y)
    assert set(other.seconds_) == {"centre", "chains on all rows"}


def test_effective_draws_after_resampling():
    even = certified(np.zeros(2000))
    assert sample.effective(even, 2000) == 2000.0
    assert sample.effective(even, 1000) == 1000.0
    half = Certificate(0.0, 1000.0, np.repeat([2.0, 0.0], 1000))
    assert sample.effective(half, 500) == pytest.approx(1.0 / (1e-3 + 2e-3 - 5e-4), rel=1e-12)
    assert sample.effective(Certificate(np.inf, 0.0, np.ones(10)), 10) == 0.0


def test_effective_draws_of_short_chains_count_what_reaches_beyond_one():
    rng, rho, m, n = np.random.default_rng(0), 0.95, 64, 64
    sizes = []
    for _ in range(20):
        x = np.empty((m, n, 1))
        x[:, 0] = rng.standard_normal((m, 1))
        for t in range(1, n):
            x[:, t] = rho * x[:, t - 1] + (1 - rho**2) ** 0.5 * rng.standard_normal((m, 1))
        sizes.append(sample._effective_of_chains(x.reshape(-1, 1)))
    lags = np.arange(1, n)
    exact = m * n / (1.0 + 2.0 * np.sum((1.0 - lags / n) * rho**lags))  # of the mean
    assert 0.5 * exact < np.mean(sizes) < 1.1 * exact  # the smallest of four, so rather below


@pytest.mark.slow
def test_evidence_and_diagnostics_agree_on_effective_draws(monkeypatch):
    monkeypatch.setattr(independent, "MOST_GROWN", 0)
    rng = np.random.default_rng(1004)
    X, y = rng.normal(size=(4000, 4)), np.zeros(4000, dtype=int)
    y[rng.choice(4000, 3, replace=False)] = 1
    for seed, ways in ((5, "independent"), (4, "lockstep")):
        clf = BayesianLogisticRegression(random_state=seed).fit(X, y)
        said, posterior = clf.diagnostics_["min_ess"], clf.posterior_
        assert ("lockstep_epsilon" in clf.diagnostics_) == (ways == "lockstep")
        share = posterior.evidence["resampled_share"].min()
        judged = share * convergence.ess_least(posterior.flat).min()
        assert 0.6 * judged < said < 1.5 * judged


# -- chains that have not arrived ------------------------------------------------------------------


def test_chains_that_differ_in_their_distance_are_not_believed():
    """Each coordinate has the same law in all chains, but some chains are farther out."""
    rng = np.random.default_rng(0)
    phi, distances = rng.normal(size=(64, 64, 20)), rng.normal(size=(64, 64))
    chains = SimpleNamespace(phi=phi, distances=distances, has_stuck=False)
    assert sample._rhat(chains) < 1.05
    distances += 0.8 * rng.normal(size=(64, 1))
    assert sample._rhat(chains) == float(convergence.rhat(distances)) > sample.RHAT


def test_chains_with_one_that_never_moves_are_not_believed():
    rng = np.random.default_rng(0)
    phi, distances = rng.normal(size=(64, 64, 20)), rng.normal(size=(64, 64))
    assert sample._rhat(SimpleNamespace(phi=phi, distances=distances, has_stuck=True)) == np.inf


def zeros_beyond_walls(n=30, d=90):
    """Counts, most of them zero, of more columns than rows: e^η pushes the rows to η ≪ 0."""
    rng = np.random.default_rng(n)
    X = rng.poisson(0.1, (n, d)).astype(float)
    return X, rng.poisson(np.exp(rng.normal(size=n) - 1.5)), Normal(scale=5.0)


@pytest.mark.slow
def test_chains_between_walls_are_not_believed_before_they_arrive(monkeypatch):
    """All coordinates have an R-hat below 1.06, but chains still move outwards."""
    X, y, prior = zeros_beyond_walls()
    seen = []
    judged = sample._rhat
    monkeypatch.setattr(sample, "_on_marginals", lambda _, *given: (*given[:2], given[-1]))
    monkeypatch.setattr(sample, "_rhat", lambda chains: seen.append(chains) or judged(chains))
    model = BayesianPoissonRegressor(prior=prior, random_state=0, n_draws=300).fit(X, y)
    assert convergence.worst_rhat(seen[0].phi)[0] < 1.07
    assert convergence.rhat(seen[0].distances) > sample.RHAT
    assert model.sampler_ == "hmc"


@pytest.mark.slow
def test_draws_between_walls_are_right(monkeypatch):
    """By E ∇log p = 0: C E ∇log p is about how far means are off; without the rule they are."""
    X, y, _ = zeros_beyond_walls(60, 200)

    def off(model):
        theta = model.posterior_.flat.reshape(-1, 201)
        eta = theta[:, :-1] @ X.T + theta[:, -1:]
        scores = np.column_stack([(y - np.exp(eta)) @ X, (y - np.exp(eta)).sum(axis=1)])
        scores -= theta / np.append(np.full(200, 50.0**2), 10.0**2)
        along = (theta - theta.mean(axis=0)) @ np.column_stack([X, np.ones(60)]).T
        move = (theta - theta.mean(axis=0)).T @ along / len(theta) / along.std(axis=0)
        found = scores @ move
        return found.mean(axis=0), found.std(axis=0) / np.sqrt(0.05 * len(theta))

    fit = {"prior": Normal(scale=50.0), "random_state": 0, "n_draws": 4000}
    model = BayesianPoissonRegressor(**fit).fit(X, y)
    assert model.sampler_ == "importance"  # on marginals
    mean, error = off(model)
    assert (np.abs(mean) < 0.1 + 5.0 * error).all()
    monkeypatch.setattr(sample, "_rhat", lambda chains: convergence.worst_rhat(chains.phi)[0])
    monkeypatch.setattr(sample, "_on_marginals", lambda _, *given: (*given[:2], given[-1]))
    monkeypatch.setattr(independent, "_is_contradicted", lambda outcome: False)
    model = BayesianPoissonRegressor(**fit).fit(X, y)
    assert model.sampler_ == "importance"
    mean, error = off(model)
    assert (np.abs(mean) > 0.1 + 5.0 * error).any()


def test_small_weights_have_no_tail_that_matters():
    rng = np.random.default_rng(0)
    log_weights = np.log1p(1e-4 * rng.pareto(0.5, 4000).clip(0.0, 15_000.0))
    found = certified(log_weights)
    assert found.pareto_k > LIGHT
    assert found.regardless_of_small_weights().pareto_k == LIGHT
    log_weights[0] = 3.0
    large = certified(log_weights)
    assert large.regardless_of_small_weights() is large
