"""The predicted time of a run, by a fixed model of the machine, and a warning if it is long.

On all rows a gradient takes 0.07 nanoseconds for each row and parameter, and 1.7 for each row and
unit. In batches a row and unit takes 7.5, because the friction along the noise passes through the
network again, and the draw of a row takes 6 for each of its columns. A step takes 6 nanoseconds for
each parameter besides, and 50 microseconds for batches, with the measurements that follow the
noise. The time of a run that is continued is predicted from what it has taken so far.
"""

from ..recipe.price import LONG_SECONDS, warn_if_long

__all__ = ["tell_more", "tell_price"]

# Seconds for each parameter and each unit in a gradient of one row; for each parameter in a step.
ROW_WEIGHT, ROW_UNIT, STEP_PARAMETER = 0.07e-9, 1.7e-9, 6e-9
# Seconds of batches: for each unit and each column of a row, and for each step.
BATCH_UNIT, BATCH_COLUMN, BATCH_STEP = 7.5e-9, 6e-9, 5e-5
REMEDY = "Use n_jobs=-1, fewer chains or draws, or a smaller n_warmup or thin."


def tell_price(problem, n_chains, n_steps, batch_size):
    """Issue a `LongRunWarning` if the steps of all chains are predicted to take over a minute."""
    seconds = n_chains * n_steps * _seconds_of_step(problem, batch_size)
    what = f"A run of {n_chains} chains with {n_steps:.2g} steps of {batch_size} rows each"
    warn_if_long(seconds, what, REMEDY, LONG_SECONDS)


def _seconds_of_step(problem, batch_size):
    P, sizes = problem.n_parameters, problem.network.sizes
    units = sizes[1:].sum()
    if batch_size == problem.n_rows:
        return STEP_PARAMETER * P + batch_size * (ROW_WEIGHT * P + ROW_UNIT * units)
    row = ROW_WEIGHT * P + BATCH_UNIT * units + BATCH_COLUMN * sizes[0]
    return BATCH_STEP + STEP_PARAMETER * P + batch_size * row


def tell_more(seconds, thin, rhat):
    """Issue a `LongRunWarning` before chains go on, if the whole run takes over a minute so."""
    what = (
        f"The chains do not agree yet (R-hat of predictions {rhat:.3g}) and make their draws anew, "
        f"with thin={thin}. The whole run"
    )
    remedy = "Use n_jobs=-1, or a lower max_doublings to take less time."
    warn_if_long(seconds, what, remedy, LONG_SECONDS)
