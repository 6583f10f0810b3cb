"""Logistic regression on covertype (Baker, Fearnhead, Fox and Nemeth 2019): figure 5.

    python examples/papers/baker_2019_logistic.py [--steps 20000] [--quick]

SGLD, SGLD-CV and SAGA with 500 rows a step, a Laplace(1) prior and no preconditioner, for 1 %, 10 %
and all of the rows of covertype classes 2 and 4 (286,048 rows; those of the paper are not at hand),
10,000 rows held out. As in the paper SGLD and SAGA start at zero, and the search for the centre of
SGLD-CV and the sum there are part of its time, as the pass that fills the table is of SAGA's. Each
method has the step, out of five, with which the means of its draws are best at the end.

The first row is the paper's: held-out log density of single draws, against processor time. The
second is what the density hardly shows: how far the means of the later half of the draws so far are
from the posterior's, in its standard deviations. The reference is the default of the estimator,
independent draws with importance weights.
"""

import time

import numpy as np
from _papers import (
    Parser,
    figure,
    fit,
    make_frame,
    needed,
    run,
    save_figure,
    save_table,
    standardised,
)
from scipy.special import log_expit

from skbayes_sg.gradients import SAGA, ControlVariate, Minibatch
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Laplace
from skbayes_sg.subsampling import UniformWithoutReplacement

ROWS, HELD_OUT, CHAINS, THIN = 500, 10_000, 5, 10
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0)  # times 1/λ, λ the largest curvature at the mode
METHODS = {"SGLD": Minibatch(), "SGLD-CV": ControlVariate(), "SAGA": SAGA()}


def rows():
    """(X, y) of training rows in random order, and of held-out rows; a column of ones is first."""
    data = needed("covtype_2v4_286k.npz")
    X = standardised(data["X"])
    X = np.column_stack([np.ones(len(X)), X])
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], data["y"][order].astype(float)
    return (X[HELD_OUT:], y[HELD_OUT:]), (X[:HELD_OUT], y[:HELD_OUT])


def densities(draws, X, y):
    """Mean log density of rows under each draw, (n_chains, n_draws)."""
    signs = np.where(y == 1, 1.0, -1.0)
    return np.array([log_expit(signs[:, None] * (X @ chain.T)).mean(axis=0) for chain in draws])


def errors_of_means(draws, mean, sd):
    """Root mean square error of the mean of the later half so far, at each draw of one chain."""
    total = np.concatenate([np.zeros((1, draws.shape[1])), np.cumsum(draws, axis=0)])
    k = np.arange(1, len(draws) + 1)
    means = (total[k] - total[k // 2]) / (k - k // 2)[:, None]
    return np.sqrt((((means - mean) / sd) ** 2).mean(axis=1))


def best_run(frame, method, n_draws, mean, sd):
    """(share of 1/λ, seconds a draw of one chain, draws, errors of means) with the best step."""
    start = np.zeros((CHAINS, frame.target.n_parameters))
    if method == "SGLD-CV":
        start = start + frame.centre.theta
    pieces, found = (METHODS[method], UniformWithoutReplacement(), ROWS), []
    run(frame, *pieces, 1e-9, n_draws=1, thin=1, start=start[:1])  # compiles
    for share in STEPS:
        h, began = share / frame.curvature_range[1], time.process_time()
        draws = run(frame, *pieces, h, n_draws=n_draws, thin=THIN, start=start)
        seconds = (time.process_time() - began) / (n_draws * CHAINS)
        if np.isfinite(draws).all():
            off = np.mean([errors_of_means(chain, mean, sd) for chain in draws], axis=0)
            found.append((share, seconds, draws, off))
    return min(found, key=lambda one: one[3][-1])


def compare(N, train, test, n_draws):
    """{method: (seconds, densities, errors of means)}, and rows of the table."""
    X, y = train[0][:N], train[1][:N]
    exact = fit(X, y.astype(int), prior=Laplace(), fit_intercept=False).posterior_
    mean, sd = exact.mean(), exact.std()
    level = densities(exact.sampled[:, ::10], *test).mean()
    make_frame(X[:1000], y[:1000], Logistic(), Laplace())  # compiles
    began = time.process_time()
    frame = make_frame(X, y, Logistic(), Laplace())
    search = time.process_time() - began
    curves, table = {}, []
    for method in METHODS:
        share, seconds, draws, off = best_run(frame, method, n_draws, mean, sd)
        density = densities(draws, *test)
        times = seconds * np.arange(1, n_draws + 1) + search * (method == "SGLD-CV")
        curves[method] = times, density, off
        near = np.flatnonzero(density.mean(axis=0) > 1.02 * level)
        ratio = draws[:, n_draws // 2 :].std(axis=(0, 1)) / sd
        table.append(
            {
                "N": N,
                "method": method,
                "step (times 1/λ)": share,
                "seconds in all": float(times[-1]),
                "seconds to within 2 % of the density": float(times[near[0]]) if len(near) else "-",
                "log density, late half": float(density[:, n_draws // 2 :].mean()),
                "exact": float(level),
                "means off by (sd)": float(off[-1]),
                "sd, ratio to exact (median)": float(np.median(ratio)),
            }
        )
    return curves, level, table


def draw(results, folder):
    made, axes = figure(2, len(results))
    for column, (N, (curves, level)) in zip(axes.T, results.items(), strict=True):
        for method, (times, density, off) in curves.items():
            middle = density.mean(axis=0)
            column[0].plot(times, middle, label=method, linewidth=1)
            column[0].fill_between(times, density.min(axis=0), density.max(axis=0), alpha=0.2)
            column[1].loglog(times, off, label=method, linewidth=1)
        column[0].axhline(level, color="k", linestyle=":", label="exact")
        column[0].set(title=f"N = {N:,}", xscale="log", ylim=(2.0 * level, 0.8 * level))
        column[1].set(xlabel="seconds of processor time")
    axes[0, 0].set_ylabel("held-out log density of a draw")
    axes[1, 0].set_ylabel("rms error of means, in sd")
    axes[0, -1].legend(fontsize=8, loc="lower right")
    save_figure(folder, "baker_2019_logistic", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--steps", type=int, default=20_000, quick=200)
    options = parser.parse_args()
    train, test = rows()
    sizes = [len(train[1]) // 100, len(train[1]) // 10, len(train[1])]
    results, table = {}, []
    for N in sizes[: 1 if options.quick else None]:
        curves, level, lines = compare(N, train, test, options.steps // THIN)
        results[N] = curves, level
        table += lines
        print(f"N = {N}, held-out log density of the exact posterior {level:.5f}")
        for line in lines:
            print(
                f"    {line['method']:8} step {line['step (times 1/λ)']:g}/λ: log density "
                f"{line['log density, late half']:.5f}, means off by "
                f"{line['means off by (sd)']:.2f} sd, sd {line['sd, ratio to exact (median)']:.2f} "
                f"times the exact ones, {line['seconds in all']:.2f} s",
                flush=True,
            )
    save_table(options.output, "baker_2019_logistic", table)
    if options.output:
        draw(results, options.output)


if __name__ == "__main__":
    main()
