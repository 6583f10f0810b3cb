"""The loop over steps of a stochastic-gradient chain.

Every step draws rows and normals, estimates the gradient, and moves the state. The pieces are
first-class functions, called once for each batch, so that no combination of them is ever compiled.
A single `step` with given randomness is a pure function, which the exact tests examine.
"""

from .._base.jit import entry, inlined, inner
from ..kernels.gradient import fill_normal
from ..kernels.layout import GRADIENT_PHI, NOISE, SECOND_NOISE
from ..kernels.rows import fetch

__all__ = ["run_chain", "step"]


@inlined
def step(problem, pieces, state_out, rows, n, coefficients, noise, h, parameters, scratch):
    """Take one step with given randomness: the batch ``rows[:n]`` and the normals `noise`."""
    g = scratch.vectors[GRADIENT_PHI]
    pieces.gradient(problem, pieces.estimator, state_out[0], rows, n, coefficients, scratch, g)
    pieces.update(state_out, g, noise, h, parameters)


@inner
def _inside(position, bounds):
    """Whether the position is within the bounds; False for NaN."""
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
        (a, b): the noise of a step is ``a ξ1 + b ξ2``. With b = 0 no ξ2 is drawn. Otherwise a step
        uses as many normals as two steps of a chain that follows the same Brownian motion.
    step_sizes : array
        One step size for each of these steps, or a single one for all.
    bounds : array of shape (n_parameters,)
        The values of |φ_j| beyond which the chain has diverged.
    done : int
        Number of steps since the chain began to make draw 0 of `draws_out`.
    used_out : array of int64
        The numbers of rows of the steps are added to the entries of the draws that they lead to.
    slopes_out : array of shape (n_draws + 1, n_parameters) or (0, n_parameters)
        Row k is the gradient at draw k - 1 (for k = 0, at the start of draw 0), as estimated by the
        step that leaves it. If there are no rows, nothing is kept.

    Returns
    -------
    int
        `done`, updated: less than ``done + n_steps`` if the chain has left the bounds.
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
