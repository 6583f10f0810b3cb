"""The anchor of vrSG-MCMC (Chen et al. 2019): figure 9 top, and what the anchor's rows do.

    python examples/papers/chen_2019_anchors.py [--chains 10] [--quick]

Logistic regression on pima, ten rows a step, a new anchor every ten steps from n1 rows; 20 % of the
rows are held out. Left: mean negative log-likelihood of held-out rows under single draws, against
passes over the data, from zero; each n1 has the step that is best at the end, out of five. Rows are
counted as they are read: n2 at the position and n2 at the anchor in every step, n1 every ten.

Right: variance of the draws over that of the posterior (a long run of Hamiltonian Monte Carlo), in
coordinates whitened by the Hessian, against the rows read a step: SGLD with 10, 30 and 100 rows a
step, and vrSG-MCMC. Error bars are standard deviations over chains.
"""

import numpy as np
from _papers import (
    Parser,
    figure,
    fit,
    make_frame,
    needed,
    plain_ticks,
    run,
    save_figure,
    save_table,
    standardised,
)
from scipy.special import log_expit

from skbayes_sg.gradients import SVRG, Minibatch
from skbayes_sg.models import Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.subsampling import UniformWithoutReplacement

ROWS, REFRESH, PASSES = 10, 10, 40
ANCHORS = (20, 50, 100, 200, 400)
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0)  # times 1/λ, λ the largest curvature at the mode
WHITENED = (0.03, 0.1, 0.3)  # steps of the right panel


def rows():
    data = needed("pima.npz")
    X = standardised(data["X"], 5.0)
    X, y = np.column_stack([np.ones(len(X)), X]), data["y"].astype(float)
    test = np.random.default_rng(0).random(len(y)) < 0.2
    return (X[~test], y[~test]), (X[test], y[test])


def methods(N):
    """{name: (gradient, rows a step, rows read a step)}."""
    found = {"SGLD": (Minibatch(), ROWS, ROWS)}
    for n1 in (*ANCHORS, N):
        read = 2 * ROWS + n1 / REFRESH
        name = "SVRG-LD" if n1 == N else f"vrSG, n1 = {n1}"
        found[name] = (SVRG(refresh=REFRESH, anchor_size=n1), ROWS, read)
    return found


def held_out(draws, X, y):
    """Mean negative log-likelihood of each draw, (n_chains, n_draws)."""
    signs = np.where(y == 1, 1.0, -1.0)[:, None]
    return np.array([-log_expit(signs * (X @ chain.T)).mean(axis=0) for chain in draws])


def curves(train, test, n_chains):
    """{method: (passes, mean, sd over chains)}, and lines of a table."""
    frame, N = make_frame(*train, Logistic(), Normal()), len(train[1])
    start, found, table = np.zeros((n_chains, train[0].shape[1])), {}, []
    for name, (gradient, n, read) in methods(N).items():
        tried = []
        for share in STEPS:
            n_draws = int(PASSES * N / read / 2)
            h, scheme = share / frame.curvature_range[1], UniformWithoutReplacement()
            draws = run(frame, gradient, scheme, n, h, n_draws=n_draws, thin=2, start=start)
            tried.append((share, held_out(draws, *test)))
        share, loss = min(tried, key=lambda one: one[1][:, len(one[1][0]) // 2 :].mean())
        passes = 2 * read / N * np.arange(1, loss.shape[1] + 1)
        found[name] = passes, loss.mean(axis=0), loss.std(axis=0)
        late = loss[:, loss.shape[1] // 2 :].mean(axis=1)
        row = {"method": name, "rows read a step": float(read), "step (times 1/λ)": share}
        row |= {"loss, first pass": float(loss[:, passes < 1.0].mean())}
        row |= {"loss, late half": float(late.mean()), "sd over chains": float(late.std())}
        table.append(row)
        print(f"{name:14} {read:5.0f} rows read: loss {late.mean():.4f} ± {late.std():.4f}")
    return found, table


def variance_ratios(train, n_chains, n_steps):
    """Lines of a table: mean over whitened coordinates of variance over that of the posterior."""
    frame, N, table = make_frame(*train, Logistic(), Normal(), "hessian"), len(train[1]), []
    exact = fit(*train, sampler="hmc", prior=Normal(), fit_intercept=False, n_draws=2000)
    whiten = np.linalg.inv(frame.F)
    draws = exact.posterior_["coef"].reshape(-1, train[0].shape[1]) @ whiten.T
    truth = draws.var(axis=0)
    start = np.tile(frame.centre.theta, (n_chains, 1))
    plain = {f"SGLD, n = {n}": (Minibatch(), n, n) for n in (10, 30, 100)}
    anchored = {k: v for k, v in methods(N).items() if k != "SGLD"}
    for name, (gradient, n, read) in (plain | anchored).items():
        for h in WHITENED:
            draws = run(
                frame, gradient, UniformWithoutReplacement(), n, h,
                n_draws=n_steps // 10, thin=10, start=start,
            )  # fmt: skip
            late = draws[:, n_steps // 100 :] @ whiten.T
            ratios = (late.var(axis=1) / truth).mean(axis=1)
            row = {"method": name, "rows read a step": float(read), "step": h}
            row |= {"variance ratio": float(ratios.mean()), "sd over chains": float(ratios.std())}
            table.append(row)
    for h in WHITENED:
        here = [row for row in table if row["step"] == h]
        said = "; ".join(f"{r['method']} {r['variance ratio']:.2f}" for r in here)
        print(f"step {h:g}, variance ratios: {said}")
    return table


def draw(found, ratios, folder):
    made, axes = figure(1, 2, width=4.8, height=4.2)
    for name, (passes, loss, spread) in found.items():
        axes[0, 0].plot(passes, loss, label=name, linewidth=1)
        if name == "SGLD":
            axes[0, 0].fill_between(passes, loss - spread, loss + spread, alpha=0.15)
    axes[0, 0].set(xlabel="passes over the data", ylabel="held-out loss of a draw")
    axes[0, 0].set(ylim=(0.41, 0.70))
    axes[0, 0].legend(fontsize=7)
    for h, colour in zip(WHITENED, ("C0", "C1", "C2"), strict=True):
        for kind, mark in (("SGLD", "o-"), ("vrSG", "x--"), ("SVRG", "s")):
            here = [r for r in ratios if r["step"] == h and r["method"].startswith(kind)]
            axes[0, 1].errorbar(
                *([r[key] for r in here] for key in ("rows read a step", "variance ratio")),
                [r["sd over chains"] for r in here], fmt=mark, color=colour, capsize=2,
                label=f"{kind}, step {h:g}", markersize=4, linewidth=1,
            )  # fmt: skip
    axes[0, 1].set(xscale="log", yscale="log", xlabel="rows read a step")
    axes[0, 1].set_ylabel("variance of draws / of the posterior")
    plain_ticks(axes[0, 1], (10, 20, 50, 100))
    plain_ticks(axes[0, 1], (1, 2, 5, 10, 20, 50), "y")
    marks = axes[0, 1].get_legend_handles_labels()
    made.legend(*marks, fontsize=7, ncols=5, loc="outside lower right")
    save_figure(folder, "chen_2019_anchors", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--chains", type=int, default=10, quick=2)
    parser.add_argument("--steps", type=int, default=40_000, quick=1000, help="right panel")
    options = parser.parse_args()
    train, test = rows()
    found, table = curves(train, test, options.chains)
    ratios = variance_ratios(train, options.chains, options.steps)
    save_table(options.output, "chen_2019_anchors", table)
    save_table(options.output, "chen_2019_anchors_variance", ratios)
    if options.output:
        draw(found, ratios, options.output)


if __name__ == "__main__":
    main()
