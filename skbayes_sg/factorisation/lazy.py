"""The exact contribution of the prior to a Langevin diffusion, computed when a row is used.

Between two uses of a row only its prior N(m, Λ⁻¹) and noise act on it, and its law after any time
is known. In the eigenvectors of Λ = V diag(λ) Vᵀ, each coordinate y of Vᵀ (x - m) is an
Ornstein-Uhlenbeck process. Over the time T of dx = -½ P ∇U dt + P^½ dW, with P = 1/H and a number H
for each row,

    y' = c y + √((1 - c²) / λ) ξ,    c = exp(-½ T λ / H).

With a velocity v (dx = v dt, dv = -(1/H) ∇U dt - γ v dt + √(2γ/H) dW), (y, v) is a linear process
in two dimensions with the stationary covariance diag(1/λ, 1/H); with E = exp(T [[0, 1], [-λ/H,
-γ]]),

    (y, v)' = E (y, v) + noise of covariance diag(1/λ, 1/H) - E diag(1/λ, 1/H) Eᵀ.

So rows that are never used keep their prior law, whatever the step size.
"""

import math

import numpy as np

from .._base.jit import entry, inner

__all__ = ["bring_rows", "flow", "kinetic_flow"]


@inner
def _to_eigenvectors(x, mean, V, y_out):
    for j in range(y_out.shape[0]):
        y_out[j] = 0.0
    for i in range(x.shape[0]):
        for j in range(y_out.shape[0]):
            y_out[j] += V[i, j] * (x[i] - mean[i])


@inner
def _from_eigenvectors(y, mean, V, x_out):
    for i in range(x_out.shape[0]):
        total = 0.0
        for j in range(y.shape[0]):
            total += V[i, j] * y[j]
        x_out[i] = mean[i] + total


@inner
def flow(time, H, mean, V, lam, rng, y, x_out):
    """Move the row `x_out` under its prior and noise for a time, in place; y is working memory."""
    _to_eigenvectors(x_out, mean, V, y)
    for j in range(y.shape[0]):
        c = math.exp(-0.5 * time * lam[j] / H)
        y[j] = c * y[j] + math.sqrt((1.0 - c * c) / lam[j]) * rng.standard_normal()
    _from_eigenvectors(y, mean, V, x_out)


@inner
def _exponential(time, a, gamma):
    """Return exp(T [[0, 1], [-a, -γ]]), with T = `time`, as (e11, e12, e21, e22)."""
    d = 0.25 * gamma * gamma - a
    r = math.sqrt(abs(d))
    decay = math.exp(-0.5 * gamma * time)
    if d > 0.0:  # cosh and sinh would overflow for long times
        slow, fast = math.exp((r - 0.5 * gamma) * time), math.exp(-(r + 0.5 * gamma) * time)
        c, s = 0.5 * (slow + fast), 0.5 * (slow - fast) / r
    elif d < 0.0:
        c, s = decay * math.cos(r * time), decay * math.sin(r * time) / r
    else:
        c, s = decay, decay * time
    half = 0.5 * gamma * s
    return c + half, s, -a * s, c - half


@inner
def kinetic_flow(time, H, gamma, mean, V, lam, rng, y, u, x_out, v_out):
    """Move a row and its velocity under prior, friction and noise for a time, in place.

    `x_out` is the row, `v_out` is its velocity, and y and u are working memory.
    """
    _to_eigenvectors(x_out, mean, V, y)
    for j in range(u.shape[0]):
        u[j] = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[0]):
            u[j] += V[i, j] * v_out[i]
    for j in range(y.shape[0]):
        e11, e12, e21, e22 = _exponential(time, lam[j] / H, gamma)
        sy, su = 1.0 / lam[j], 1.0 / H
        s11 = max(0.0, sy - e11 * e11 * sy - e12 * e12 * su)
        s12 = -e11 * e21 * sy - e12 * e22 * su
        s22 = max(0.0, su - e21 * e21 * sy - e22 * e22 * su)
        z1, z2 = rng.standard_normal(), rng.standard_normal()
        new = e11 * y[j] + e12 * u[j] + math.sqrt(s11) * z1
        slope = s12 / math.sqrt(s11) if s11 > 0.0 else 0.0
        u[j] = e21 * y[j] + e22 * u[j] + slope * z1 + math.sqrt(max(0.0, s22 - slope * slope)) * z2
        y[j] = new
    _from_eigenvectors(y, mean, V, x_out)
    for i in range(u.shape[0]):
        total = 0.0
        for j in range(u.shape[0]):
            total += V[i, j] * u[j]
        v_out[i] = total


@entry
def bring_rows(first, stop, state, now, step, motion, H, prior, rng):
    """Move rows first:stop of F to the time `now` (a number of steps) under prior and noise.

    Parameters
    ----------
    first, stop : int
    state : tuple
        (F, velocity, last), which are changed: two arrays of shape (n_rows, D), and an array of
        int64 of shape (n_rows,) with the step that each row has reached.
    now : int
    step : float
        The time of a step.
    motion : tuple
        (kinetic, gamma): whether rows have a velocity, and the friction.
    H : ndarray of shape (n_rows,)
    prior : tuple
        (V, lam, means, own): arrays of shapes (D, D) and (D,), and the means m, one for each row
        (n_rows, D) if `own` is True, else (1, D).
    rng : numpy.random.Generator
    """
    (F, velocity, last), (kinetic, gamma), (V, lam, means, own) = state, motion, prior
    y, u = np.empty(F.shape[1]), np.empty(F.shape[1])
    for a in range(first, stop):
        if now > last[a]:
            time, mean = step * (now - last[a]), means[a if own else 0]
            if kinetic:
                kinetic_flow(time, H[a], gamma, mean, V, lam, rng, y, u, F[a], velocity[a])
            else:
                flow(time, H[a], mean, V, lam, rng, y, F[a])
            last[a] = now
