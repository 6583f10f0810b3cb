"""The one pacing of chains: rounds of a tenth of a second, and what happens between them.

A kernel that runs cannot be interrupted, nor can a callback see what it has made. So every loop of
the package calls its kernels for as much work as takes `CHUNK_SECONDS`; Ctrl-C, callbacks and
checks for divergence have their turn between the rounds. How much work a round does depends on the
clock; what the chains draw does not, because a chain goes on where it stopped.
"""

import time
from functools import partial

from .._base.threads import in_workers, shares_memory

__all__ = ["run_rounds"]

CHUNK_SECONDS = 0.1
GROWTH = 8.0  # by which the work of a round grows at most


def _next_work(work, seconds):
    return max(1, int(work * min(CHUNK_SECONDS / seconds, GROWTH)))


def run_rounds(advance, chains, first_work, *, is_done, stop, n_jobs=None):
    """Let all chains go on, round by round, until all is done or something stops them.

    Parameters
    ----------
    advance : callable
        ``advance(work, chain) -> chain`` does `work` units more, or all that is left if it is None,
        as on a joblib backend of processes. It can be sent to another process.
    chains : list
    first_work : int
        Units of the first round, when nobody knows yet how long they take.
    is_done : callable
        ``is_done(chains)`` says whether nothing is left to do.
    stop : callable
        ``stop(chains)`` is called after each round; a true result ends the run there.
    n_jobs : int or None

    Returns
    -------
    list
        The chains, ready to go on.
    """
    work = first_work if shares_memory() else None
    while not is_done(chains):
        began = time.perf_counter()
        chains = in_workers(partial(advance, work), chains, n_jobs)
        if work is not None:
            work = _next_work(work, time.perf_counter() - began)
        if stop(chains):
            break
    return chains
