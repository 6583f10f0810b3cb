"""Chains of Gibbs sweeps: short runs that find where they begin, and runs for the draws.

Short runs begin at centres that are far apart (k-means++), so that poor local modes are left
behind. Where they have found several modes, chains jump between them
(`skbayes_sg.densities.mixture_modes`).
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._base import streams
from .._base.interrupts import without_interrupts
from ..diagnostics import convergence
from ..engine.rounds import run_rounds
from ..priors.table import prior_value
from ..recipe.price import Price
from .mixture import FULL, TIED
from .mixture_gibbs import sweep_many

__all__ = ["MixtureDraws", "PriceOfSweeps", "log_densities", "run_gibbs", "short_runs"]

STARTS = 6  # least number of short runs for each chain
FEWEST = 24  # least number of short runs for all chains together
EVERY = 5  # sweeps from one jump to points of other modes to the next
SHORT = 40  # sweeps of a short run
WARMUP = 500  # default number of sweeps before the first draw
DOUBLINGS = 4  # how often, at most, the number of sweeps between draws is doubled
# It is doubled while the effective sample size of quantities that do not depend on labels is less
# than this share of the number of draws.
ENOUGH = 0.12
HELD = 20  # number of rows, at most, whose log densities are among these quantities
BLOCK_BYTES = 1 << 23  # size in bytes of the densities of draws x rows that are computed together


@dataclass
class MixtureChain:
    """The state of a chain, in standardised columns, and the draws of its present phase."""

    rng: Any
    log_w: np.ndarray  # log weights, (K,)
    mu: np.ndarray  # means, (K, d)
    A: np.ndarray  # lower triangles, (K, d, d), of the precisions A Aᵀ
    done: int = 0  # sweeps of the present phase so far
    # Log weights, means, triangles and log-likelihoods of the draws, as arrays (n_draws, ...).
    draws: tuple = field(default_factory=tuple)
    # Points of the modes' proposals, with their log weights, that have not been offered yet.
    offers: list = field(default_factory=list)

    def begin(self, n_draws):
        """Start a phase of `n_draws` draws from the present state."""
        shapes = [(), self.mu.shape, self.A.shape]
        log_w, mu, A = (np.empty((n_draws, *s)) for s in [self.log_w.shape, *shapes[1:]])
        self.done, self.draws = 0, (log_w, mu, A, np.empty(n_draws))


@dataclass(frozen=True)
class MixtureDraws:
    """Draws (n_chains, n_draws, ...) in standardised columns."""

    log_w: np.ndarray  # log weights, (n_chains, n_draws, K)
    mu: np.ndarray  # means, (n_chains, n_draws, K, d)
    A: np.ndarray  # lower triangles, (n_chains, n_draws, K, d, d), of the precisions A Aᵀ
    log_likelihood: np.ndarray  # (n_chains, n_draws)

    @property
    def flat(self):
        """Log weights, means and triangles with chains and draws on one axis."""
        return tuple(v.reshape(-1, *v.shape[2:]) for v in (self.log_w, self.mu, self.A))


def _advance(X, mixture, thin, modes, work, chain):
    """Do `work` sweeps of a chain, or all that remain of its phase (None), and return the chain.

    If there are `modes`, there is a jump between them after each `EVERY` sweeps, counted from the
    start of the phase, so that draws do not depend on how the work is divided.
    """
    left = thin * len(chain.draws[3]) + 1 - chain.done
    left = left if work is None else min(work, left)
    numbers = mixture.kind, mixture.alpha, mixture.mean_sd, mixture.df, mixture.c
    state = chain.log_w, chain.mu, chain.A
    while left > 0:
        n = left if modes is None else min(EVERY - chain.done % EVERY, left)
        with without_interrupts():
            chain.done = sweep_many(
                X, *numbers, chain.rng, n, thin, chain.done, *state, *chain.draws
            )
        if modes is not None and chain.done % EVERY == 0:
            modes.jump(chain)
        left -= n
    return chain


def _sample(X, mixture, chains, n_draws, thin, n_jobs, modes=None, watch=None):
    """Make `n_draws` draws of every chain, `thin` sweeps apart.

    Return the `MixtureDraws`, which are fewer if `watch` has stopped the run, and the chains.
    """
    for chain in chains:
        chain.begin(n_draws)
    first = int(np.clip(2e6 / (X.size * mixture.K), 1, 64))
    stopped = []

    def stop(chains):
        done = min((chain.done - 1) // thin for chain in chains)
        if watch is not None and done > 0 and watch(lambda: (None, None), done / n_draws):
            stopped.append(done)
        return bool(stopped)

    chains = run_rounds(
        partial(_advance, X, mixture, thin, modes),
        chains,
        first,
        is_done=lambda chains: all(chain.done == thin * n_draws + 1 for chain in chains),
        stop=stop,
        n_jobs=n_jobs,
    )
    n = max(stopped[0], 1) if stopped else n_draws
    parts = zip(*(chain.draws for chain in chains), strict=True)
    return MixtureDraws(*(np.stack(part)[:, :n] for part in parts)), chains


def _centres(X, K, rng):
    """Draw K rows of X that are far apart (k-means++).

    The probability of each next row is proportional to its squared distance from those chosen.
    """
    chosen = [X[rng.integers(len(X))]]
    for _ in range(K - 1):
        apart = np.min([((X - centre) ** 2).sum(axis=1) for centre in chosen], axis=0)
        total = apart.sum()
        p = apart / total if total > 0.0 else None
        chosen.append(X[rng.choice(len(X), p=p)])
    return np.array(chosen)


def _log_posterior(mixture, chain):
    """Return the log posterior of the last draw in the coordinates θ, up to a constant."""
    log_w, mu, A, value = (part[-1:] for part in chain.draws)
    return value[0] - prior_value(mixture.table, mixture.pack(log_w, mu, A)[0])


def _runs_of_each(mixture, n_chains):
    """Return the number of short runs for each chain."""
    return max(STARTS, -(-FEWEST // n_chains)) if mixture.K > 1 else 1


def short_runs(X, mixture, request):
    """Run short runs for each chain.

    Return, for each chain, a list of the `MixtureChain` at their ends; and the log posteriors
    there, (n_chains, n_runs).
    """
    runs, values = [], []
    n_runs = _runs_of_each(mixture, request.n_chains)
    for number in range(request.n_chains):
        rng_rows, rng_noise, _ = streams.of_chain(request.seed, number)
        own = []
        for _ in range(n_runs):
            A = np.tile(np.eye(mixture.d), (mixture.K, 1, 1))
            log_w = np.full(mixture.K, -np.log(mixture.K))
            chain = MixtureChain(rng_noise, log_w, _centres(X, mixture.K, rng_rows), A)
            chain.begin(1)
            own.append(_advance(X, mixture, SHORT, None, None, chain))
        runs.append(own)
        values.append([_log_posterior(mixture, chain) for chain in own])
    return runs, np.array(values)


def log_densities(X, w, mu, A):
    """Return log p(x_i) of standardised rows under draws, (draws, rows)."""
    return logsumexp(component_log_densities(X, w, mu, A), axis=2)


def component_log_densities(X, w, mu, A):
    """Return log w_k N(x_i; μ_k, P_k⁻¹) of rows under draws, (draws, rows, components).

    The draws are weights w (not logarithms), means and triangles.
    """
    size = max(1, BLOCK_BYTES // (8 * max(1, X.size) * w.shape[1]))
    parts = []
    for first in range(0, len(w), size):
        part = slice(first, first + size)
        y = X @ A[part] - mu[part, :, None] @ A[part]  # (draws, components, rows, d)
        log_det = np.log(np.einsum("skjj->skj", A[part])).sum(axis=2)
        with np.errstate(divide="ignore"):
            own = np.log(w[part]) + log_det - 0.5 * X.shape[1] * np.log(2.0 * np.pi)
        squares = np.einsum("sknj,sknj->snk", y, y)
        parts.append(own[:, None] - 0.5 * squares)
    return np.concatenate(parts)


def invariants(X, draws):
    """Return quantities of each draw that do not depend on labels, (n_chains, n_draws, n).

    They are the log-likelihood, and the log densities of up to `HELD` rows.
    """
    rows = X[np.linspace(0, len(X) - 1, min(HELD, len(X))).astype(int)]
    log_w, mu, A = draws.flat
    values = log_densities(rows, np.exp(log_w), mu, A).reshape(*draws.log_likelihood.shape, -1)
    return np.concatenate([draws.log_likelihood[..., None], values], axis=2)


def _seconds_of_sweep(X, mixture):
    """Return the predicted seconds of a sweep of one chain over all rows.

    The constants are nanoseconds, as measured on one machine.
    """
    (n, d), K = X.shape, mixture.K
    products = d * (d + 1) / 2
    of_matrices = 1.4 * K * d**3 if mixture.kind in (FULL, TIED) else 0.0
    return (n * (20.0 + K * (11.0 + 0.4 * products) + 0.7 * products) + of_matrices) * 1e-9


class PriceOfSweeps(Price):
    """Tells what Gibbs sweeps cost, as a `Price`.

    Parameters
    ----------
    X : array of shape (n_rows, d)
    mixture : ComponentsPrior
    n_chains : int
    """

    def __init__(self, X, mixture, n_chains):
        remedy = (
            "Use fewer draws or chains, fewer rows, n_jobs=-1, or set thin, which is otherwise "
            "doubled while too few draws are effective."
        )
        super().__init__("", remedy)
        self.n_short = SHORT * _runs_of_each(mixture, n_chains)
        self.seconds = n_chains * _seconds_of_sweep(X, mixture)  # of one sweep of all chains

    def tell_run(self, request, seconds_of_search):
        """Tell the price of the run that is asked for, with the short runs and the search first."""
        n_sweeps = _warmup(request) + (request.thin or 1) * request.n_draws
        self.tell_sweeps(n_sweeps, self.n_short * self.seconds + seconds_of_search)

    def tell_sweeps(self, n_sweeps, seconds_before=0.0):
        """Tell the price of a number of sweeps of each chain."""
        self.what = f"A run with {n_sweeps} Gibbs sweeps over all rows in each chain"
        self.tell(self.seconds * n_sweeps + seconds_before)


def _warmup(request):
    """Return the number of sweeps before the first draw."""
    return WARMUP if request.n_warmup is None else request.n_warmup


def run_gibbs(X, mixture, chains, modes, request, price, watch=None):
    """Make the requested draws by Gibbs sweeps, after the warm-up.

    The `PriceOfSweeps` is told again if it turns out to be much higher. Return the `MixtureDraws`,
    their `invariants`, and a dict with the sweeps before the first draw ("n_warmup") and between
    draws ("thin"). Unless `thin` is given, it is doubled while too few of the draws are effective.
    """
    n_warmup = _warmup(request)
    jumps = modes if modes is not None and modes.reached else None
    thin, options = request.thin or 1, {"n_jobs": request.n_jobs, "modes": jumps}
    if jumps is not None:
        price.seconds += len(chains) * jumps.seconds_of_jump(len(X)) / EVERY
    if n_warmup:
        _, chains = _sample(X, mixture, chains, 1, n_warmup, **options)
    draws, chains = _sample(X, mixture, chains, request.n_draws, thin, **options, watch=watch)
    values = invariants(X, draws)
    for _ in range(DOUBLINGS):
        ess, total = convergence.worst_of_chains(values)[0], values[..., 0].size
        too_few = ess < ENOUGH * total
        if request.thin is not None or draws.mu.shape[1] < request.n_draws or not too_few:
            break
        thin *= 2
        price.tell_sweeps(thin * request.n_draws)
        n_more = request.n_draws - request.n_draws // 2
        more, chains = _sample(X, mixture, chains, n_more, thin, **options)
        draws = MixtureDraws(
            *(
                np.concatenate([old[:, 1::2], new], axis=1)
                for old, new in zip(vars(draws).values(), vars(more).values(), strict=True)
            )
        )
        values = invariants(X, draws)
    return draws, values, {"n_warmup": n_warmup, "thin": thin}
