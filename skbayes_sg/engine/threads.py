"""Threads for compiled kernels and BLAS, which release the GIL.

Joblib asks every hundredth of a second whether its threads are done, which is as long as a pass
over a million numbers takes. It is asked how many threads there may be, and does the work itself
where the user has chosen a backend of processes.
"""

from concurrent.futures import ThreadPoolExecutor

import joblib
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["in_threads", "in_workers", "shares_memory"]


def in_threads(work, items, n_jobs=None):
    """``[work(item) for item in items]`` on as many threads as joblib allows for `n_jobs`."""
    items = list(items)
    workers = min(joblib.effective_n_jobs(n_jobs), len(items))
    if workers <= 1:
        return [work(item) for item in items]
    executor = ThreadPoolExecutor(workers)
    try:
        return list(executor.map(work, items))
    finally:
        executor.shutdown(cancel_futures=True)  # after Ctrl-C, waits for one chunk of each thread


def shares_memory():
    """Whether workers are threads of this process, as they are unless a user says otherwise."""
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


def in_workers(work, items, n_jobs=None):
    """`in_threads`, or the same on the joblib backend of processes that is active."""
    if shares_memory():
        return in_threads(work, items, n_jobs)
    return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(item) for item in items)
