"""A small network against Hamiltonian Monte Carlo on all rows, written here.

Steps are those of the package, for 300 chains at a time, which begin in the posterior and must stay
there: half of a thousand steps forget where they began. `test_chains` has the steps of one chain.
"""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

from skbayes_sg.dynamics import BAOAB
from skbayes_sg.torch import moves
from skbayes_sg.torch.moves import MOVES

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (30, 1))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.standard_normal(30)
Y = (Y - Y.mean()) / Y.std()
NOISE, AT = 0.4, np.linspace(-2.5, 2.5, 12)[:, None]


def network():
    return nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1)).double()


def potential():
    """U of a vector θ, and the outputs at `AT`."""
    net = network()
    shapes = {n: p.shape for n, p in net.named_parameters()}
    x, y, at = (torch.from_numpy(v) for v in (X, Y, AT))

    def outputs(theta, where):
        parts = torch.split(theta, [s.numel() for s in shapes.values()])
        named = {n: p.view(s) for (n, s), p in zip(shapes.items(), parts, strict=True)}
        return functional_call(net, named, where)[:, 0]

    def U(theta):
        residuals = (y - outputs(theta, x)) / NOISE
        return 0.5 * (residuals**2).sum() + 0.5 * (theta**2).sum()

    return U, lambda theta: outputs(theta, at)


def normal(generator, shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def hmc(n_chains=300, n_rounds=200, n_leaps=25, epsilon=0.035, seed=0):
    """θ of many chains of HMC after so many rounds, and predictions in the second half of them."""
    U, outputs = potential()
    slope, generator = vmap(grad_and_value(U)), torch.Generator().manual_seed(seed)
    theta, kept, accepted = normal(generator, (n_chains, 10)), [], []
    g, u = slope(theta)
    for k in range(n_rounds):
        p = normal(generator, theta.shape)
        new, q, own = theta, p, g
        for _ in range(n_leaps):
            q = q - 0.5 * epsilon * own
            new = new + epsilon * q
            own, value = slope(new)
            q = q - 0.5 * epsilon * own
        change = u + 0.5 * (p**2).sum(1) - value - 0.5 * (q**2).sum(1)
        ok = torch.rand(n_chains, generator=generator, dtype=torch.float64).log() < change
        theta, g = (torch.where(ok[:, None], a, b) for a, b in ((new, theta), (own, g)))
        u = torch.where(ok, value, u)
        accepted.append(ok.double().mean().item())
        if k >= n_rounds // 2:
            kept.append(vmap(outputs)(theta))
    assert 0.6 < np.mean(accepted) < 0.999
    return theta, torch.stack(kept, dim=1).numpy()  # (chains, draws, points)


def largest_curvature(theta):
    """At the best of some modes that a few chains reach by descent."""
    U, _ = potential()
    slope = vmap(grad_and_value(U))
    theta = theta[:20].clone()
    for _ in range(3000):
        theta -= 2e-3 * slope(theta)[0]
    best = theta[slope(theta)[1].argmin()]
    return float(torch.linalg.eigvalsh(torch.func.hessian(U)(best))[-1])


def moved(theta, h, temperature=1.0, n_steps=1600, seed=1):
    """Predictions along chains of the package's BAOAB, in the second half of the steps.

    `h` is in units of the largest curvature. The chains begin in the posterior.
    """
    U, outputs = potential()
    slope, generator = vmap(grad_and_value(U)), torch.Generator().manual_seed(seed)
    F = largest_curvature(theta) ** -0.5
    state, kept = [theta / F, normal(generator, theta.shape)], []
    for k in range(n_steps):
        gradient = F * slope(F * state[0])[0] / temperature
        MOVES[BAOAB](state, gradient, normal(generator, theta.shape), h, (0.3,))
        if k >= n_steps // 2 and k % 8 == 0:
            kept.append(vmap(outputs)(F * state[0]))
    return torch.stack(kept, dim=1).numpy()


def moments(f):
    return f.mean(axis=(0, 1)), f.std(axis=(0, 1))


def distances(found, reference):
    """Root mean squares over the points: of means in predictive sd, and of log ratios of sd."""
    (m, s), (mean, sd) = moments(found), moments(reference)
    return np.sqrt((((m - mean) / sd) ** 2).mean()), np.sqrt((np.log(s / sd) ** 2).mean())


@pytest.fixture(scope="module")
def reference():
    torch.set_num_threads(1)
    return hmc()


def test_predictions_are_those_of_hamiltonian_monte_carlo(reference):
    theta, f = reference
    shift, ratio = distances(moved(theta, moves.step_limit(BAOAB())), f)
    assert shift < 0.05
    assert ratio < 0.05


def test_another_temperature_is_seen(reference):
    theta, f = reference
    assert distances(moved(theta, moves.step_limit(BAOAB()), temperature=0.7), f)[1] > 0.08


def test_too_large_a_step_is_seen(reference):
    theta, f = reference
    assert distances(moved(theta, 3.0), f)[1] > 0.08
