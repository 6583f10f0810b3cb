"""What is measured at the start of a chain: the preconditioner, the curvature, and the noise.

Coordinates. A chain moves in φ with θ = F φ and F diagonal; in θ that is the preconditioner P = F².
"rmsprop" has P ∝ 1/(√v + λ), with v the mean square of each entry of the stochastic gradient at the
start, and λ a tenth of the mean of √v (Li, Chen, Carlson and Carin 2016, but measured once: a
preconditioner that follows the chain would change the law, unless its derivative were added). P is
scaled so that the largest curvature of U in φ is 1. Without preconditioner φ = θ.

"fisher" has P = 1/(Σ_i (∂ℓ_i)² + 1/s² + λ), with the deviations of the gradients of single rows
from their mean, s the scale of the prior, and λ a tenth of the first quartile over parameters of
the other terms. For a linear model P is the inverse of the diagonal of its curvature, in any unit
of the columns, for which "rmsprop" is too weak; λ is for units that no row uses at the start.

Noise. A gradient with noise ε in φ widens a prediction f by as much as ε moves along its slope J:
what is reported is V = Σ_x (J_x ε)² / Σ_x (J_x z)² with z ~ N(0, I), a ratio of averages over pairs
of batches, where x are rows of the fit. It is the variance of the noise, averaged over directions
with weights by how much predictions depend on them.
Derivatives along a direction are differences, which need no second derivative of any layer.
"""

from typing import NamedTuple

import numpy as np
import torch

from . import priors
from .device import seeded
from .flat import evaluating

__all__ = [
    "StartSurvey",
    "curvature_of",
    "fisher",
    "functions_at",
    "noise_of",
    "rmsprop",
    "rows_seen",
    "squared_motions",
]

N_GRADIENTS = 32  # gradients over which mean squares are taken
N_PAIRS = 12  # pairs of stochastic gradients, whose differences tell their noise
N_POWERS = 10  # steps of the power iteration for the largest curvature
N_CURVATURE_ROWS = 500  # rows on which it is measured, at most
DAMPING = 0.1  # λ over the mean of √v ("rmsprop"), or over a quantile of the sizes ("fisher")
QUANTILE = 0.25  # the probability of that quantile, over parameters
SMALL = 1e-3  # length of a finite difference, as a share of the length of θ


class StartSurvey(NamedTuple):
    """Measurements at the start of a chain.

    Parameters
    ----------
    F : tensor of shape (n_parameters,) or None
        The scales of the coordinates, θ = F φ; None for φ = θ.
    curvature : float
        Largest curvature of U in φ.
    """

    F: "torch.Tensor | None"
    curvature: float


def rmsprop(gradient):
    """Return √P of "rmsprop", up to a factor, (n_parameters,)."""
    g, square = gradient.target.flat.gradient, 0.0
    for _ in range(N_GRADIENTS):
        gradient()
        square = square + g * g / N_GRADIENTS
    size = square.sqrt()
    size = size + DAMPING * size.mean() + torch.finfo(size.dtype).tiny
    return (size.mean() / size).sqrt()


def fisher(gradient):
    """Return √P of "fisher", (n_parameters,), from gradients of n of N rows without replacement."""
    target = gradient.target
    g, mean, square = target.flat.gradient, 0.0, 0.0
    for _ in range(N_GRADIENTS):
        gradient()
        mean, square = mean + g / N_GRADIENTS, square + g * g / N_GRADIENTS
    n, N = gradient.batch_size, target.rows.n_rows
    size = (square - mean * mean).clamp(min=0.0) * (n / max(1, N - n) * target.temperature)
    size += priors.precisions(target.groups, target.flat.theta) / target.temperature
    kth = 1 + int(QUANTILE * (len(size) - 1))
    size += DAMPING * size.kthvalue(kth).values + torch.finfo(size.dtype).tiny
    return size.rsqrt()


def curvature_of(gradient, F, rng, generator):
    """Return the largest curvature of U in φ, by power iteration on at most 500 rows."""
    target = gradient.target
    flat, N = target.flat, target.rows.n_rows
    rows = rng.choice(N, min(N, N_CURVATURE_ROWS), replace=False)
    centre, u = flat.theta.clone(), torch.empty_like(flat.theta).normal_(generator=generator)
    value = 0.0
    for _ in range(N_POWERS):
        u /= u.norm()
        along = u if F is None else F * u
        step = float(SMALL * (1e-3 + centre.norm())) / float(along.norm())
        difference = _gradient_at(target, rows, centre + step * along)
        difference -= _gradient_at(target, rows, centre - step * along)
        gradient.n_evaluated += 2 * len(rows)
        Hu = difference.div_(2.0 * step)
        u = Hu if F is None else F * Hu
        value = float(u.norm())
    flat.theta.copy_(centre)
    return max(value, 1e-12)


def _gradient_at(target, rows, theta):
    """Return ∇U at θ from some rows, with the same random numbers of layers at every call."""
    target.flat.theta.copy_(theta)
    with seeded(0, target.flat.device):
        target.sum_gradient(rows)
    target.add_prior(1.0 / target.temperature)
    return target.flat.gradient.clone()


def rows_seen(target, rng, most):
    """Return a batch of at most `most` rows of the fit, at which predictions are compared.

    If there are no more rows than columns, some directions of X occur in no row, and only the prior
    tells what the parameters do there. The batch then has as many rows more, in which each column
    is in a random order of its own.
    """
    N = target.rows.n_rows
    found = target.rows.batch(np.sort(rng.choice(N, min(N, most), replace=False)))
    x = found[0]
    if x.ndim != 2 or not x.is_floating_point() or not 1 < N <= x.shape[1]:
        return found
    orders = torch.from_numpy(np.argsort(rng.random(tuple(x.shape)), axis=0)).to(x.device)
    others = torch.gather(x, 0, orders), *found[1:]
    return tuple(
        own if own is None else torch.cat([own, other])
        for own, other in zip(found, others, strict=True)
    )


@torch.no_grad()
def functions_at(target, batch):
    """Return the predictions of the module at the rows of a batch, in evaluation mode."""
    with evaluating(target.flat.module):
        return target.likelihood.functions(target.flat.module(batch[0]), batch[1])


def _squared_motion(target, batch, direction):
    """Return Σ_x (J_x u)² over the rows of a batch, for a direction u of θ."""
    theta = target.flat.theta
    centre, length = theta.clone(), float(direction.norm())
    if length == 0.0:
        return 0.0
    step = float(SMALL * (1e-3 + centre.norm())) / length
    theta.copy_(centre + step * direction)
    above = functions_at(target, batch)
    theta.copy_(centre - step * direction)
    below = functions_at(target, batch)
    theta.copy_(centre)
    return float(((above - below).double() / (2.0 * step)).square().sum())


def squared_motions(target, batch, F, u, generator):
    """Return Σ_x (J_x u)² for a move u in φ, and for a standard normal vector in its place."""
    z = torch.empty_like(u).normal_(generator=generator)
    return tuple(_squared_motion(target, batch, x if F is None else F * x) for x in (u, z))


def noise_of(gradient, F, batch, generator, n_pairs=N_PAIRS):
    """Return (V, mean variance over coordinates) of a stochastic gradient, from batch pairs."""
    target, found = gradient.target, []
    for _ in range(n_pairs):
        gradient()
        first = target.flat.gradient.clone()
        gradient()
        u = (first - target.flat.gradient) / np.sqrt(2.0)
        u = u if F is None else F * u
        found.append((*squared_motions(target, batch, F, u, generator), float(u.square().mean())))
    moved, normal, square = np.mean(found, axis=0)
    return float(moved / max(normal, np.finfo(float).tiny)), float(square)
