"""Estimators that were saved, by pickle or by skops, and are loaded by another version.

A saved estimator carries the version that saved it. This version reads what versions from
`OLDEST_READ` on have saved; tests/estimators/saved has a file of each. Whoever changes what fitted
estimators contain either reads the old form too, or raises `OLDEST_READ`.
"""

import inspect
import re
import warnings
from typing import Any

from sklearn.base import BaseEstimator

from .._base.version import __version__
from ..exceptions import SavedVersionError, SavedVersionWarning

__all__ = ["SavedEstimator", "defaults_of"]

OLDEST_READ = "0.1.0"  # oldest version whose saved estimators this version can load
STAMP = "_skbayes_sg_version"  # key of the version in the state of a saved estimator


def _number(version: str) -> tuple[int, ...]:
    """The numbers of a version: (0, 2, 1) for "0.2.1", "0.2.1rc1" and "0.2.1.dev0"."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()


class SavedEstimator(BaseEstimator):
    """Base of estimators, whose pickled state contains the version of the package."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {STAMP: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        _check_version(type(self).__name__, state.pop(STAMP, "0"))
        # Defaults stand in for parameters that an old version did not have.
        super().__setstate__(defaults_of(type(self)) | state)


def defaults_of(kind: type) -> dict[str, Any]:
    """The defaults of all parameters of an estimator's constructor."""
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _check_version(name: str, saved_by: str) -> None:
    """`SavedVersionError` for a version that is too old, and a warning for one that is newer."""
    if _number(saved_by) < _number(OLDEST_READ):
        raise SavedVersionError(
            f"This {name} was saved by skbayes_sg {saved_by}. Version {__version__} reads "
            f"estimators that were saved by {OLDEST_READ} or later: fit it again, or load it with "
            "the version that saved it."
        )
    if _number(saved_by) > _number(__version__):
        warnings.warn(
            f"This {name} was saved by skbayes_sg {saved_by}, which is newer than the installed "
            f"version {__version__}. Its predictions may differ: install skbayes_sg {saved_by}.",
            SavedVersionWarning,
            stacklevel=4,
        )
