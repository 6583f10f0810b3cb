"""Markov chains of group effects: warm-up, sweeps of all chains, and what they leave behind.

Twice in the warm-up the setting of the sampler moves to where the draws are. If too few draws are
effective, all are made anew from where the chains are, with so many more sweeps for each as they
seem to need, unless `thin` was given or that would take long. The samplers are
`collapsed_hmc.CollapsedHMC` and `linear_crossed.CrossedGibbs`.
"""

import itertools
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._base.threads import in_threads
from ..diagnostics import convergence
from ..diagnostics.verdict import ESS_SHARE, FEW_DRAWS, disagree, disagreement, remedy_for_chains
from ..exceptions import SamplerConvergenceWarning, SamplerDivergedError
from ..models import Robust
from ..posterior.moments import kept_draws
from ..priors.columns import LOC
from ..recipe.price import LONG_SECONDS, Price, seconds_of_steps
from .adaptation import adapted
from .covariance import Covariance, n_scales
from .effect_moments import EffectMoments
from .problem import GroupOutcome

__all__ = ["GroupChain", "GroupSampler", "judged", "parts_of", "price_of", "run_chains"]

WARMUP = 300  # sweeps of warm-up, unless they are given
# Seconds of a visit of a chain to a factor, without passes over the rows: of one that is made by
# itself, and of one of many that are made at once; and what the moves of robust regression add.
VISIT_SECONDS, ONE_OF_MANY, ROBUST_SECONDS = 2e-4, 8e-5, 5e-4
ROUND_SECONDS = 0.1  # predicted seconds between two looks at callbacks and Ctrl-C
LOOKED_AT = 100  # most effects of a factor whose effective sample sizes are computed
MOST_LOOKED = 10_000  # most draws of a chain from which sample sizes of effects are computed
LEAST_LOOKED = 50  # with fewer draws of a chain no sample sizes of effects are computed
KNOWN = 5  # sweeps whose time is measured to predict that of the run
MOST_THIN = 8  # most sweeps from one draw to the next, unless `thin` is given
SURPLUS = 1.2  # effective draws aimed at with more sweeps, as a multiple of the fewest accepted
# What to do about chains whose sweeps and warm-up were chosen here.
MORE = "Raise thin or n_draws, or give more informative priors."
VANISHING = 1e4  # noise below so many rounding errors of the response may be on its way to zero


@dataclass
class GroupChain:
    """The state of a chain, and the draws and moments that it has collected since `forget`."""

    number: int
    theta: np.ndarray
    psi: list
    u: list
    rng: np.random.Generator
    work: Any = None  # scratch of the sampler
    log_step: Any = None  # log ε of each factor
    average: Any = None  # Polyak's average of log ε
    sweeps: int = 0
    accepted: Any = None  # sums of the acceptance rates of trajectories, and of effects
    draws: list = field(default_factory=list)  # rows (θ, ψ of all factors)
    moments: list = field(default_factory=list)  # `EffectMoments` of each factor
    state: Any = None  # what else the sampler keeps of a chain

    def forget(self):
        """Reset the count of sweeps, the acceptance rates, the draws and the moments."""
        self.sweeps, self.accepted, self.draws = 0, np.zeros(2), []
        self.moments = [EffectMoments.none(effects.size) for effects in self.u]

    def collect(self):
        """Keep the parameters as a draw, and add up the effects."""
        self.draws.append(np.concatenate([self.theta, *self.psi]))
        new = [EffectMoments.of(effects.reshape(1, -1)) for effects in self.u]
        self.moments = [one + other for one, other in zip(self.moments, new, strict=True)]

    def adapt(self, k, surplus, longest):
        """Adapt log ε of factor k: see `adaptation`."""
        own = slice(k, k + 1)
        adapted(self.log_step[own], self.average[own], surplus, self.sweeps, longest)


class _Store:
    """Draws of effects of each factor: of the effects `which`, at the draws `at` of each chain."""

    def __init__(self, which, n_chains, at):
        self.which, self.at = which, at
        self.places = {int(draw): place for place, draw in enumerate(at)}
        self.values = [np.empty((len(own), n_chains, len(at)), dtype=np.float32) for own in which]

    def add(self, chain):
        """Store the effects of a chain, if its next draw is one of those that are stored."""
        place = self.places.get(len(chain.draws))
        if place is not None:
            for own, rows, effects in zip(self.values, self.which, chain.u, strict=True):
                own[:, chain.number, place] = effects.ravel()[rows]

    def until(self, n_draws):
        """The numbers of the draws stored of the first n draws, and the effects at these."""
        n = int(np.searchsorted(self.at, n_draws))
        return self.at[:n], [own[:, :, :n] for own in self.values]


class GroupSampler:
    """What chains of group effects are moved by, with what it has learnt in the warm-up.

    Attributes
    ----------
    name : str
        Name of the sampler.
    passes : float
        Passes over the rows that a visit to a factor costs.
    """

    name: str
    passes: float

    @classmethod
    def of(cls, problem):
        """The sampler of a `GroupProblem`, before the warm-up."""
        raise NotImplementedError

    def new_chain(self, seed, number):
        """The `GroupChain` of this number, at its starting point."""
        raise NotImplementedError

    def begin(self, chain):
        """Prepare a chain for a part of the warm-up, in which its steps are adapted."""
        raise NotImplementedError

    def recentred(self, chains):
        """The sampler after a part of the warm-up, with coordinates that suit the chains' draws."""
        raise NotImplementedError

    def sweep(self, chain, adapts):
        """Visit each factor once, and adapt the steps if `adapts`."""
        raise NotImplementedError

    def sweeps(self, chain, n, adapts):
        """Move a chain by n sweeps; yield after each of them, with the chain where it then is."""
        for _ in range(n):
            chain.sweeps += 1
            self.sweep(chain, adapts)
            yield


def run_chains(problem, request, sampler, watch=None):
    """Run chains of (θ, ψ) and of all effects; return the `GroupOutcome`.

    Parameters
    ----------
    problem : skbayes_sg.groups.problem.GroupProblem
    request : skbayes_sg.recipe.request.Request
    sampler : type
        A subclass of `GroupSampler`.
    watch : callable, optional
        ``watch(so_far, share)``: see `skbayes_sg.recipe.choose.sample_posterior`.
    """
    thin, n_warmup = request.thin or 1, WARMUP if request.n_warmup is None else request.n_warmup
    seconds = _seconds_of_sweep(problem, request, sampler.passes)
    at_once = max(1, int(ROUND_SECONDS / seconds))
    n_sweeps, price = n_warmup + thin * request.n_draws, price_of(problem)
    price.tell(seconds * n_sweeps)
    setting = sampler.of(problem)
    chains = [setting.new_chain(request.seed, c) for c in range(request.n_chains)]
    for part, length in enumerate(_parts(n_warmup)):
        for chain in chains:
            chain.forget()
            setting.begin(chain)
        first = min(length, 2 * KNOWN) if part == 0 else 0
        measured = _measured(chains, setting, first, request.n_jobs)
        price.tell(measured * n_sweeps)
        _advance(chains, setting, length - first, at_once, request.n_jobs, adapts=True)
        if part < 2 and length > 1:
            setting = setting.recentred(chains)
    stores = _stores(problem, request)
    advance = partial(_advance, chains, setting, at_once=at_once, n_jobs=request.n_jobs)
    while True:
        began = time.perf_counter()
        draws, ended = _produced(problem, request, chains, advance, thin, stores, watch)
        most = min(MOST_THIN / thin, LONG_SECONDS / (seconds * thin * request.n_draws))
        is_final = ended or request.thin is not None
        more = 1 if is_final else _more(draws, stores[1].values, request, most)
        # With vanishing noise, longer chains go on to zero.
        if more == 1 or _vanishing_noise(draws, problem):
            break
        thin *= more
        price.tell(more * (time.perf_counter() - began))
    found = _outcome(chains, draws, problem, request, *stores)
    return replace(found, sampler=setting.name, n_warmup=n_warmup, thin=thin)


def _produced(problem, request, chains, advance, thin, stores, watch):
    """Make the draws of all chains from the start; return them, and whether a callback ended it."""
    for chain in chains:
        chain.forget()
        chain.log_step = chain.average
    total = thin * request.n_draws

    def look(n_sweeps):
        if watch is None:
            return False
        return watch(lambda: (_told(chains, problem), None), n_sweeps / total)

    ended = advance(n_sweeps=total, thin=thin, stores=stores, look=look)
    draws = _told(chains, problem)
    if not np.isfinite(draws).all():
        raise _diverged(draws, request)
    return draws, ended


def price_of(problem):
    """The `Price` of sampling the effects of a problem."""
    what = f"Sampling {sum(problem.sizes)} group effects from {problem.target.counted}"
    return Price(what, "Use n_jobs=-1, fewer chains, or fewer draws.")


def _measured(chains, setting, n_sweeps, n_jobs):
    """Make sweeps; return the seconds of one, without the first half, in which code is loaded.

    These seconds only enter warnings: draws must not depend on time.
    """
    half = n_sweeps // 2
    _advance(chains, setting, n_sweeps - half, 1, n_jobs, adapts=True)
    began = time.perf_counter()
    _advance(chains, setting, half, 1, n_jobs, adapts=True)
    return (time.perf_counter() - began) / half if half else 0.0


def _seconds_of_sweep(problem, request, passes):
    """Predicted seconds of a sweep of all chains."""
    visits = problem.n_factors * request.n_chains
    passes = seconds_of_steps(problem.target, passes * visits, problem.target.n_rows)
    is_robust = isinstance(problem.target.model, Robust)
    by_itself = is_robust or problem.n_factors > 1
    each = (VISIT_SECONDS if by_itself else ONE_OF_MANY) + ROBUST_SECONDS * is_robust
    return each * visits + passes


def _parts(n_warmup):
    """Numbers of sweeps in the three parts of the warm-up."""
    third = n_warmup // 3
    return [third, third, n_warmup - 2 * third]


def parts_of(problem):
    """Slices of a row of draws: θ, and the ψ of each factor."""
    ends = np.cumsum([0, problem.target.n_parameters, *map(n_scales, problem.widths)])
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


# -- sweeps -----------------------------------------------------------------------------------


def _advance(
    chains, setting, n_sweeps, at_once, n_jobs, *, adapts=False, thin=1, stores=(),
    look=lambda n_sweeps: False,
):  # fmt: skip
    """Make sweeps of all chains; collect every `thin`-th state, and add its effects to the stores.

    Return whether `look` has ended the run.
    """

    def work(chain, n):
        with np.errstate(all="ignore"):  # trajectories that leave the range of floats are rejected
            for _ in setting.sweeps(chain, n, adapts):
                if chain.sweeps % thin:
                    continue
                for store in stores:
                    store.add(chain)
                chain.collect()

    for first in range(0, n_sweeps, at_once):
        n = min(at_once, n_sweeps - first)
        in_threads(lambda chain, n=n: work(chain, n), chains, n_jobs)
        if chains[0].draws and look(first + n):
            return True
    return False


# -- results ----------------------------------------------------------------------------------


def _stores(problem, request):
    """The stores of the effects that are kept, and of those that are looked at.

    The second one does not depend on `keep`, because it decides how many sweeps there are.
    """
    S = request.n_draws
    n_effects = [L * q for L, q in zip(problem.sizes, problem.widths, strict=True)]
    kept = kept_draws(S, S if request.keep is None else request.keep)
    looked = [_spread(n) for n in n_effects]
    return (
        _Store([np.arange(n) for n in n_effects], request.n_chains, kept),
        _Store(looked, request.n_chains, kept_draws(S, min(S, MOST_LOOKED))),
    )


def _diverged(draws, request):
    """The error that names the chain and the parameter which have left the range of floats."""
    chain, _, worst = np.argwhere(~np.isfinite(draws))[0]
    return SamplerDivergedError(
        f"Chain {chain} of group effects has left the range of floats in "
        f"{request.name_of(worst)}. Standardise the columns, or use a narrower prior or "
        "group_scale."
    )


def _told(chains, problem):
    """Draws of θ, of the log sds of all intercepts, then of all slopes, and of correlations."""
    draws, parts = np.stack([chain.draws for chain in chains]), parts_of(problem)
    psi = [draws[..., part] for part in parts[1:]]
    pairs = list(zip(psi, problem.widths, strict=True))
    told = [draws[..., parts[0]], *(own[..., :1] for own in psi)]
    told += [own[..., 1:q] for own, q in pairs]
    for own, q in pairs:
        if q > 1:
            found = [Covariance(row, q).correlations for row in own.reshape(-1, own.shape[-1])]
            told.append(np.reshape(found, (*own.shape[:2], -1)))
    return np.concatenate(told, axis=2)


def _factors(chains, problem, kept):
    """For each factor C of the draws whose effects are kept, (n_chains * n_kept, q, q)."""
    draws = np.concatenate([np.stack(chain.draws)[kept] for chain in chains])
    return [
        np.reshape([Covariance(row[part], q).C for row in draws], (-1, q, q))
        for part, q in zip(parts_of(problem)[1:], problem.widths, strict=True)
    ]


def _more(draws, effects, request, most):
    """How many times as many sweeps the draws need: a power of two, and at most `most`.

    It is one where neither `judged` nor `judged_effects` would warn, and at least two where they
    would.
    """
    ess, _, rhat, _ = convergence.worst_of_chains(request.parameters(draws))
    total, looked = draws.shape[0] * draws.shape[1], effects[0][0].size
    of_effects = _ess_of_effects(effects)[0]
    if not (disagree(rhat, ess, total) or of_effects < ESS_SHARE * looked):
        return 1
    shares = [ess / total, of_effects / looked]
    needed, more = SURPLUS * ESS_SHARE / max(np.nanmin([*shares, 1.0]), 1e-3), 2
    while more < needed:
        more *= 2
    while more > most:
        more //= 2
    return max(more, 1)


def _vanishing_noise(draws, problem):
    """The message for chains whose noise has all but vanished; empty where there are none."""
    places = slice(problem.n_coefficients, problem.target.n_parameters)
    floor = problem.target.prior[places, LOC]
    noise = np.exp(np.median(draws[..., places], axis=1).min(axis=0))
    for value in noise[(floor > 0.0) & (noise < VANISHING * floor)]:
        return (
            f"The noise of a chain is {value:.2g}: it goes to zero where rows are repeated in "
            "all of their level, or so many are fitted exactly that the posterior is degenerate. "
            "Give a noise_prior that keeps it away from zero, and no copies of a row."
        )
    return ""


def judged(draws, request, remedy=""):
    """(smallest effective sample size, largest R-hat) of the parameters; a warning if they are bad.

    As in `check`, sample sizes are those of the parameters and not of their logarithms, for means
    and for squares. `remedy` takes the place of the usual one.
    """
    C, S = draws.shape[:2]
    worst = ess, _, rhat, _ = convergence.worst_of_chains(request.parameters(draws))
    told = disagreement(worst, C * S, request.name_of, "The chains of group effects")
    if told:
        advice = remedy or _remedy(request, S)
        warnings.warn(told + advice, SamplerConvergenceWarning, stacklevel=3)
    return ess, rhat


def _remedy(request, n_draws):
    """What a user can do about `n_draws` draws of each chain that are too few, or disagree."""
    by_default = request.thin is None and request.n_warmup is None and n_draws >= FEW_DRAWS
    return MORE if by_default else remedy_for_chains(n_draws)


def judged_effects(effects, request, n_parameters, told=False):
    """(smallest effective sample size, evidence) of the effects; a warning if it is too small.

    Parameters may mix well where effects do not, such as those of nested factors. There is no
    warning where the reason has been `told`.
    """
    ess, k = _ess_of_effects(effects)
    n_draws, total = effects[0].shape[2], effects[0][0].size
    if not np.isfinite(ess):
        return ess, {}
    if ess < ESS_SHARE * total and not told:
        warnings.warn(
            f"The chains of group effects have not converged: the smallest effective sample size "
            f"of effects is {ess:.0f} of {total} draws ({request.name_of(n_parameters + k)}). "
            + _remedy(request, n_draws),
            SamplerConvergenceWarning,
            stacklevel=3,
        )
    return ess, {"effects_slow": np.array([total / ess])}


def _outcome(chains, draws, problem, request, store, looked):
    """The `GroupOutcome` of chains that have ended, judged; the name of the sampler is missing."""
    C, S = draws.shape[:2]
    each = zip(*[chain.moments for chain in chains], strict=True)
    moments = [EffectMoments.mean_and_sd(of_factor) for of_factor in each]
    kept, effects = store.until(S)  # fewer where a callback has ended the run
    accepted = sum(chain.accepted / (chain.sweeps * problem.n_factors) for chain in chains) / C
    why = _vanishing_noise(draws, problem)
    ess, rhat = judged(draws, request, why)
    found = {"min_ess": ess, "max_rhat": rhat, "acceptance": accepted[0]}
    n = problem.target.n_parameters
    told = bool(why) and disagree(rhat, ess, C * S)
    of_effects, evidence = judged_effects(looked.until(S)[1], request, n, told=told)
    found |= {"effects_acceptance": accepted[1], "effects_min_ess": of_effects}
    step = float(np.exp(np.mean([chain.log_step for chain in chains])))
    factors = _factors(chains, problem, kept) if any(problem.slopes) else None
    known = {"step_size": step, "kept": kept, "factors": factors, "evidence": evidence}
    return GroupOutcome(draws, effects, moments, None, found, **known)


def _spread(n):
    """At most `LOOKED_AT` evenly spaced whole numbers below n: all of them if there are few."""
    return np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int)


def _ess_of_effects(effects):
    """The smallest effective sample size of effects that are looked at, and their factor.

    It is the least for means, squares and tails, as `check` measures it for parameters; NaN for
    fewer than `LEAST_LOOKED` draws.
    """
    if effects[0].shape[2] < LEAST_LOOKED:
        return np.nan, 0
    some = [own.transpose(1, 2, 0).astype(np.float64) for own in effects]
    least = [convergence.least_of_slowest(own) for own in some]
    return min(least), int(np.argmin(least))
