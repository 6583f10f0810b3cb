"""Laws of the samplers: exact ones where the posterior is Gaussian, and quadrature."""

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skbayes_sg._base.jit import pointer
from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.dynamics import BAOAB, SGLD
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.gradients import SVRG, Minibatch
from skbayes_sg.kernels.layout import UPDATE, frozen
from skbayes_sg.models import LinearKnownNoise
from skbayes_sg.networks import curvature, guard, minibatches, prior_scales
from skbayes_sg.networks.architecture import make_network, n_weights
from skbayes_sg.networks.baoab import DELTA, ERRORS, FRICTION, N_NUMBERS, RATE, advance, evaluate
from skbayes_sg.networks.chain import new_chain
from skbayes_sg.networks.curvature import sums_of_kicks
from skbayes_sg.networks.gradient import Rows, pieces_of
from skbayes_sg.networks.guard import GuardedBAOAB
from skbayes_sg.networks.hmc import NetworkHMC
from skbayes_sg.networks.minibatches import (
    INFLATION_UNCORRECTED,
    LARGEST_STEP,
    MinibatchSampler,
    corrected,
)
from skbayes_sg.networks.predictor_map import new_scratch
from skbayes_sg.networks.prior_scales import draw_scales, make_groups, prior_of
from skbayes_sg.networks.problem import NetworkProblem
from skbayes_sg.networks.run import predictors_of, sample
from skbayes_sg.networks.stochastic import (
    CYCLE,
    Batches,
    Moves,
    advance_stochastic,
    friction_for,
    kick_and_drift,
    refresh,
)

PIECES = pieces_of(LinearKnownNoise())


def linear_problem(n=8, seed=0):
    """A network without hidden layer: linear regression with a normal prior. And its posterior."""
    rng, network = np.random.default_rng(seed), make_network((2, 1), "tanh")
    x, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    facts = frozen(np.column_stack([y, rng.uniform(0.5, 2.0, n)]))
    prior = prior_of(network, make_groups(network), np.array([1.3]))
    J = np.column_stack([x, np.ones(n)])
    A = J.T @ (facts[:, 1:] * J) + np.diag(prior[0])
    return network, Rows(x, facts, np.arange(n)), prior, J, A, J.T @ (facts[:, 1] * y)


def probed(step, n_state, n_noise):
    """M, B and c of an affine step z' = M z + B ξ + c."""
    c = step(np.zeros(n_state), np.zeros(n_noise))
    M = np.column_stack([step(e, np.zeros(n_noise)) - c for e in np.eye(n_state)])
    B = np.column_stack([step(np.zeros(n_state), e) - c for e in np.eye(n_noise)])
    return M, B, c


def stationary(maps):
    """Mean and covariance of a random affine map, given (M, B, c) of equally likely outcomes."""
    M, c = (np.mean([one[k] for one in maps], axis=0) for k in (0, 2))
    mean, n = np.linalg.solve(np.eye(len(c)) - M, c), len(c)
    second = np.mean([np.kron(one[0], one[0]) for one in maps], axis=0)
    off = [one[0] @ mean + one[2] - mean for one in maps]
    added = np.mean(
        [one[1] @ one[1].T + np.outer(d, d) for one, d in zip(maps, off, strict=True)], axis=0
    )
    return mean, np.linalg.solve(np.eye(n * n) - second, added.ravel()).reshape(n, n)


@pytest.mark.parametrize("delta", [0.1, 0.3])
def test_the_law_on_all_rows_is_the_posterior(delta):
    network, rows, prior, _, A, b = linear_problem()
    scale, scratch = np.array([0.3, 0.4, 0.2]), new_scratch(network, np.float64)

    def step(z, xi):
        state, numbers = np.vstack([z.reshape(2, 3), np.zeros(3)]), np.zeros(N_NUMBERS)
        numbers[0] = delta
        evaluate(PIECES, network, rows, state, numbers, scratch)
        noise = xi[None].copy()
        assert advance(PIECES, network, rows, state, prior, scale, noise, numbers, scratch) == 1
        return state[:2].ravel()

    mean, cov = stationary([probed(step, 6, 3)])
    assert mean[:3] == pytest.approx(np.linalg.solve(A, b), rel=1e-10)
    assert cov[:3, :3] == pytest.approx(np.linalg.inv(A), rel=1e-9, abs=1e-12)
    v = 1.0 - delta**2 / 4.0 * np.linalg.eigvalsh(scale[:, None] * A * scale)
    assert np.linalg.eigvalsh(cov[3:, 3:]) == pytest.approx(np.sort(v), rel=1e-9)


def test_steps_are_adapted_to_a_small_error_of_energy():
    """Not to the edge of stability, where a warm-up heats the chain.

    The step follows the last few states, so that a single error is within a factor of thirty.
    """
    network, rows, prior, *_ = linear_problem()
    scale, scratch = np.array([0.3, 0.4, 0.2]), new_scratch(network, np.float64)
    errors, n = [], 400
    for seed in range(12):
        rng, numbers = np.random.default_rng(seed), np.zeros(N_NUMBERS)
        state = rng.standard_normal((3, 3))
        evaluate(PIECES, network, rows, state, numbers, scratch)
        numbers[[DELTA, RATE]] = 0.02, 0.05
        for rate in (0.05, 0.0):
            numbers[[RATE, ERRORS]] = rate, 0.0
            noise = rng.standard_normal((n, 3))
            assert advance(PIECES, network, rows, state, prior, scale, noise, numbers, scratch) == n
        errors.append(numbers[ERRORS] / n)
    assert 3e-4 < np.exp(np.log(errors).mean()) < 8e-3


def test_energy_errors_are_those_of_the_step_without_noise_of_the_thermostat():
    network, rows, prior, J, A, b = linear_problem()
    scratch, rng = new_scratch(network, np.float64), np.random.default_rng(1)
    state, numbers, scale = rng.standard_normal((3, 3)), np.zeros(N_NUMBERS), np.full(3, 0.3)
    numbers[0] = delta = 0.4
    evaluate(PIECES, network, rows, state, numbers, scratch)

    def potential(theta):
        r = J @ theta - rows.facts[:, 0]
        return 0.5 * rows.facts[:, 1] @ r**2 + 0.5 * prior[0] @ theta**2

    theta, v, xi = state[0].copy(), state[1].copy(), rng.standard_normal((1, 3))
    before = potential(theta) + 0.5 * v @ v
    v -= 0.5 * delta * scale * (A @ theta - b)
    theta += 0.5 * delta * scale * v
    c = np.exp(-FRICTION * delta)
    thrown = c * v + np.sqrt(1.0 - c * c) * xi[0]
    heat = 0.5 * thrown @ thrown - 0.5 * v @ v
    theta += 0.5 * delta * scale * thrown
    v = thrown - 0.5 * delta * scale * (A @ theta - b)
    error = potential(theta) + 0.5 * v @ v - before - heat
    advance(PIECES, network, rows, state, prior, scale, xi, numbers, scratch)
    assert state[:2] == pytest.approx(np.stack([theta, v]), rel=1e-12)
    assert numbers[3] == pytest.approx(error**2 / 3.0, rel=1e-9)


def batch_step(network, rows, prior, scale, update, h, parameters, batch, anchor, state_rows=2):
    """One step of `advance_stochastic` with a given batch, as a function of state and normals."""
    n, N, P = len(batch), len(rows.x), len(scale)
    own = Rows(rows.x[batch], frozen(rows.facts[batch]), np.arange(n))
    scratch, update = new_scratch(network, np.float64), pointer(update, UPDATE)

    def step(z, xi):
        state = z.reshape(state_rows, P).copy()
        moves = Moves(update, update, 1, 0, 0.0, h, frozen(parameters))
        advance_stochastic(
            PIECES, network, Batches(own, n, n, N / n), moves, 1, state, prior, scale,
            xi[None].copy(), anchor, scratch, np.empty((2, P)),
        )  # fmt: skip
        return state.ravel()

    return step


NO_ANCHOR = np.zeros((0, 3))


def test_gradients_of_batches_have_mean_and_covariance_of_the_enumeration():
    network, rows, prior, J, A, b = linear_problem(n=5)
    scale, h, rng = np.array([0.3, 0.4, 0.2]), 0.2, np.random.default_rng(2)
    phi, there = rng.standard_normal((2, 3))
    residual = J @ (scale * phi) - rows.facts[:, 0]
    each = (rows.facts[:, 1] * residual)[:, None] * J
    off = (rows.facts[:, 1] * (J @ (scale * phi - there)))[:, None] * J
    anchor = np.stack([there, J.T @ (rows.facts[:, 1] * (J @ there - rows.facts[:, 0]))])
    for use, a in ((NO_ANCHOR, each), (anchor, off)):
        moved = []
        for batch in product(range(5), repeat=2):
            step = batch_step(
                network, rows, prior, scale, SGLD().update, h, np.zeros(0), list(batch), use, 1
            )
            moved.append((phi - step(phi, np.zeros(3))) / (0.5 * h * scale))
        spread = 5.0 * (a - a.mean(axis=0)).T @ (a - a.mean(axis=0)) / 2.0
        assert np.mean(moved, axis=0) == pytest.approx(A @ (scale * phi) - b, rel=1e-12)
        assert np.cov(np.transpose(moved), bias=True) == pytest.approx(spread, rel=1e-12, abs=1e-12)


def test_inflation_is_the_predicted_one():
    """For rows whose gradients differ by constants alone."""
    delta, law, y = 0.01, BAOAB(friction=1.0), np.array([3.0, -1.0, 0.5, -2.5])
    network = make_network((1, 1), "tanh")
    rows = Rows(np.zeros((4, 1)), frozen(np.column_stack([y, np.ones(4)])), np.arange(4))
    prior, scale = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 1.0 / np.sqrt(5.0)])
    pieces = network, rows, prior, scale, law.update, delta**2, law.parameters()
    steps = [batch_step(*pieces, [row], np.zeros((0, 2))) for row in range(4)]
    found = stationary([probed(step, 4, 2) for step in steps])[1][1, 1]
    share = 4.0 * (y**2).sum() / 5.0 * law.noise_inflation(delta**2)
    assert 0.05 < share < 0.2
    assert found - 1.0 == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize("taken", [0, 1])
def test_steps_with_friction_are_those_of_the_formula(taken):
    """Five steps, on batches of two of eight rows: two or three of them are the last of a cycle."""
    network, rows, prior, J, _, _ = linear_problem()
    rng, scale, delta, gamma, f = np.random.default_rng(4), np.array([0.3, 0.4, 0.2]), 0.1, 1.5, 0.2
    batches, state, noise = rng.integers(0, 8, 10), rng.standard_normal((2, 3)), []
    phi, v = state.copy()
    for t, batch in enumerate(batches.reshape(5, 2)):
        theta, w = scale * phi, rows.facts[batch, 1]
        each = 4.0 * scale * (w * (J[batch] @ theta - rows.facts[batch, 0]))[:, None] * J[batch]
        is_last = (taken + t) % 2 == 1
        factor = 1.0 + np.clip(f * each @ v, -1.0, 1.0) if is_last else np.ones(2)
        v = v - delta * (factor @ each + scale * prior[0] * theta)
        phi = phi + 0.5 * delta * v
        if is_last:
            noise.append(rng.standard_normal(3))
            c = np.exp(-2.0 * gamma * delta)
            v = c * v + np.sqrt(1.0 - c * c) * noise[-1]
        phi = phi + 0.5 * delta * v
    own = Rows(rows.x[batches], frozen(rows.facts[batches]), np.arange(10))
    updates = (pointer(update, UPDATE) for update in (refresh, kick_and_drift))
    moves = Moves(*updates, CYCLE, taken, f, delta**2, frozen(np.array([gamma])))
    advance_stochastic(
        PIECES, network, Batches(own, 2, 2, 4.0), moves, 5, state, prior, scale, np.array(noise),
        NO_ANCHOR, new_scratch(network, np.float64), np.empty((2, 3)),
    )  # fmt: skip
    assert len(noise) == 2 + taken
    assert state == pytest.approx(np.stack([phi, v]), rel=1e-12)


class AllRows:
    """Random numbers that name each row once."""

    def __init__(self, n):
        self.n = n

    def integers(self, low, high, size):
        return np.arange(low, high)


def kicks_of_linear_rows(n):
    """r_i of batches of n of eight rows, and the sums for q, of linear regression."""
    network, rows, _, J, _, _ = linear_problem()
    theta, scale = np.array([0.5, -1.0, 0.3]), np.array([0.3, 0.4, 0.2])
    problem = NetworkProblem(
        rows.x, rows.facts, np.zeros(2), np.ones(2), network, LinearKnownNoise(),
        make_groups(network), dtype=np.float64,
    )  # fmt: skip
    own = SimpleNamespace(rows=AllRows(8))
    scratch = new_scratch(network, np.float64)
    chain = SimpleNamespace(theta=theta, scratch=scratch, streams=own)
    residual = rows.facts[:, 1] * (J @ theta - rows.facts[:, 0])
    return 8 / n * scale * residual[:, None] * J, sums_of_kicks(problem, chain, scale, n)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_the_size_of_kicks_is_that_of_the_enumeration(n, monkeypatch):
    """Σ (r_i·r_k)² over pairs of a batch and Σ |r_i|², each in the mean over batches."""
    monkeypatch.setattr(curvature, "MOST_KICKS", 8)
    r, (squares, lengths) = kicks_of_linear_rows(n)
    batches = [list(batch) for batch in combinations(range(8), n)]
    products = [r[batch] @ r[batch].T for batch in batches]
    top = np.mean([(K**2).sum() for K in products])
    q = top / np.mean([K.trace() for K in products])
    assert squares / lengths == pytest.approx(q, rel=1e-10)


def test_steps_follow_all_measurements_of_kicks(monkeypatch):
    """A measurement of few rows that has a rare one does not shorten steps for good."""
    sampler, problem = minibatches.corrected(4, n_draws=5), SimpleNamespace(n_rows=100)
    memory = minibatches.BatchMemory(None, 1.0, 0.0, np.ones(3), None, np.array([1e4, 10.0]))
    chain = SimpleNamespace(memory=memory)
    monkeypatch.setattr(minibatches, "noise_of_rows", lambda *_: np.ones(3))
    for sums, q in (((9e4, 10.0), 5e3), ((0.0, 80.0), 1e3)):
        monkeypatch.setattr(minibatches, "sums_of_kicks", lambda *_, sums=sums: np.array(sums))
        sampler._remeasure(problem, chain)
        assert memory.h == pytest.approx(0.3 / q)
        assert sampler.measured(chain)["size_of_kicks"] == pytest.approx(0.3)
    memory.largest_h = 1e-6  # after returns
    sampler._remeasure(problem, chain)
    assert memory.h == 1e-6


def test_friction_balances_the_noise_of_all_steps_of_a_cycle():
    rng = np.random.default_rng(0)
    for n, delta in ((2, 0.05), (3, 0.2)):
        r = rng.standard_normal((n, 3))
        M = delta**2 * r.T @ r
        q = (M @ M).trace() / M.trace() / delta**2
        left = np.eye(3) - friction_for(delta, q) / delta * M
        assert delta**2 * q < 0.4
        assert CYCLE * M.trace() + (left @ left).trace() == pytest.approx(3.0, rel=1e-12)
    assert friction_for(0.1, 0.0) == pytest.approx(0.5 * CYCLE * 0.1)
    assert friction_for(1.0, 1e9) == friction_for(1.0, 0.4)  # of kicks that friction cannot meet


def spreads_with_batches(friction, delta, n=40, N=2000, n_draws=6000, thin=40):
    """Standard deviations in units of the posterior's, from the softest direction to the stiffest.

    Of a linear regression with columns that are nearly the same, in coordinates scaled one by one.
    """
    rng, network = np.random.default_rng(0), make_network((4, 1), "tanh")
    x = rng.standard_normal((N, 1)) + 0.3 * rng.standard_normal((N, 4))
    facts = frozen(np.column_stack([x.sum(axis=1) + rng.standard_normal(N), np.ones(N)]))
    prior, J = np.ones((2, 5)) * [[1.0], [0.0]], np.column_stack([x, np.ones(N)])
    A = J.T @ J + np.eye(5)
    scale, scratch = 1.0 / np.sqrt(np.diag(A)), new_scratch(network, np.float64)
    mean, state = np.linalg.solve(A, J.T @ facts[:, 0]), np.zeros((2, 5))
    state[0], draws = mean / scale, []
    updates = (pointer(update, UPDATE) for update in (refresh, kick_and_drift))
    moves = Moves(*updates, CYCLE, 0, friction, delta**2, frozen(np.array([1.0])))
    for _ in range(n_draws):
        batch = rng.integers(0, N, thin * n)
        own = Rows(x[batch], frozen(facts[batch]), np.arange(thin * n))
        noise = rng.standard_normal((thin // CYCLE, 5))
        advance_stochastic(
            PIECES, network, Batches(own, n, n, N / n), moves, thin, state, prior, scale, noise,
            np.zeros((0, 5)), scratch, np.empty((2, 5)),
        )  # fmt: skip
        draws.append(scale * state[0])
    values, directions = np.linalg.eigh(A)
    along = (np.array(draws) - mean) @ directions
    return np.sqrt((along**2).mean(axis=0) * values)


@pytest.mark.slow
def test_friction_takes_the_noise_out_of_stiff_and_soft_directions():
    """With I = 0.5 in the mean, where gradients of rows have 4 times as much in one direction."""
    found = spreads_with_batches(0.5 * CYCLE * 0.02, 0.02)
    assert found[-1] == pytest.approx(1.0, abs=0.04)
    assert found == pytest.approx(np.ones(5), abs=0.1)
    assert spreads_with_batches(0.0, 0.02, n_draws=1000)[-1] > 1.5


def test_scales_of_the_prior_have_their_truncated_law():
    network = make_network((3, 4, 2), "tanh", log_sd=1)
    groups, rng = make_groups(network), np.random.default_rng(0)
    assert groups.sizes.tolist() == [12, 4, 4]
    for size in (0.5, 30.0):  # the second wants τ beyond 10
        theta = size * rng.standard_normal(n_weights(network))
        W = [theta[:12], theta[16:24:2], theta[17:24:2]]
        for u in (0.01, 0.5, 0.9):
            draws = SimpleNamespace(random=lambda k, u=u: np.full(k, u))
            tau = draw_scales(groups, theta, draws, np.ones(3))
            far = draw_scales(groups, 1e6 * theta, np.random.default_rng(1), np.ones(3))
            assert far == pytest.approx(10.0)
            for g, own in enumerate(W):
                shape = 2.0 + 0.5 * len(own)
                rate = 2.0 + 0.5 * groups.fan_in[g] * (own**2).sum()
                law = stats.invgamma(shape, scale=rate)
                below = law.cdf(tau[g] ** 2) / law.cdf(prior_scales.LARGEST**2)
                assert below == pytest.approx(u, abs=1e-9)
                assert tau[g] <= 10.0


def test_scales_of_columns_have_their_truncated_law():
    network = make_network((3, 8, 2), "tanh", log_sd=1)
    groups, rng = make_groups(network), np.random.default_rng(0)
    theta, before = (
        rng.standard_normal(n_weights(network)),
        np.array([2.0, 1.0, 1.0, 0.3, 1.0, 4.0]),
    )
    theta[:24] *= np.repeat([0.01, 1.0, 40.0], 8)  # the last wants λ beyond 10
    W, lam = theta[:24].reshape(3, 8), before[3:]
    for u in (0.01, 0.5, 0.9):
        draws = SimpleNamespace(random=lambda k, u=u: np.full(k, u))
        found = draw_scales(groups, theta, draws, before)
        tau, of_columns = groups.split(found)
        rate = 2.0 + 0.5 * 3.0 * np.square(W / lam[:, None]).sum()
        law = stats.invgamma(14.0, scale=rate)
        assert law.cdf(tau[0] ** 2) / law.cdf(100.0) == pytest.approx(u, abs=1e-9)
        nu = stats.invgamma(1.0, scale=1.0 + lam**-2.0).ppf(1.0 - u)
        law = stats.invgamma(4.5, scale=1.0 / nu + 1.5 * np.square(W).sum(axis=1) / tau[0] ** 2)
        assert law.cdf(of_columns**2) / law.cdf(100.0) == pytest.approx(np.full(3, u), abs=1e-9)
        assert of_columns.max() <= 10.0
        precision = prior_of(network, groups, found)[0]
        assert precision[:24] == pytest.approx(np.repeat(3.0 / (tau[0] * of_columns) ** 2, 8))
        assert precision[24:32] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("sizes", "columns"), [((3, 7, 1), True), ((3, 1), True), ((3, 20, 1), False)]
)
def test_columns_have_no_scales_of_their_own(sizes, columns):
    groups = make_groups(make_network(sizes, "tanh"), columns)
    assert groups.n_columns == 0
    drawn = draw_scales(groups, np.ones(len(groups.column)), np.random.default_rng(0), np.ones(9))
    assert drawn.shape == (len(sizes) - 1,)


class Prior:
    """A problem without rows: what chains sample is the prior."""

    prior_scale, network = None, make_network((2, 8, 1), "tanh")
    groups = make_groups(network)


@pytest.mark.slow
def test_alternating_draws_of_weights_and_scales_leave_the_prior():
    """λ is half-Cauchy and τ² InvGamma(2, 2), both truncated: quantiles of a long chain."""
    rng, scales, kept = np.random.default_rng(0), np.ones(4), []
    for _ in range(40_000):
        precision = prior_of(Prior.network, Prior.groups, scales)[0]
        theta = rng.standard_normal(len(precision)) / np.sqrt(precision)
        scales = draw_scales(Prior.groups, theta, rng, scales)
        kept.append(scales)
    tau, of_columns = Prior.groups.split(np.array(kept))
    below = stats.halfcauchy.cdf(of_columns) / stats.halfcauchy.cdf(10.0)
    law = stats.invgamma(2.0, scale=2.0)
    below = np.hstack([below, law.cdf(tau[:, :1] ** 2) / law.cdf(100.0)])
    assert below.mean(axis=0) == pytest.approx(0.5, abs=0.05)
    assert below.var(axis=0) == pytest.approx(1.0 / 12.0, rel=0.1)


# -- a network with one unit, against quadrature -----------------------------------------------

GRID = np.linspace(-5.5, 5.5, 301)
NOISE = 0.5


def one_unit(n=20):
    """y = w tanh(u x + c) + b + noise: the problem, and mean and sd of f at some x.

    Given (u, c) the model is linear in (w, b), so that two integrals are known and two are sums.
    """
    rng, network = np.random.default_rng(3), make_network((1, 1, 1), "tanh")
    x = rng.standard_normal((n, 1))
    y = 1.5 * np.tanh(1.5 * x[:, 0]) + NOISE * rng.standard_normal(n)
    facts = frozen(np.column_stack([y, np.full(n, NOISE**-2)]))
    problem = NetworkProblem(
        x, facts, np.zeros(1), np.ones(1), network, LinearKnownNoise(), make_groups(network), 1.0
    )
    u, c = (values.ravel() for values in np.meshgrid(GRID, GRID))
    h = np.tanh(np.outer(u, x[:, 0]) + c[:, None])  # (grid, n)
    r = NOISE**-2
    a11, a12, a22 = 1.0 + r * (h**2).sum(1), r * h.sum(1), 1.0 + r * n
    b1, b2 = r * h @ y, np.full(len(u), r * y.sum())
    det = a11 * a22 - a12**2
    m1, m2 = (a22 * b1 - a12 * b2) / det, (a11 * b2 - a12 * b1) / det
    log_p = 0.5 * (b1 * m1 + b2 * m2) - 0.5 * np.log(det) - 0.5 * (u**2 + c**2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    at = np.array([-2.0, -0.7, 0.0, 0.4, 1.5])
    mean, sd = [], []
    for value in at:
        t = np.tanh(u * value + c)
        f = m1 * t + m2
        var = (a22 * t**2 - 2.0 * a12 * t + a11) / det
        mean.append(p @ f)
        sd.append(np.sqrt(p @ (var + f**2) - mean[-1] ** 2))
    return problem, at, np.array(mean), np.array(sd)


def errors(problem, at, mean, sd, sampler, n_draws, seed=0):
    """Largest error of a mean, in sd, and of an sd, relative."""
    request = SimpleNamespace(seed=seed, n_chains=4, n_draws=n_draws, n_jobs=None, max_doublings=0)
    with one_blas_thread:
        out = sample(problem, sampler, request, lambda eta: eta[..., 0], lambda *_: False)
    scratch = new_scratch(problem.network, np.dtype(np.float32))
    draws = out.draws.reshape(-1, out.draws.shape[-1])
    f = predictors_of(problem.network, draws, at[:, None].astype("f4"), scratch)[:, :, 0]
    off = np.abs(f.mean(axis=0) - mean) / sd
    return off.max(), np.abs(f.std(axis=0) / sd - 1.0).max()


def test_one_unit_is_sampled_as_quadrature_has_it():
    off, ratio = errors(*one_unit(), GuardedBAOAB(None, 900, 20), 1000)
    assert off < 0.05
    assert ratio < 0.05


@pytest.mark.slow
def test_noise_of_batches_is_taken_out():
    off, ratio = errors(*one_unit(), corrected(5, h=0.02**2, n_warmup=1000, thin=60), 1000)
    assert off < 0.1
    assert ratio < 0.06


@pytest.mark.slow
def test_noise_that_is_not_taken_out_is_seen():
    sampler = MinibatchSampler(BAOAB(), 5, h=0.04**2, n_warmup=1000, thin=30)
    assert errors(*one_unit(), sampler, 500)[1] > 0.12


def test_steps_and_inflation_count_the_rows_of_an_anchor():
    """Noise of 12 of 20 rows, which five steps share, acts like five times as much of one step."""
    found = {}
    for gradient in (Minibatch(), SVRG(5), SVRG(5, 12)):
        problem, *_ = one_unit()
        sampler = MinibatchSampler(BAOAB(), 5, n_warmup=60, thin=1, gradient=gradient)
        chain = new_chain(problem, 0, 0)
        sampler.start(problem, chain)
        sampler.warm_up(problem, chain)
        found[gradient] = chain.memory, sampler.measured(chain)["noise_inflation"], sampler
    N = problem.n_rows
    plain, all_rows, some_rows = found.values()
    assert (plain[0].shared, all_rows[0].shared) == (0.0, 0.0)
    assert np.isclose(some_rows[0].shared, 5 * (1.0 / 12 - 1.0 / N))
    share = [INFLATION_UNCORRECTED / V.noise.max() for V, *_ in found.values()]
    step_for = BAOAB().step_for_inflation
    wanted = [
        step_for(s / (1 / 5 + V.shared)) for s, (V, *_) in zip(share, found.values(), strict=True)
    ]
    assert np.allclose([V.h for V, *_ in found.values()], np.minimum(wanted, LARGEST_STEP**2))
    assert 0.0 < all_rows[1] < plain[1]  # differences to a position nearby
    V, inflation, _ = some_rows
    of_anchor = BAOAB().noise_inflation(V.h) * V.noise.mean() * V.shared
    assert of_anchor < inflation < of_anchor + plain[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        NetworkHMC(None, 300, 2),
        MinibatchSampler(SGLD(), 20, h=0.02, n_warmup=2000, thin=100),
        MinibatchSampler(BAOAB(), 5, h=0.005**2, n_warmup=2000, thin=400, gradient=SVRG()),
        MinibatchSampler(BAOAB(), 5, h=0.005**2, n_warmup=2000, thin=400),
    ],
    ids=["hmc", "sgld on all rows", "svrg", "minibatch"],
)
def test_samplers_of_users_find_the_law_of_one_unit(sampler):
    off, ratio = errors(*one_unit(), sampler, 2000)
    assert off < 0.1
    assert ratio < 0.07


def test_chains_that_no_step_helps_end_in_an_error(monkeypatch):
    problem, *_ = one_unit()
    request = SimpleNamespace(seed=0, n_chains=1, n_draws=5, n_jobs=None, max_doublings=0)
    monkeypatch.setattr(MinibatchSampler, "_steps", lambda *_: np.nan)
    with pytest.raises(SamplerDivergedError, match="chain 0 diverged"):
        sample(problem, corrected(5, n_warmup=10), request, lambda eta: eta, lambda *_: False)


def test_a_diverging_chain_is_an_error_and_a_guarded_one_goes_back():
    problem, *_ = one_unit()
    request = SimpleNamespace(seed=0, n_chains=1, n_draws=5, n_jobs=None, max_doublings=0)
    huge = MinibatchSampler(BAOAB(), 20, h=400.0, n_warmup=100, thin=10)
    with pytest.raises(SamplerDivergedError, match="chain 0 diverged"):
        sample(problem, huge, request, lambda eta: eta[..., 0], lambda *_: False)
    guarded = GuardedBAOAB(30.0, 0, 30)
    out = sample(problem, guarded, request, lambda eta: eta[..., 0], lambda *_: False)
    assert out.n_returns > 10
    assert out.step < 5.0
    assert np.isfinite(out.draws).all()


def test_a_guarded_chain_of_which_no_step_is_accepted_is_an_error(monkeypatch):
    monkeypatch.setattr(guard, "advance", lambda *_: 0)
    problem, *_ = one_unit()
    request = SimpleNamespace(seed=0, n_chains=1, n_draws=5, n_jobs=None, max_doublings=0)
    with pytest.raises(SamplerDivergedError, match="chain 0 cannot move"):
        sample(problem, GuardedBAOAB(0.1, 0, 3), request, lambda eta: eta[..., 0], lambda *_: False)
