"""Draws of Gibbs samplers whose chains move together: thinned, judged and reported."""

import warnings

import numpy as np

from ..diagnostics import convergence
from ..diagnostics.verdict import disagreement
from ..exceptions import SamplerConvergenceWarning
from .price import Price
from .request import Outcome, chosen_without_steps, moments_and_kept

__all__ = ["outcome", "price_of", "thinned"]


def price_of(seconds, n_warmup, n_draws, what, remedy):
    """Return ``tell(thin)``, which tells the `Price` of a run with `thin` sweeps for each draw.

    `seconds` is the predicted time of a sweep of all chains.
    """
    price = Price(what, remedy)
    return lambda thin: price.tell(seconds * (n_warmup + thin * n_draws))


def thinned(sweep, current, request, thinning, tell, watch=None):
    """Make draws, thinned until enough of them are effective; return them and the sweeps of each.

    Parameters
    ----------
    sweep : callable
        Moves all chains by one sweep.
    current : callable
        Returns the present draw of each chain, (n_chains, n_parameters).
    request : Request
    thinning : tuple
        The sweeps of a draw to begin with and at most, and the share of effective draws aimed at.
    tell : callable
        From `price_of`: called with the new number whenever the sweeps of a draw are doubled.
    watch : callable, optional
        As for `skbayes_sg.recipe.choose.sample_posterior`. If it ends the run, there are fewer
        draws.
    """
    first, most, aim = thinning
    n, thin = request.n_draws, request.thin or first
    is_open, done = request.thin is None, 0.0
    draws = np.empty((request.n_chains, 0, 0))
    while True:
        # Sweeps may be doubled again: each time, one half of the progress that is left is reported.
        end = done + (0.5 * (1.0 - done) if is_open else 1.0)
        draws = _drawn(sweep, current, draws, n, thin, _between(watch, done, end))
        if draws.shape[1] < n:
            return draws, thin
        if not is_open or thin >= most or _worst(draws, request)[0] >= aim * draws.shape[0] * n:
            break
        thin, done, draws = 2 * thin, end, draws[:, 1::2]
        tell(thin)
    if watch is not None:
        watch(lambda: (draws, None), 1.0)
    return draws, thin


def _between(watch, begin, end):
    """A `watch` that reports shares of a part of the run, from `begin` to `end`, of the whole."""
    if watch is None:
        return lambda so_far, share: False
    return lambda so_far, share: watch(so_far, begin + (end - begin) * share)


def _drawn(sweep, current, kept, n, thin, watch):
    """Add draws of each chain, `thin` sweeps apart, to `kept` ones, up to n: (n_chains, n, ...)."""
    found, n_more = list(kept.swapaxes(0, 1)), n - kept.shape[1]

    def so_far():
        return np.stack(found, axis=1), None

    for k in range(n_more):
        for _ in range(thin):
            sweep()
        found.append(current())
        if watch(so_far, (k + 1) / n_more):
            break
    return np.stack(found, axis=1)


def _worst(draws, request):
    """Least effective sample size and largest R-hat, each with the index of its parameter.

    As in `check`, they are those of the parameters and not of their logarithms, and the effective
    sample size is also that of squares.
    """
    return convergence.worst_of_chains(request.parameters(draws))


def outcome(draws, sampler, which, names, thin, n_warmup, target, request, told=None):
    """The `Outcome` of draws by Gibbs sampling; warn if the chains have not converged."""
    worst = ess, _, rhat, _ = _worst(draws, request)
    total = draws.shape[0] * draws.shape[1]
    told_apart = disagreement(worst, total, names.__getitem__, f"The chains {which}")
    if told_apart:
        warnings.warn(
            f"{told_apart}Raise n_draws, n_warmup (now {n_warmup}) or thin (now {thin}).",
            SamplerConvergenceWarning,
            stacklevel=2,
        )
    moments, kept = moments_and_kept(draws, request)
    draws = draws[:, kept]
    chosen = chosen_without_steps(sampler, "none", target.n_rows)
    found = {"min_ess": float(ess), "max_rhat": float(rhat)} | (told or {})
    rows = np.full(draws.shape[:2], float(target.n_rows))
    return Outcome(
        draws, chosen | {"thin": thin, "n_warmup": n_warmup}, found, rows, moments=moments
    )
