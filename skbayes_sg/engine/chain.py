"""The loop over steps of a stochastic-gradient chain.

Every step draws rows and normals, makes a gradient of them, and moves the state. Pieces come as
first-class functions, called once a batch, so that no combination of them is ever compiled; one
`step` with its randomness given is a pure function, which is what the exact tests examine.
"""

from .._base.jit import entry, inlined, inner
from ..kernels.gradient import fill_normal
from ..kernels.layout import GRADIENT_PHI, NOISE, SECOND_NOISE
from ..kernels.rows import fetch

__all__ = ["run_chain", "step"]


@inlined
def step(problem, pieces, state_out, rows, n, coefficients, noise, h, parameters, scratch):
    """One step with its randomness given: the batch `rows` and the normals `noise`."""
    g = scratch.vectors[GRADIENT_PHI]
    pieces.gradient(problem, pieces.estimator, state_out[0], rows, n, coefficients, scratch, g)
    pieces.update(state_out, g, noise, h, parameters)


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
                slopes_out[(done + t) // thin, j] = scratch.vectors[GRADIENT_PHI, j]
        if not _inside(state[0], bounds):
            return done + t
        if (done + t + 1) % thin == 0:
            k = (done + t + 1) // thin - 1
            for j in range(state.shape[1]):
                draws_out[k, j] = state[0, j]
    return done + n_steps
