"""What a run will cost, by a fixed model of the machine, told if it is more than a minute.

A gradient of one row takes 0.07 nanoseconds a weight and 1.7 a unit; a step takes 6 nanoseconds a
parameter besides.
"""

from ..recipe.price import warn_if_long

__all__ = ["tell_price"]

ROW_WEIGHT, ROW_UNIT, STEP_PARAMETER = 0.07e-9, 1.7e-9, 6e-9
REMEDY = "Use n_jobs=-1, fewer chains or draws, or a smaller n_warmup or thin."


def tell_price(problem, n_chains, n_steps, batch_size):
    """`LongRunWarning` for chains of so many steps, on so many rows each."""
    P, units = problem.n_parameters, problem.network.sizes[1:].sum()
    step = STEP_PARAMETER * P + batch_size * (ROW_WEIGHT * P + ROW_UNIT * units)
    what = f"A run of {n_chains} chains with {n_steps:.2g} steps of {batch_size} rows each"
    warn_if_long(n_chains * n_steps * step, what, REMEDY)
