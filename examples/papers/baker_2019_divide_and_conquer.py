"""Divide and conquer against stochastic gradients: section 3 of Baker et al.

    python examples/papers/baker_2019_divide_and_conquer.py [--runs 10] [--draws 250] [--quick]

Baker, Fearnhead, Fox and Nemeth (2019): Control variates for stochastic gradient MCMC. Four
targets, 20 subposteriors, each sampled by Hamiltonian Monte Carlo under prior^(1/20) and combined
in four ways, beside stochastic gradients on all rows: (1) location of a bivariate t, (2) locations
of a Gaussian mixture, (3) the warped Gaussian, (4) location of a Gaussian of 2 to 12 dimensions.
The divergence of what comes out from the posterior, KL(posterior | approximation), is estimated
from nearest neighbours of draws, for (4) from their moments; "exact" is what other exact draws get.
The data are made anew in each of the ten runs, as in the paper.

The posteriors are known: (1) and (3) as densities on a grid, (4) in closed form, (2) by importance
sampling at its two modes. SGLD and SGHMC (momentum drawn anew every three
steps), and SGLD-CV beside them, which the paper does not have here, have 50 rows a step and no
preconditioner, begin at the mode, and take 400 steps from draw to draw, for (4) 50. As in the paper
each is tuned by the divergence: the step of a list with the smallest one, on two data sets that are
not among the ten. "nan": every step diverged, or the chosen one did on some of the ten.
"""

import warnings
from functools import partial

import numpy as np
from _papers import Parser, figure, run_chains, save_figure
from scipy.optimize import minimize
from scipy.special import logsumexp

from skbayes_sg.combine import COMBINERS, agreement
from skbayes_sg.diagnostics import gaussian_kl, nearest_neighbour_kl
from skbayes_sg.dynamics import HMC, SGHMC, SGLD
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import ControlVariate, Minibatch
from skbayes_sg.inspection.known_posteriors import (
    GaussianLocation,
    MixtureLocations,
    TLocation,
    WarpedLocation,
    location_posterior,
)
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.request import Request
from skbayes_sg.shards.sample import Sharded, combine_shards, sample_shards
from skbayes_sg.subsampling import UniformWithoutReplacement

S, ROWS, CHAINS = 20, 50, 2
STEPS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)  # over the largest curvature at the mode
THIN, THIN_GAUSSIAN, TUNING_RUNS = 400, 50, 2
SCALE = np.array([[1.0, 0.5], [0.5, 1.0]])
METHODS = ["consensus", "nonparametric", "semiparametric", "weierstrass"]
STOCHASTIC = {
    "SGLD": (SGLD(), Minibatch()),
    "SGLD-CV": (SGLD(), ControlVariate()),
    "SGHMC": (SGHMC(refresh=3), Minibatch()),
}


# -- targets: (posterior, exact draws) of a run ----------------------------------------------------


def from_grid(log_density, first, last, n, rng):
    """Draws of a density of two parameters, by a fine grid and a uniform number in its cells."""
    axes = [np.linspace(a, b, 1200) for a, b in zip(first, last, strict=True)]
    values = log_density(*np.meshgrid(*axes, indexing="ij"))
    p = np.exp(values - values.max()).ravel()
    cells = np.unravel_index(rng.choice(p.size, n, p=p / p.sum()), values.shape)
    width = [axis[1] - axis[0] for axis in axes]
    parts = zip(axes, cells, width, strict=True)
    return np.column_stack([axis[cell] + w * (rng.random(n) - 0.5) for axis, cell, w in parts])


def heavy_tails(rng, n):
    L = np.linalg.cholesky(SCALE)
    x = rng.standard_normal((800, 2)) @ L.T / np.sqrt(rng.chisquare(3.0, (800, 1)) / 3.0)
    target = location_posterior(TLocation(SCALE, df=3.0), x)
    A, centre = np.linalg.inv(SCALE), np.median(x, axis=0)

    def log_density(a, b):
        total = np.zeros(a.shape)
        for point in x:
            u, v = a - point[0], b - point[1]
            q = A[0, 0] * u * u + 2.0 * A[0, 1] * u * v + A[1, 1] * v * v
            total -= 2.5 * np.log1p(q / 3.0)
        return total

    return target, from_coarse(log_density, centre, 0.35, n, rng)


def from_coarse(log_density, centre, reach, n, rng):
    """`from_grid` for a density that is slow to compute: its logarithm is interpolated."""
    from scipy.interpolate import RectBivariateSpline

    axes = [np.linspace(c - reach, c + reach, 81) for c in centre]
    spline = RectBivariateSpline(*axes, log_density(*np.meshgrid(*axes, indexing="ij")))
    ends = [axis[[0, -1]] for axis in axes]
    return from_grid(lambda a, b: spline.ev(a, b), *np.transpose(ends), n, rng)


def differences(f, x, s):
    """The matrix of second derivatives of f at x, from differences over 2 s."""
    steps = s * np.eye(len(x))
    rows = [
        [f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for b in steps] for a in steps
    ]
    return np.array(rows) / (4.0 * s * s)


def mixture(rng, n):
    truth = np.array([[0.3, 0.1], [-0.3, -0.1]])
    x = truth[rng.integers(0, 2, 10_000)] + rng.standard_normal((10_000, 2))
    target = location_posterior(MixtureLocations(np.eye(2)), x, Normal(scale=5.0))

    def log_density(theta):
        a, b = (-0.5 * ((theta[k : k + 2] - x) ** 2).sum(axis=1) for k in (0, 2))
        return np.logaddexp(a, b).sum() - 0.02 * (theta @ theta)

    mode = minimize(lambda theta: -log_density(theta), truth.ravel()).x
    root = np.linalg.cholesky(np.linalg.inv(-differences(log_density, mode, 0.02)))
    z = rng.standard_normal((10 * n, 4)) / np.sqrt(rng.chisquare(8.0, (10 * n, 1)) / 8.0)
    proposed, swap = mode + z @ root.T, [2, 3, 0, 1]
    w = np.array([log_density(theta) for theta in proposed])
    w += 6.0 * np.log1p((z**2).sum(axis=1) / 8.0)  # z has Student's t distribution, df = 8
    w[(proposed - proposed[:, swap]) @ mode < 0.0] = -np.inf  # nearer to the other mode
    w = np.exp(w - logsumexp(w))
    chosen = proposed[rng.choice(10 * n, n, replace=False, p=w)]
    mirrored = rng.random(n) < 0.5  # the posterior does not tell the components apart
    chosen[mirrored] = chosen[mirrored][:, swap]
    return target, chosen


def warped(rng, n):
    x = rng.normal(0.5, 2.0, (800, 1))
    target = location_posterior(WarpedLocation(sd=2.0), x, Normal(scale=1.0))

    def log_density(a, b):
        return -0.5 * (200.0 * (x.mean() - a - b**2) ** 2 + a**2 + b**2)

    return target, from_grid(log_density, (-6.0, -2.8), (1.5, 2.8), n, rng)


def gaussian(rng, d):
    """(target, mean, covariance) in d dimensions."""
    scale = 0.5 * np.eye(d) + 0.5
    x = rng.standard_normal((800, d)) @ np.linalg.cholesky(scale).T
    target = location_posterior(GaussianLocation(scale), x)
    P = 800 * np.linalg.inv(scale) + np.eye(d) / 1e4
    covariance = np.linalg.inv(P)
    return target, covariance @ np.linalg.solve(scale, x.sum(axis=0)), covariance


# -- methods ---------------------------------------------------------------------------------------


def frame_of(target):
    """The parameters themselves as coordinates around the mode."""
    centre = find_centre(target, dense=True, rng=np.random.default_rng(0))
    return build_frame(target, centre, "none")


def stochastic(frame, name, share, n, thin, seed):
    """Draws (n, d) with 50 rows a step; NaN after a divergence."""
    dynamics, gradient = STOCHASTIC[name]
    start, h = np.tile(frame.centre.theta, (CHAINS, 1)), share / frame.curvature_range[1]
    draws, _ = run_chains(
        frame, gradient, UniformWithoutReplacement(), ROWS, h, n_draws=n // CHAINS, thin=thin,
        start=start, seed=seed, dynamics=dynamics,
    )  # fmt: skip
    return draws.reshape(n, -1)


def combined(target, n, seed):
    """{name: draws (n, d)} of the combinations, and what `agreement` says of the shards."""
    request = Request(sampler=HMC(), n_draws=n // CHAINS, n_chains=CHAINS, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = sample_shards(Sharded(target, S, seed=seed), request)
        found = {
            name: combine_shards(outcomes, COMBINERS[name](), seed)[0].draws.reshape(n, -1)
            for name in METHODS
        }
    return found, agreement([outcome.draws.reshape(n, -1) for outcome in outcomes])


def tuned(make, divergence, n, thin, seed):
    """{name: step}: the one with the smallest mean divergence on data sets of their own."""
    means = {name: np.zeros(len(STEPS)) for name in STOCHASTIC}
    for number in range(TUNING_RUNS):
        target, truth, _ = make(np.random.default_rng([seed, 1, number]), n)
        frame = frame_of(target)
        for name, total in means.items():
            for k, share in enumerate(STEPS):
                total[k] += divergence(truth, stochastic(frame, name, share, n, thin, number))
    return {name: STEPS[np.argmin(np.nan_to_num(m, nan=np.inf))] for name, m in means.items()}


def one_run(make, divergence, steps, n, thin, seed, number):
    """(KL of each method, draws of each method, agreement of the shards) of a run."""
    target, truth, exact = make(np.random.default_rng([seed, 0, number]), n)
    found, check = combined(target, n, number)
    frame = frame_of(target)
    for name, share in steps.items():
        found[name] = stochastic(frame, name, share, n, thin, number)
    found["exact"] = exact
    return {name: divergence(truth, draws) for name, draws in found.items()}, found, check


def compare(make, divergence, n, thin, seed, options):
    """(steps, what `one_run` gives for each run)."""
    steps = tuned(make, divergence, n, thin, seed)
    runs = [one_run(make, divergence, steps, n, thin, seed, k) for k in range(options.runs)]
    return steps, runs


def halves(make, rng, n):
    """(target, exact draws, as many others) from a function that makes target and draws."""
    target, exact = make(rng, 2 * n)
    return target, exact[:n], exact[n:]


def with_moments(d, rng, n):
    """(target, (mean, covariance), exact draws) of a Gaussian."""
    target, mean, covariance = gaussian(rng, d)
    root = np.linalg.cholesky(covariance)
    return target, (mean, covariance), mean + rng.standard_normal((n, d)) @ root.T


def kl_of_draws(truth, draws):
    """NaN for chains that diverged."""
    return nearest_neighbour_kl(truth, draws) if np.isfinite(draws).all() else np.nan


def kl_of_moments(truth, draws):
    """NaN for chains that diverged."""
    if not np.isfinite(draws).all():
        return np.nan
    return gaussian_kl(*truth, draws.mean(axis=0), np.cov(draws.T))


# -- what comes out --------------------------------------------------------------------------------

NAMES = [*METHODS, *STOCHASTIC, "exact"]


def table(title, steps, runs):
    """Mean and standard deviation over runs."""
    values = np.array([[kl[name] for name in NAMES] for kl, _, _ in runs])
    for label, row in (("mean", values.mean(axis=0)), ("sd", values.std(axis=0))):
        cells = "  ".join(f"{value:10.3f}" for value in row)
        print(f"{title if label == 'mean' else '':17}{label:4}{cells}", flush=True)
    print(f"{'':17}steps: " + ", ".join(f"{name} {step:g}" for name, step in steps.items()))


def clouds(axes, title, runs):
    """Draws of the last run of each method."""
    _, draws, _ = runs[-1]
    low, high = np.quantile(draws["exact"][:, :2], [0.001, 0.999], axis=0)
    pad = 0.3 * (high - low)
    for ax, name in zip(axes, NAMES, strict=True):
        ax.plot(*draws[name][:, :2].T, ".", ms=1.5, alpha=0.4)
        mean = np.mean([kl[name] for kl, _, _ in runs])
        said = "diverged" if np.isnan(mean) else f"KL {mean:.2f}"
        ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), xticks=[], yticks=[])
        ax.set_ylim(low[1] - pad[1], high[1] + pad[1])
        ax.set_title(f"{name}\n{said}", fontsize=8)
    axes[0].set_ylabel(title)


def boxes(ax, title, runs):
    """A box over the runs for each method."""
    values = [[kl[name] for kl, _, _ in runs if np.isfinite(kl[name])] for name in NAMES]
    ax.boxplot(values, orientation="horizontal", flierprops={"markersize": 3})
    ax.set_yticks(range(1, len(NAMES) + 1), NAMES, fontsize=7)
    ax.invert_yaxis()
    if max(max(own, default=0.0) for own in values) > 1.0:
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xticks([0, 1, 3, 10], [0, 1, 3, 10])
        ax.minorticks_off()
    ax.tick_params(axis="x", labelsize=7)
    ax.grid(axis="x", alpha=0.3)
    ax.set_title(f"KL, {title}", fontsize=8)


def curves(ax, by_dimension):
    """Mean and standard deviation of the divergence over runs, by dimension."""
    sizes = np.array(list(by_dimension))
    for k, name in enumerate(NAMES):
        values = np.array([[kl[name] for kl, _, _ in runs] for runs in by_dimension.values()])
        mean, sd = values.mean(axis=1), values.std(axis=1)
        low = np.minimum(sd, 0.9 * mean)  # the axis is logarithmic
        ax.errorbar(
            sizes + 0.06 * (k - 3),
            mean,
            (low, sd),
            fmt="o-",
            label=name,
            ms=3,
            lw=1,
            elinewidth=0.7,
        )
    ax.set(yscale="log", xlabel="dimension")
    ax.set_xticks(sizes, sizes, fontsize=7)
    ax.set_title("KL, Gaussian", fontsize=8)


def plot(results, by_dimension, folder):
    made, axes = figure(4, len(NAMES), width=1.75, height=2.0)
    for row, (title, runs) in zip(axes, results.items(), strict=False):
        clouds(row, title, runs)
    for ax in axes[3]:
        ax.remove()
    last = made.add_subfigure(axes[3, 0].get_subplotspec().get_gridspec()[3, :]).subplots(1, 4)
    for ax, (title, runs) in zip(last, results.items(), strict=False):
        boxes(ax, title, runs)
    curves(last[3], by_dimension)
    marks = last[3].get_legend_handles_labels()
    made.legend(*marks, fontsize=7, loc="outside lower right", ncols=8)
    save_figure(folder, "baker_2019_divide_and_conquer", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--runs", type=int, default=10, quick=1)
    parser.add_argument("--draws", type=int, default=250, quick=100)
    parser.add_argument("--thin", type=int, default=THIN, quick=20, help="steps between draws")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[*range(2, 13)], quick=[2])
    options = parser.parse_args()
    results, by_dimension = {}, {}
    heads = "  ".join(f"{name[:10]:>10}" for name in NAMES)
    print(f"KL of the approximation from the posterior, over {options.runs} runs\n{'':21}{heads}")
    targets = {"bivariate t": heavy_tails, "warped Gaussian": warped, "Gaussian mixture": mixture}
    for title, make in targets.items():
        made = partial(halves, make)
        steps, runs = compare(made, kl_of_draws, options.draws, options.thin, 1, options)
        results[title] = runs
        table(title, steps, runs)
        check = runs[-1][2]
        said = ", ".join(f"{name} {check[name]:.2g}" for name in ("mean_shift", "variance_shift"))
        print(f"    agreement of the shards of the last run: {said}", flush=True)
    thin = min(THIN_GAUSSIAN, options.thin)
    for d in options.dimensions:
        made = partial(with_moments, d)
        steps, by_dimension[d] = compare(made, kl_of_moments, options.draws, thin, d, options)
        table(f"Gaussian, d = {d}", steps, by_dimension[d])
    if options.output:
        plot(results, by_dimension, options.output)


if __name__ == "__main__":
    main()
