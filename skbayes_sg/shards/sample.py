r"""Divide and conquer: shards of the rows, each with its share of the prior, sampled on their own.

:math:`p(\theta \mid x) \propto \prod_s p(\theta)^{1/S}\, p(x_s \mid \theta)` for any shards
:math:`x_s`. A shard is a posterior like any other, sampled by the same recipe with random numbers
of its own; `skbayes_sg.combine` then combines the draws.
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
from ..diagnostics.verdict import ESS_SHARE, MEAN_RATIO
from ..exceptions import SamplerConvergenceWarning, SubposteriorWarning
from ..priors.table import powered
from ..recipe.choose import sample_posterior
from ..recipe.request import Outcome
from .local import work_on

__all__ = ["Sharded", "combine_shards", "sample_shards", "split"]

MEAN_SHIFT, VARIANCE_SHIFT, SPREAD_SHIFT, DISTANCE, SKEWNESS = 0.1, 0.2, MEAN_RATIO, 3.0, 0.8
"""Limits beyond which there is a `SubposteriorWarning`.

They are the predicted error of a posterior mean, in standard deviations; the predicted relative
error of a posterior variance, and of all variances on average; the mean squared distance of the
means of shards, relative to the one expected of random shards; and the skewness of a shard.
"""
# There is a warning of the distance of shards only if random shards would be so far apart with a
# smaller probability than this.
APART = 1e-3
NOTED, NOTED_APART = 1.5, 0.01  # the same limits for a note of `check`
# Measurements of steps and gradient noise that a combination takes over from its shards.
OF_STEPS = "coupled_distance", "inflation", "noise_share", "excursion", "sd_bias", "divergent"
BY_CHANCE = 0.003  # probability that a shift of a mean, predicted by chance alone, causes a warning


# -- which rows -----------------------------------------------------------------------------------


def row_keys(X, y, seed):
    """Return a uint64 number for each row, which depends on its content and on the seed alone."""
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
    """Return Σ_j mixed(x_ij + salt_j) of each row i, over the entries that are not zero.

    Arithmetic is that of 64-bit integers, on the bits of the entries.
    """
    if not sparse.issparse(block):
        return np.where(block != 0.0, _mixed(_bits(block) + salt), 0).sum(axis=1, dtype=np.uint64)
    stored = np.where(block.data != 0.0, _mixed(_bits(block.data) + salt[block.indices]), 0)
    sums = np.zeros(len(stored) + 1, np.uint64)
    np.cumsum(stored, out=sums[1:])
    return sums[block.indptr[1:]] - sums[block.indptr[:-1]]


def _bits(x):
    return np.ascontiguousarray(x, dtype=np.float64).view(np.uint64)


def _mixed(z):
    """Return scrambled 64-bit numbers, by the finaliser of SplitMix64, modulo 2**64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def split(X, y, weight, n_shards, strata=None, seed=0, unit=1.0):
    """Divide rows into random shards of equal weight, within each stratum and repeated row as well.

    Rows are ordered by their content, not by their place in X. Equal rows are then neighbours, and
    are dealt to the shards in turn, as many times as their weight says, so that each shard gets its
    share of them. What is dealt to a shard is cut where it exceeds the shard's weight: a row on a
    cut belongs to both sides, with a part of its weight on each. So the shards are the same if the
    rows come in another order, or if a row occurs twice instead of with weight two; and every shard
    has rows of every class.

    Parameters
    ----------
    X, y, weight : arrays or CSR matrix with n_rows rows
        y may have several columns. Weights are positive.
    n_shards : int
    strata : array of shape (n_rows,), optional
        Class of each row.
    seed : int
    unit : float, default=1.0
        The weight of a row that occurs once.

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
    """Return (places, weights) of rows, or parts of rows, in the order in which they are cut.

    Rows come in the order of their keys. They are divided into the pieces of `_pieces`, of which
    piece t belongs to shard t mod S; the result has those of shard 0 first, then those of shard 1,
    and so on.
    """
    ends, row_ends = _pieces(keys, weight, n_shards, unit), np.cumsum(weight)
    edges = np.union1d(row_ends, ends)
    shard = np.searchsorted(ends, edges) % n_shards
    order = np.argsort(shard, kind="stable")
    return np.searchsorted(row_ends, edges)[order], np.diff(edges, prepend=0.0)[order]


def _pieces(keys, weight, n_shards, unit):
    """Return the ends of pieces of equal rows, as cumulative weights of the rows.

    Equal rows of total weight (q S + r) u, with u about the unit, make S pieces of weight q u and r
    pieces of weight u.
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
    """Yield (slice, weights) of `n_parts` consecutive parts of rows with the same total weight.

    A row that lies on the boundary of two parts belongs to both, with a part of its weight in each.
    """
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
    """A posterior as `n_shards` subposteriors: ``sharded[s]`` is the target of shard s."""

    target: Any
    n_shards: int
    strata: Any = None  # class of each row
    seed: int = 0
    unit: float = 1.0  # weight of a row that occurs once

    def __post_init__(self):
        target = self.target
        self.prior = powered(target.prior, 1.0 / self.n_shards)
        self.on_disk = memmap.mapped(target.X) is not None
        # Shards of a file are ranges of rows: to gather other rows would read it S times.
        if self.on_disk:
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
    """Sample shard s, with a seed and parameter names of its own, and return its `Outcome`."""
    names = [f"{name} of shard {s}" for name in request.names]
    own = replace(request, seed=streams.shard_seed(request.seed, s), names=names)
    if own.batch_size is not None:
        own.batch_size = min(own.batch_size, target.n_rows)
    # The chains of a shard run in threads, in whichever process the shard is sampled.
    with joblib.parallel_config("threading", n_jobs=request.n_jobs), one_blas_thread:
        return sample_posterior(target, own)


def threads_of_a_shard(n_jobs, n_shards):
    """Return how many threads each shard has, at least one."""
    return max(1, joblib.effective_n_jobs(n_jobs) // n_shards)


def sample_shards(sharded, request, watch=None):
    """Sample all shards side by side, and return the outcome of each.

    Parameters
    ----------
    sharded : sequence of targets
        ``sharded[s]`` is looked up where shard s is sampled or, if that is another process, before
        it is sent there.
    request : Request
        The request for every shard; its `n_jobs` are shared by all of them.
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
    """Return as many draws as the outcome has, all of equal weight.

    Draws with large weights appear several times, draws with small weights may not appear.
    """
    if outcome.weights is None:
        return outcome.draws
    return outcome.draws[:, weighting.representatives(outcome.weights, outcome.draws.shape[1])]


def combine_shards(outcomes, combiner, seed, contrasts=np.asarray):
    """Combine the outcomes of shards; return the outcome of all rows, and a dict of checks.

    The dict holds what the combiner has measured, and what `agreement` predicts of its errors for
    `contrasts` of θ. The common shift of three or more classes is as wide as its prior: beside it
    errors of what the data determine would look small.
    """
    shards = np.stack([equal_draws(outcome) for outcome in outcomes])
    draws, found = combiner._combine(shards, streams.of_combination(seed))
    ess, _, rhat, _ = convergence.worst(draws)
    worst = _worst([outcome.diagnostics for outcome in outcomes])
    dependent = _warn_of_dependence(ess, rhat, draws.shape[0] * draws.shape[1], worst, combiner)
    check, disagree = _check(contrasts(shards), outcomes, combiner, found, dependent)
    first, seconds = outcomes[0], sum((Counter(o.seconds) for o in outcomes), Counter())
    return Outcome(
        draws,
        first.chosen,
        worst | {"min_ess": ess, "max_rhat": rhat},
        first.batch_sizes,
        seconds=dict(seconds),
        evidence=_evidence(check, disagree) | _of_steps([o.evidence for o in outcomes]),
    ), check


def _evidence(check, disagree):
    """What `check` is told: whether there was a warning; else a predicted shift, or a distance."""
    evidence = {"shards_disagree": np.array([float(disagree)])}
    if not disagree and "mean_shift" in check:
        evidence["shards_shift"] = np.array([check["mean_shift"]])
        if check["distance"] > NOTED and check["distance_p"] < NOTED_APART:
            evidence["shards_apart"] = np.array([np.sqrt(check["distance"])])
    return evidence


def _of_steps(found):
    """What the fits of the shards, whose evidence is `found`, have measured of their steps.

    It is the worst of all shards, with its Monte Carlo error, but for the biases of means: shards
    with the same bias, in their standard deviations, give the mean of all rows √S times that bias.
    """
    evidence = {}
    for name in OF_STEPS:
        own = [one for one in found if name in one]
        if own:
            values = np.array([np.atleast_1d(one[name]) for one in own])
            worst = np.abs(values).argmax(axis=0)[None]
            evidence[name] = np.take_along_axis(values, worst, axis=0)[0]
            if f"{name}_mcse" in own[0]:
                errors = np.array([one[f"{name}_mcse"] for one in own])
                evidence[f"{name}_mcse"] = np.take_along_axis(errors, worst, axis=0)[0]
    own, S = [one for one in found if "mean_bias" in one], len(found)
    if own:
        evidence["mean_bias"] = sum(one["mean_bias"] for one in own) / np.sqrt(S)
        squares = sum(one["mean_bias_mcse"] ** 2 for one in own)
        evidence["mean_bias_mcse"] = np.sqrt(squares / S)
    return evidence


def _worst(diagnostics):
    """Return the worst value of each diagnostic over all shards."""
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
    """Issue a `SubposteriorWarning` for shards too far apart, or too skewed for the combiner.

    Return whether there was a warning. `few` says that few draws of a shard have all the weight; it
    is false if a warning has said that the combined draws are dependent, which has the same cause.
    """
    apart = check["distance"] > DISTANCE and check["distance_p"] < APART
    reasons = _predicted_errors(check, d)
    if few:
        number = check["effective_draws"]
        reasons += [f"the product rests on an effective number of {number:.1f} draws of a shard"]
    other = "combine='weierstrass', " * combiner.assumes_gaussian
    remedy = f"Use fewer subposteriors, {other}or"
    begin = f"The shards do not agree with combine={combiner!r}{_how(check, combiner)}"
    if check["weights_error"] > MEAN_SHIFT:
        begin = begin if reasons or apart else f"combine={combiner!r} adds errors"
        reasons += [
            f"covariances estimated from the draws of {d} parameters move means by about "
            f"{check['weights_error']:.2g} standard deviations"
        ]
        remedy = "Make more draws (n_draws), use fewer subposteriors, or"
    if apart:
        times = np.sqrt(check["distance"])
        reasons += [f"the shards' means are {times:.2g} times as far apart as their widths imply"]
        remedy = "Are the shards random parts of the rows? Shuffle rows over them, or use"
    if reasons:
        warnings.warn(
            f"{begin}: {'; '.join(reasons)} (see combine_check_). {remedy} n_subposteriors=1.",
            SubposteriorWarning,
            stacklevel=3,
        )
    return bool(reasons)


def _warn_of_dependence(ess, rhat, total, of_shards, combiner):
    """Issue a `SamplerConvergenceWarning` if the combination, and no shard, made dependent draws.

    Return whether there was a warning.
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
    """Return a clause that says what the combiner does that causes its errors, or ""."""
    if combiner.assumes_gaussian:
        return ", which assumes that they are Gaussian"
    if "bandwidth" in check:
        width = check["bandwidth"]
        return f", which smooths them with kernels of {width:.2g} of their standard deviations"
    return ""


def _predicted_errors(check, d):
    """Return what the combination is predicted to get wrong, as a list of clauses.

    A shift of a mean counts if it exceeds the limit by its error, and if the largest of d estimates
    would be so large by chance in fewer than `BY_CHANCE` of all combinations; or if it is twice the
    limit, and all shifts together would be so large in fewer than `BY_CHANCE` of them. In 33 of 70
    made tables with two to eight shards a shift counted, and they were off by 0.13 standard
    deviations or more; of 25 tables that were off by more than 0.25, all but one were among these
    33. Where a shard is very skewed, errors of 0.3 to 0.8 were predicted as 0.1, so that its
    skewness counts. Variances that are too large on average come with errors of means as well.
    """
    mean, variance = check["mean_shift"], check["variance_shift"]
    error, chance = check["mean_shift_error"], stats.norm.isf(BY_CHANCE / (2 * d))
    reasons = []
    large = mean > 2.0 * MEAN_SHIFT and check["mean_shift_p"] < BY_CHANCE
    if large or mean > max(MEAN_SHIFT + error, chance * error):
        reasons.append(f"a posterior mean is off by about {mean:.2g} standard deviations")
    elif check["skewness"] > SKEWNESS:
        reasons.append(
            f"the skewness of a shard is {check['skewness']:.2g}, and a posterior mean may be off "
            "by half a standard deviation or more"
        )
    if variance - 4.0 * check["variance_shift_error"] > VARIANCE_SHIFT:
        reasons.append(f"a posterior variance is off by about {variance:.0%}")
    spread, error = check["spread_shift"], check["spread_shift_error"]
    if abs(spread) > max(SPREAD_SHIFT + error, 4.0 * error):
        how = "large" if spread > 0.0 else "small"
        reasons.append(f"posterior variances are too {how} by about {abs(spread):.0%} on average")
    if check.get("widening", 0.0) > VARIANCE_SHIFT:
        reasons.append(f"all variances are too large by about {check['widening']:.0%}")
    return reasons
