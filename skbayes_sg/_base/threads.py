"""Threads for compiled kernels and BLAS, which release the GIL.

Joblib polls its threads every hundredth of a second, and a pass over a million numbers takes no
longer than that. Joblib therefore only decides how many threads there are, and does the work itself
if the user has chosen a backend of processes.
"""

import contextvars
import functools
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import joblib
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from .shared import SharedSetting

__all__ = ["as_done", "in_threads", "in_workers", "one_blas_thread", "raise_if_stopped"]
__all__ += ["shares_memory"]

LISTEN_SECONDS = 0.1  # longest time for which a wait for threads does not notice Ctrl-C

# Finding the libraries takes 3 ms; those of NumPy and SciPy are loaded by now.
_libraries = functools.cache(ThreadpoolController)


def _blas_threads():
    """Return the number of BLAS threads: the smallest one, as NumPy's and SciPy's BLAS may differ.

    The result is 1 if no BLAS library is found.
    """
    found = (lib.num_threads for lib in _libraries().lib_controllers if lib.user_api == "blas")
    return min(found, default=None) or 1


class _OneBlasThread(SharedSetting):
    """Limits BLAS to one thread. Entering returns how many threads BLAS had.

    The limit is global to the process: fits that run in several threads must share it. OpenBLAS's
    threads spin for a while after each call, so that short calls before work in threads should be
    limited as well.
    """

    def begin(self):
        before = _blas_threads()
        self._limits = _libraries().limit(limits=1, user_api="blas")
        return before

    def end(self):
        self._limits.restore_original_limits()


one_blas_thread = _OneBlasThread()

_stop: contextvars.ContextVar = contextvars.ContextVar("stop", default=None)


def in_threads(work, items, n_jobs=None):
    """Return ``[work(item) for item in items]``, on as many threads as joblib has for `n_jobs`."""
    raise_if_stopped()
    items = list(items)
    workers = min(joblib.effective_n_jobs(n_jobs), len(items)) if len(items) > 1 else 1
    if workers <= 1:
        return [work(item) for item in items]
    executor = ThreadPoolExecutor(workers)
    try:
        return list(executor.map(work, items))
    finally:
        executor.shutdown(cancel_futures=True)  # after Ctrl-C, waits for one chunk of each thread


def shares_memory():
    """Whether workers are threads of this process: True unless a user chose another backend."""
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


def in_workers(work, items, n_jobs=None):
    """Return ``[work(item) for item in items]``, on threads or the user's backend of processes."""
    if shares_memory():
        return in_threads(work, items, n_jobs)
    return _on_backend(n_jobs)(delayed(work)(item) for item in items)


def _on_backend(n_jobs, return_as="list"):
    # Joblib maps large arrays, which a worker may change: it writes to pages of its own ("c").
    return Parallel(n_jobs=n_jobs, prefer="threads", mmap_mode="c", return_as=return_as)


class Stopped(Exception):
    """Another part of the same work has failed, or was interrupted."""


def raise_if_stopped():
    """Raise `Stopped` in a thread whose result is no longer needed."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped


def as_done(work, items, n_items, n_jobs=None):
    """Yield (number, ``work(*item)``) of each item when it is done, from threads or from joblib.

    This is for items that take long. At the first error, and after Ctrl-C, threads are told to stop
    (see `raise_if_stopped`) and are waited for. Errors of the work are raised unchanged.
    """
    if not shares_memory():
        return _from_backend(work, items, n_jobs)
    workers = min(joblib.effective_n_jobs(n_jobs), n_items)
    if workers <= 1:
        return ((k, work(*item)) for k, item in enumerate(items))
    return _in_long_threads(work, items, workers)


def _in_long_threads(work, items, workers):
    stop = threading.Event()

    def watched(item):
        _stop.set(stop)
        return work(*item)

    with ThreadPoolExecutor(workers) as executor:
        futures = {executor.submit(watched, item): k for k, item in enumerate(items)}
        pending = set(futures)
        try:
            while pending:  # wake up regularly: an endless wait may not be interrupted by Ctrl-C
                done, pending = wait(pending, LISTEN_SECONDS, FIRST_COMPLETED)
                for future in done:
                    yield futures[future], future.result()
        except BaseException:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _numbered(work, k, item):
    return k, work(*item)


def _from_backend(work, items, n_jobs):
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    lazy = getattr(backend, "supports_return_generator", False)
    parallel = _on_backend(n_jobs, "generator_unordered" if lazy else "list")
    yield from parallel(delayed(_numbered)(work, k, item) for k, item in enumerate(items))
