"""The final run: make draws, thin further while they carry too little information, and judge.

Chains move in coordinates φ. `FinalDraws` are draws there; `outcome_of` converts them to the
`Outcome` in the parameters θ, which is all that leaves the recipe.
"""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base.weights import normalised
from ..diagnostics import convergence
from ..diagnostics.verdict import FEW_DRAWS, disagree, disagreement, remedy_for_chains
from ..engine import metropolis
from ..engine.run import new_chains, sample, slopes_at_draws
from ..exceptions import SamplerConvergenceWarning, SamplerDivergedError, StepSizeWarning
from ..geometry.preconditioning import DENSE_LIMIT
from ..posterior.moments import RunningMoments, kept_draws
from ..schedules import draw_weights, step_sums
from .price import LONG_SECONDS, TOLD_SECONDS, pace_of, warn_if_long
from .request import Outcome, Request

__all__ = ["FinalDraws", "Production", "check_derivatives", "in_single_precision", "outcome_of"]
__all__ += ["length_of_run", "raise_if_diverged", "step_of_draws", "warmed_up"]

DOUBLINGS = 3  # `thin` is doubled at most so often to reach the share of effective draws aimed at
MOST_DOUBLINGS = 6  # and so often if the chains would be reported as not converged otherwise
STUCK = 1.2  # R-hat above which longer chains are not expected to agree
BLOCK_BYTES = 1 << 22  # size of a block of draws, which are made and then added to the moments
LONGEST = 1000  # largest number of steps between draws
LONGEST_WARMUP = 100 * LONGEST  # largest number of steps of a warm-up that is not given
ACCEPT_WARNING = 0.2  # acceptance rate of a chain below which there is a `StepSizeWarning`
# Step sizes of a schedule that have fallen below this share of the first are the reason for chains
# that mix slowly, and more draws do not help.
DECAYED = 0.2
SHORT_WARMUP = 50  # trajectories of warm-up that may be too few for dual averaging
UNMEASURED = 10  # first steps of a warm-up, whose time is partly that of compiling kernels
CHECKED_DRAWS = 8  # draws at which derivatives of users are compared with differences
N_STEPS = 1000  # steps of a schedule whose sizes are looked at for that


@dataclass(frozen=True)
class FinalDraws:
    """The results of the final run, in the coordinates φ of the chains."""

    phi: np.ndarray  # (n_chains, n_draws, n_parameters)
    slopes: np.ndarray | None  # gradients of U in φ at the draws, of the shape of phi
    weights: np.ndarray | None  # (n_draws,): weights of draws where steps vary; None: all the same
    batch_sizes: np.ndarray  # (n_chains, n_draws): mean rows a step since the draw before
    moments: Any  # `RunningMoments` of all draws, where not all are kept
    chosen: dict  # as in `Outcome`
    diagnostics: dict  # as in `Outcome`
    scores_of: str  # what the gradients were computed from, in words

    @property
    def n_made(self):
        """Number of draws of each chain that were made."""
        return self.phi.shape[1] if self.moments is None else self.moments.seen


def check_derivatives(target, draws):
    """Raise an error if derivatives are wrong at some of the draws, as those of users may be."""
    flat = draws.reshape(-1, draws.shape[-1])
    if len(flat):
        for theta in flat[np.linspace(0, len(flat) - 1, CHECKED_DRAWS).astype(int)]:
            target.model.check_derivatives(target, theta.astype(np.float64))


def outcome_of(made, frame, diagnostics=None, evidence=None):
    """The `Outcome` in θ of `FinalDraws`, with further diagnostics and evidence added."""
    return Outcome(
        frame.theta(made.phi),
        made.chosen,
        made.diagnostics | (diagnostics or {}),
        made.batch_sizes,
        made.weights,
        None if made.slopes is None else in_single_precision(frame.scores(made.slopes)),
        made.scores_of,
        evidence or {},
        made.moments,
    )


def step_of_draws(schedule, made):
    """The step size h that widens draws as much as those of a schedule do together, Σh²/Σh.

    To first order a variance is widened by a multiple of h, and draws are weighted by h. The sums
    are over the steps after the warm-up, whose own steps have made no draw.
    """
    first = made.chosen["n_warmup"]
    last = max(first, first + made.chosen["thin"] * made.n_made - 1)
    steps = schedule(np.linspace(first, last, N_STEPS).astype(int))
    return float(np.sum(steps**2) / np.sum(steps))


def in_single_precision(scores):
    """Convert scores to single precision, unless it cannot represent their size."""
    sizes = np.abs(scores).max(axis=(0, 1), initial=0.0)
    fits = ((sizes < 1e30) & ((sizes > 1e-30) | (sizes == 0.0))).all()
    return scores.astype(np.float32) if fits else scores


def raise_if_diverged(frame, setup, chains, request, largest_step):
    """Raise `SamplerDivergedError` for the first chain that has left the bounds."""
    for chain in chains:
        if chain.diverged:
            with np.errstate(all="ignore"):
                away = np.abs(frame.theta(chain.state[0]) - frame.centre.theta) / frame.width
            worst = int(np.argmax(np.where(np.isfinite(away), away, np.inf)))
            h = float(setup.step_size(np.array([chain.total]))[0])
            few = setup.batch_size if setup.batch_size < frame.target.n_rows else None
            raise SamplerDivergedError(
                f"chain {chain.number} diverged at step {chain.total} with step_size={h:.4g} and "
                f"batch_size={setup.batch_size}: {request.name_of(worst)} was {_far(away[worst])}. "
                + _smaller_steps(request, h, largest_step, few)
            )


def _far(away):
    """In words, where a parameter was that many posterior standard deviations from the centre."""
    if not np.isfinite(away):
        return "not finite"
    return f"{away:.1e} posterior standard deviations from the centre"


def _smaller_steps(request, h, largest_step, few):
    """The words of a message that say what to do about steps of size h.

    `few` is the number of rows of a step, None for all rows.
    """
    if request.step_size is None:
        return (
            "step_size='auto' has chosen this one, which rare batches make unstable: use "
            f"step_size={h / 10.0:.2g}, a larger batch_size, or sampler='hmc', which rejects "
            "such steps."
        )
    if h < largest_step and few:
        return (
            f"Without gradient noise steps are stable up to {largest_step:.2g}, so that it is the "
            f"noise of batches of {few} that makes this one unstable. Use batch_size='auto' or a "
            "larger one, step_size='auto', or sampler='hmc'."
        )
    return (
        f"Use step_size='auto', or one below {largest_step:.2g}, the largest that is stable "
        "without gradient noise."
    )


def _used(draws, chains):
    """Number of rows that the steps before each draw have used, (n_chains, n_draws)."""
    return np.stack([chain.used[: draws.shape[1]] for chain in chains])


def length_of_run(setup, relaxation, request):
    """Steps from one draw to the next, and steps of the warm-up, unless they are given.

    They follow from the steps in which a chain forgets where it was, its `relaxation`.
    """
    thin = request.thin or int(np.clip(relaxation, 1, LONGEST))
    if request.n_warmup is not None:
        return thin, request.n_warmup
    settling = setup.gradient.settling_steps(setup.n_rows, setup.batch_size)
    return thin, int(np.clip(5 * relaxation, 1, LONGEST_WARMUP)) + settling


def warmed_up(production, positions):
    """Chains that have warmed up from some positions; the pace of the `Production` is set."""
    setup, request, n = production.setup, production.request, production.n_warmup
    chains = new_chains(setup, positions, request.seed)
    first, taken = min(n, UNMEASURED), 0.0
    for part in (first, n - first):
        if part:
            began = time.perf_counter()
            _, chains = sample(setup, chains, 1, part, n_jobs=request.n_jobs)
            taken = time.perf_counter() - began
    if n > first:
        production.pace = pace_of(taken, (n - first) * production.seconds)
    if n:
        raise_if_diverged(production.frame, setup, chains, request, production.largest_step)
    return chains


@dataclass
class Production:
    """A tuned set-up, which `run` runs for the requested draws."""

    frame: Any
    setup: Any
    request: Request
    thin: int  # steps from one draw to the next
    n_warmup: int  # steps of warm-up, which the chains have behind them
    ess_share: float  # effective draws that are aimed at, as a share of the draws
    largest_step: float = np.inf  # largest stable step size, for messages
    seconds: float = 0.0  # predicted time of one step of all chains
    pace: float = 1.0  # how many times as long chains have taken in the warm-up, for warnings

    def run(self, chains, watch=None):
        """Return the `FinalDraws`, and the chains that have made them."""
        self.setup = replace(self.setup, keep_slopes=self.setup.n_parameters <= DENSE_LIMIT)
        if self.request.keep is None:
            return self._keep_all(chains, watch)
        return self._keep_some(chains, watch)

    def _keep_all(self, chains, watch):
        """Make the requested draws, and thin them further while too few are effective."""
        draws, slopes, ends, chains = self._draw(chains, self.request.n_draws, watch)
        used, worst = _used(draws, chains), self._worst(draws)
        for doublings in range(MOST_DOUBLINGS):
            if not self._should_double(doublings, draws, worst):
                break
            self.thin *= 2
            self._tell_doubling()
            kept = draws[:, 1::2]
            more, further, later, chains = self._draw(chains, draws.shape[1] - kept.shape[1])
            draws, ends = np.concatenate([kept, more], axis=1), np.concatenate([ends[1::2], later])
            if slopes is not None:
                slopes = np.concatenate([slopes[:, 1::2], further], axis=1)
            pairs = used[:, : 2 * kept.shape[1]].reshape(len(used), -1, 2)
            used = np.concatenate([pairs.sum(axis=2), _used(more, chains)], axis=1)
            worst = self._worst(draws)
        weights = self._weights(ends)
        ess, *others = worst
        worst = (ess * convergence.weight_efficiency(weights), *others)
        found = self._judge(draws.shape[0] * draws.shape[1], worst, chains)
        return self._made(draws, slopes, weights, used, None, found), chains

    def _worst(self, draws):
        """Least effective sample size and largest R-hat of the parameters, each with its index."""
        return convergence.worst_of_chains(self.request.parameters(self.frame.theta(draws)))

    def _should_double(self, doublings, draws, worst):
        """Whether to double `thin`: for more effective draws, or so that chains agree at last.

        After `DOUBLINGS` the second is the only reason: if the run is not long, the chains count as
        not converged, and R-hat is so small that longer chains can be expected to agree.
        """
        if 2 * self.thin > LONGEST or not self._too_little(draws, worst):
            return False
        is_long = self.seconds * 2 * self.thin * self.request.n_draws > LONG_SECONDS
        if doublings < DOUBLINGS:
            return not (self.request.is_open and is_long)
        ess, _, rhat, _ = worst
        return not is_long and rhat < STUCK and disagree(rhat, ess, draws[..., 0].size)

    def _tell_doubling(self):
        """Give a `LongRunWarning` if the run is long only since `thin` was doubled."""
        seconds = self.pace * self.seconds * self.thin * self.request.n_draws
        if seconds <= 2.0 * TOLD_SECONDS:  # the run with half as many steps had no warning
            what = f"A run that needs thin={self.thin} for enough effective draws"
            warn_if_long(seconds, what, "Make fewer draws (n_draws), or set thin.", TOLD_SECONDS)

    def _keep_some(self, chains, watch):
        """Make draws block by block: keep a few, and add all of them to the moments."""
        n, D = self.request.n_draws, self.setup.n_parameters
        moments = RunningMoments(len(chains), n, D)
        wanted = kept_draws(n, self.request.keep) if self.request.keep else []
        parts, weights = [], []
        size = int(np.clip(BLOCK_BYTES // (8 * D * len(chains)), 1, n))
        while moments.seen < n:
            first, count = moments.seen, min(size, n - moments.seen)
            draws, slopes, ends, chains = self._draw(chains, count, watch, first)
            sums = self._step_sums(ends)
            moments.add(self.request.parameters(self.frame.theta(draws)), sums)
            kept = [k - first for k in wanted if first <= k < moments.seen]
            used = _used(draws, chains)
            parts.append([x if x is None else x[:, kept] for x in (draws, slopes, used)])
            weights += [] if sums is None else list(sums[kept])
            if draws.shape[1] < count:
                break  # a callback has ended the run
        draws, slopes, used = (
            None if column[0] is None else np.concatenate(column, axis=1)
            for column in zip(*parts, strict=True)
        )
        found = self._judge_moments(moments, chains)
        weights = normalised(weights, len(weights)) if weights else None
        return self._made(draws, slopes, weights, used, moments, found), chains

    def _made(self, phi, slopes, weights, used, moments, found):
        """The `FinalDraws` of some arrays, with the settings that have made them."""
        sizes, source = self._batch_sizes(used), self._source()
        return FinalDraws(phi, slopes, weights, sizes, moments, self._chosen(), found, source)

    def _judge_moments(self, moments, chains):
        """Return the diagnostics of all draws, according to their moments, as `_judge` does."""
        sizes, ratios = moments.ess(), moments.rhat()
        i, j = int(np.argmin(sizes)), int(np.argmax(np.nan_to_num(ratios)))
        total = moments.seen * len(chains)
        return self._judge(total, (sizes[i], i, ratios[j], j), chains)

    def _source(self):
        """A description of what the gradients were computed from."""
        if self.setup.is_metropolis or self.setup.batch_size >= self.setup.n_rows:
            return "all rows"
        return f"{self.setup.batch_size} rows a draw, {self.setup.gradient!r}"

    def _batch_sizes(self, used):
        """Mean number of rows a step before each draw, from the numbers used by all its steps."""
        if self.setup.is_metropolis:
            return np.full(used.shape, float(self.setup.n_rows))
        return used / self.thin

    def _draw(self, chains, n_draws, watch=None, before=0):
        """Make draws: return them, gradients of U there or None, their steps, and the chains.

        The step of a draw is the number of steps that a chain had taken, warm-up included, when the
        draw was made. `before` draws of this run were made earlier.
        """
        ends = chains[0].total + self.thin * np.arange(1, n_draws + 1)

        def report(chains, done):
            def so_far():
                draws = np.stack([chain.draws[:done] for chain in chains])
                return self.frame.theta(draws), self._weights(ends[:done])

            share = (before + done) / max(before + n_draws, self.request.n_draws)
            return watch is not None and done > 0 and watch(so_far, share)

        draws, chains = sample(
            self.setup, chains, n_draws, self.thin, n_jobs=self.request.n_jobs, watch=report
        )
        raise_if_diverged(self.frame, self.setup, chains, self.request, self.largest_step)
        slopes = None
        if self.setup.keep_slopes:
            slopes = slopes_at_draws(self.setup, chains, draws.shape[1], self.thin)
        return draws, slopes, ends[: draws.shape[1]], chains

    def _weights(self, ends):
        """Weights of draws that were made after the steps `ends`; None if they are all the same."""
        if self.setup.is_metropolis:
            return None
        return draw_weights(self.setup.step_size, ends, self.thin)

    def _step_sums(self, ends):
        """Sums of the step sizes that draws represent: their weights before normalisation."""
        if self.setup.is_metropolis:
            return None
        return step_sums(self.setup.step_size, ends, self.thin)

    def _too_little(self, draws, worst):
        """Whether fewer draws are effective than are aimed at, and the recipe may choose `thin`."""
        if self.request.thin is not None or draws.shape[1] < self.request.n_draws:
            return False
        return worst[0] < self.ess_share * draws.shape[0] * draws.shape[1]

    def _chosen(self):
        """The settings of the run, for `Outcome.chosen`."""
        setup = self.setup
        return {
            "sampler": setup.dynamics,
            "gradient": setup.gradient,
            "subsampling": setup.subsampling,
            "preconditioner": self.frame.kind,
            "batch_size": setup.batch_size,
            "step_size": setup.first_step,
            "thin": self.thin,
            "n_warmup": self.n_warmup,
        }

    def _judge(self, total, worst, chains):
        """Return the diagnostics of `total` draws, and warn if the chains have not converged."""
        ess, _, rhat, _ = worst
        found, told = {"min_ess": ess, "max_rhat": rhat}, ""
        if self.request.comparable:
            told = disagreement(worst, total, self.request.name_of)
        if told:
            warnings.warn(told + self._remedy(chains), SamplerConvergenceWarning, stacklevel=2)
        if self.setup.is_metropolis:
            found["acceptance"] = self._acceptance(chains)
        return found

    def _remedy(self, chains):
        """The words of a message that say what to do about chains that have not converged."""
        request, now = self.request, f"now {self.thin} and {self.n_warmup}"
        if not self.setup.is_metropolis:  # such samplers take the first step all the time
            first, last = self.setup.first_step, self._last_step(chains)
            if last < DECAYED * first:
                return (
                    f"The step size has fallen from {first:.2g} to {last:.2g}, and chains slow "
                    "down with it: use a constant step_size, 'auto', or a schedule that falls more "
                    "slowly."
                )
        if request.n_draws < FEW_DRAWS:
            return remedy_for_chains(request.n_draws)
        asked = {name: getattr(request, name) for name in ("step_size", "thin", "n_warmup")}
        given = [name for name, value in asked.items() if value is not None]
        more = f"Increase n_draws (now {request.n_draws}), thin or n_warmup ({now})"
        return f"{more}, or leave {' and '.join(given)} to 'auto'." if given else f"{more}."

    def _last_step(self, chains):
        """The largest step size of the second half of the steps, in which cycles come round."""
        total = max([1, *(chain.total for chain in chains)])
        steps = np.linspace(total // 2, total - 1, N_STEPS).astype(int)
        return float(np.max(self.setup.step_size(steps)))

    @property
    def _remedy_for_rejections(self):
        """The words of a message that say what to do about moves that are hardly ever accepted."""
        if self.request.step_size is not None:
            return "Use step_size='auto' or a smaller step_size."
        if self.n_warmup < SHORT_WARMUP:
            return (
                f"n_warmup={self.n_warmup} is too short to find a step size: leave it to 'auto', "
                "or give a step_size."
            )
        return (
            "No step size suits the whole posterior, because it is much narrower in some places "
            "than in others, for example where parameters fit all rows without error. Use fewer "
            "columns or components, or more informative priors."
        )

    def _acceptance(self, chains):
        """Mean acceptance rate; warn if that of a chain is small, raise if it is near zero."""
        rates = [c.record[metropolis.ACCEPTED] / max(c.record[metropolis.TRIED], 1) for c in chains]
        worst, h = min(rates), self.setup.first_step
        if worst < 1e-3:
            raise SamplerDivergedError(
                f"chain {int(np.argmin(rates))} accepted no move with step_size={h:.4g} "
                "on all rows: it has not moved from its start. " + self._remedy_for_rejections
            )
        if worst < ACCEPT_WARNING:
            warnings.warn(
                f"Chain {int(np.argmin(rates))} accepted only {worst:.1%} of its moves with "
                f"step_size={h:.4g}. " + self._remedy_for_rejections,
                StepSizeWarning,
                stacklevel=2,
            )
        return float(np.mean(rates))
