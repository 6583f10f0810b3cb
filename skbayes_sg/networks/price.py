"""The predicted time of a run, by a fixed model of the machine, and a warning if it is long.

A gradient of one row takes 0.07 nanoseconds for each parameter and 1.7 for each unit; a step takes
6 nanoseconds for each parameter besides.
"""

from ..recipe.price import warn_if_long

__all__ = ["tell_price"]

# Seconds for each parameter and each unit in a gradient of one row; for each parameter in a step.
ROW_WEIGHT, ROW_UNIT, STEP_PARAMETER = 0.07e-9, 1.7e-9, 6e-9
REMEDY = "Use n_jobs=-1, fewer chains or draws, or a smaller n_warmup or thin."


def tell_price(problem, n_chains, n_steps, batch_size):
    """Issue a `LongRunWarning` if the steps of all chains are predicted to take over a minute."""
    P, units = problem.n_parameters, problem.network.sizes[1:].sum()
    step = STEP_PARAMETER * P + batch_size * (ROW_WEIGHT * P + ROW_UNIT * units)
    what = f"A run of {n_chains} chains with {n_steps:.2g} steps of {batch_size} rows each"
    warn_if_long(n_chains * n_steps * step, what, REMEDY)
