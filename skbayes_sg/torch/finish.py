"""The end of a search for a mode on all rows: L-BFGS on U(θ), until it no longer falls.

It works in coordinates φ = θ/F, in which the curvatures of columns in different units are alike: in
those of the module a line search in single precision may find no lower point long before the mode.
A unit of φ is about a posterior standard deviation, with which a line search may well begin.
Where a block of iterations does not lower U, F is measured anew once, and after that the search is
over. So it is where U falls by less than `SMALL` of P for P parameters.
"""

import torch
from torch import nn

from .start import SMALL
from .survey import fisher

__all__ = ["finish"]

N_BLOCKS, BLOCK = 40, 25  # iterations in each
MEMORY = 20  # of L-BFGS
FAR = 1e30  # U where it is not finite


def finish(gradient, of_rows):
    """Move the module of a gradient to a mode, in place.

    Parameters
    ----------
    gradient : MinibatchGradient
        Of all rows, without noise.
    of_rows : MinibatchGradient
        Of some of them, for `survey.fisher`.

    Returns
    -------
    loss : float
        U per row.
    n_steps : int
        Iterations.
    """
    target = gradient.target
    value, n_steps, is_new = float(target.potential()), 0, True
    F = _scales(of_rows, value)
    for _ in range(N_BLOCKS):
        fall = value - _block(gradient, F, value)
        n_steps += BLOCK
        value -= fall
        if fall >= SMALL * len(F):
            is_new = False
        elif fall > 0.0 or is_new:
            break
        else:
            F, is_new = _scales(of_rows, value), True
    return value / target.rows.n_rows, n_steps


def _scales(of_rows, value):
    """F; far from a mode large residuals make gradients of rows large, but not the curvature."""
    return fisher(of_rows) * max(1.0, 2.0 * value / of_rows.target.rows.n_rows) ** 0.5


def _block(gradient, F, before):
    """U after some iterations; where it is not lower, or not finite, θ goes back."""
    target = gradient.target
    flat, N = target.flat, target.rows.n_rows
    start, phi = flat.theta.clone(), nn.Parameter(flat.theta / F)

    def closure():
        torch.mul(F, phi.detach(), out=flat.theta)
        value = target.potential()
        gradient.n_evaluated += N
        phi.grad = (F * flat.gradient / N).nan_to_num_(0.0, 0.0, 0.0)
        return (value / N).nan_to_num(FAR, FAR)  # a line search that went too far comes back

    optimiser = torch.optim.LBFGS(
        [phi], max_iter=BLOCK, history_size=MEMORY, line_search_fn="strong_wolfe",
        tolerance_grad=0.0, tolerance_change=0.0,
    )  # fmt: skip
    optimiser.step(closure)
    torch.mul(F, phi.detach(), out=flat.theta)
    after = float(target.potential())
    if after < before:
        return after
    flat.theta.copy_(start)
    return before
