"""The request to the recipe, and the outcome that it returns."""

import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import numpy as np

from ..dynamics import Exact, Importance, Metropolis
from ..exceptions import UnusedParameterWarning
from ..gradients import Full
from ..posterior.moments import RunningMoments, kept_draws
from ..priors import HalfNormal, Normal, StudentT
from ..priors.columns import LOC, POWER, SCALE, SHAPE
from ..priors.families import of_family
from ..subsampling import AllRows

__all__ = ["Outcome", "Request", "chosen_without_steps", "moments_and_kept"]

LEAST_OUTERMOST = 20  # least number of draws on either side that show the shape of a tail
# A tail is that of the prior if the likelihood adds less than this share of the prior's slope.
OF_LIKELIHOOD = 0.1
CARRIED = 0.05  # tails that carry a smaller share of the variance on one side do not count
# A smaller share of the slope is rounding: scores are kept in single precision.
ROUNDED = 0.02


def _refuse(one, other, reason):
    raise ValueError(f"{one} does not go with {other}: {reason}. Leave one of them to 'auto'.")


@dataclass
class Request:
    """The checked parameters of a fit. None means "auto", but "none" for the preconditioner."""

    sampler: Any = None
    gradient: Any = None
    subsampling: Any = None
    batch_size: int | None = None
    step_size: Any = None  # a schedule
    preconditioner: str | None = "auto"
    n_draws: int = 1000
    n_chains: int = 4
    n_warmup: int | None = None
    thin: int | None = None
    seed: int = 0
    n_jobs: int | None = None
    names: Any = ()  # names of the parameters, for messages
    keep: int | None = None  # draws kept of each chain, all add to moments; None: all are kept
    start: Any = None  # θ at which the search for the mode begins, if it is a good place
    parameters: Any = np.asarray  # function from draws of θ to the reported parameters
    identified: Any = np.asarray  # linear map from θ to what the data can tell of it
    comparable: bool = True  # whether θ means the same in all chains, so that its R-hat judges them
    seconds: dict = field(default_factory=dict)  # seconds that each part took, by its name

    @contextmanager
    def timed(self, part):
        """Add the seconds that a block of code takes to those of a part of the run."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began

    def check(self, n_rows):
        """Raise `ValueError` for pieces that do not fit together, or not the number of rows."""
        gradient, scheme = self.gradient, self.subsampling
        full = isinstance(gradient, Full)
        if isinstance(self.sampler, (Exact, Importance)):
            return self._check_without_steps()
        if isinstance(self.sampler, Metropolis) or full:
            name = f"gradient={gradient!r}" if full else f"sampler={self.sampler!r}"
            if isinstance(self.sampler, Metropolis) and gradient is not None and not full:
                _refuse(name, f"gradient={gradient!r}", "it needs the full gradient")
            if scheme is not None and not isinstance(scheme, AllRows):
                _refuse(name, f"subsampling={scheme!r}", "it uses every row at every step")
            if self.batch_size is not None and self.batch_size < n_rows:
                _refuse(name, f"batch_size={self.batch_size}", "it uses every row at every step")
        adaptive = getattr(scheme, "needs_reach", False)
        if adaptive and gradient is not None and not gradient.uses_centre:
            reason = "its batches follow the distance from the centre; this noise does not"
            _refuse(f"subsampling={scheme!r}", f"gradient={gradient!r}", reason)
        for piece in (gradient, scheme):
            if piece is not None:  # checked even if all rows are used, and the piece is not
                piece.check(n_rows, self.batch_size or n_rows)
        if self.batch_size is not None and self.batch_size >= n_rows and self._names_pieces:
            self._warn_unused(n_rows)

    @property
    def _names_pieces(self):
        """Whether a gradient or a subsampling scheme for steps on few rows is asked for."""
        gradient = self.gradient is not None and not isinstance(self.gradient, Full)
        return gradient or not isinstance(self.subsampling, (AllRows, NoneType))

    @property
    def names_few_rows(self):
        """Whether something is asked for that has a meaning only for steps on a few rows."""
        return self._names_pieces or self.batch_size is not None

    @property
    def leaves_rows_to_auto(self):
        """Whether nothing is asked for that makes, or may make, steps on a few rows."""
        exact = isinstance(self.sampler, (NoneType, Exact, Importance, Metropolis))
        return exact and not self.names_few_rows and self.step_size is None

    def _warn_unused(self, n_rows):
        asked = {"gradient": self.gradient, "subsampling": self.subsampling}
        named = ", ".join(f"{name}={value!r}" for name, value in asked.items() if value is not None)
        warnings.warn(
            f"{named} has no effect, because every step uses all {n_rows} rows "
            f"(batch_size={self.batch_size}). Use a smaller batch_size.",
            UnusedParameterWarning,
            stacklevel=2,
        )

    def _check_without_steps(self):
        asked = {
            "gradient": self.gradient,
            "subsampling": self.subsampling,
            "batch_size": self.batch_size,
            "step_size": self.step_size,
            "preconditioner": None if self.preconditioner == "auto" else repr(self.preconditioner),
        }
        for name, value in asked.items():
            if value is not None:
                _refuse(
                    f"sampler={self.sampler!r}",
                    f"{name}={value}",
                    "independent draws take no steps",
                )

    def name_of(self, parameter):
        """The name of a parameter, given its index."""
        return self.names[parameter] if len(self.names) else f"parameter {parameter}"

    @property
    def leaves_all_to_auto(self):
        """Whether nothing is asked for but numbers of chains and draws."""
        return self.is_open and self.n_warmup is None and self.thin is None

    @property
    def is_open(self):
        """Whether the method is left to the recipe."""
        asked = self.sampler, self.gradient, self.subsampling, self.batch_size, self.step_size
        return all(value is None for value in asked) and self.preconditioner == "auto"


def chosen_without_steps(sampler, preconditioner, n_rows):
    """`Outcome.chosen` of draws that were made from all rows, without steps of a chain."""
    chosen = {"sampler": sampler, "gradient": Full(), "subsampling": AllRows()}
    chosen |= {"preconditioner": preconditioner, "batch_size": n_rows, "step_size": np.nan}
    return chosen | {"thin": 1, "n_warmup": 0}


def moments_and_kept(draws, request):
    """`RunningMoments` of all draws, or None if all are kept, and the indices of those kept."""
    if request.keep is None:
        return None, slice(None)
    moments = RunningMoments(*draws.shape)
    moments.add(request.parameters(draws))
    n_draws = draws.shape[1]  # fewer than requested if a callback has ended the run
    return moments, kept_draws(n_draws, min(request.keep, n_draws))


@dataclass(frozen=True)
class Outcome:
    """Draws of the parameters θ, with how they were made and what was measured."""

    draws: np.ndarray  # (n_chains, n_draws, n_parameters)
    chosen: dict  # sampler, gradient, ..., step_size, batch_size, n_warmup, thin
    diagnostics: dict = field(default_factory=dict)
    batch_sizes: Any = None  # (n_chains, n_draws): mean rows a step since the draw before
    weights: np.ndarray | None = None  # weights of draws, (n_draws,), mean 1; None: all the same
    scores: np.ndarray | None = None  # gradients of log p with respect to θ at the draws
    scores_of: str = ""  # what the scores were computed from, in words
    evidence: dict = field(default_factory=dict)  # of each parameter: see `Posterior.evidence`
    moments: Any = None  # `RunningMoments` of all draws, where not all are kept
    seconds: dict = field(default_factory=dict)  # seconds that each part took, by its name
    mode: Any = None  # θ at the mode around which draws were made, if there was one
    # Means and standard deviations of each parameter by the likelihood alone, the others at the
    # mode, if there was one.
    by_data: Any = None

    @property
    def n_made(self):
        """Number of draws of each chain that were made."""
        return self.draws.shape[1] if self.moments is None else self.moments.seen

    def conflict(self, prior):
        """Evidence of how many standard deviations apart the prior and the data alone are.

        It is 0 for all but normal and half-normal priors.

        With a prior N(m₀, v₀) and a posterior about N(m, v), the data alone have precision
        1/v - 1/v₀ and mean (m/v - m₀/v₀) / (1/v - 1/v₀). Where v is nearly v₀, as for columns in
        small units, that difference is noise, and `by_data` takes its place. Parameters with
        half-normal priors are positive, and θ contains their logarithms.
        """
        flat, half = self.draws.reshape(-1, self.draws.shape[-1]), of_family(prior, HalfNormal)
        if len(flat) == 0:
            return {}
        flat = np.where(half, np.exp(np.where(half, flat, 0.0)), flat) if half.any() else flat
        m, v = flat.mean(axis=0), np.maximum(flat.var(axis=0), np.finfo(float).tiny)
        m0, v0 = np.where(half, 0.0, prior[:, LOC]), prior[:, SCALE] ** 2
        told = (half | of_family(prior, Normal)) & (v < 0.9 * v0) & (len(flat) > 1)
        precision = np.where(told, 1.0 / v - 1.0 / np.where(told, v0, 1.0), 1.0)
        # The mean of the data alone, less m₀, is (m - m₀)/v over their precision.
        share = np.where(told, v, 1.0) * precision
        apart = np.abs(m - m0) / share / np.sqrt(v0 + 1.0 / precision)
        apart = np.where(told, apart, 0.0)
        if self.by_data is not None and len(flat) > 1:
            mean, sd = self.by_data
            held = of_family(prior, Normal) & ~told & np.isfinite(sd)
            far = np.abs(mean - m0) / np.sqrt(v0 + np.square(sd))
            apart = np.where(held, far, apart)
        return {"prior_conflict": apart}

    def heavy_tails(self, prior, identified=np.asarray):
        """Evidence of 1/df for parameters whose tail is that of their Student's t prior; else 0.

        The scores of the outermost draws tell: the prior alone holds these back, and the slope of
        the likelihood fades outwards, as where a column separates the classes. There the density
        falls with the power df + 1. Tails that hardly add to the variance do not count, such as
        those of a spike, which may be the outermost of several modes. How far out draws are is told
        by what the data can tell of them, `identified` of a `Request`: the common shift of several
        classes meets no likelihood anywhere, and the priors of all classes hold it back.
        """
        found = np.zeros(len(prior))
        heavy = np.flatnonzero(of_family(prior, StudentT))
        if len(heavy) == 0 or self.scores is None:
            return {}
        flat, scores = (x.reshape(-1, len(prior)) for x in (self.draws, self.scores))
        m = max(LEAST_OUTERMOST, len(flat) // 100)
        if len(flat) < 2 * m:
            return {}
        told = identified(flat - prior[:, LOC])
        for j in heavy:
            x, order = told[:, j], np.argsort(told[:, j])
            away = np.abs(x)
            for rows in (order[: 2 * m], order[::-1][: 2 * m]):  # the outermost first
                outermost = rows[:m]
                carried = np.square(x[outermost] - x.mean()).sum() > CARRIED * len(x) * x.var()
                is_far = np.median(away[outermost]) > np.median(away)
                if carried and is_far and _is_of_prior(flat[rows, j], scores[rows, j], prior[j]):
                    found[j] = 1.0 / prior[j, SHAPE]
        return {"heavy_tail": found}

    def rounding(self, prior, extras):
        """Evidence of the response's rounding error, in units of the noise (posterior median).

        It is 0 for parameters that are not the noise.

        The parameters `extras` are logarithms of positive ones; their priors have the rounding
        error as location, or 0 where the response has none.
        """
        noises = [k for k in extras if prior[k, LOC] != 0.0]
        flat = self.draws.reshape(-1, self.draws.shape[-1])
        found = np.zeros(flat.shape[1])
        if len(noises) == 0 or len(flat) == 0:
            return {}
        noise = np.exp(np.median(flat[:, noises], axis=0))
        found[noises] = prior[noises, LOC] / np.maximum(noise, np.finfo(float).tiny)
        return {"rounding": found}


def _is_of_prior(x, score, row):
    """Whether log p has the slope of a Student's t prior far out.

    `x` and `score` are the values and the scores of a parameter, beginning with the outermost draw,
    and `row` is its row of the prior table.
    """
    z, df = (x - row[LOC]) / row[SCALE], row[SHAPE]
    own = -row[POWER] * (df + 1.0) * z / (df + z * z) / row[SCALE]
    m = len(x) // 8
    # Medians, because however far out, a few draws are near the walls where classes are separated.
    outer, inner = (abs(np.median((score - own)[rows])) for rows in (slice(m), slice(m, None)))
    unit = abs(np.median(own[:m]))
    far_out = np.abs(np.median(z[:m])) > 2.0 * np.sqrt(df)
    return bool(far_out and outer < OF_LIKELIHOOD * unit and outer <= max(inner, ROUNDED * unit))
