"""The gradient of a batch, and the coordinates in which it is computed."""

from .._base.jit import inlined, inner, pointee
from ..priors.table import prior_gradient
from .layout import (
    EXTRA,
    GRADIENT_THETA,
    OFFSET,
    PREDICTORS,
    PRIOR_CURVATURE,
    PRIOR_GRADIENT,
    TERM,
    THETA,
)
from .rows import predictors, scatter


@inner
def add_product(M, x, out):
    """Add M x to out, for a matrix M, a diagonal given as one row, or zero given as no rows."""
    if M.shape[0] == 1:
        for i in range(x.shape[0]):
            out[i] += M[0, i] * x[i]
        return
    for i in range(M.shape[0]):  # full rows: loops over a triangle are not vectorised, and slower
        total = 0.0
        for j in range(M.shape[1]):
            total += M[i, j] * x[j]
        out[i] += total


@inner
def add_transposed_product(M, x, out):
    """Add Mᵀ x to out, for a matrix M or a diagonal given as one row."""
    if M.shape[0] == 1:
        for i in range(x.shape[0]):
            out[i] += M[0, i] * x[i]
        return
    for i in range(M.shape[0]):
        scale = x[i]
        for j in range(M.shape[1]):
            out[j] += scale * M[i, j]


@inner
def to_theta(coordinates, phi, theta_out):
    """Write θ = centre + S factor φ to theta_out; see `layout.Coordinates`."""
    centre, slopes = coordinates.centre, coordinates.slopes
    for i in range(phi.shape[0]):
        theta_out[i] = centre[i]
    add_product(coordinates.factor, phi, theta_out)
    K, d = slopes.shape
    for c in range(K):
        total = 0.0
        for j in range(d):
            total += slopes[c, j] * (theta_out[c * d + j] - centre[c * d + j])
        theta_out[K * d + c] -= total


@inner
def add_pulled_back(coordinates, g, g_out):
    """Add factorᵀ Sᵀ g to g_out; g itself is overwritten by Sᵀ g."""
    slopes = coordinates.slopes
    K, d = slopes.shape
    for c in range(K):
        for j in range(d):
            g[c * d + j] -= slopes[c, j] * g[K * d + c]
    add_transposed_product(coordinates.factor, g, g_out)


@inlined
def add_rows(data, estimator, theta, rows, n, coefficients, blocks, g_out):
    """Add Σ_k c_k w_k J_kᵀ t_k over the batch ``rows[:n]`` to g_out, for the estimator's terms."""
    eta, extra, terms = blocks[PREDICTORS], blocks[EXTRA], blocks[TERM]
    size = eta.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        predictors(data, theta, rows, start, stop, eta)
        facts, derivative, curvature = data.facts, estimator.derivative, estimator.curvature
        estimator.terms(facts, derivative, curvature, rows, start, stop, eta, extra, terms)
        scatter(data, rows, start, stop, coefficients, terms, g_out)


@inlined
def start_gradient(vectors, theta, centre, g, g_out):
    """Set g to -ref(θ) and g_out to the offset: see the formula of `layout.Problem`."""
    for j in range(theta.shape[0]):
        shift = theta[j] - centre[j]
        g[j] = -vectors[PRIOR_GRADIENT, j] - vectors[PRIOR_CURVATURE, j] * shift
        g_out[j] = vectors[OFFSET, j]


@pointee
def gradient(problem, estimator, phi, rows, n, coefficients, scratch, g_out):
    """Estimate ∇_φ U at `phi` from the batch ``rows[:n]``; `layout.Problem` has the formula."""
    vectors, coordinates = scratch.vectors, problem.coordinates
    theta, g = vectors[THETA], vectors[GRADIENT_THETA]
    to_theta(coordinates, phi, theta)
    start_gradient(problem.vectors, theta, coordinates.centre, g, g_out)
    prior_gradient(problem.prior, theta, g)
    add_rows(problem.data, estimator, theta, rows, n, coefficients, scratch.blocks, g)
    add_product(problem.linear, phi, g_out)
    add_pulled_back(coordinates, g, g_out)


@inlined
def pull_back(coordinates, g, g_out):
    """Convert a gradient g in θ to the gradient g_out in φ; g is overwritten."""
    for j in range(g.shape[0]):
        g_out[j] = 0.0
    add_pulled_back(coordinates, g, g_out)


@inner
def fill_normal(rng, out):
    """Fill an array with standard normals, in 2.9 ns each."""
    for j in range(out.shape[0]):
        out[j] = rng.standard_normal()
