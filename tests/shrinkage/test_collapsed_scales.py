"""Trajectories of scales: their gradient by differences, and their law against a grid."""

import numpy as np
import pytest
from test_horseshoe import NOISE, SEEN, Z, exact_law

from skbayes_sg.priors import HalfNormal
from skbayes_sg.shrinkage.collapsed_scales import CollapsedScales
from skbayes_sg.shrinkage.local_scales import LocalScales
from skbayes_sg.shrinkage.normal_rows import FewColumns, NormalRows


@pytest.mark.parametrize("noise", [None, HalfNormal(0.7)._table((1,))[0]], ids=["known", "learned"])
def test_gradients_are_those_of_differences(noise):
    rng = np.random.default_rng(0)
    p, n_chains, h = 3, 2, 1e-5
    rows = FewColumns([NormalRows(rng.normal(size=(6, p)), rng.normal(size=6))], 6.0)
    local = LocalScales(n_chains, p, 0.3, 1.5, rng)
    own = CollapsedScales(p, noise, 6, 8, rng)
    own.kappa = np.array([0.2, 0.9, 0.5])
    log_sigma, q = np.full(n_chains, -0.4), rng.normal(size=(n_chains, len(own.sd)))
    _, gradient = own._law(q, rows, local, log_sigma)
    for j, step in enumerate(h * np.eye(q.shape[1])):
        up, down = (own._law(q + sign * step, rows, local, log_sigma)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2.0 * h), atol=1e-6)


def moments_of_log_tau(zero, slab, n_chains, n_updates, change=lambda local: None):
    """log τ of many short chains by trajectories alone, with four columns seen."""
    rng = np.random.default_rng(1)
    rows = FewColumns([NormalRows(np.eye(len(SEEN)), SEEN)], None)
    local = LocalScales(n_chains, len(SEEN), zero, slab, rng)
    own = CollapsedScales(len(SEEN), None, 4, n_updates, rng)
    curvature, log_sigma = np.full((1, len(SEEN)), NOISE**-2), np.full(n_chains, np.log(NOISE))
    for _ in range(n_updates):
        own.update(rows, curvature, local, log_sigma, True)
        change(local)
    return local.log_tau


def test_trajectories_have_the_law_of_a_grid():
    n, zero, slab = 150, 0.4, 1.2
    log_tau = moments_of_log_tau(zero, slab, n, 40)
    t, p, _ = exact_law(zero, slab)
    expected = p @ t
    sd = np.sqrt(p @ (t - expected) ** 2)
    fourth = p @ ((t - expected) / sd) ** 4

    def off(values):
        mean = (values.mean() - expected) / sd * np.sqrt(n)
        return abs(mean), abs(values.var() / sd**2 - 1.0) / np.sqrt((fourth - 1.0) / n)

    assert max(off(log_tau)) < Z
    planted = moments_of_log_tau(4.0 * zero, slab, n, 40)
    assert max(off(planted)) > Z


def test_the_step_and_the_coordinates_are_chosen_in_the_warm_up():
    """Where the rows know a scale it moves against τ; where they do not, by itself."""
    rng = np.random.default_rng(2)
    A = np.diag([100.0, 1e-3])
    rows = FewColumns([NormalRows(A, A @ [1.0, 0.0])], None)
    local, own = LocalScales(4, 2, 0.3, 2.0, rng), CollapsedScales(2, None, 2, 40, rng)
    log_sigma, curvature = np.zeros(4), np.broadcast_to(np.diag(A) ** 2, (4, 2))
    for _ in range(40):
        own.update(rows, curvature, local, log_sigma, True)
    assert own.kappa[0] > 0.8
    assert own.kappa[1] < 0.1
    step, kappa, sd = own.log_step, own.kappa.copy(), own.sd.copy()
    for _ in range(20):
        own.update(rows, curvature, local, log_sigma, False)
    assert own.log_step == step
    np.testing.assert_array_equal(own.kappa, kappa)
    np.testing.assert_array_equal(own.sd, sd)
    assert 10 < len(own.accepted) < 20  # short trajectories do not count
