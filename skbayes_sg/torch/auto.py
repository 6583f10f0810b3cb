"""What "auto" does with a module: all rules are listed here.

0. A step takes all rows if there are at most 100, or if a pass of all of them through the module is
   cheap: up to `CHEAP` multiplications, counted for the first row. Otherwise it takes 100 rows.
1. `start`: every chain begins at an initialisation of its own and searches for a mode with Adam, 20
   passes over the rows, but at least 500 steps; then it goes on until U no longer falls: on all
   rows with L-BFGS, otherwise with Adam, up to four times as many steps.
2. `survey`: where the search has ended, the preconditioner, the largest curvature, and the noise of
   the gradient along predictions are measured. The preconditioner is "fisher" on all rows and
   "rmsprop" on batches, whose noise would hide the differences between rows.
3. The step size h is the largest with which, in units where the largest curvature is 1,
   * the step is at most a fortieth of the limit of stability, and changes the variance in that
     direction by at most a twentieth, and
   * the noise of the gradient is predicted to widen variances of predictions by at most a tenth.
   All chains have the same step. The noise is measured again after half of the warm-up, because
   it grows with the distance from the mode, and the step is chosen anew. If steps take all rows and
   neither layers nor rows are random, there is no noise: there h follows the error of the energy,
   up and down, before each of eight parts of the warm-up and each round of draws: see `energy`.
4. A draw is kept after each pass over the rows, but at least 20 steps after the last one (`thin`),
   and the warm-up is half as long as all that follows. Whether that is enough is not assumed: see
   `evidence`.
5. Where steps take all rows and R-hat of predictions is above its limit, chains go on with twice
   as many steps from one draw to the next, and what they have made so far is part of the warm-up:
   up to `DOUBLINGS` times, as long as that is predicted to take less than `MOST_SECONDS`. The limit
   is that of the verdict, or, if larger, a value that equally few independent draws would hardly
   exceed.
6. Without noise, the friction of BAOAB follows `thin`: see `gliding`. Where all directions are
   about equally steep, as for a linear module, the first round is enough with a friction of 1: with
   less, chains would swing to and fro and keep their energy for long. Along soft directions
   friction lets chains diffuse, and the rounds that follow have less and less, so that chains move
   straight on. The first half of the warm-up has a friction of 1, which takes up the energy that
   the search has left.
7. A module with more than half a parameter for each row may fit all rows, and then the mode has a
   noise of zero. There the search adds a tenth of the standard deviation of y to all residuals; and
   in steps on all rows log σ is drawn from its law given all else instead: see `noise`.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from ..dynamics import BAOAB
from .flat import copy_of
from .moves import noise_left, noise_limit, step_limit

__all__ = ["DOUBLINGS", "INFLATION", "LEAST_THIN", "MOST_SECONDS", "RowCost", "batch_size_for"]
__all__ += ["choose_step", "cost_of_a_row", "gliding", "pass_length", "predicted_inflation"]
__all__ += ["rows_at_a_time", "seconds_of_steps", "start_steps_for", "thin_for"]

INFLATION = 0.1  # largest relative increase of the variance of predictions by gradient noise
PASSES_OF_START, LEAST_STEPS_OF_START = 20, 500  # passes over the rows, and steps, at least
LEAST_THIN = 20  # steps from one draw to the next
BATCH = 100  # rows of a step on batches, enough to use a processor well
CHEAP = 1e7  # multiplications of a forward pass of all rows, up to which a step takes all rows
LOW = 0.01  # least friction of dynamics without noise, in units where the largest curvature is 1
DOUBLINGS, MOST_SECONDS = 4, 60.0  # doublings of `thin`, and predicted seconds of them, at most
# A fixed model of a processor, since decisions must not depend on time: seconds of overhead of a
# step, and of each multiplication of a forward pass, of which a step with its gradient takes three.
OVERHEAD, MULTIPLICATION = 3e-4, 2e-10


class RowCost(NamedTuple):
    """The cost of a forward pass of one row.

    Parameters
    ----------
    multiplications : float
        Number of multiplications; at least the number of weights, since layers that are not counted
        use each of theirs once.
    numbers : float
        Count of the numbers that operations return, and that are held for the gradient.
    """

    multiplications: float
    numbers: float


class _Numbers(TorchDispatchMode):
    """Counts the numbers that operations return, without views of other tensors."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if not any(r.alias_info is not None for r in func._schema.returns):
            self.total += sum(t.numel() for t in tree_leaves(found) if isinstance(t, torch.Tensor))
        return found


def cost_of_a_row(module, row):
    """Return the `RowCost` of a module, from shapes alone.

    On the device "meta" of torch nothing is computed. Processors differ in how they compute layers,
    and decisions must not depend on the device. A module whose path depends on numbers cannot be
    counted there, and is counted on the CPU.

    Parameters
    ----------
    module : torch.nn.Module
    row : tensor of shape (1, ...)
    """
    n_weights = float(sum(p.numel() for p in module.parameters()))
    for device in ("meta", "cpu"):
        own, x = copy_of(module).to(device).eval(), row.to(device)
        try:
            with FlopCounterMode(display=False) as counter, _Numbers() as held, torch.no_grad():
                own(x)
        except Exception:  # a module may read numbers, which "meta" does not have
            continue
        return RowCost(max(counter.get_total_flops() / 2.0, n_weights), float(held.total))
    return RowCost(n_weights, float(row.numel()))


def rows_at_a_time(numbers, most, limit):
    """Return how many rows of `numbers` numbers each fit into `most` numbers, at most `limit`."""
    return int(np.clip(most // max(1.0, numbers), 1, limit))


def batch_size_for(n_rows, of_a_row=np.inf):
    """Return the number of rows of a step: all if they are at most 100 or cheap, otherwise 100."""
    return n_rows if n_rows * of_a_row <= CHEAP else min(n_rows, BATCH)


def gliding(thin):
    """Return BAOAB with the friction (20/thin)³, but at least `LOW`, for `thin` of at least 20.

    The distance that a chain must cross to forget where it was grows with the `thin` that has been
    found necessary.
    """
    return BAOAB(friction=max(LOW, (LEAST_THIN / thin) ** 3))


def seconds_of_steps(n_steps, n_rows, of_a_row):
    """Return the predicted seconds of steps on `n_rows` rows of so many multiplications each."""
    return n_steps * (OVERHEAD + 3.0 * MULTIPLICATION * n_rows * of_a_row)


def pass_length(n_rows, batch_size):
    """Return the number of steps that read as many rows as there are."""
    return max(1, -(-n_rows // batch_size))


def thin_for(n_rows, batch_size):
    """Return the number of steps from one draw to the next."""
    return max(pass_length(n_rows, batch_size), LEAST_THIN)


def start_steps_for(n_rows, batch_size):
    """Return the number of steps of Adam in the search for a mode."""
    return max(PASSES_OF_START * pass_length(n_rows, batch_size), LEAST_STEPS_OF_START)


def choose_step(dynamics, curvatures, noises):
    """Return the step size h for all chains.

    Parameters
    ----------
    dynamics : Dynamics
    curvatures : list of float
        The largest curvature of U in the coordinates of each chain.
    noises : list of (float, float)
        Variances of the gradient noise of each chain: along predictions, and the mean over
        coordinates.

    Returns
    -------
    float
    """
    left = max(noise_left(dynamics, *noise) for noise in noises)
    return float(
        min(step_limit(dynamics) / max(curvatures), noise_limit(dynamics, left, INFLATION))
    )


def predicted_inflation(dynamics, h, noises):
    """Return the predicted relative increase of variances of predictions by gradient noise.

    It is that of the chain with the largest noise.
    """
    lefts = [noise_left(dynamics, *noise) for noise in noises]
    return float(np.max(lefts) * dynamics.noise_inflation(h))
