"""Dynamics that account for the gradient's noise: exact laws, identities of paths, what is left.

SGHMC is affine, so that its laws are exact. A thermostat that moves is not: what is exact of it are
identities of its paths; its law is examined in the order in which one step changes expectations.
"""

import itertools
import math
from functools import partial

import cases
import naive
import numba
import numpy as np
import probe
import pytest
from affine_steps import (
    affine,
    batch_maps,
    formula_maps,
    gaussian_scene,
    precision_and_mean,
    radius,
    step_size,
    unit_scene,
)
from paths import STEPS, full_batches, normals, path, some_batches
from scenes import close, make_scene
from scipy import linalg, optimize

from skbayes_sg.dynamics import BAOAB, SGHMC, SGLD, SGNHT
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.recipe.measure import Survey

LAW = 1e-10
PATH = 1e-12
thermostats = pytest.mark.parametrize("thermostat", ["scalar", "coordinate"])


def maps_of_update(dynamics, a, h, rows=()):
    """(M, B, G): what a step of curvature a makes of (position, momentum), ξ and gradient noise.

    Further rows of the state have the given values.
    """
    kernels = probe.Probe(unit_scene(), dynamics=dynamics)

    def step(x, r, gradient, noise):
        state = np.array([x, r, *rows])[:, None]
        return kernels.update(state, np.array([gradient]), np.array([noise]), h)[:2, 0]

    origin = step(0.0, 0.0, 0.0, 0.0)
    assert not origin.any()
    M = np.stack([step(1.0, 0.0, a, 0.0), step(0.0, 1.0, 0.0, 0.0)], axis=1)
    return M, step(0.0, 0.0, 0.0, 1.0)[:, None], step(0.0, 0.0, 1.0, 0.0)[:, None]


def law(M, B, G, V):
    """Stationary covariance with gradient noise of variance V."""
    return linalg.solve_discrete_lyapunov(M, B @ B.T + V * G @ G.T)


# -- SGHMC: laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("V", [0.0, 0.4, 3.0])
@pytest.mark.parametrize(("C", "B"), [(1.0, 0.0), (0.5, 0.2), (3.0, 3.0)])
@pytest.mark.parametrize("a", [0.2, 1.0, 4.0])
def test_law_of_sghmc_with_gradient_noise(a, C, B, V):
    h = 0.09
    epsilon = math.sqrt(h)
    kappa, q = 1.0 - B / C + epsilon * V / (2.0 * C), 1.0 - 0.5 * epsilon * C
    D = q - 0.25 * h * a
    found = law(*maps_of_update(SGHMC(C, B), a, h), V)
    off = 0.5 * epsilon * kappa / D  # positions come after momenta; before them it is minus this
    close(found, np.array([[kappa * q / (a * D), off], [off, kappa / D]]), LAW)


@pytest.mark.parametrize("a", [0.2, 1.0, 4.0])
def test_noise_estimate_takes_off_isotropic_noise_exactly(a):
    h, V = 0.09, 2.0
    clean = law(*maps_of_update(SGHMC(1.0), a, h), 0.0)
    noisy = law(*maps_of_update(SGHMC(1.0, 0.5 * math.sqrt(h) * V), a, h), V)
    close(noisy, clean, LAW)


@pytest.mark.parametrize("V", [0.0, 2.0])
@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("a", [0.2, 1.0, 4.0])
def test_refreshing_leaves_the_law(a, C, V):
    h = 0.04
    B = 0.5 * math.sqrt(h) * V
    expected = law(*maps_of_update(SGHMC(C, B), a, h), V)
    M, xi, G = maps_of_update(SGHMC(C, B, refresh=1), a, h, rows=[0.0])
    assert not M[:, 1].any()  # the momentum is forgotten
    close(M @ expected @ M.T + xi @ xi.T + V * G @ G.T, expected, LAW)


def test_momentum_is_refreshed_every_third_step():
    kernels = probe.Probe(unit_scene(), dynamics=SGHMC(refresh=3))
    rng = np.random.default_rng(0)
    state = SGHMC(refresh=3).start(np.zeros(1), rng)
    assert state[2, 0] == 0.0
    forgets = []
    for _ in range(9):
        other = state.copy()
        other[1] += 1.0
        one, two = (kernels.update(s, np.ones(1), np.ones(1), 0.1) for s in (state, other))
        forgets.append(bool(one[1, 0] == two[1, 0]))
        state = one
    assert forgets == [False, False, True] * 3


@pytest.mark.parametrize("slowest", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize(("C", "refresh"), [(0.1, 50), (0.1, 100), (2.5, 100), (1.0, 5)])
def test_relaxation_steps_with_refreshing(C, refresh, slowest):
    dynamics, h = SGHMC(C, refresh=refresh), 1e-4
    M = maps_of_update(SGHMC(C), slowest, h)[0]
    fresh = maps_of_update(SGHMC(C, refresh=1), slowest, h, rows=[0.0])[0]
    forgotten = -math.log(radius(fresh @ np.linalg.matrix_power(M, refresh - 1)))
    assert forgotten < 1.0
    assert abs(dynamics.relaxation_steps(h, slowest) * forgotten / refresh - 1.0) < 0.02


def test_relaxation_steps_where_a_refreshed_period_forgets_all():
    quarter = round(0.5 * math.pi / 0.01)  # of an oscillation: the mean is 0 there
    assert SGHMC(0.01, refresh=quarter).relaxation_steps(1e-4) == pytest.approx(quarter)
    # Refreshed so seldom that friction is what counts:
    plain = SGHMC(1.0).relaxation_steps(1e-4)
    assert plain <= SGHMC(1.0, refresh=100_000).relaxation_steps(1e-4) < 1.1 * plain


@pytest.mark.parametrize("refresh", [1, 10, 50, 314])
def test_noise_inflation_is_a_bound_with_refreshing(refresh):
    # The covariance that unit noise adds, right after a momentum was drawn, and up to the next.
    C, h = 0.2, 1e-4
    M, _, G = maps_of_update(SGHMC(C), 1.0, h)
    fresh, _, kick = maps_of_update(SGHMC(C, refresh=1), 1.0, h, rows=[0.0])
    power, added = np.eye(2), np.zeros((2, 2))
    for _ in range(refresh - 1):
        added, power = M @ added @ M.T + G @ G.T, M @ power
    S = linalg.solve_discrete_lyapunov(fresh @ power, fresh @ added @ fresh.T + kick @ kick.T)
    bound = SGHMC(C, refresh=refresh).noise_inflation(h)
    for _ in range(refresh):
        assert S[0, 0] < bound * (1.0 + 2.0 * math.sqrt(h))
        S = M @ S @ M.T + G @ G.T


def kinetic_maps(dynamics, slopes, constant, h):
    """(M, c) of a step of (position, momentum) from the formulas, for gradients slopes φ + c."""
    D, t, one = len(constant), math.sqrt(h), np.eye(len(constant))
    zero, gamma = np.zeros((D, D)), dynamics.friction
    kick, offset = np.block([[one, zero], [-t * slopes, one]]), np.r_[0.0 * constant, -t * constant]
    if isinstance(dynamics, SGHMC):
        keep = np.block([[one, zero], [zero, (1.0 - t * gamma) * one]])
        kick = keep + kick - np.eye(2 * D)
        after = np.block([[one, t * one], [zero, one]])
    else:
        drift = np.block([[one, 0.5 * t * one], [zero, one]])
        keep = np.block([[one, zero], [zero, math.exp(-t * gamma) * one]])
        after = drift @ keep @ drift
    return after @ kick, after @ offset


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("gradient", ["minibatch", "control_variate", "taylor"])
@pytest.mark.parametrize("dynamics", [SGHMC(1.5, 0.3), SGNHT(inertia=np.inf)], ids=["c", "nh"])
def test_law_of_kinetic_dynamics_under_random_batches(dynamics, gradient, n):
    scene = gaussian_scene()
    frame = scene.frame()
    h = step_size(scene, frame, 0.01, dynamics)
    kernels = probe.Probe(frame, cases.GRADIENTS[gradient].gradient, None, dynamics, batch_size=n)
    M, c, B = batch_maps(kernels, h, n)
    mean, covariance = naive.stationary_law(M, c, B[0] @ B[0].T)
    # Gradients from the formulas of SGLD: M = I - (h/2) slopes, c = -(h/2) constant. These
    # are in θ, the chain without preconditioner is in θ - centre.
    langevin, shifts = formula_maps(scene, frame, gradient, h, n)
    maps = [
        kinetic_maps(dynamics, (np.eye(3) - K) * 2.0 / h, -2.0 / h * s, h)
        for K, s in zip(langevin, shifts, strict=True)
    ]
    expected = naive.stationary_law(*map(np.stack, zip(*maps, strict=True)), B[0] @ B[0].T)
    close(mean[:3] + frame.centre.theta, expected[0][:3], LAW)
    close(covariance, expected[1], LAW)
    close(expected[0][:3], precision_and_mean(scene)[1], LAW)


def test_injected_noise():
    for h, C, B in [(0.04, 1.0, 0.0), (0.04, 2.0, 0.5)]:
        _, _, noise = affine(probe.Probe(unit_scene(), dynamics=SGHMC(C, B)), h)
        sd = math.sqrt(2.0 * (C - B) * math.sqrt(h))
        close(noise[:, 0], sd * np.array([math.sqrt(h), 1.0]), PATH)


# -- degeneracies ---------------------------------------------------------------------------------


def paths(dynamics_and_steps, start=None):
    """Paths on a logistic posterior under the same batches and normals."""
    scene = make_scene("logistic", "student_t")
    frame, gradient = scene.frame(kind="hessian"), cases.GRADIENTS["taylor"].gradient
    batches, noises = some_batches(), normals(3)
    return [
        path(probe.Probe(frame, gradient, None, d, batch_size=2), batches, noises, h, start)
        for d, h in dynamics_and_steps
    ]


@pytest.mark.parametrize("refresh", [None, 1, 4])
def test_sghmc_that_forgets_at_once_is_sgld(refresh):
    h = 0.16
    one, two = paths([(SGHMC(1.0 / math.sqrt(h), refresh=refresh), h), (SGLD(), 2.0 * h)])
    close(one, two, PATH, np.abs(two).max())


@pytest.mark.parametrize("C", [0.3, 1.0, 4.0])
def test_sghmc_refreshed_at_every_step_is_sgld(C):
    h = 0.16
    q = 1.0 - 0.5 * math.sqrt(h) * C
    one, two = paths([(SGHMC(C, refresh=1), h), (SGLD(), h / q)])
    close(one, two, PATH, np.abs(two).max())


@thermostats
@pytest.mark.parametrize("friction", [0.3, 1.0, 4.0])
def test_a_thermostat_that_does_not_move_is_baoab(thermostat, friction):
    frozen, baoab = paths([(SGNHT(friction, thermostat, np.inf), 0.2), (BAOAB(friction), 0.2)])
    close(frozen, baoab, PATH, np.abs(baoab).max())


@thermostats
def test_a_thermostat_of_enormous_inertia_is_baoab(thermostat):
    # By the kernel of thermostats that move, from states with the friction in their third row.
    scene, dynamics = make_scene("logistic"), SGNHT(0.7, thermostat, 1e300)
    frame, h, rng = scene.frame(kind="hessian"), 0.2, np.random.default_rng(0)
    kernels = [probe.Probe(frame, dynamics=d) for d in (dynamics, BAOAB(0.7))]
    one, two = dynamics.start(np.ones(3), rng), None
    two = one[:2].copy()
    for noise, (rows, coefficients) in zip(normals(3), full_batches(), strict=True):
        one = kernels[0].step(one, rows, coefficients, noise, h)
        two = kernels[1].step(two, rows, coefficients, noise, h)
        close(one[:2], two, PATH)
    assert (one[2] == 0.7).all()


# -- SGNHT: paths ---------------------------------------------------------------------------------


def naive_badodab(state, gradient, noise, h, gamma, mu, own):
    """One step, in NumPy."""
    (phi, v, xi), t = state, math.sqrt(h)

    def moved(xi, v):
        return xi + 0.5 * t / mu * ((v**2 if own else (v**2).mean()) - 1.0)

    v = v - t * gradient
    phi = phi + 0.5 * t * v
    xi = moved(xi, v)
    with np.errstate(invalid="ignore", divide="ignore"):
        s2 = np.where(xi == 0.0, 2.0 * gamma * t, -gamma * np.expm1(-2.0 * xi * t) / xi)
    v = np.exp(-xi * t) * v + np.sqrt(s2) * noise
    return np.stack([phi + 0.5 * t * v, v, moved(xi, v)])


@thermostats
@pytest.mark.parametrize("mu", [0.5, 4.0, 1e12])
def test_step_of_the_thermostat_is_the_formula(thermostat, mu):
    kernels = probe.Probe(unit_scene(), dynamics=SGNHT(0.8, thermostat, mu))
    rng, own = np.random.default_rng(0), thermostat == "coordinate"
    for xi in (1.3, 1e-3, 3e-7, 0.0, -1e-9, -0.8):
        state, (gradient, noise) = rng.normal(size=(3, 5)), rng.normal(size=(2, 5))
        state[2] = xi
        found = kernels.update(state, gradient, noise, 0.3)
        close(found, naive_badodab(state, gradient, noise, 0.3, 0.8, mu, own), PATH, 10.0)


@thermostats
@pytest.mark.parametrize("mu", [0.7, 4.0])
def test_mean_square_velocity_is_what_has_moved_the_thermostat(thermostat, mu):
    # Σ δ (v·v/d - 1) over the halves of all steps = μ (ξ_T - ξ_0), for any gradients and steps.
    dynamics = SGNHT(1.2, thermostat, mu)
    scene, gradient = make_scene("logistic", "student_t"), cases.GRADIENTS["minibatch"].gradient
    kernels = probe.Probe(
        scene.frame(kind="hessian"), gradient, dynamics=dynamics, batch_size=2
    )  # fmt: skip
    state = dynamics.start(np.array([0.5, -1.0, 0.2]), np.random.default_rng(5))
    assert (state[2] == 1.2).all()
    first, total, steps = state[2].copy(), np.zeros(3), 0.05 * (1.0 + np.arange(STEPS) % 4)
    for (rows, coefficients), noise, h in zip(some_batches(), normals(3), steps, strict=True):
        kicked = state[1] - math.sqrt(h) * kernels.estimate(state[0], rows, coefficients)
        state = kernels.step(state, rows, coefficients, noise, h)
        for v in (kicked, state[1]):
            square = v**2 if thermostat == "coordinate" else np.full(3, (v**2).mean())
            total += 0.5 * math.sqrt(h) * (square - 1.0)
    close(mu * (state[2] - first), total, PATH, 10.0)


def test_thermostats_of_coordinates_do_not_meet():
    # Five coordinates are five chains of one, where both kinds of thermostat are the same.
    rng = np.random.default_rng(0)
    state, (gradient, noise) = rng.normal(size=(3, 5)), rng.normal(size=(2, 5))
    kernels = {
        t: probe.Probe(unit_scene(), dynamics=SGNHT(1.0, t)) for t in ("scalar", "coordinate")
    }
    together = kernels["coordinate"].update(state, gradient, noise, 0.3)
    for j, kernel in itertools.product(range(5), kernels.values()):
        alone = kernel.update(state[:, j : j + 1], gradient[j : j + 1], noise[j : j + 1], 0.3)
        close(alone[:, 0], together[:, j], PATH)


# -- SGNHT: law -----------------------------------------------------------------------------------


def change_of_expectations(mu, gamma, a, h):
    """What one symmetric step adds to expectations under the law, by Gauss-Hermite quadrature."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(11)
    x, v, xi, noise = (g.ravel() for g in np.meshgrid(nodes, nodes, nodes, nodes))
    weight = math.prod(np.meshgrid(mass, mass, mass, mass)).ravel() / mass.sum() ** 4
    x, xi, half = x / math.sqrt(a), gamma + xi / math.sqrt(mu), 0.5 * math.sqrt(h)
    kernels = probe.Probe(unit_scene(), dynamics=SGNHT(gamma, "coordinate", mu))
    # The state lies half a kick before the beginning of the symmetric step.
    y, w, eta = kernels.update(np.stack([x, v + half * a * x, xi]), a * x, noise, h)
    w = w - half * a * y
    powers = [
        (2, 0, 0),
        (0, 2, 0),
        (1, 1, 0),
        (0, 0, 1),
        (0, 0, 2),
        (0, 2, 1),
        (1, 1, 1),
        (4, 0, 0),
    ]
    return np.array([weight @ (y**i * w**j * eta**k - x**i * v**j * xi**k) for i, j, k in powers])


@pytest.mark.parametrize(("mu", "gamma", "a"), [(1.0, 1.0, 1.0), (4.0, 0.5, 2.0), (9.0, 2.0, 0.5)])
def test_law_of_the_thermostat_to_third_order_of_a_step(mu, gamma, a):
    # exp(-U - v²/2 - (μ/2)(ξ - γ)²) is invariant in continuous time, and the splitting of second
    # order: expectations change by O(δ³) in a step, an eighth at half the time step.
    one, two = (change_of_expectations(mu, gamma, a, h) for h in (1e-4, 2.5e-5))
    assert np.abs(two).max() < 1e-4
    assert (np.abs(two) < np.abs(one) / 7.0 + 1e-12).all()


def absorbed(gamma, h, noises):
    """(ξ - γ, variances - 1) of unit Gaussians with such noises, ξ held where v·v/d has mean 1."""
    drift = np.array([[1.0, 0.5 * math.sqrt(h)], [0.0, 1.0]])
    kick = np.array([[1.0, 0.0], [-math.sqrt(h), 1.0]])

    def laws(xi):
        M, B, G = maps_of_update(SGNHT(gamma, inertia=1e300), 1.0, h, rows=[xi])
        found = [law(M, B, G, V) for V in noises]
        kicked = [drift @ kick @ S @ kick.T @ drift.T for S in found]
        squares = [
            0.5 * (S[1, 1] + K[1, 1] + h * V) for S, K, V in zip(found, kicked, noises, strict=True)
        ]
        return np.mean(squares) - 1.0, np.array([S[0, 0] - 1.0 for S in found])

    xi = optimize.brentq(lambda xi: laws(xi)[0], 0.5 * gamma, 3.0 * gamma, xtol=1e-14)
    return xi - gamma, laws(xi)[1]


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("V", [0.1, 1.0])
def test_isotropic_noise_is_absorbed(gamma, V):
    # ξ - γ = δV/2, and of the inflation δV/(2γ) of BAOAB the share -γ²h/4 is left.
    delta = 0.05
    rise, left = absorbed(gamma, delta**2, [V])
    assert abs(rise / (0.5 * delta * V) - 1.0) < 2.0 * delta
    assert abs(left[0] / (-gamma * delta**3 * V / 8.0) - 1.0) < 2.0 * delta * (gamma + V)
    dynamics = SGNHT(gamma)
    taken, back = dynamics.absorbed(np.array([V]), delta**2)
    assert taken == V
    assert abs(left[0]) < dynamics.noise_inflation(delta**2) * back


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("noises", [[1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.9, 0.5]])
def test_noise_that_differs_between_directions(gamma, noises):
    # δ(V - V̄)/(2γ + δV̄): within the bound for the noise that is not absorbed, on either side of 0.
    h, noises = 1e-4, np.array(noises)
    dynamics = SGNHT(gamma)
    _, left = absorbed(gamma, h, noises)
    mean = noises.mean()
    expected = 0.01 * (noises - mean) / (2.0 * gamma + 0.01 * mean)
    close(left, expected, 2.0 * 0.01, np.abs(expected).max())
    taken, back = dynamics.absorbed(noises, h)
    remaining = np.abs(noises - taken).max() + back.max()
    assert np.abs(left).max() < dynamics.noise_inflation(h) * remaining
    assert remaining <= noises.max()


def test_absorbed_noise():
    noises, own = np.array([1.0, 0.0, 5.0]), SGNHT(2.0, "coordinate")
    close(np.array(SGNHT().absorbed(noises, 0.1)), np.array([[2.0] * 3, [0.1] * 3]), PATH)
    close(np.array(own.absorbed(noises, 0.1)), np.array([noises, 0.2 * noises]), PATH)
    close(np.array(own.absorbed(noises, 0.9)), np.array([noises, noises]), PATH)
    for dynamics in (SGNHT(inertia=np.inf), BAOAB(), SGHMC()):
        assert not np.any(dynamics.absorbed(noises, 0.1))


@thermostats
def test_noise_that_is_left_of_a_posterior(thermostat):
    # The largest eigenvalue in size of the covariance less what is absorbed, by its definition.
    scene, dynamics = make_scene("logistic"), SGNHT(1.0, thermostat)
    frame, gradient = scene.frame(kind="hessian"), cases.GRADIENTS["minibatch"].gradient
    N, h = len(scene.posterior.X), 0.1
    p, sampled = np.full(N, 1.0 / N), (np.arange(N), np.ones(N))
    points, survey = np.random.default_rng(0).normal(size=(2, 3)), Survey(frame)
    a = [scene.posterior.row_gradients(frame.theta(z)) @ frame.F for z in points]
    C = sum(N * one.T @ one for one in a) / len(points)
    taken, back = dynamics.absorbed(np.diag(C), h)
    expected = np.abs(np.linalg.eigvalsh(C - np.diag(taken))).max() + back.max()
    absorbed = partial(dynamics.absorbed, h=h)
    found = survey.noise_eigenvalue(gradient, p, sampled, points, absorbed)
    assert found == pytest.approx(expected, rel=LAW)
    all_of_it = survey.noise_eigenvalue(gradient, p, sampled, points)
    assert all_of_it == pytest.approx(np.linalg.eigvalsh(C).max(), rel=LAW)
    of_baoab = partial(BAOAB().absorbed, h=h)
    assert survey.noise_eigenvalue(gradient, p, sampled, points, of_baoab) == all_of_it


@pytest.mark.parametrize(("gamma", "mu"), [(1.0, 4.0), (1.0, 10.0), (0.3, 1.0), (3.0, 2.0)])
def test_thermostats_relax_with_the_slowest_of_two_modes(gamma, mu):
    h, slowest = 0.01, 0.4
    heat = linalg.eigvals([[-2.0 * gamma, -2.0], [1.0 / mu, 0.0]])  # of E v² - 1 and ξ - γ
    motion = linalg.eigvals([[-gamma, -slowest], [1.0, 0.0]])
    rate = -max(heat.real.max(), motion.real.max())
    assert SGNHT(gamma, inertia=mu).relaxation_steps(h, slowest) == pytest.approx(10.0 / rate)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "h"), [(3.0, 0.25), (4.0, 0.25), (4.0, 0.5), (10.0, 0.5)])
def test_bias_is_a_bound_for_the_moments(mu, h):
    # Forty million states of one chain a coordinate, always the same ones.
    if numba.config.DISABLE_JIT:
        pytest.skip("takes minutes in Python")
    n_chains, rng, dynamics = 20_000, np.random.default_rng(0), SGNHT(1.0, "coordinate", mu)
    kernels = probe.Probe(unit_scene(), dynamics=dynamics)
    state = dynamics.start(rng.standard_normal(n_chains), rng)
    state[2] += rng.standard_normal(n_chains) / math.sqrt(mu)
    moments, n_steps = np.zeros(2), 2000
    for t in range(-100, n_steps):
        state = kernels.update(state, state[0], rng.standard_normal(n_chains), h)
        if t >= 0:
            moments += np.array([(state[0] ** 2).mean(), (state[0] ** 4).mean() / 3.0]) / n_steps
    assert 0.0 < moments[1] - 1.0 < dynamics.bias(h)
    assert abs(moments[0] - 1.0) < 0.1 * dynamics.bias(h)


# -- chains and parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dynamics",
    [SGHMC(refresh=4), SGHMC(2.0, 0.5, refresh=7), SGNHT(), SGNHT(0.5, "coordinate", 3.0)],
    ids=str,
)
def test_chains_follow_single_steps(dynamics):
    kernels = probe.Probe(make_scene("logistic").frame(kind="hessian"), dynamics=dynamics)
    start, h = np.array([0.5, -0.3, 0.1]), 0.15
    draws, _ = kernels.sample(start, 12, 20, step_size=cases.schedules.Constant(h))
    state, _, noise = kernels.start_of_chain(start, 12)
    for draw in draws[0]:
        state = kernels.step(state, *kernels.all_rows, noise.standard_normal(3), h)
        close(draw, state[0], 1e-11)


def test_coupled_chains_are_not_refreshed():
    frame = make_scene("logistic").frame(kind="hessian")
    found = [
        probe.Probe(frame, dynamics=SGHMC(refresh=refresh)).sample_coupled(np.ones(3), 1, 0.1, 9, 2)
        for refresh in (3, None)
    ]
    # Their starts are drawn with one row more or less, the position and the momentum first.
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("dynamics", "message"),
    [
        (SGHMC(friction=0.0), "friction of SGHMC.* must be a positive finite number, got 0.0"),
        (SGHMC(friction=np.inf), "friction of SGHMC.* must be a positive finite number, got inf"),
        (SGHMC(1.0, -0.1), r"noise_estimate of SGHMC.* in \[0, friction\] = \[0, 1.0\], got -0.1"),
        (SGHMC(1.0, 1.5), r"noise_estimate of SGHMC.* in \[0, friction\] = \[0, 1.0\], got 1.5"),
        (SGHMC(1.0, math.nan), "noise_estimate of SGHMC.*got nan"),
        (SGHMC(refresh=0), "refresh of SGHMC.* must be None or an int of at least 1, got 0"),
        (SGHMC(refresh=2.5), "refresh of SGHMC.*got 2.5"),
        (SGHMC(refresh=True), "refresh of SGHMC.*got True"),
        (SGNHT(friction=-1.0), "friction of SGNHT.* must be a positive finite number, got -1.0"),
        (SGNHT(inertia=0.0), "inertia of SGNHT.* must be a positive number, got 0.0"),
        (SGNHT(inertia=math.nan), "inertia of SGNHT.*got nan"),
        (SGNHT(thermostat="both"), "thermostat of SGNHT.* 'scalar' or 'coordinate', got 'both'"),
    ],
    ids=str,
)
def test_parameters_out_of_range(dynamics, message):
    with pytest.raises(InvalidParameterError, match=message):
        dynamics.parameters()


def test_bias_beyond_the_largest_step_is_infinite():
    dynamics = SGHMC(2.0)
    h = dynamics.largest_step(3.0)
    assert np.isfinite(dynamics.bias(0.99 * h, 3.0))
    assert dynamics.bias(1.01 * h, 3.0) == math.inf
