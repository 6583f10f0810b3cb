"""The law of chains, read off single steps; what is measured before and while they run."""

import numpy as np
import pytest
from scipy import linalg

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import made
import torch

from skbayes_sg.dynamics import BAOAB, SGLD
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.schedules import Constant
from skbayes_sg.torch import survey
from skbayes_sg.torch.chain import ModuleChain
from skbayes_sg.torch.minibatch import MinibatchGradient


def affine(chain, h):
    """(M, c, B) of one step s' = M s + c + B ξ, states flattened, by unit vectors."""
    rows, D = len(chain.state), chain.flat.n_parameters

    def step(state, noise):
        for own, value in zip(chain.state, state.reshape(rows, D), strict=True):
            own.copy_(torch.from_numpy(value))
        chain.flat.theta.copy_(chain.state[0] if chain.F is None else chain.F * chain.state[0])
        chain.step(h, torch.from_numpy(noise))
        return torch.stack(chain.state).numpy().ravel().copy()

    zero, silence = np.zeros(rows * D), np.zeros(D)
    c = step(zero, silence)
    M = np.stack([step(e, silence) - c for e in np.eye(rows * D)], axis=1)
    B = np.stack([step(zero, e) - c for e in np.eye(D)], axis=1)
    return M, c, B


def stationary(chain, h):
    """Mean and covariance of θ in the stationary law of the steps."""
    M, c, B = affine(chain, h)
    D = chain.flat.n_parameters
    mean = np.linalg.solve(np.eye(len(M)) - M, c)[:D]
    covariance = linalg.solve_discrete_lyapunov(M, B @ B.T)[:D, :D]
    F = np.ones(D) if chain.F is None else chain.F.numpy()
    return F * mean, F[:, None] * covariance * F


def closed_form(X, y, noise=0.5, scale=0.7, temperature=1.0):
    """Posterior of linear regression with known noise."""
    A = (X.T @ X / noise**2 + np.eye(X.shape[1]) / scale**2) / temperature
    return np.linalg.solve(A, X.T @ y / noise**2 / temperature), np.linalg.inv(A)


def chain_of(target, dynamics, F=None, h=0.05):
    gradient = made.all_rows_gradient(target)
    return ModuleChain(0, gradient, dynamics, Constant(h), F, seed=0)


@pytest.mark.parametrize("F", [None, torch.tensor([0.3, 0.8]).double()])
@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_a_linear_module_has_the_posterior_of_linear_regression(F, temperature):
    X, y, target = made.linear_law()
    target.temperature = temperature
    chain = chain_of(target, BAOAB(friction=2.0), F)
    mean, covariance = stationary(chain, 1e-3)
    expected = closed_form(X, y, temperature=temperature)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-8)
    wrong = closed_form(X, y, scale=0.71)[1]
    assert not np.allclose(covariance, wrong, rtol=1e-3)


def test_sgld_has_its_own_law():
    X, y, target = made.linear_law()
    h = 1e-3
    mean, covariance = stationary(chain_of(target, SGLD()), h)
    expected, C = closed_form(X, y)
    A = np.linalg.inv(C)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)
    np.testing.assert_allclose(covariance, C @ np.linalg.inv(np.eye(2) - h * A / 4), rtol=1e-9)


def test_a_step_with_a_preconditioner():
    _, _, target = made.linear_law()
    F, h = torch.tensor([0.3, 0.8]).double(), 0.01
    chain = chain_of(target, SGLD(), F)
    before = target.flat.theta.clone()
    target.potential()
    noise = torch.tensor([0.4, -1.2]).double()
    P = F**2
    expected = before - 0.5 * h * P * target.flat.gradient + h**0.5 * P.sqrt() * noise
    chain.step(h, noise)
    torch.testing.assert_close(target.flat.theta, expected, rtol=1e-12, atol=1e-14)


def test_the_largest_curvature():
    X, _, target = made.linear_law()
    A = X.T @ X / 0.25 + np.eye(2) / 0.49
    rng, generator = np.random.default_rng(0), target.generator(0)
    gradient = made.all_rows_gradient(target)
    before = target.flat.theta.clone()
    found = survey.curvature_of(gradient, None, rng, generator)
    assert found == pytest.approx(np.linalg.eigvalsh(A).max(), rel=1e-4)
    F = torch.tensor([0.3, 0.8]).double()
    found = survey.curvature_of(gradient, F, rng, generator)
    assert found == pytest.approx(np.linalg.eigvalsh(A * np.outer(F, F)).max(), rel=1e-4)
    assert torch.equal(target.flat.theta, before)


def test_the_preconditioner_is_one_over_the_root_mean_square_of_gradients():
    _, _, target = made.linear_law()
    F = survey.rmsprop(made.all_rows_gradient(target))  # every gradient is the same
    target.potential()
    size = target.flat.gradient.abs()
    size = size + survey.DAMPING * size.mean()
    torch.testing.assert_close(F**2, size.mean() / size, rtol=1e-10, atol=0.0)


def test_the_preconditioner_of_rows_is_the_diagonal_of_the_curvature(monkeypatch):
    X, y, target = made.linear_law(n_rows=200, d=5)
    target.flat.theta.copy_(torch.linspace(-1.0, 1.0, 5))  # with which y is made
    g = (X @ target.flat.theta.numpy() - y)[:, None] * X / 0.25
    monkeypatch.setattr(survey, "N_GRADIENTS", 2000)
    found = survey.fisher(MinibatchGradient(target, 20, np.random.default_rng(0))).numpy()
    size = len(X) * g.var(axis=0) + 1 / 0.49
    np.testing.assert_allclose(size, (X**2).sum(axis=0) / 0.25, rtol=0.6)  # by chance
    size += survey.DAMPING * np.sort(size)[1]
    np.testing.assert_allclose(found, np.sqrt(1.0 / size), rtol=0.05)


@pytest.mark.parametrize("F", [None, torch.tensor([0.3, 0.8]).double()])
def test_noise_along_predictions(F):
    X, y, target = made.linear_law()
    N, n = len(X), 2
    g = (X @ target.flat.theta.numpy() - y)[:, None] * X / 0.25
    C = N**2 * (1 - n / N) * np.cov(g, rowvar=False) / n
    scale = np.ones(2) if F is None else F.numpy()
    C, J = C * np.outer(scale, scale), X * scale
    expected = np.trace(J @ C @ J.T) / np.trace(J @ J.T)
    gradient = MinibatchGradient(target, n, np.random.default_rng(1))
    seen, pairs = target.rows.batch(np.arange(N)), 1500
    V, mean = survey.noise_of(gradient, F, seen, target.generator(0), pairs)
    # Of a ratio of means of squares, each of which has a relative variance of at most 2 / pairs;
    # that of batches is not normal: 4 instead of 2.
    assert pytest.approx(expected, rel=5 * np.sqrt(6 / pairs)) == V
    assert mean == pytest.approx(np.trace(C) / 2, rel=5 * np.sqrt(4 / pairs))
    assert expected / (np.trace(C) / 2) > 1.3  # the two differ


@pytest.mark.parametrize("wrong", ["far", "hot", "nan"])
def test_a_chain_that_leaves_is_named(wrong):
    _, _, target = made.linear_law()
    chain = chain_of(target, BAOAB())
    if wrong == "hot":
        chain.state[1].mul_(1e3)
    else:
        chain.state[0].fill_(1e9 if wrong == "far" else np.nan)
    with pytest.raises(SamplerDivergedError, match=r"Chain 0 .* 'weight' .* step_size=0.001"):
        chain.check_state(1e-3)


def test_too_large_a_step_diverges():
    _, _, target = made.linear_law()
    with pytest.raises(SamplerDivergedError, match="step_size='auto'"):
        chain_of(target, BAOAB(), h=10.0).run(400)


def test_sizes_of_steps_follow_the_schedule():
    from skbayes_sg.schedules import TwoPhase

    _, _, target = made.linear_law()
    chain = chain_of(target, SGLD())
    chain.schedule, taken = TwoPhase(0.02, 0.01, 3), []
    chain.step = lambda h: taken.append(h)
    chain.run(2)
    chain.run(3)
    assert taken == [0.02, 0.02, 0.02, 0.01, 0.01]
