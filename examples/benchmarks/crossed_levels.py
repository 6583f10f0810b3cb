"""Two columns with many levels, one-hot: the default beside a sampler that shares no code with it.

    python examples/benchmarks/crossed_levels.py [--only TABLE] [--draws 5000] [--quick]

Levels have the shares of Zipf's law, so that many of them have a single row, or no event. Their
coefficients have skewed posteriors with tails on one side, which no Gaussian resembles: the Laplace
approximation is several standard deviations off. The reference visits the coefficients in turn and
draws each by slice sampling, from the counts of the cells. Columns are standardised, unless the
name of the table says raw, and have a prior N(0, 1). Printed are seconds of the processor, how the
draws were made, whether a long run was told, and the worst errors of means (in standard deviations)
and of standard deviations beside the Monte Carlo error of the reference.
"""

import sys
import time
import warnings

import numba as nb
import numpy as np
from _tables import Parser, save, show

from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor
from skbayes_sg.exceptions import LongRunWarning
from skbayes_sg.priors import Normal

GATE = 0.15, 0.12  # largest errors of means, in standard deviations, and of standard deviations
THIN, WARMUP = 5, 2000  # sweeps of the reference from one draw to the next, and before the first
# Rows, levels of both columns, share of events, and numeric columns of few values.
TABLES = {
    "as in the recipe": (200_000, 120, 80, 0.02, 0),
    "raw": (200_000, 120, 80, 0.02, 0),
    "small, raw": (20_000, 60, 40, 0.02, 0),
    "half of events": (100_000, 120, 80, 0.5, 0),
    "30 events": (60_000, 120, 80, 5e-4, 0),
    "one column": (50_000, 200, 2, 0.01, 0),
    "many levels": (100_000, 200, 100, 0.02, 0),
    "weights, raw": (100_000, 100, 80, 0.02, 1),
    "counts": (100_000, 120, 80, 0.02, 0),
    "numbers": (50_000, 100, 60, 0.02, 2),
    "large": (150_000, 150, 120, 0.02, 1),
}


class Table:
    """Rows X, y and weights, and the cells of equal rows: X = (numbers, level - shift) / unit."""

    def __init__(self, name, seed):
        n, n_a, n_b, rate, n_numbers = TABLES[name]
        rng = np.random.default_rng(seed)
        levels = [np.unique(_zipf(rng, L, n), return_inverse=True)[1] for L in (n_a, n_b)]
        numbers = rng.integers(-2, 3, (n, n_numbers)).astype(float)
        effects = [rng.normal(size=own.max() + 1) for own in levels]
        eta = sum(e[own] for e, own in zip(effects, levels, strict=True)) + 0.3 * numbers.sum(1)
        self.of_counts = name == "counts"
        mean = np.exp if self.of_counts else lambda eta: 1.0 / (1.0 + np.exp(-eta))
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if mean(middle + eta).mean() > rate else (middle, high)
        eta += low
        y = rng.poisson(np.exp(eta)) if self.of_counts else rng.random(n) < mean(eta)
        self.y = y.astype(int)
        self.weight = rng.integers(1, 4, n).astype(float) if "weights" in name else np.ones(n)
        self.sizes = n_numbers, *(own.max() + 1 for own in levels)
        one_hot = [np.eye(size)[own] for size, own in zip(self.sizes[1:], levels, strict=True)]
        self.X = np.column_stack([numbers, *one_hot])
        d = self.X.shape[1]
        self.unit, self.shift = np.ones(d), np.zeros(d)
        if "raw" not in name:
            here = slice(n_numbers, d)
            self.unit[here], self.shift[here] = self.X[:, here].std(0), self.X[:, here].mean(0)
        cells, first, cell = np.unique(
            np.column_stack([numbers, *levels]), axis=0, return_index=True, return_inverse=True
        )
        self.cells = self.X[first] / self.unit
        self.total = np.bincount(cell.ravel(), self.weight, len(cells))
        self.events = np.bincount(cell.ravel(), self.weight * self.y, len(cells))
        self.X = (self.X - self.shift) / self.unit


def _zipf(rng, L, n):
    shares = 1.0 / np.arange(1, L + 1) ** rng.uniform(1.2, 1.8)
    return rng.choice(L, n, p=shares / shares.sum())


# -- the reference ----------------------------------------------------------------------------


@nb.njit(cache=True, fastmath=True)
def log_p(move, rows, values, eta, total, events, of_counts, precision, mean):
    """log p of a coefficient that moves, given the others, up to a constant."""
    value = -0.5 * precision * (move - mean) ** 2
    for k, i in enumerate(rows):
        at = eta[i] + values[k] * move
        loss = np.exp(at) if of_counts else max(at, 0.0) + np.log1p(np.exp(-abs(at)))
        value += events[i] * at - total[i] * loss
    return value


@nb.njit(cache=True)
def slice_move(rng, width, *known):
    """A move of one coefficient by slice sampling with stepping out (Neal 2003)."""
    level = log_p(0.0, *known) + np.log(rng.random())
    low = -width * rng.random()
    high = low + width
    while log_p(low, *known) > level:
        low -= width
    while log_p(high, *known) > level:
        high += width
    while True:
        move = low + (high - low) * rng.random()
        if log_p(move, *known) > level:
            return move
        low, high = (move, high) if move < 0.0 else (low, move)


@nb.njit(cache=True)
def chain(rng, n, warmup, thin, starts, rows, values, shift, blocks, total, events, of_counts, tau):
    """Draws of (intercept, coefficients); the intercept is moved at columns that are not shifted.

    Blocks are those of the one-hot columns: a common shift of one against the intercept leaves all
    predictors as they are, and is drawn from its normal law under the prior.
    """
    p, out = len(shift), np.empty((n, len(shift)))
    x, eta, widths, moved = np.zeros(p), np.zeros(len(total)), np.ones(p), 0.0
    for t in range(warmup + n * thin):
        for j in range(p):
            own = slice(starts[j], starts[j + 1])
            c = 1.0 if j == 0 else shift[j]
            apart = x[0] + moved  # the intercept at columns that are shifted, N(0, 1/tau)
            precision = tau * c * c + (1.0 if j else 0.0)
            mean = -(tau * c * apart + (x[j] if j else 0.0)) / precision
            move = slice_move(
                rng,
                widths[j],
                rows[own],
                values[own],
                eta,
                total,
                events,
                of_counts,
                precision,
                mean,
            )
            x[j] += move
            moved += shift[j] * move
            for k in range(starts[j], starts[j + 1]):
                eta[rows[k]] += values[k] * move
            if t < warmup:
                widths[j] = 0.98 * widths[j] + 0.06 * abs(move) + 1e-9
        for first, last in blocks:
            steps = np.empty(last - first)
            for k in range(first, last):
                steps[k - first] = 1.0 / values[starts[k]]
            g = 1.0 - (shift[first:last] * steps).sum()
            precision = (steps**2).sum() + tau * g * g
            mean = ((steps * x[first:last]).sum() - tau * g * (x[0] + moved)) / precision
            move = mean + rng.standard_normal() / np.sqrt(precision)
            x[0] += move
            x[first:last] -= move * steps
            moved -= move * (1.0 - g)
        if t >= warmup and (t - warmup) % thin == 0:
            out[(t - warmup) // thin] = x
            out[(t - warmup) // thin, 0] = x[0] + moved
    return out


def reference(table, n_draws):
    """Draws (2 chains, n_draws, 1 + columns) of intercept and coefficients."""
    A = np.column_stack([np.ones(len(table.cells)), table.cells])
    columns = [np.flatnonzero(column) for column in A.T]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in columns])])
    values = np.concatenate([A[own, j] for j, own in enumerate(columns)])
    shift = np.concatenate([[0.0], table.shift / table.unit])
    edges = 1 + np.cumsum(table.sizes)
    blocks = np.column_stack([edges[:-1], edges[1:]])
    cells = table.total, table.events, table.of_counts, 0.01
    known = starts, np.concatenate(columns), values, shift, blocks, *cells
    rngs = map(np.random.default_rng, (1, 2))
    return np.stack([chain(rng, n_draws, WARMUP, THIN, *known) for rng in rngs])


# -- the comparison ---------------------------------------------------------------------------


def compared(name, n_draws, seed):
    """One row of the printed table."""
    table = Table(name, seed)
    kind = BayesianPoissonRegressor if table.of_counts else BayesianLogisticRegression
    priors = {"prior": Normal(scale=1.0), "intercept_prior": Normal(scale=10.0)}
    model, began = kind(**priors, random_state=seed), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.X, table.y, sample_weight=table.weight)
    seconds = time.process_time() - began
    posterior = model.posterior_
    flat = posterior["coef"].reshape(-1, table.X.shape[1])
    draws = np.column_stack([posterior["intercept"].ravel(), flat])
    found = reference(table, n_draws)
    mean, sd = found.mean(axis=(0, 1)), found.std(axis=(0, 1))
    return {
        "table": name,
        "rows": len(table.X),
        "columns": table.X.shape[1],
        "cells": len(table.cells),
        "CPU s": seconds,
        "told": any(issubclass(w.category, LongRunWarning) for w in caught),
        "sampler": model.sampler_,
        "min ESS": model.diagnostics_["min_ess"],
        "trusted": bool(posterior.check()),
        "mean off": np.max(np.abs(draws.mean(axis=0) - mean) / sd),
        "sd off": np.max(np.abs(draws.std(axis=0) / sd - 1.0)),
        "reference": np.max(np.abs(np.diff(found.mean(axis=1), axis=0)) / sd),
    }


def main():
    parser = Parser(__doc__)
    parser.add_argument("--only", choices=list(TABLES), nargs="+", default=list(TABLES))
    parser.add_argument("--draws", type=int, default=5000, help="of each chain of the reference")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    names, n_draws = (["small, raw"], 500) if args.quick else (args.only, args.draws)
    rows = []
    for name in names:
        rows.append(compared(name, n_draws, args.seed))
        show(rows[-1:])
    show(rows)
    save(args.output, "crossed_levels", rows)
    if not args.quick:
        wrong = [r["table"] for r in rows if r["mean off"] > GATE[0] or r["sd off"] > GATE[1]]
        sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
