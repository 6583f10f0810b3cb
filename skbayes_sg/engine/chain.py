"""The loop over steps of a stochastic-gradient chain.

Every step draws rows and normals, makes a gradient of them, and moves the state. Pieces come as
first-class functions, called once a batch, so that no combination of them is ever compiled; one
`step` with its randomness given is a pure function, which is what the exact tests examine.
"""

import numpy as np

from .._jit import inner, jit
from ..priors import prior_gradient
from .layout import BLOCK
from .rows import predictors, scatter
from .tables import add_tables
from .warps import warp_gradient, warp_position

__all__ = ["fill_normal", "gradient", "run_chain", "run_coupled", "step"]


@inner
def add_product(M, x, out):
    """out += M x, for a matrix, a diagonal given as one row, or nothing (no rows)."""
    if M.shape[0] == 1:
        for i in range(x.shape[0]):
            out[i] += M[0, i] * x[i]
        return
    for i in range(M.shape[0]):  # full rows: a triangular loop is not vectorised and takes longer
        total = 0.0
        for j in range(M.shape[1]):
            total += M[i, j] * x[j]
        out[i] += total


@inner
def add_transposed_product(M, x, out):
    """out += Mᵀ x, for a matrix or a diagonal given as one row."""
    if M.shape[0] == 1:
        for i in range(x.shape[0]):
            out[i] += M[0, i] * x[i]
        return
    for i in range(M.shape[0]):
        scale = x[i]
        for j in range(M.shape[1]):
            out[j] += scale * M[i, j]


@inner
def to_theta(problem, z, phi_out, theta_out):
    """φ = warp(z) and θ = centre + factor φ."""
    warp_position(problem.warp, z, phi_out)
    for i in range(z.shape[0]):
        theta_out[i] = problem.centre[i]
    add_product(problem.factor, phi_out, theta_out)


@inner
def add_rows(data, estimator, theta, rows, n, coefficients, scratch, g_out):
    """g_out += Σ_k c_k J_kᵀ t_k over the batch ``rows[:n]``."""
    eta, extra, terms = scratch.predictors, scratch.extra, scratch.terms
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        predictors(data, theta, rows, start, stop, eta)
        estimator.terms(
            data.facts, estimator.derivative, estimator.curvature, rows, start, stop,
            scratch.bracket, eta, extra, terms,
        )  # fmt: skip
        scatter(data, rows, start, stop, coefficients, terms, g_out)


@jit
def gradient(problem, estimator, z, rows, n, coefficients, scratch, g_out):
    """The estimate of ∇_z U at `z` from the batch ``rows[:n]`` (formula: `layout.Problem`)."""
    phi, theta, g = scratch.phi, scratch.theta, scratch.gradient[0]
    to_theta(problem, z, phi, theta)
    for j in range(z.shape[0]):
        g[j] = -problem.reference[0, j] - problem.reference[1, j] * (theta[j] - problem.centre[j])
        g_out[j] = problem.offset[j]
    add_tables(problem.tables, theta, problem.centre, scratch.bracket, g_out)
    prior_gradient(problem.prior, theta, g)
    add_rows(problem.data, estimator, theta, rows, n, coefficients, scratch, g)
    add_product(problem.linear, phi, g_out)
    add_transposed_product(problem.factor, g, g_out)
    warp_gradient(problem.warp, z, g_out)


@jit
def step(problem, pieces, state_out, rows, n, coefficients, noise, h, parameters, scratch):
    """One step with its randomness given: the batch `rows` and the normals `noise`."""
    g = scratch.gradient[1]
    pieces.gradient(
        problem, pieces.estimator, state_out[0], rows, n, coefficients, scratch, g
    )  # fmt: skip
    pieces.update(state_out, g, noise, h, parameters)


@inner
def fill_normal(rng, out):
    """Standard normals, 2.9 ns each."""
    for j in range(out.shape[0]):
        out[j] = rng.standard_normal()


@inner
def _inside(position, bounds):
    """False for anything beyond the bounds, and for NaN."""
    for j in range(position.shape[0]):
        if not abs(position[j]) < bounds[j]:
            return False
    return True


@jit
def run_chain(
    problem, pieces, subsample, state, rng_rows, rng_noise, step_sizes, parameters, bounds,
    thin, done, n_steps, scratch, draws_out,
):  # fmt: skip
    """Take `n_steps` more steps, and keep the position after each `thin` of them.

    Parameters
    ----------
    step_sizes : array
        One for each of these steps, or a single one for all.
    bounds : array of shape (n_parameters,)
        Where |φ_j| means that the chain has diverged.
    done : int
        Steps taken before, since draw 0 of `draws_out` was begun.

    Returns
    -------
    int
        `done`, updated: short of ``done + n_steps`` if the chain has left the bounds.
    """
    rows, coefficients, noise = scratch.rows, scratch.coefficients, scratch.noise
    for t in range(n_steps):
        n = pieces.draw(rng_rows, subsample, rows, coefficients)
        fill_normal(rng_noise, noise)
        h = step_sizes[t if step_sizes.shape[0] > 1 else 0]
        step(problem, pieces, state, rows, n, coefficients, noise, h, parameters, scratch)
        if not _inside(state[0], bounds):
            return done + t
        if (done + t + 1) % thin == 0:
            k = (done + t + 1) // thin - 1
            for j in range(state.shape[1]):
                draws_out[k, j] = state[0, j]
    return done + n_steps


@jit
def run_coupled(
    problem, pieces, subsample, coarse, fine, rng_rows, rng_noise, h, h_fine, mix, parameters,
    bounds, thin, scratch, coarse_out, fine_out,
):  # fmt: skip
    """A chain of step h and one of half the time step, driven by the same Brownian motion.

    ``mix = (a, b)``: the coarse noise is ``a ξ1 + b ξ2`` of the two fine steps. Batches are
    independent, so the distance between the chains sees gradient noise and step size alike.
    Returns False if either leaves the bounds.
    """
    rows, coefficients = scratch.rows, scratch.coefficients
    first, second = np.empty(coarse.shape[1]), np.empty(coarse.shape[1])
    for k in range(coarse_out.shape[0]):
        for _ in range(thin):
            fill_normal(rng_noise, first)
            n = pieces.draw(rng_rows, subsample, rows, coefficients)
            step(problem, pieces, fine, rows, n, coefficients, first, h_fine, parameters, scratch)
            fill_normal(rng_noise, second)
            n = pieces.draw(rng_rows, subsample, rows, coefficients)
            step(problem, pieces, fine, rows, n, coefficients, second, h_fine, parameters, scratch)
            for j in range(first.shape[0]):
                first[j] = mix[0] * first[j] + mix[1] * second[j]
            n = pieces.draw(rng_rows, subsample, rows, coefficients)
            step(problem, pieces, coarse, rows, n, coefficients, first, h, parameters, scratch)
            if not (_inside(coarse[0], bounds) and _inside(fine[0], bounds)):
                return False
        for j in range(coarse.shape[1]):
            coarse_out[k, j] = coarse[0, j]
            fine_out[k, j] = fine[0, j]
    return True
