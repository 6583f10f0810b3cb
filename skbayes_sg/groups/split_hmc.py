"""Kernels of `collapsed_hmc`: visits to a factor.

In coordinates x = c + F φ in which the law is about N(0, I) the Hamiltonian is split [1]_: the flow
of |φ|²/2 + |p|²/2 is a rotation, and kicks are by the gradient of the rest, Fᵀ∇U - φ.

.. [1] B. Shahbaba, S. Lan, W. O. Johnson and R. M. Neal (2014). Split Hamiltonian Monte Carlo.
   Statistics and Computing 24, 339-349.
"""

import math
from typing import NamedTuple

import numpy as np

from .._base.jit import entry, inlined
from ..kernels.copies import copy
from ..kernels.energy import kinetic_energy
from ..kernels.gradient import add_product, pull_back, to_theta
from ..kernels.layout import NO_SLOPES
from .adaptation import adapted
from .algebra import propose_effects
from .collapsed_kernels import UNKNOWN, placed, potential, whitened
from .kernels import add_by_level, losses_of_levels, residual_pass

__all__ = [
    "SplitCoordinates",
    "StepSizes",
    "VisitNoise",
    "coordinates_of",
    "drawn_noise",
    "moved_effects",
    "trajectory",
    "visits",
]

ACCEPTANCE, JITTER = 0.8, 0.2  # acceptance rate aimed at; random relative change of a step, at most
FARTHEST = 300.0  # mean |φ_i| beyond which a trajectory is given up
# Proposals of effects: the share of narrow ones, their width in units of P_l^-½, and the width of
# broad ones in units of the prior standard deviations.
PROPOSALS = 0.95, 1.05, 2.0


class SplitCoordinates(NamedTuple):
    """Coordinates x = c + F φ, as in `layout.Coordinates`, with the inverse of F."""

    centre: np.ndarray  # c
    factor: np.ndarray  # F
    inverse: np.ndarray  # F⁻¹
    slopes: np.ndarray = NO_SLOPES  # F is a matrix


def coordinates_of(centre, root):
    """`SplitCoordinates` with the centre c and F = root."""
    return SplitCoordinates(centre, np.ascontiguousarray(root), np.linalg.inv(root))


class StepSizes(NamedTuple):
    """Number and size of the steps of trajectories."""

    n_steps: int
    log_step: np.ndarray  # (1,): log ε
    average: np.ndarray  # (1,): its average
    first: int  # number of the first of the visits in this part of the warm-up
    longest: float  # the largest log ε
    adapts: bool  # whether log ε is adapted


class VisitNoise(NamedTuple):
    """The random numbers of a visit, or of several, with a first axis for the visits."""

    jitter: np.ndarray  # uniform: by how much steps are shorter or longer
    momentum: np.ndarray  # normals, overwritten by the trajectory
    accept_uniform: np.ndarray  # uniform: whether the trajectory is accepted
    narrow: np.ndarray  # (n_levels,), uniform: whether the proposal of a level is a narrow one
    normal: np.ndarray  # (n_levels, q): proposals of the effects
    level_uniforms: np.ndarray  # (n_levels,), uniform: whether a level accepts its proposal


def drawn_noise(rng, shape, dimension):
    """Draw `VisitNoise` for effects of shape (n_levels, q) and for x of this dimension."""
    L, jitter = shape[0], rng.random()
    first = rng.standard_normal(dimension), rng.random(), rng.random(L)
    return VisitNoise(jitter, *first, rng.standard_normal(shape), rng.random(L))


@inlined
def _kick(coordinates, half, phi, g, pulled, p):
    """p -= ½ ε (Fᵀg - φ), with `half` = ½ ε; `pulled` is scratch."""
    pull_back(coordinates, g, pulled)
    for i in range(p.shape[0]):
        p[i] -= half * (pulled[i] - phi[i])


@inlined
def _rotate(epsilon, phi, p):
    """Rotate (φ, p) by ε, the exact flow of ½ |φ|² + ½ |p|²; return the mean of |φ_i|."""
    cos, sin, total = math.cos(epsilon), math.sin(epsilon), 0.0
    for i in range(p.shape[0]):
        place = cos * phi[i] + sin * p[i]
        p[i] = cos * p[i] - sin * phi[i]
        phi[i] = place
        total += abs(place)
    return total / phi.shape[0]


@inlined
def _to_phi(coordinates, x, off, phi_out):
    """phi_out ← F⁻¹ (x - c); `off` is scratch."""
    for i in range(x.shape[0]):
        off[i], phi_out[i] = x[i] - coordinates.centre[i], 0.0
    add_product(coordinates.inverse, off, phi_out)


@inlined
def trajectory(factor, rows, model, coordinates, steps, noise, x, zeta, known, at):
    """x ← the end of a trajectory given ζ, if it is accepted; return the acceptance probability.

    ``steps`` is (number of steps, ε); `known` is Σ w_i ℓ_i at x or `UNKNOWN`, as for `potential`.
    """
    n_steps, epsilon = steps
    phi, p, end, free = np.empty(x.shape), noise.momentum, np.empty(x.shape), np.empty(x.shape)
    _to_phi(coordinates, x, free, phi)
    before = potential(factor, rows, model, x, zeta, known, at) + kinetic_energy(p)
    value = before
    for _ in range(n_steps):
        _kick(coordinates, 0.5 * epsilon, phi, at.g, free, p)
        if not _rotate(epsilon, phi, p) < FARTHEST:
            return 0.0
        to_theta(coordinates, phi, end)
        value = potential(factor, rows, model, end, zeta, UNKNOWN, at)
        _kick(coordinates, 0.5 * epsilon, phi, at.g, free, p)
    change = before - value - kinetic_energy(p)
    # A comparison, because `isfinite` of a sum is always true once sums may be reordered.
    probability = math.exp(min(change, 0.0)) if abs(change) < math.inf else 0.0
    if noise.accept_uniform < probability:
        for i in range(len(x)):
            x[i] = end[i]
    return probability


@inlined
def moved_effects(factor, rows, model, x, u, noise, at, residuals_out):
    """u ← effects after a proposal for each level; return the share accepted, and Σ w_i ℓ_i.

    Ω is at.omega. at.g ← the derivatives of Σ w_i ℓ_i in θ, residuals_out[i] ← w_i ∂ℓ_i/∂η_i.
    """
    D, n, L = factor.prior.shape[0], factor.S.shape[2], u.shape[0]
    gain, losses, eta = np.empty(L), np.zeros((L, 2)), np.empty(rows.codes.shape[0])
    propose_effects(
        factor.H, factor.S, factor.t, at.omega, at.C, x[:n], u, noise.narrow, noise.normal,
        PROPOSALS, at.squares, at.u, gain,
    )  # fmt: skip
    losses_of_levels(rows, model, x[:D], u, at.u, factor.offset, at.blocks, at.line, eta, losses)
    taken, loss = 0, 0.0
    for level in range(L):
        log_ratio = gain[level] + losses[level, 0] - losses[level, 1]
        takes = math.log(noise.level_uniforms[level]) < log_ratio
        if takes:
            taken += 1
            for j in range(u.shape[1]):
                u[level, j] = at.u[level, j]
        loss += losses[level, 1] if takes else losses[level, 0]
    at.g[:] = 0.0
    residual_pass(rows, model, x[:D], u, eta, at.blocks, at.line, at.g[:D], residuals_out)
    return taken / L, loss


@inlined
def _noise_of(noise, visit):
    """The `VisitNoise` of one of several visits."""
    return VisitNoise(
        noise.jitter[visit], noise.momentum[visit], noise.accept_uniform[visit],
        noise.narrow[visit], noise.normal[visit], noise.level_uniforms[visit],
    )  # fmt: skip


@entry
def visits(
    factor, rows, model, coordinates, sizes, noise, x, u, known, at, residuals_out, x_out, u_out,
    accepted_out,
):  # fmt: skip
    """Visit a factor several times, and return Σ w_i ℓ_i where this ends.

    A visit moves x = (θ, ψ) by a trajectory given ζ, and then the effects u given x. Rows of x_out,
    u_out and accepted_out are x and u after each of the visits, and the acceptance probability of x
    with the share of effects accepted. `known` is as for `potential`, and so are at.g and at.G
    after the visits.
    """
    zeta = np.empty(u.shape)
    for visit in range(x_out.shape[0]):
        own = _noise_of(noise, visit)
        change = 1.0 + JITTER * (2.0 * own.jitter - 1.0)
        steps = sizes.n_steps, math.exp(sizes.log_step[0]) * change
        whitened(factor, x, u, at, zeta)
        probability = trajectory(factor, rows, model, coordinates, steps, own, x, zeta, known, at)
        placed(factor, x, zeta, at)
        copy(at.u, u)
        share, known = moved_effects(factor, rows, model, x, u, own, at, residuals_out)
        at.G[:] = 0.0
        add_by_level(rows.codes, rows.Z, residuals_out, at.G)
        copy(x, x_out[visit])
        copy(u, u_out[visit])
        accepted_out[visit, 0], accepted_out[visit, 1] = probability, share
        if sizes.adapts:
            surplus, number = probability - ACCEPTANCE, sizes.first + visit
            adapted(sizes.log_step, sizes.average, surplus, number, sizes.longest)
    return known
