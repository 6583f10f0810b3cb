"""Passes over the rows of a table with groups; the terms of the likelihood are those of the model.

The predictor of row i is x_i·β + b + o_i + u_{l(i)}, with o_i the effects of the other factors.
"""

from .._base.jit import entry
from ..kernels.layout import BLOCK
from ..kernels.rows import predictors, scatter

__all__ = ["add_by_level", "gradient_pass", "losses_of_levels"]


@entry
def gradient_pass(
    data, model, theta, codes, u, offset, rows, ones, blocks, valued, g_out, residuals_out
):
    """g_out += ∂/∂θ of Σ w_i ℓ_i, residuals_out += its derivatives in u; return it if `valued`."""
    total, eta, terms = 0.0, blocks[0], blocks[1]
    for start in range(0, rows.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.shape[0])
        predictors(data, theta, rows, start, stop, eta)
        for k in range(start, stop):
            eta[k - start, 0] += offset[k] + u[codes[k]]
        if valued:
            total += model.loss(data.facts, rows, start, stop, eta)
        model.derivative(data.facts, rows, start, stop, eta, terms)
        scatter(data, rows, start, stop, ones, terms, g_out)  # leaves w_i ∂ℓ_i in `terms`
        for k in range(start, stop):
            residuals_out[codes[k]] += terms[k - start, 0]
    return total


@entry
def losses_of_levels(data, model, theta, offset, order, starts, u, proposed, blocks, losses_out):
    """Σ w_i ℓ_i over the rows of each level, at its effect and at the one proposed.

    Rows ``order[starts[l]:starts[l + 1]]`` are those of level l.
    """
    eta = blocks[0]
    for level in range(u.shape[0]):
        change = proposed[level] - u[level]
        losses_out[level, 0] = losses_out[level, 1] = 0.0
        for start in range(starts[level], starts[level + 1], BLOCK):
            stop = min(start + BLOCK, starts[level + 1])
            predictors(data, theta, order, start, stop, eta)
            for k in range(start, stop):
                eta[k - start, 0] += offset[order[k]] + u[level]
            losses_out[level, 0] += model.loss(data.facts, order, start, stop, eta)
            for k in range(start, stop):
                eta[k - start, 0] += change
            losses_out[level, 1] += model.loss(data.facts, order, start, stop, eta)


@entry
def add_by_level(codes, values, sums_out):
    """sums_out[l] += Σ of the values of the rows in level l."""
    for i in range(codes.shape[0]):
        sums_out[codes[i]] += values[i]
