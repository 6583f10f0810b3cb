"""Rows that a step needs as N grows (Baker et al. 2019): theorems 1, 2 and 3.

    python examples/papers/baker_2019_scaling.py [--quick]

Theorems 1 and 2: chains of SGLD, SGLD-CV and SAGA are coupled to a chain with the gradient of all
rows: same start (a draw of the Laplace approximation), same step, same Brownian motion. What is
searched is the number of rows a step, drawn without replacement, at which the mean square distance
from that chain is 2 % of the posterior variance. For the first two the noise is that of rows drawn
without replacement, so the distance is c (1/n - 1/N) up to terms of higher order, and one or two
trials find n; the last trial measures it.

Theorem 3: by how much zero-variance post-processing divides the variance of draws, with gradients
from 50 rows a step of each method, and with those of all rows. Steps here are small.

Logistic regression with made data, ten parameters, N(0, 1) priors, whitened by the Hessian.
"""

import numpy as np
from _papers import (
    Parser,
    figure,
    make_frame,
    plain_ticks,
    run,
    run_chains,
    save_figure,
    save_table,
)

from skbayes_sg.engine.scores import scores_of_rows
from skbayes_sg.gradients import SAGA, ControlVariate, Full, Minibatch
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.subsampling import AllRows, UniformWithoutReplacement

D, STEP, DISTANCE = 10, 0.2, 0.02
SIZES = (1000, 3000, 10_000, 30_000, 100_000)
METHODS = {"SGLD": Minibatch(), "SGLD-CV": ControlVariate(), "SAGA": SAGA()}
ROWS = 50  # of theorem 3


def problem(N):
    rng = np.random.default_rng(N)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, D - 1))])
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, D)))).astype(float)
    return make_frame(X, y, Logistic(), Normal(), "hessian")


# -- theorems 1 and 2 -----------------------------------------------------------------------------


def positions(frame, gradient, scheme, n, n_chains, n_steps):
    """Whitened positions of coupled chains in the later half of their steps."""
    start = frame.theta(np.random.default_rng(1).standard_normal((n_chains, D)))
    draws = run(frame, gradient, scheme, n, STEP, n_draws=10, thin=n_steps // 10, start=start)
    return np.linalg.solve(frame.F, (draws[:, 5:] - frame.centre.theta).reshape(-1, D).T).T


def rows_needed(frame, gradient, exact, n_chains, n_steps, trials=3):
    """(rows a step, measured distance there): the mean square of a coordinate."""
    N, n = frame.target.n_rows, min(64, frame.target.n_rows // 2)
    for _ in range(trials):
        found = positions(frame, gradient, UniformWithoutReplacement(), n, n_chains, n_steps)
        distance = float(((found - exact) ** 2).mean())
        needed = 1.0 / (DISTANCE / (distance / (1.0 / n - 1.0 / N)) + 1.0 / N)
        last, n = n, int(np.clip(round(needed), 1, N - 1))
    return needed, last, distance


def theorems_1_and_2(sizes, n_chains, n_steps):
    table = []
    for N in sizes:
        frame = problem(N)
        exact = positions(frame, Full(), AllRows(), N, n_chains, n_steps)
        for method, gradient in METHODS.items():
            needed, n, distance = rows_needed(frame, gradient, exact, n_chains, n_steps)
            table.append(
                {
                    "N": N,
                    "method": method,
                    "rows needed": float(needed),
                    "rows of the last trial": n,
                    "distance there": distance,
                }
            )
            print(f"N = {N:6} {method:8} {needed:9.1f} rows a step", flush=True)
    return table


# -- theorem 3 ------------------------------------------------------------------------------------


def gain(draws, scores):
    """Median over parameters: variance of draws over that of residuals of a linear regression."""
    x, z = (values.reshape(-1, D) - values.mean(axis=(0, 1)) for values in (draws, scores))
    residuals = x - z @ np.linalg.lstsq(z, x, rcond=None)[0]
    return float(np.median(x.var(axis=0) / residuals.var(axis=0)))


def theorem_3(sizes, n_chains, n_draws):
    table = []
    for N in sizes:
        frame, row = problem(N), {"N": N}
        start = np.tile(frame.centre.theta, (n_chains, 1))
        for method, gradient in METHODS.items():
            draws, chains = run_chains(
                frame, gradient, UniformWithoutReplacement(), ROWS, 0.02,
                n_draws=n_draws, thin=50, start=start, keep_slopes=True,
            )  # fmt: skip
            # Slope k + 1 is at draw k; that of the last draw was not taken.
            slopes = np.stack([chain.slopes[1:n_draws] for chain in chains])
            late = slice(n_draws // 10, None)
            row[method] = gain(draws[:, :-1][:, late], slopes[:, late])
        theta = draws[:, :-1][:, late].reshape(-1, D)
        full = scores_of_rows(frame.target, theta) + theta
        row["all rows"] = gain(theta[None], full[None])
        table.append(row)
        print(
            f"N = {N:6} variance falls "
            + ", ".join(f"{k} {v:.1f}" for k, v in row.items() if k != "N")
        )
    return table


def draw(needed, gains, folder):
    made, axes = figure(1, 2, width=4.4, height=3.4)
    for method in METHODS:
        here = [row for row in needed if row["method"] == method]
        axes[0, 0].loglog(
            [r["N"] for r in here], [r["rows needed"] for r in here], "o-", label=method
        )
    axes[0, 0].set(xlabel="N", ylabel="rows a step for the same distance")
    for method in (*METHODS, "all rows"):
        axes[0, 1].loglog([r["N"] for r in gains], [r[method] for r in gains], "o-", label=method)
    axes[0, 1].set(xlabel="N", ylabel="variance, before / after zero variance")
    for axis in axes[0]:
        plain_ticks(axis, SIZES[::2])
        axis.legend(fontsize=8)
    save_figure(folder, "baker_2019_scaling", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--chains", type=int, default=16, quick=4)
    parser.add_argument("--steps", type=int, default=300, quick=50)
    parser.add_argument("--draws", type=int, default=500, quick=60, help="of theorem 3")
    options = parser.parse_args()
    sizes = SIZES[: 2 if options.quick else None]
    needed = theorems_1_and_2(sizes, options.chains, options.steps)
    for method in METHODS:
        rows = [row["rows needed"] for row in needed if row["method"] == method]
        slope = np.polyfit(np.log(sizes), np.log(rows), 1)[0]
        print(f"{method}: rows needed grow as N^{slope:.2f}")
    pairs = zip(needed[2::3], needed[1::3], strict=True)
    ratios = [a["rows needed"] / b["rows needed"] for a, b in pairs]
    print("SAGA needs " + ", ".join(f"{r:.2f}" for r in ratios) + " times the rows of SGLD-CV")
    gains = theorem_3(sizes, 4, options.draws)
    save_table(options.output, "baker_2019_scaling", needed)
    save_table(options.output, "baker_2019_scaling_zv", gains)
    if options.output:
        draw(needed, gains, options.output)


if __name__ == "__main__":
    main()
