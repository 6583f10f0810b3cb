"""The loop over steps of a stochastic-gradient chain.

Every step draws rows and normals, makes a gradient of them, and moves the state. Pieces come as
first-class functions, called once a batch, so that no combination of them is ever compiled; one
`step` with its randomness given is a pure function, which is what the exact tests examine.
"""

from .._jit import entry, inlined, inner, pointee
from ..priors import prior_gradient
from .layout import (
    BLOCK,
    EXTRA,
    GRADIENT_THETA,
    GRADIENT_Z,
    NOISE,
    OFFSET,
    PHI,
    PREDICTORS,
    PRIOR_CURVATURE,
    PRIOR_GRADIENT,
    SECOND_NOISE,
    TERM,
    THETA,
)  # fmt: skip
from .rows import fetch, predictors, scatter
from .tables import add_tables
from .warps import warp_gradient, warp_position

__all__ = ["fill_normal", "gradient", "pull_back", "run_chain", "step", "to_theta"]


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
def to_theta(coordinates, z, phi_out, theta_out):
    """φ = warp(z) and θ = centre + factor φ."""
    warp_position(coordinates.warp, z, phi_out)
    centre = coordinates.centre
    for i in range(z.shape[0]):
        theta_out[i] = centre[i]
    add_product(coordinates.factor, phi_out, theta_out)


@inlined
def add_rows(data, estimator, theta, rows, n, coefficients, bracket, blocks, g_out):
    """g_out += Σ_k c_k J_kᵀ t_k over the batch ``rows[:n]``."""
    eta, extra, terms = blocks[PREDICTORS], blocks[EXTRA], blocks[TERM]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        predictors(data, theta, rows, start, stop, eta)
        estimator.terms(
            data.facts, estimator.derivative, estimator.curvature, rows, start, stop,
            bracket, eta, extra, terms,
        )  # fmt: skip
        scatter(data, rows, start, stop, coefficients, terms, g_out)


@inlined
def begin(vectors, theta, centre, g, g_out):
    """g = -ref(θ) and g_out = offset."""
    for j in range(theta.shape[0]):
        shift = theta[j] - centre[j]
        g[j] = -vectors[PRIOR_GRADIENT, j] - vectors[PRIOR_CURVATURE, j] * shift
        g_out[j] = vectors[OFFSET, j]


@pointee
def gradient(problem, estimator, z, rows, n, coefficients, scratch, g_out):
    """The estimate of ∇_z U at `z` from the batch ``rows[:n]`` (formula: `layout.Problem`)."""
    vectors, coordinates = scratch.vectors, problem.coordinates
    phi, theta, g = vectors[PHI], vectors[THETA], vectors[GRADIENT_THETA]
    to_theta(coordinates, z, phi, theta)
    begin(problem.vectors, theta, coordinates.centre, g, g_out)
    add_tables(problem.tables, theta, coordinates.centre, scratch.bracket, g_out)
    prior_gradient(problem.prior, theta, g)
    add_rows(
        problem.data, estimator, theta, rows, n, coefficients, scratch.bracket, scratch.blocks, g
    )
    add_product(problem.linear, phi, g_out)
    add_transposed_product(coordinates.factor, g, g_out)
    warp_gradient(coordinates.warp, z, g_out)


@inlined
def pull_back(coordinates, z, g, g_out):
    """g_out = the gradient in z, of a gradient g in θ."""
    for j in range(z.shape[0]):
        g_out[j] = 0.0
    add_transposed_product(coordinates.factor, g, g_out)
    warp_gradient(coordinates.warp, z, g_out)


@inlined
def step(problem, pieces, state_out, rows, n, coefficients, noise, h, parameters, scratch):
    """One step with its randomness given: the batch `rows` and the normals `noise`."""
    g = scratch.vectors[GRADIENT_Z]
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


@entry
def run_chain(
    problem, pieces, subsample, state, rng_rows, rng_noise, mix, step_sizes, parameters, bounds,
    thin, done, n_steps, scratch, used_out, slopes_out, draws_out,
):  # fmt: skip
    """Take `n_steps` more steps, and keep the position after each `thin` of them.

    Parameters
    ----------
    mix : tuple of float
        (a, b): the noise of a step is ``a ξ1 + b ξ2``. With b = 0 there is no ξ2; otherwise the
        stream is used up as by a chain of twice as many steps, driven by the same Brownian motion.
    step_sizes : array
        One for each of these steps, or a single one for all.
    bounds : array of shape (n_parameters,)
        Where |φ_j| means that the chain has diverged.
    done : int
        Steps taken before, since draw 0 of `draws_out` was begun.
    used_out : array of int64
        To which the rows of the steps of each draw are added.
    slopes_out : array of shape (n_draws + 1, n_parameters) or (0, n_parameters)
        Row k, the gradient estimated at draw k - 1 (0: where draw 0 was begun), by the step that
        leaves it. Without rows nothing is kept.

    Returns
    -------
    int
        `done`, updated: short of ``done + n_steps`` if the chain has left the bounds.
    """
    rows, coefficients = scratch.rows, scratch.coefficients
    noise, second = scratch.vectors[NOISE], scratch.vectors[SECOND_NOISE]
    for t in range(n_steps):
        n = pieces.draw(rng_rows, subsample, state[0], rows, coefficients)
        used_out[(done + t) // thin] += n
        fetch(problem.data, rows, n)
        fill_normal(rng_noise, noise)
        if mix[1] != 0.0:
            fill_normal(rng_noise, second)
            for j in range(noise.shape[0]):
                noise[j] = mix[0] * noise[j] + mix[1] * second[j]
        h = step_sizes[t if step_sizes.shape[0] > 1 else 0]
        step(problem, pieces, state, rows, n, coefficients, noise, h, parameters, scratch)
        if slopes_out.shape[0] > 0 and (done + t) % thin == 0:
            for j in range(state.shape[1]):
                slopes_out[(done + t) // thin, j] = scratch.vectors[GRADIENT_Z, j]
        if not _inside(state[0], bounds):
            return done + t
        if (done + t + 1) % thin == 0:
            k = (done + t + 1) // thin - 1
            for j in range(state.shape[1]):
                draws_out[k, j] = state[0, j]
    return done + n_steps
