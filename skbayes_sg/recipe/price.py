"""What a run will cost, by a fixed model of the machine: decisions must not depend on time.

A pass over the rows takes 20 c + 0.8 d nanoseconds for each row and predictor with d columns; in a
sparse row, 6.4 for each stored number take the place of 0.8 d. Here c is the `cost` of the model:
1, or 2 for functions of users, or 6 if their derivatives are differences; each call of functions of
JAX and PyTorch has an `overhead` besides. The change of coordinates is added, a product with a
matrix up to `DENSE_LIMIT` parameters, and a microsecond for each leapfrog step. A draw that is one
of many takes less, since BLAS multiplies them all at once; but differences of functions do not.
There, each direction of a warp takes 120 + 0.3 D nanoseconds for D parameters (measured with D = 50
to 800).
"""

import warnings

from scipy import sparse

from ..exceptions import LongRunWarning
from ..geometry.preconditioning import DENSE_LIMIT
from ..importance.lockstep import USUAL_STEPS

__all__ = [
    "BEARABLE_SECONDS",
    "EXACT_SECONDS",
    "EXACT_WARMUP",
    "LONG_SECONDS",
    "TOLD_SECONDS",
    "Price",
    "leapfrogs_of_chains",
    "pace_of",
    "price_of_steps",
    "seconds_of_chains",
    "seconds_of_leapfrogs",
    "seconds_of_rows",
    "seconds_of_steps",
    "slowdown_of_batches",
    "warn_if_long",
    "warn_of_lockstep",
]

LONG_SECONDS = 60.0  # predicted cost from which a run is not made longer, or gives way to others
TOLD_SECONDS = 10.0  # predicted cost of chains that comes with a warning
MEASURED_SECONDS = 0.1  # shortest part of a warm-up whose time says how fast chains are
MUCH_MORE = 3.0  # a warning is repeated if the predicted cost is so many times what it said
EXACT_SECONDS = 1.0  # predicted cost up to which chains on all rows replace doubtful draws
# Predicted cost up to which chains on all rows replace poor draws and noisy gradients.
BEARABLE_SECONDS = 10.0
EXACT_WARMUP = 250  # trajectories of warm-up of chains on all rows
LEAPFROG_ITSELF = 1000.0  # nanoseconds of a leapfrog step besides those of the rows
# A row that is drawn at random takes so many times as long as one that is read in order.
RANDOM_ROWS = 2.0
# Nanoseconds that a row takes besides if it is drawn with a probability of its own, from a table.
PREFERRED_ROW = 65.0


def _of_columns(target, dense, stored):
    """Nanoseconds that the columns of a row take for one predictor.

    A column takes `dense` nanoseconds; if X is sparse, a stored number takes `stored`.
    """
    if sparse.issparse(target.X):
        return stored * target.X.nnz / target.n_rows
    return dense * target.n_features


def _of_coordinates(target):
    """Nanoseconds of a change of coordinates, by a matrix or by one number for each parameter."""
    D = target.n_parameters
    return D * D if D <= DENSE_LIMIT else D


def _of_row(target, cost=None):
    """Nanoseconds that a row takes that is read in order, with the `cost` of the model."""
    cost = target.model.cost if cost is None else cost
    return target.model.n_predictors * (20 * cost + _of_columns(target, 0.8, 6.4))


def seconds_of_steps(target, n_steps, n_rows):
    """Predicted seconds of `n_steps` steps of one chain, with `n_rows` rows in each."""
    calls = max(-(-n_rows // target.model.block), 1) * target.model.overhead
    return n_steps * (n_rows * _of_row(target) + _of_coordinates(target) + calls) * 1e-9


def seconds_of_leapfrogs(target, n_steps):
    """Predicted seconds of leapfrog steps on all rows, of which there may be few."""
    rows = target.n_rows * _of_row(target, target.model.cost_of_all)
    itself = target.model.overhead + LEAPFROG_ITSELF  # all rows of such models are one call
    return n_steps * (rows + _of_coordinates(target) + itself) * 1e-9


def slowdown_of_batches(target, n_rows, scheme=None):
    """How many times as long a step of `n_rows` rows takes if they are drawn at random.

    `scheme` is how they are drawn; None stands for equal probabilities. Only warnings need the
    result: the choices of "auto" rest on rows in order, as they were measured.
    """
    if n_rows >= target.n_rows:
        return 1.0
    if scheme is None or not scheme.needs_weights:
        return RANDOM_ROWS
    return max(RANDOM_ROWS, 1.0 + PREFERRED_ROW / _of_row(target))


def leapfrogs_of_chains(request):
    """Predicted leapfrog steps of all chains on all rows, warm-up included."""
    trajectories = request.n_chains * (request.n_draws * (request.thin or 1) + EXACT_WARMUP)
    return USUAL_STEPS * trajectories


def seconds_of_chains(target, request):
    """Predicted seconds of Hamiltonian Monte Carlo on all rows, all chains and warm-up included."""
    return seconds_of_leapfrogs(target, leapfrogs_of_chains(request))


def seconds_of_closed_form(target):
    """Predicted seconds of the closed form of linear regression, with one thread."""
    D = float(target.n_parameters)
    return 2e-10 * target.n_rows * D**2 + 1.7e-9 * D**3


def seconds_of_rows(target, n_rows, n_warped=0):
    """Predicted seconds of a gradient at one of many draws, if it takes `n_rows` rows.

    `n_warped` is the number of directions of a warp through which it is taken.
    """
    columns = _of_columns(target, 0.08, 1.2)
    row = target.model.n_predictors * (20 * target.model.cost_of_many + columns)
    warps = n_warped * (120.0 + 0.3 * target.n_parameters)
    return (n_rows * row + 0.2 * _of_coordinates(target) + warps) * 1e-9


def warn_of_lockstep(seconds, n_parameters, remedy):
    """Give a `LongRunWarning` if chains in lockstep are predicted to take long."""
    if seconds > TOLD_SECONDS:
        what = f"HMC by many chains in lockstep, for {n_parameters} parameters,"
        warn_if_long(seconds, what, f"If they fail, other chains follow. {remedy}", TOLD_SECONDS)


def warn_if_long(seconds, what, remedy, least):
    """Give a `LongRunWarning` if a run is predicted to take more than `least` seconds.

    Returns the seconds that were told, or zero.
    """
    if seconds > least:
        long = seconds >= LONG_SECONDS
        minutes = round(seconds / 60.0, 1)
        of_minutes = "1 minute" if minutes == 1.0 else f"{minutes:g} minutes"
        time = of_minutes if long else f"{seconds:.0f} seconds"
        warnings.warn(
            f"{what} is predicted to take {time} or more. {remedy}",
            LongRunWarning,
            stacklevel=2,
        )
        return seconds
    return 0.0


class Price:
    """Tells what a run costs as soon as it is predicted to take long.

    It is told again only if it is later predicted to be `MUCH_MORE` times what was told.

    Parameters
    ----------
    what : str
        What takes the time: the subject of the sentence. It may be changed before `tell`.
    remedy : str
        A sentence on what to do.
    """

    def __init__(self, what, remedy):
        self.what, self.remedy = what, remedy
        self.told = 0.0  # seconds that were told last

    def tell(self, seconds, least=0.0):
        """Warn of the predicted seconds, unless they are about what was told, or about `least`."""
        if seconds > MUCH_MORE * max(self.told, least):
            self.told = warn_if_long(seconds, self.what, self.remedy, TOLD_SECONDS)


def pace_of(seconds, expected):
    """How many times as long as predicted a part of a warm-up has taken, or 1.

    What functions of users cost is not known before. Only warnings may depend on it, since it is
    not the same in each run, and a busy machine is not told.
    """
    is_slow = seconds > max(MEASURED_SECONDS, MUCH_MORE * expected)
    return seconds / expected if is_slow else 1.0


def price_of_steps(n_steps, n_rows, remedy):
    """The `Price` of a run of `n_steps` steps with `n_rows` rows each."""
    return Price(f"A run of {n_steps} steps with {n_rows} rows each", remedy)
