"""The end of a search for a mode on all rows: L-BFGS on U(θ), until it no longer falls.

It works in coordinates φ = θ/F, in which the curvatures of columns in different units are alike: in
the coordinates θ a line search in single precision may find no lower point long before the mode.
A unit of φ is about a posterior standard deviation, a good first step of a line search.
Where a block of iterations does not lower U, F is measured anew once, and after that the search is
over. It is also over where a block lowers U by less than `SMALL` P for P parameters.
"""

import torch
from torch import nn

from .start import SMALL
from .survey import fisher

__all__ = ["finish"]

N_BLOCKS, BLOCK = 40, 25  # blocks of iterations, at most, and iterations in each
MEMORY = 20  # updates that L-BFGS keeps for its approximation of the Hessian
FAR = 1e30  # stands for U/N where it is not finite


def finish(gradient, of_rows):
    """Move the module of a gradient to a mode, in place.

    Parameters
    ----------
    gradient : MinibatchGradient
        The gradient of all rows, without noise.
    of_rows : MinibatchGradient
        The gradient of some of the rows, for `survey.fisher`.

    Returns
    -------
    loss : float
        U per row.
    n_steps : int
        Number of iterations.
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
    """Return F from `survey.fisher`, multiplied by √(2U/N) where that exceeds 1.

    Far from a mode large residuals make the gradients of rows large, but not the curvature.
    """
    return fisher(of_rows) * max(1.0, 2.0 * value / of_rows.target.rows.n_rows) ** 0.5


def _block(gradient, F, before):
    """Run a block of L-BFGS and return U; θ is restored if U is not lower or not finite."""
    target = gradient.target
    flat, N = target.flat, target.rows.n_rows
    start, phi = flat.theta.clone(), nn.Parameter(flat.theta / F)

    def closure():
        torch.mul(F, phi.detach(), out=flat.theta)
        value = target.potential()
        gradient.n_evaluated += N
        phi.grad = (F * flat.gradient / N).nan_to_num_(0.0, 0.0, 0.0)
        return (value / N).nan_to_num(FAR, FAR)  # makes a line search that went too far come back

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
