"""Zero-variance post-processing (Baker, Fearnhead, Fox and Nemeth 2019): figure 6.

    python examples/papers/baker_2019_zero_variance.py [--quick]

Log predictive density of held-out rows under each draw of SGLD-CV, as box plots of five seeds,
before and after algorithm 2 with the chain's own estimates of the scores. As in the paper: a
Laplace(1) prior and 500 rows a step, on covertype (here a sample of 10,000 rows, half of it held
out, since all rows are not at hand; columns that are nearly always zero left out). Beside it, what
the figure is about: by how much the variance of the *estimate* falls over 20 seeds, for plain
minibatches, control variates and the Taylor gradient.
"""

import numpy as np
from _papers import Parser, figure, fit, needed, save_figure, standardised
from scipy.special import log_expit

from skbayes_sg.postprocess import held_out_values
from skbayes_sg.priors import Laplace

ROWS = 500
GRADIENTS = ("minibatch", "control_variate", "taylor")
SGLD = {"prior": Laplace(), "sampler": "sgld", "subsampling": "uniform", "batch_size": ROWS}
OPTIONS = SGLD | {"step_size": 0.05, "n_warmup": 200, "thin": 20, "n_chains": 1}


def halves():
    data = needed("covtype_sample10k.npz")
    X, y = data["X"].astype(float), (data["y"] == 2).astype(int)
    X = standardised(X[:, X.std(axis=0) > 0.15])
    return (X[::2], y[::2]), (X[1::2], y[1::2])


def densities(model, X, y):
    """Mean log density of rows under each draw, (n_chains, n_draws)."""
    posterior = model.posterior_
    eta = posterior["coef"][:, :, 0] @ X.T + posterior["intercept"]
    return log_expit(np.where(y == 1, eta, -eta)).mean(axis=2)


def controlled(model, values):
    """The same draws after algorithm 2, with coefficients of the other half of the draws."""
    posterior = model.posterior_
    return held_out_values(values, posterior.flat, posterior.scores).ravel()


def box_plots(train, test, n_seeds, n_draws):
    rows = []
    for seed in range(n_seeds):
        model = fit(*train, gradient="control_variate", n_draws=n_draws, seed=seed, **OPTIONS)
        before = densities(model, *test)
        rows.append((before.ravel(), controlled(model, before)))
        print(
            f"seed {seed}: standard deviation over draws {before.std():.2e} before, "
            f"{rows[-1][1].std():.2e} after"
        )
    return rows


def gains(train, test, repetitions, n_draws):
    """Ratio of the variances of the estimates over repetitions, with and without."""
    found = {}
    for gradient in GRADIENTS:
        estimates = []
        for seed in range(repetitions):
            model = fit(*train, gradient=gradient, n_draws=n_draws, seed=seed, **OPTIONS)
            values, posterior = densities(model, *test), model.posterior_
            estimates.append(
                [
                    (values.mean(), *posterior.mean()),
                    (controlled(model, values).mean(), *posterior.mean(control_variate="linear")),
                ]
            )
        variances = np.var(estimates, axis=0)
        ratios = variances[0] / variances[1]
        found[gradient] = ratios
        print(
            f"{gradient:16} variance of the log predictive density falls {ratios[0]:.1f} times, of "
            f"posterior means {np.median(ratios[1:]):.1f} times (median of {len(ratios) - 1})"
        )
    return found


def draw(rows, found, folder):
    made, axes = figure(1, 2, width=5.0, height=3.4)
    for shift, column, colour in ((-0.17, 0, "C0"), (0.17, 1, "C1")):
        style = {"boxprops": {"facecolor": colour, "alpha": 0.6}, "medianprops": {"color": "k"}}
        places, values = np.arange(len(rows)) + shift, [row[column] for row in rows]
        axes[0, 0].boxplot(
            values, positions=places, widths=0.3, showfliers=False, patch_artist=True, **style
        )
    axes[0, 0].set_xticks(range(len(rows)), [f"{k + 1}" for k in range(len(rows))])
    axes[0, 0].set_xlabel("run of SGLD-CV: left as it is, right after ZV")
    axes[0, 0].set_ylabel("held-out log density")
    names = list(found)
    axes[0, 1].boxplot([found[name][1:] for name in names], showfliers=False)
    axes[0, 1].set_xticks(np.arange(len(names)) + 1, names)
    axes[0, 1].set_yscale("log")
    axes[0, 1].set_ylabel("variance, before / after")
    axes[0, 1].axhline(1.0, color="0.7", linewidth=0.8)
    save_figure(folder, "baker_2019_zero_variance", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5, quick=2)
    parser.add_argument("--repetitions", type=int, default=20, quick=2)
    parser.add_argument("--draws", type=int, default=1000, quick=100)
    options = parser.parse_args()
    train, test = halves()
    rows = box_plots(train, test, options.seeds, options.draws)
    found = gains(train, test, options.repetitions, options.draws // 2)
    if options.output:
        draw(rows, found, options.output)


if __name__ == "__main__":
    main()
