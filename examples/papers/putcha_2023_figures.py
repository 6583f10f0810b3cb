"""Preferential subsampling (Putcha, Nemeth and Fearnhead 2023): figures 2 to 5, as there.

    python examples/papers/putcha_2023_figures.py [--chains 10] [--quick]

Ten chains without a preconditioner, equally many steps for burn-in and sampling, the probabilities
of eq. 11 and 16 without a uniform share (and once, beyond the paper, with one of 10 %), V0 as in
section 5.3.3. What is plotted is the kernel Stein discrepancy of eq. 20 of the draws so far, with
the scores of all rows: mean, smallest and largest of the chains; in coordinates whitened by the
Laplace approximation, because the kernel has a length scale of 1.

Figure 2: (a) linear regression on CASP, (b) logistic regression on covertype (classes 2 and 4,
every tenth row, a quarter held out): 0.1 % of the rows a step for 10 passes. Figure 3: adaptive
batches on balanced made data. Figure 4: SGLD with 1, 5 and 10 % of the rows, 500 passes, on (a) a
bivariate Gaussian, whose divergence is that of Gaussians with the moments of the draws, and (b)
covertype. Figure 5: adaptive batches on CASP.

Steps h are 0.5/N, about those of the paper's table 1, but 0.1/N for CASP (0.5/N is unstable here,
with columns of unit variance) and 0.2 posterior variances for the Gaussian, which the paper's 1e-4
would not cross within its 500 passes.
"""

import warnings

import numpy as np
from _papers import (
    Parser,
    figure,
    make_frame,
    needed,
    run_chains,
    save_figure,
    save_table,
    some,
    standardised,
)
from scipy import stats
from scipy.special import log_expit
from sklearn.datasets import make_classification

from skbayes_sg.diagnostics import coordinate_stein_discrepancy, gaussian_kl
from skbayes_sg.engine.scores import scores_of_rows
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import ControlVariate, Minibatch
from skbayes_sg.inspection.known_posteriors import GaussianLocation, location_posterior
from skbayes_sg.models import LinearKnownNoise, Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.measure import Survey
from skbayes_sg.subsampling import Adaptive, Preferential, Uniform

BELOW = {"fontsize": 7, "loc": "outside lower center", "ncols": 6}
PRIOR, CHECKS = Normal(scale=10.0**0.5), 5
METHODS = {
    "SGLD": (Minibatch(), None),
    "SGLD-PS": (Minibatch(), "gradient"),
    "SGLD-PS, 10 % uniform": (Minibatch(), "gradient"),
    "SGLD-CV": (ControlVariate(), None),
    "SGLD-CV-PS": (ControlVariate(), "hessian"),
}


# -- problems -------------------------------------------------------------------------------------


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def casp(n_rows):
    data = needed("protein_casp.npz")
    y = stats.zscore(data["y"].astype(float))
    X, y = some(n_rows, with_ones(standardised(data["X"], 5.0)), y)
    return make_frame(X, y, LinearKnownNoise(), PRIOR), 0.1 / len(y), None


def covertype(n_rows):
    data = needed("covtype_2v4_286k.npz")
    X, y = with_ones(standardised(data["X"][::10])), data["y"][::10].astype(float)
    X, y = some(n_rows, X, y)
    test = np.random.default_rng(0).random(len(y)) < 0.25
    frame = make_frame(X[~test], y[~test], Logistic(), PRIOR)
    return frame, 0.5 / frame.target.n_rows, (X[test], y[test])


def made(n_rows):
    X, y = make_classification(n_rows, 4, n_informative=4, n_redundant=0, random_state=0)
    return make_frame(with_ones(X), y.astype(float), Logistic(), PRIOR), 0.5 / n_rows, None


def gaussian(n_rows):
    """The frame, a step, and mean and covariance of the posterior."""
    scale = np.array([[1e5, 6e4], [6e4, 2e5]])
    x = np.random.default_rng(0).multivariate_normal([0.0, 1.0], scale, n_rows)
    target = location_posterior(GaussianLocation(scale), x, Normal(scale=1e3**0.5))
    frame = build_frame(
        target, find_centre(target, dense=True, rng=np.random.default_rng(0)), "none"
    )
    covariance = np.linalg.inv(n_rows * np.linalg.inv(scale) + np.eye(2) / 1e3)
    mean = covariance @ np.linalg.solve(scale, x.sum(axis=0))
    return frame, 0.2 * float(np.linalg.eigvalsh(covariance)[0]), (mean, covariance)


# -- chains ---------------------------------------------------------------------------------------


def chances_of(frame, weights, uniform_share):
    """Probabilities of eq. 11 or 16: as they are printed, without a uniform share."""
    survey = Survey(frame)
    norms = {"gradient": survey.gradient_norms, "hessian": survey.hessian_norms}[weights]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Preferential(uniform_share=uniform_share).probabilities(survey.of_all_rows(norms))


def draws_of(problem, method, n, n_steps, n_chains, reach=None):
    """Draws of the later half of chains, and the rows that each of these draws took."""
    (frame, h, _), (gradient, weights) = problem, METHODS[method]
    more = {}
    if weights is not None:
        more["chances"] = chances_of(frame, weights, 0.1 if "uniform" in method else 0.0)
    scheme = Uniform() if weights is None else Preferential()
    if reach is not None:
        own = {"preferential": weights is not None, "max_size": frame.target.n_rows}
        scheme, more = Adaptive(**own), more | {"reach": reach}
    at_mode = isinstance(gradient, ControlVariate)
    start = np.tile(frame.centre.theta * at_mode, (n_chains, 1))
    n_draws = min(400, n_steps)
    thin = n_steps // n_draws
    draws, chains = run_chains(
        frame, gradient, scheme, n, h, n_draws=n_draws, thin=thin, start=start, **more
    )
    used = np.array([chain.used for chain in chains]) / thin
    return draws[:, n_draws // 2 :], used[:, n_draws // 2 :]


def discrepancies(frame, draws):
    """Eq. 20 of the draws so far at some times, of each chain: (n_chains, CHECKS)."""
    F, found = frame.laplace_root, []
    for chain in draws:
        scores = -scores_of_rows(frame.target, chain) - chain / PRIOR.scale**2
        y = np.linalg.solve(F, (chain - frame.centre.theta).T).T
        ends = (np.arange(1, CHECKS + 1) * len(y)) // CHECKS
        found.append(
            [
                coordinate_stein_discrepancy(y[:k], scores[:k] @ F, standardise=False).sum()
                for k in ends
            ]
        )
    return np.array(found)


def log_losses(test, draws):
    """Of the mean prediction of the draws so far, as in `discrepancies`."""
    (X, y), found = test, []
    for chain in draws:
        p = np.exp(log_expit(np.where(y == 1, 1.0, -1.0)[:, None] * (X @ chain.T)))
        ends = (np.arange(1, CHECKS + 1) * len(chain)) // CHECKS
        found.append([-np.log(np.maximum(p[:, :k].mean(axis=1), 1e-12)).mean() for k in ends])
    return np.array(found)


def line(which, method, n, values, used, **more):
    values = values[:, -1]
    row = {"figure": which, "method": method, "rows a step": n, "mean": float(values.mean())}
    row |= {"sd over chains": float(values.std()), "rows used a step": float(used.mean())}
    print(f"{which}: {method:11} {used.mean():8.1f} rows a step: {row['mean']:.4g}", flush=True)
    return row


# -- figures --------------------------------------------------------------------------------------


def plot(axis, passes, values, label):
    """Mean, smallest and largest of the chains; marks of methods stand beside each other."""
    place = (*METHODS, "ASGLD-CV", "ASGLD-CV-PS").index(label)
    middle, reach = values.mean(axis=0), (values.min(axis=0), values.max(axis=0))
    axis.errorbar(
        passes + (place - 3) * 0.02 * np.ptp(passes), middle, abs(np.array(reach) - middle),
        fmt="o--" if "PS" in label else "o-", capsize=2, markersize=3, linewidth=1, label=label,
    )  # fmt: skip
    axis.set_yscale("log")


def figure_2(problems, n_steps, n_chains, axes):
    table = []
    for k, (name, problem) in enumerate(problems.items()):
        frame, _, test = problem
        n = max(1, round(0.001 * frame.target.n_rows))
        passes = n_steps * n / frame.target.n_rows * (0.5 + 0.5 * np.arange(1, CHECKS + 1) / CHECKS)
        for method in METHODS:
            draws, used = draws_of(problem, method, n, n_steps, n_chains)
            values = discrepancies(frame, draws)
            table.append(line(f"2{'ab'[k]} KSD, {name}", method, n, values, used))
            plot(axes[k], passes, values, method)
            if test is not None:
                values = log_losses(test, draws)
                table.append(line(f"2b log-loss, {name}", method, n, values, used))
                plot(axes[k + 1], passes, values, method)
    titles = ("2a: CASP", "2b (i): covertype", "2b (ii): covertype, log-loss")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel="passes")
    axes[0].set_ylabel("KSD, eq. 20")
    figure_of(axes).legend(*axes[0].get_legend_handles_labels(), **BELOW)
    return table


def figure_of(axes):
    return axes[0].get_figure()


def figure_4(problems, n_passes, n_chains, axes):
    table = []
    for axis, (name, problem) in zip(axes, problems.items(), strict=True):
        frame, _, known = problem
        N = frame.target.n_rows
        for share, style in ((0.01, "-"), (0.05, "--"), (0.1, ":")):
            for method, colour in (("SGLD", "C0"), ("SGLD-PS", "C1")):
                n = round(share * N)
                draws, used = draws_of(problem, method, n, n_passes * N // n, n_chains)
                if name == "Gaussian":
                    values = kl_so_far(draws, *known)
                else:
                    values = discrepancies(frame, draws)
                which = f"4{'a KL' if name == 'Gaussian' else 'b KSD'}, {name}"
                table.append(line(which, method, n, values, used))
                passes = n_passes * (0.5 + 0.5 * np.arange(1, CHECKS + 1) / CHECKS)
                axis.semilogy(
                    passes, values.mean(axis=0), style, color=colour, label=f"{method}, {share:.0%}"
                )
        axis.set(title=f"4: {name}", xlabel="passes")
    axes[0].set_ylabel("KL")
    axes[1].set_ylabel("KSD, eq. 20")
    figure_of(axes).legend(*axes[1].get_legend_handles_labels(), **BELOW)
    return table


def kl_so_far(draws, mean, covariance):
    ends = (np.arange(1, CHECKS + 1) * draws.shape[1]) // CHECKS
    return np.array(
        [
            [gaussian_kl(mean, covariance, c[:k].mean(axis=0), np.cov(c[:k].T)) for k in ends]
            for c in draws
        ]
    )


def adaptive(which, problem, n_steps, n_chains, axes):
    frame, table = problem[0], []
    n = max(1, round(0.001 * frame.target.n_rows))
    steps = n_steps * (0.5 + 0.5 * np.arange(1, CHECKS + 1) / CHECKS)
    for method in ("SGLD-CV", "SGLD-CV-PS"):
        draws, used = draws_of(problem, method, n, n_steps, n_chains)
        squares = ((draws - frame.centre.theta) ** 2).sum(axis=2)
        reach = float(np.quantile(squares, 0.95, axis=1).max())
        for name, own in ((method, None), (f"A{method}", reach)):
            if own is not None:
                draws, used = draws_of(problem, method, n, n_steps, n_chains, own)
            values = discrepancies(frame, draws)
            table.append(line(f"{which}a KSD", name, n, values, used))
            plot(axes[0], steps, values, name)
            passes = np.cumsum(used.mean(axis=0)) * n_steps / 2 / used.shape[1]
            late = np.linspace(n_steps / 2, n_steps, used.shape[1])
            style = "--" if "PS" in name else "-"
            axes[2].plot(late, passes / frame.target.n_rows, style, label=name)
    axes[1].plot(late, used[0], linewidth=0.7)
    axes[1].axhline(n, color="k", linestyle=":")
    axes[0].set(title=f"{which}a", ylabel="KSD, eq. 20", xlabel="steps")
    axes[1].set(title=f"{which}b: ASGLD-CV-PS, one chain", ylabel="rows a step", xlabel="steps")
    axes[2].set(title=f"{which}c", ylabel="passes since burn-in", xlabel="steps")
    axes[2].legend(fontsize=7)
    return table


def main():
    parser = Parser(__doc__)
    parser.add_argument("--chains", type=int, default=10, quick=2)
    parser.add_argument("--steps", type=int, default=20_000, quick=400)
    parser.add_argument("--passes", type=int, default=500, quick=10, help="of figure 4")
    parser.add_argument("--rows", type=int, default=100_000, quick=2000, help="at most")
    options = parser.parse_args()
    chains, made_rows = options.chains, min(options.rows, 10_000)
    data = {"CASP": casp(options.rows), "covertype": covertype(options.rows)}
    first, axes = figure(1, 3, height=3.4)
    table = figure_2(data, options.steps, chains, axes[0])
    second, axes = figure(2, 3)
    table += adaptive("3", made(made_rows), options.steps, chains, axes[0])
    table += adaptive("5", data["CASP"], options.steps, chains, axes[1])
    third, axes = figure(1, 2, width=4.4, height=3.4)
    known = {"Gaussian": gaussian(made_rows), "covertype": data["covertype"]}
    table += figure_4(known, options.passes, chains, axes[0])
    save_table(options.output, "putcha_2023_figures", table)
    if options.output:
        save_figure(options.output, "putcha_2023_figure_2", first)
        save_figure(options.output, "putcha_2023_figures_3_5", second)
        save_figure(options.output, "putcha_2023_figure_4", third)


if __name__ == "__main__":
    main()
