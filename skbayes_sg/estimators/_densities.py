"""Base of estimators of row densities: their parameters, and the fitted choices of "auto"."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .._base.callbacks import CallbackSupportMixin
from .._base.typing import RandomState
from .._base.validation import Parameters, check_data
from ..densities.fit import check_request
from ..dynamics import DYNAMICS, Dynamics, Importance, Metropolis
from ..gradients import GRADIENTS, Gradient
from ..recipe.request import Request
from ..schedules import Constant, Schedule
from ..subsampling import SUBSAMPLING, Subsampling
from ._saved import SavedEstimator

__all__ = ["DensityEstimator", "dense_data"]


class DensityEstimator(CallbackSupportMixin, SavedEstimator):
    """Base of estimators whose posterior is that of a `skbayes_sg.densities` row density."""

    _doc_link_module = "skbayes_sg"
    _doc_link_template = "https://skbayes-sg.readthedocs.io/stable/api/{estimator_name}.html"
    _other_samplers: ClassVar[tuple] = ()  # names of samplers that are not of `skbayes_sg.dynamics`
    # Accepted names of samplers, and their classes.
    _samplers: ClassVar[dict] = DYNAMICS | {"importance": Importance}
    _kinds_of_samplers: ClassVar[tuple] = (Dynamics, Importance, Metropolis)

    def __init__(
        self,
        *,
        sampler: Any = "auto",
        gradient: Any = "auto",
        subsampling: Any = "auto",
        batch_size: Any = "auto",
        step_size: Any = "auto",
        preconditioner: str | None = "auto",
        n_draws: int = 1000,
        n_chains: int = 4,
        n_warmup: int | str = "auto",
        thin: int | str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.gradient = gradient
        self.subsampling = subsampling
        self.batch_size = batch_size
        self.step_size = step_size
        self.preconditioner = preconditioner
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _request(self, n_rows, names):
        """The checked parameters of the constructor, as a `Request` for `n_rows` rows.

        `names` are the labels of the sampled parameters.
        """
        p = Parameters(self)
        others = isinstance(self.sampler, str) and self.sampler in self._other_samplers
        choices = dict.fromkeys(self._other_samplers) | self._samplers
        request = Request(
            sampler=None if others else p.component("sampler", choices, self._kinds_of_samplers),
            gradient=p.component("gradient", GRADIENTS, Gradient),
            subsampling=p.component("subsampling", SUBSAMPLING, Subsampling),
            batch_size=p.batch_size(n_rows),
            step_size=p.step_size(Schedule, Constant),
            preconditioner=p.choice("preconditioner", ["auto", "hessian", "diagonal", None]),
            n_draws=p.integer("n_draws", 1),
            n_chains=p.integer("n_chains", 1),
            n_warmup=p.integer("n_warmup", 0, auto=True),
            thin=p.integer("thin", 1, auto=True),
            seed=p.seed(),
            n_jobs=p.n_jobs(),
            names=names,
        )
        check_request(request, n_rows)
        return request


def dense_data(estimator, X, *y, reset=True):
    """X, or X and y, as checked float64 arrays; `TypeError` for sparse X."""
    _check_dense(estimator, X, "X.toarray()")
    found = check_data(estimator, X, *y, reset=reset, y_numeric=bool(y))
    parts = found if y else (found,)
    _check_dense(estimator, parts[0], "X.sparse.to_dense()")  # of a data frame
    parts = tuple(np.asarray(part, dtype=np.float64) for part in parts)
    return parts if y else parts[0]


def _check_dense(estimator, X, remedy):
    if sparse.issparse(X):
        raise TypeError(
            f"{type(estimator).__name__} needs dense data, and X is sparse. Use {remedy} if that "
            "fits into memory."
        )
