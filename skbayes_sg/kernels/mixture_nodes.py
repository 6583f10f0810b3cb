"""A sample of η condensed into a few nodes with masses, in one pass over the draws.

The range of the draws is divided into cells. The draws of a cell with mass p, mean m, standard
deviation s and skewness γ become the two nodes of Gaussian quadrature,

    m + s (γ/2 ± r),  of masses p (1 ∓ γ/2r)/2,      r = √(1 + γ²/4),

which have the same moments up to the third. A cell is as wide as the noise that the predictive
distribution adds to η, so that Σ_s w_s g(η_s) for its distribution function g changes only by
fourth moments. It need not be narrower than 1/64 standard deviation of the sample; that limit
grows with the distance beyond six.
"""

import math

from .._base.jit import entry, inlined, inner

__all__ = ["N_CELLS", "N_SUMS", "condense", "moments"]

# Largest number of cells per standard deviation of a sample of total weight 1; and number of
# standard deviations from the mean beyond which the cells grow with the distance.
PER_SD, REACH = 64.0, 6.0
ONE_CELL = 0.2  # standard deviation of η, in scales of the noise, up to which one cell is enough
N_CELLS = 1 << 14  # number of cells, with which a z of 10^9 is not in the last one
ROUNDING = 1e-12  # a cell has no variance if it is at most this share of the cell's mean z²
N_SUMS = 4  # number of sums of a cell: Σ w z^p for p = 0, 1, 2, 3


@inlined
def _stretched(z):
    """Return z up to |z| = REACH, and beyond it a number that grows with log |z|."""
    if abs(z) <= REACH:
        return z
    return math.copysign(REACH * (1.0 + math.log(abs(z) / REACH)), z)


@inner
def moments(x, weights, start, stop):
    """Return the total weight, mean and standard deviation of ``x[start:stop]``."""
    total, mean, square = 0.0, 0.0, 0.0
    for s in range(start, stop):
        total += weights[s]
        mean += weights[s] * x[s]
    mean /= total
    for s in range(start, stop):
        square += weights[s] * (x[s] - mean) * (x[s] - mean)
    return total, mean, math.sqrt(square / total)


@inner
def _add_nodes(mass, mean, variance, third, nodes, masses, k):
    """Write the nodes with these central moments after the first k, and return the new number.

    There are two nodes, or a single one if the variance is zero.
    """
    if not variance > 0.0:
        nodes[k], masses[k] = mean, mass
        return k + 1
    s = math.sqrt(variance)
    half = 0.5 * third / (s * variance)
    r = math.sqrt(1.0 + half * half)
    nodes[k], masses[k] = mean + s * (half - r), 0.5 * mass * (1.0 + half / r)
    nodes[k + 1], masses[k + 1] = mean + s * (half + r), 0.5 * mass * (1.0 - half / r)
    return k + 2


@inner
def _one_cell(x, weights, start, stop, total, mean, sd, nodes, masses, k):
    """Write the nodes of ``x[start:stop]`` as one cell after the first k; return the new number."""
    third = 0.0
    for s in range(start, stop):
        d = x[s] - mean
        third += weights[s] * d * d * d
    return _add_nodes(total, mean, sd * sd, third / total, nodes, masses, k)


@entry
def condense(x, weights, start, stop, noise, cells, nodes_out, masses_out, k):
    """Write the nodes of ``x[start:stop]`` after the first k ones; return how many there are then.

    `noise` is the scale of the noise that the predictive distribution adds to x. `cells` is working
    memory, which holds zeros before and after the call.
    """
    total, mean, sd = moments(x, weights, start, stop)
    if not sd > ONE_CELL * noise:
        return _one_cell(x, weights, start, stop, total, mean, sd, nodes_out, masses_out, k)
    per_unit, middle = min(PER_SD * math.sqrt(total), sd / noise), cells.shape[0] // 2
    first, last = middle, middle
    for s in range(start, stop):
        z = (x[s] - mean) / sd
        c = int(min(max(middle + 0.5 + _stretched(z) * per_unit, 0.0), 2.0 * middle - 1.0))
        first, last = min(first, c), max(last, c)
        term = weights[s]
        for p in range(N_SUMS):
            cells[c, p] += term
            term *= z
    for c in range(first, last + 1):
        mass = cells[c, 0]
        if mass > 0.0:
            z, square, cube = cells[c, 1] / mass, cells[c, 2] / mass, cells[c, 3] / mass
            variance = square - z * z if square - z * z > ROUNDING * square else 0.0
            third = cube - z * (3.0 * square - 2.0 * z * z)
            variance, third = variance * sd**2, third * sd**3
            k = _add_nodes(mass, mean + sd * z, variance, third, nodes_out, masses_out, k)
        for p in range(N_SUMS):
            cells[c, p] = 0.0
    return k
