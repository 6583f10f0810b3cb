"""What "auto" does with a module: one rule, on this page.

1. `start`: every chain begins at an initialisation of its own and searches for a mode with Adam, 20
   passes over the rows, but at least 500 steps.
2. `survey`: there, the preconditioner, the largest curvature, and the noise of the gradient along
   predictions are measured.
3. The step size h is the largest with which, in units where the largest curvature is 1,
   * the step is a fortieth of the limit of stability, and moves the variance in that direction by
     at most a twentieth, and
   * the noise of the gradient is predicted to widen variances of predictions by at most a tenth.
   All chains have the same step. The noise is measured again after half of the warm-up, because
   it grows with the distance from the mode, and the step is chosen anew.
4. A draw is kept after each pass over the rows, but at least 20 steps after the last one (`thin`),
   and the warm-up is half as long as all that follows. Whether that is enough is not assumed: see
   `evidence`.
"""

import numpy as np

from .moves import noise_left, noise_limit, step_limit

__all__ = ["INFLATION", "batch_size_for", "choose_step", "pass_length", "predicted_inflation"]
__all__ += ["start_steps_for", "thin_for"]

INFLATION = 0.1
PASSES_OF_START, LEAST_STEPS_OF_START = 20, 500
LEAST_THIN = 20


def batch_size_for(n_rows):
    """All rows up to 100, then 100: a step that uses a processor well."""
    return min(n_rows, 100)


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
