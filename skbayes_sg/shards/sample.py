r"""Divide and conquer: the rows in shards, each with its share of the prior, sampled on their own.

:math:`p(\theta \mid x) \propto \prod_s p(\theta)^{1/S}\, p(x_s \mid \theta)` for any shards
:math:`x_s`. A shard is a posterior like any other, sampled by the same recipe with random numbers
of its own; what is left to do with the draws is in `skbayes_sg.combine`.
"""

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from scipy import sparse, stats

from .._base import memmap, streams
from .._base import weights as weighting
from .._base.threads import one_blas_thread, shares_memory
from ..combine import agreement
from ..combine.kde_product import FEWEST
from ..diagnostics import convergence
from ..diagnostics.verdict import ESS_SHARE
from ..exceptions import SamplerConvergenceWarning, SubposteriorWarning
from ..priors.table import powered
from ..recipe.choose import sample_posterior
from ..recipe.request import Outcome
from .local import work_on

__all__ = ["Sharded", "combine_shards", "sample_shards", "split"]

MEAN_SHIFT, VARIANCE_SHIFT, DISTANCE, SKEWNESS = 0.1, 0.2, 3.0, 0.8
"""Predicted errors of averages, and distances of shards, beyond which there is a warning."""
APART = 1e-3  # chance of shards so far apart, where errors can no longer be predicted
BY_CHANCE = 0.003


# -- which rows -----------------------------------------------------------------------------------


def row_keys(X, y, seed):
    """A number for each row that depends only on the content of the row and on the seed."""
    rng, y = streams.of_shards(seed), y.reshape(len(y), -1)
    salt = rng.integers(0, 2**63, X.shape[1] + y.shape[1], dtype=np.uint64)
    keys = np.empty(X.shape[0], np.uint64)
    step = max(1, (1 << 18) // X.shape[1])
    for first in range(0, len(keys), step):
        rows = slice(first, first + step)
        own = _mixed(_bits(y[rows]) + salt[X.shape[1] :]).sum(axis=1, dtype=np.uint64)
        keys[rows] = _mixed(own + _content(X[rows], salt[: X.shape[1]]))
        memmap.forget(X, first, first + step)
    return keys


def _content(block, salt):
    """Σ_j mixed(x_ij + salt_j), over the entries that are not zero."""
    if not sparse.issparse(block):
        return np.where(block != 0.0, _mixed(_bits(block) + salt), 0).sum(axis=1, dtype=np.uint64)
    stored = np.where(block.data != 0.0, _mixed(_bits(block.data) + salt[block.indices]), 0)
    sums = np.zeros(len(stored) + 1, np.uint64)
    np.cumsum(stored, out=sums[1:])
    return sums[block.indptr[1:]] - sums[block.indptr[:-1]]


def _bits(x):
    return np.ascontiguousarray(x, dtype=np.float64).view(np.uint64)


def _mixed(z):
    """Scrambled 64-bit numbers: the finaliser of SplitMix64, modulo 2**64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def split(X, y, weight, n_shards, strata=None, seed=0, unit=1.0):
    """Random shards of equal weight, also within each stratum and of every row that is repeated.

    Rows are ordered by what they hold, not by where they stand. Equal rows meet there, and are
    dealt in turn, as many times as their weight says, so that each shard gets its share of them.
    What is dealt to a shard is cut where it exceeds the shard's weight: a row on a cut belongs to
    both sides, with a part of its weight on each. So the shards are the same if the rows come in
    another order, or if a row comes twice instead of with weight two; and every shard has rows of
    every class.

    Parameters
    ----------
    X, y, weight : arrays or CSR matrix with n_rows rows
        y may have several columns. Weights are positive.
    n_shards : int
    strata : array of shape (n_rows,), optional
        Class of each row.
    seed : int
    unit : float, default=1.0
        The weight of a row that comes once.

    Returns
    -------
    list of (rows, weight)
        Numbers of the rows of each shard, and their weights.
    """
    keys = row_keys(X, y, seed)
    strata = np.zeros(len(keys), int) if strata is None else strata
    parts = [([], []) for _ in range(n_shards)]
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        rows = rows[np.argsort(keys[rows], kind="stable")]
        places, shares = _dealt(keys[rows], weight[rows], n_shards, unit)
        for part, (own, share) in zip(parts, _cut(shares, n_shards), strict=True):
            part[0].append(rows[places[own]])
            part[1].append(share)
    return [(np.concatenate(rows), np.concatenate(share)) for rows, share in parts]


def _dealt(keys, weight, n_shards, unit):
    """(places, weights) of rows, or of parts of rows, in the order in which they are cut.

    In the order of keys, piece t belongs to shard t mod S.
    """
    ends, row_ends = _pieces(keys, weight, n_shards, unit), np.cumsum(weight)
    edges = np.union1d(row_ends, ends)
    shard = np.searchsorted(ends, edges) % n_shards
    order = np.argsort(shard, kind="stable")
    return np.searchsorted(row_ends, edges)[order], np.diff(edges, prepend=0.0)[order]


def _pieces(keys, weight, n_shards, unit):
    """Ends, on the line of weights, of pieces of equal rows.

    Rows that are equal, of total weight (q S + r) u with u about the unit, make S pieces of weight
    q u, and r of weight u.
    """
    last = np.flatnonzero(np.append(keys[1:] != keys[:-1], True))
    ends = np.cumsum(weight)[last]
    totals = np.diff(ends, prepend=0.0)
    copies = np.maximum(np.rint(totals / unit), 1.0)
    q, r = np.divmod(copies, n_shards)
    large = np.where(q > 0.0, n_shards, 0)
    n_pieces = large + r.astype(int)
    group = np.repeat(np.arange(len(last)), n_pieces)
    number = np.arange(1, len(group) + 1) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    done = number + np.minimum(number, large[group]) * (q[group] - 1.0)  # copies up to this piece
    inside = (ends - totals)[group] + totals[group] * done / copies[group]
    # The last piece ends where its last row does: rounding would leave slivers of rows.
    return np.where(done == copies[group], ends[group], inside)


def _cut(weight, n_parts):
    """(slice, weights) of consecutive parts of the same weight."""
    ends = np.cumsum(weight)
    starts = np.concatenate([[0.0], ends[:-1]])
    # Weights that are whole numbers have whole sums: no part gets a sliver of a row by rounding.
    edges = np.arange(n_parts + 1) * ends[-1] / n_parts
    for low, high in pairwise(edges):
        sliver = 1e-9 * ends[-1] / len(weight)
        first = np.searchsorted(ends, low + sliver, side="right")
        last = max(np.searchsorted(starts, high - sliver, side="left"), first + 1)
        own = slice(first, last)
        yield own, np.minimum(ends[own], high) - np.maximum(starts[own], low)


# -- shards ---------------------------------------------------------------------------------------


@dataclass
class Sharded:
    """One posterior as S of them: ``sharded[s]`` is the target of shard s."""

    target: Any
    n_shards: int
    strata: Any = None  # class of each row
    seed: int = 0
    unit: float = 1.0  # weight of a row that comes once

    def __post_init__(self):
        target = self.target
        self.prior = powered(target.prior, 1.0 / self.n_shards)
        self.on_disk = memmap.mapped(target.X) is not None
        if self.on_disk:  # in the order of the file: gathering rows would read it S times
            edges = np.linspace(0, target.n_rows, self.n_shards + 1).astype(int)
            self.parts = [(slice(a, b), target.weight[a:b]) for a, b in pairwise(edges)]
            self._check_classes()
        else:
            options = {"strata": self.strata, "seed": self.seed, "unit": self.unit}
            self.parts = split(target.X, target.labels(), target.weight, self.n_shards, **options)

    def __len__(self):
        return self.n_shards

    def __getitem__(self, s):
        rows, weight = self.parts[s]
        return self.target.take(rows, weight).with_prior(self.prior)

    def _check_classes(self):
        if self.strata is None:
            return
        n_classes = len(np.unique(self.strata))
        for s, (rows, _) in enumerate(self.parts):
            if len(np.unique(self.strata[rows])) < n_classes:
                raise ValueError(
                    f"Shard {s} of {self.n_shards}, rows {rows.start} to {rows.stop} of the "
                    "memory-mapped X, has no row of some class. Shuffle the file once, or use "
                    "fewer subposteriors."
                )


# -- sampling -------------------------------------------------------------------------------------


def sample_shard(request, target, s):
    """The outcome of one shard."""
    names = [f"{name} of shard {s}" for name in request.names]
    own = replace(request, seed=streams.shard_seed(request.seed, s), names=names)
    if own.batch_size is not None:
        own.batch_size = min(own.batch_size, target.n_rows)
    # Chains of a shard are threads, wherever it was sent.
    with joblib.parallel_config("threading", n_jobs=request.n_jobs), one_blas_thread:
        return sample_posterior(target, own)


def threads_of_a_shard(n_jobs, n_shards):
    """How many threads each shard has, at least one."""
    return max(1, joblib.effective_n_jobs(n_jobs) // n_shards)


def sample_shards(sharded, request, watch=None):
    """The outcome of every shard, sampled side by side.

    Parameters
    ----------
    sharded : sequence of targets
        ``sharded[s]`` is looked up where shard s is sampled or, if that is another process, before
        it is sent there.
    request : Request
        Of every shard; `n_jobs` are for all of them.
    watch : callable, optional
        ``watch(outcomes)`` is called after every shard, with the outcomes that are done.

    Returns
    -------
    list of Outcome
    """
    S = len(sharded)
    targets = (partial(sharded.__getitem__, s) for s in range(S))
    if not shares_memory():
        targets = (look_up() for look_up in targets)
    own = replace(request, n_jobs=threads_of_a_shard(request.n_jobs, S))
    return work_on(partial(sample_shard, own), targets, S, n_jobs=request.n_jobs, watch=watch)


# -- combination ----------------------------------------------------------------------------------


def equal_draws(outcome):
    """As many draws, all of equal weight: heavy draws appear several times, light ones may not."""
    if outcome.weights is None:
        return outcome.draws
    return outcome.draws[:, weighting.representatives(outcome.weights, outcome.draws.shape[1])]


def combine_shards(outcomes, combiner, seed):
    """(outcome of all rows, what was found of the combination)."""
    shards = np.stack([equal_draws(outcome) for outcome in outcomes])
    draws, found = combiner._combine(shards, streams.of_combination(seed))
    ess, _, rhat, _ = convergence.worst(draws)
    worst = _worst([outcome.diagnostics for outcome in outcomes])
    dependent = _warn_of_dependence(ess, rhat, draws.shape[0] * draws.shape[1], worst, combiner)
    check, disagree = _check(shards, outcomes, combiner, found, dependent)
    first, seconds = outcomes[0], sum((Counter(o.seconds) for o in outcomes), Counter())
    return Outcome(
        draws,
        first.chosen,
        worst | {"min_ess": ess, "max_rhat": rhat},
        first.batch_sizes,
        seconds=dict(seconds),
        evidence={"shards_disagree": np.array([float(disagree)])},
    ), check


def _worst(diagnostics):
    """The worst value of each diagnostic over all shards."""
    names = sorted(set().union(*diagnostics))
    values = {name: [d[name] for d in diagnostics if name in d] for name in names}
    low = ("min_ess", "weights_ess", "acceptance", "lockstep_acceptance")
    return {name: float(min(v) if name in low else max(v)) for name, v in values.items()}


def _check(shards, outcomes, combiner, found, dependent):
    pooled = list(shards.reshape(len(shards), -1, shards.shape[-1]))
    check, disagree = dict(found), False
    if len(pooled[0]) > pooled[0].shape[1]:
        sizes = [outcome.diagnostics.get("min_ess", np.nan) for outcome in outcomes]
        size = np.nanmin([*sizes, len(pooled[0])])
        bandwidth = np.inf if combiner.assumes_gaussian else found.get("bandwidth", 0.0)
        check |= agreement(pooled, max(float(size), 1.0), bandwidth)
        few = not dependent and check.get("effective_draws", np.inf) < min(FEWEST, size)
        disagree = _warn_of_disagreement(check, combiner, pooled[0].shape[1], few)
    return check, disagree


def _warn_of_disagreement(check, combiner, d, few):
    """`SubposteriorWarning` for shards that are too far apart, or too skewed for the combiner.

    `few` is whether few draws of a shard have all the weight, and no warning has said that what
    was made of them is dependent: that has the same cause. Return whether there was a warning.
    """
    apart = check["distance"] > DISTANCE and check["distance_p"] < APART
    reasons = _predicted_errors(check, d)
    if few:
        number = check["effective_draws"]
        reasons += [f"the product rests on an effective number of {number:.1f} draws of a shard"]
    other = "combine='weierstrass', " * combiner.assumes_gaussian
    remedy = f"Use fewer subposteriors, {other}or"
    if apart:
        times = np.sqrt(check["distance"])
        reasons += [f"the shards' means are {times:.2g} times as far apart as their widths imply"]
        remedy = "Are the shards random parts of the rows? Shuffle rows over them, or use"
    if reasons:
        warnings.warn(
            f"The shards do not agree with combine={combiner!r}{_how(check, combiner)}: "
            f"{'; '.join(reasons)} (see combine_check_). {remedy} n_subposteriors=1.",
            SubposteriorWarning,
            stacklevel=3,
        )
    return bool(reasons)


def _warn_of_dependence(ess, rhat, total, of_shards, combiner):
    """`SamplerConvergenceWarning` where the combination, and no shard, made dependent draws.

    Returns whether there was one.
    """
    dependent = ess < ESS_SHARE * min(total, of_shards.get("min_ess", total))
    if dependent:
        warnings.warn(
            f"The draws that combine={combiner!r} made of those of the shards depend on each "
            f"other: the smallest effective sample size is {ess:.0f} of {total}, R-hat {rhat:.3f}. "
            "Means and standard deviations are known no better than from so few draws. Use "
            "combine='weierstrass', fewer subposteriors, or n_subposteriors=1.",
            SamplerConvergenceWarning,
            stacklevel=3,
        )
    return bool(dependent)


def _how(check, combiner):
    """What the combiner does that causes its errors, as text."""
    if combiner.assumes_gaussian:
        return ", which assumes that they are Gaussian"
    if "bandwidth" in check:
        width = check["bandwidth"]
        return f", which smooths them with kernels of {width:.2g} of their standard deviations"
    return ""


def _predicted_errors(check, d):
    """What the combination is predicted to get wrong, as text.

    A shift of the mean counts if it is beyond the limit by its error, and if the largest of d
    estimates would be so large by chance in fewer than `BY_CHANCE` of all combinations; or if it is
    twice the limit. Of 70 made tables with two to eight shards, the 33 beyond that were off by 0.13
    standard deviations or more, and of 25 that were off by more than 0.25 one was not among them.
    Where a shard is very skewed, errors of 0.3 to 0.8 were predicted as 0.1: its skewness counts.
    """
    mean, variance = check["mean_shift"], check["variance_shift"]
    error, chance = check["mean_shift_error"], stats.norm.isf(BY_CHANCE / (2 * d))
    reasons = []
    if mean > min(max(MEAN_SHIFT + error, chance * error), 2.0 * MEAN_SHIFT):
        reasons.append(f"a posterior mean is off by about {mean:.2g} standard deviations")
    elif check["skewness"] > SKEWNESS:
        reasons.append(
            f"the skewness of a shard is {check['skewness']:.2g}, and a posterior mean may be off "
            "by half a standard deviation or more"
        )
    if variance - 4.0 * check["variance_shift_error"] > VARIANCE_SHIFT:
        reasons.append(f"a posterior variance is off by about {variance:.0%}")
    if check.get("widening", 0.0) > VARIANCE_SHIFT:
        reasons.append(f"all variances are too large by about {check['widening']:.0%}")
    return reasons
