"""What "auto" does with a module: one rule, on this page.

0. A step takes all rows if there are few of them, or if a pass of all of them through the module is
   cheap: up to `CHEAP` multiplications, counted for the first row. Otherwise it takes 100.
1. `start`: every chain begins at an initialisation of its own and searches for a mode with Adam, 20
   passes over the rows, but at least 500 steps; then it goes on until U no longer falls: on all
   rows with L-BFGS, otherwise with Adam, up to four times as many steps.
2. `survey`: there, the preconditioner, the largest curvature, and the noise of the gradient along
   predictions are measured. The preconditioner is "fisher" on all rows and "rmsprop" on batches,
   whose noise would hide the differences between rows.
3. The step size h is the largest with which, in units where the largest curvature is 1,
   * the step is a fortieth of the limit of stability, and moves the variance in that direction by
     at most a twentieth, and
   * the noise of the gradient is predicted to widen variances of predictions by at most a tenth.
   All chains have the same step. The noise is measured again after half of the warm-up, because
   it grows with the distance from the mode, and the step is chosen anew. On all rows without
   layers or rows that are random there is no noise: there h follows the error of the energy, up
   and down, before each of eight parts of the warm-up and each round of draws: see `energy`.
4. A draw is kept after each pass over the rows, but at least 20 steps after the last one (`thin`),
   and the warm-up is half as long as all that follows. Whether that is enough is not assumed: see
   `evidence`.
5. Where steps take all rows and R-hat of predictions is above its limit, chains go on with twice
   as many steps from one draw to the next, and what they have made so far is part of the warm-up:
   up to `DOUBLINGS` times, as long as that is predicted to take less than `MOST_SECONDS`. The limit
   is that of the verdict, or what so few independent draws would not exceed.
6. Without noise, the friction of BAOAB follows `thin`: see `gliding`. Where all directions are
   about as steep, as of a linear module, a friction of 1 makes the first round enough: with less,
   chains would swing to and fro and keep their energy for long. Along soft directions friction
   lets chains diffuse, and the rounds that follow have less and less, so that they move straight
   on. The first half of the warm-up has a friction of 1, which takes up what the search has left.
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

INFLATION = 0.1
PASSES_OF_START, LEAST_STEPS_OF_START = 20, 500
LEAST_THIN = 20
BATCH = 100  # rows, with which a step uses a processor well
CHEAP = 1e7  # multiplications of a forward pass of all rows
LOW = 0.01  # least friction without noise, with a largest curvature of 1
DOUBLINGS, MOST_SECONDS = 4, 60.0
# A fixed model of a processor, since decisions must not depend on time.
OVERHEAD, MULTIPLICATION = 3e-4, 2e-10  # seconds, of a step, and of what is done three times in it


class RowCost(NamedTuple):
    """What a forward pass of one row takes.

    Parameters
    ----------
    multiplications : float
        At least the number of weights, which layers that are not counted use once.
    numbers : float
        That operations return, and that are held for the gradient.
    """

    multiplications: float
    numbers: float


class _Numbers(TorchDispatchMode):
    """Counts the numbers that operations return; views of others are none of their own."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if not any(r.alias_info is not None for r in func._schema.returns):
            self.total += sum(t.numel() for t in tree_leaves(found) if isinstance(t, torch.Tensor))
        return found


def cost_of_a_row(module, row):
    """`RowCost` of a module, by shapes alone: on the device "meta" of torch nothing is computed.

    Processors differ in how they do layers, and a choice must not depend on the device. A module
    whose path depends on numbers cannot be counted so, and is counted on the CPU.

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
        except Exception:  # whatever a module does with its numbers, which "meta" does not have
            continue
        return RowCost(max(counter.get_total_flops() / 2.0, n_weights), float(held.total))
    return RowCost(n_weights, float(row.numel()))


def rows_at_a_time(numbers, most, limit):
    """Rows that are computed together: as many as hold `most` numbers, at most `limit`."""
    return int(np.clip(most // max(1.0, numbers), 1, limit))


def batch_size_for(n_rows, of_a_row=np.inf):
    """All rows up to 100, or if they are cheap, else 100."""
    return n_rows if n_rows * of_a_row <= CHEAP else min(n_rows, BATCH)


def gliding(thin):
    """BAOAB with a friction of 1 at the least `thin`, an eighth of it at twice that, down to `LOW`.

    What a chain must cross to be independent of where it was, is as wide as `thin` had to become.
    """
    return BAOAB(friction=max(LOW, (LEAST_THIN / thin) ** 3))


def seconds_of_steps(n_steps, n_rows, of_a_row):
    """Predicted seconds of steps on so many rows."""
    return n_steps * (OVERHEAD + 3.0 * MULTIPLICATION * n_rows * of_a_row)


def pass_length(n_rows, batch_size):
    """Steps that read as many rows as there are."""
    return max(1, -(-n_rows // batch_size))


def thin_for(n_rows, batch_size):
    """Steps from one draw to the next."""
    return max(pass_length(n_rows, batch_size), LEAST_THIN)


def start_steps_for(n_rows, batch_size):
    """Steps of the search for a mode."""
    return max(PASSES_OF_START * pass_length(n_rows, batch_size), LEAST_STEPS_OF_START)


def choose_step(dynamics, curvatures, noises):
    """The step size for all chains.

    Parameters
    ----------
    dynamics : Dynamics
    curvatures : list of float
        The largest one of each chain, in its coordinates.
    noises : list of (float, float)
        Of the gradient of each chain: along predictions, and the mean over coordinates.

    Returns
    -------
    float
    """
    left = max(noise_left(dynamics, *noise) for noise in noises)
    return float(
        min(step_limit(dynamics) / max(curvatures), noise_limit(dynamics, left, INFLATION))
    )


def predicted_inflation(dynamics, h, noises):
    """Relative increase of the variance of predictions by the noise of the gradient, at most."""
    lefts = [noise_left(dynamics, *noise) for noise in noises]
    return float(np.max(lefts) * dynamics.noise_inflation(h))
