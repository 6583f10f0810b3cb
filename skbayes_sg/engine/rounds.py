"""The pacing of all chains: rounds of a tenth of a second.

A running kernel cannot be interrupted, and a callback cannot see its results. Therefore every loop
of the package calls its kernels for as much work as takes `CHUNK_SECONDS`. Ctrl-C, callbacks and
checks for divergence take effect between the rounds. The amount of work of a round depends on the
clock; the draws do not, because a chain continues where it stopped.
"""

import time
from functools import partial

from .._base.interrupts import without_interrupts
from .._base.threads import in_workers, shares_memory

__all__ = ["run_rounds"]

CHUNK_SECONDS = 0.1  # intended duration of a round
GROWTH = 8.0  # largest factor by which the work grows from one round to the next


def _next_work(work, seconds):
    return max(1, int(work * min(CHUNK_SECONDS / seconds, GROWTH)))


def _undisturbed(advance, work, chain):
    """``advance(work, chain)``, after which a Ctrl-C that came meanwhile takes effect."""
    with without_interrupts():
        return advance(work, chain)


def run_rounds(advance, chains, first_work, *, is_done, stop, n_jobs=None):
    """Run all chains, round by round, until they are done or `stop` ends the run.

    Parameters
    ----------
    advance : callable
        ``advance(work, chain) -> chain`` does `work` more units, or all remaining ones if it is
        None, as on a joblib backend of processes. It must be picklable.
    chains : list
    first_work : int
        Units of the first round, when their speed is not known yet.
    is_done : callable
        ``is_done(chains)`` returns whether no work remains.
    stop : callable
        ``stop(chains)`` is called after each round; a true result ends the run.
    n_jobs : int or None

    Returns
    -------
    list
        The chains, which can continue.
    """
    work = first_work if shares_memory() else None
    while not is_done(chains):
        began = time.perf_counter()
        if work is None:
            chains = in_workers(partial(advance, None), chains, n_jobs)
        else:
            chains = in_workers(partial(_undisturbed, advance, work), chains, n_jobs)
            work = _next_work(work, time.perf_counter() - began)
        if stop(chains):
            break
    return chains
