"""Threads for compiled kernels and BLAS, which release the GIL.

Joblib asks every hundredth of a second whether its threads are done, which is as long as a pass
over a million numbers takes. It is asked how many threads there may be, and does the work itself
where the user has chosen a backend of processes.
"""

import contextlib
import contextvars
import functools
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import joblib
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

__all__ = [
    "as_done", "in_threads", "in_workers", "one_blas_thread", "raise_if_stopped", "shares_memory",
]  # fmt: skip

LISTEN_SECONDS = 0.1

# To find the libraries takes 3 ms; those of NumPy and SciPy are loaded by now, and others not used.
_libraries = functools.cache(ThreadpoolController)


class _OneBlasThread(contextlib.ContextDecorator):
    """BLAS runs on one thread inside; the first fit in sets the limit, the last one out lifts it.

    The limit is global to the process: fits that run in several threads must share it. What comes
    in is told how many threads BLAS had. OpenBLAS's threads go round in circles for a while after
    each call, which is a reason to limit short calls before work in threads as well.
    """

    def __init__(self):
        self._lock, self._depth, self._limits = threading.Lock(), 0, None

    def __enter__(self):
        with self._lock:
            if self._depth == 0:
                self._limits = _libraries().limit(limits=1, user_api="blas")
            self._depth += 1
            return self._limits.get_original_num_threads()["blas"] or 1

    def __exit__(self, *error):
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._limits.restore_original_limits()


one_blas_thread = _OneBlasThread()

_stop: contextvars.ContextVar = contextvars.ContextVar("stop", default=None)


def in_threads(work, items, n_jobs=None):
    """``[work(item) for item in items]`` on as many threads as joblib allows for `n_jobs`."""
    raise_if_stopped()
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


class Stopped(Exception):
    """The work of which this is a part has failed, or was interrupted."""


def raise_if_stopped():
    """`Stopped` in a thread whose work nobody waits for any more."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped


def as_done(work, items, n_items, n_jobs=None):
    """(number, ``work(*item)``) of each item as it is done: in threads, or on joblib's backend.

    For items that take long. Threads are told to stop at the first error, and after Ctrl-C, and
    are waited for; see `raise_if_stopped`. Errors of the work come through as they are.
    """
    if not shares_memory():
        return _on_backend(work, items, n_jobs)
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
            while pending:  # and look up now and then: waiting, Python may not hear of Ctrl-C
                done, pending = wait(pending, LISTEN_SECONDS, FIRST_COMPLETED)
                for future in done:
                    yield futures[future], future.result()
        except BaseException:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _numbered(work, k, item):
    return k, work(*item)


def _on_backend(work, items, n_jobs):
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    lazy = getattr(backend, "supports_return_generator", False)
    parallel = Parallel(
        n_jobs=n_jobs, prefer="threads", return_as="generator_unordered" if lazy else "list"
    )
    yield from parallel(delayed(_numbered)(work, k, item) for k, item in enumerate(items))
