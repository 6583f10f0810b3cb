"""The limit of BLAS to one thread."""

import warnings

from skbayes_sg._base import threads


class Library:
    """One of those that threadpoolctl finds."""

    def __init__(self, user_api, num_threads):
        self.user_api, self.num_threads = user_api, num_threads


def test_libraries_may_have_different_numbers_of_threads(monkeypatch):
    """NumPy's and SciPy's BLAS do, where the environment changes between their imports."""
    found = threads._libraries()
    known = [Library("blas", 4), Library("openmp", 1), Library("blas", 3)]
    monkeypatch.setattr(found, "lib_controllers", known)
    monkeypatch.setattr(found, "limit", lambda **_: None)
    limit = threads._OneBlasThread()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert limit.__enter__() == 3
        assert limit.__enter__() == 3  # a fit within a fit


def test_without_a_library_there_is_one_thread(monkeypatch):
    monkeypatch.setattr(threads._libraries(), "lib_controllers", [])
    assert threads._blas_threads() == 1
