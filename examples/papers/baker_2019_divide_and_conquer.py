"""Divide and conquer against stochastic gradients: section 3 of Baker et al.

    python examples/papers/baker_2019_divide_and_conquer.py [--runs 2] [--draws 200] [--quick]

Baker, Fearnhead, Fox and Nemeth (2019): Control variates for stochastic gradient MCMC. Four
targets, 20 subposteriors, each sampled by Hamiltonian Monte Carlo under prior^(1/20) and combined
in four ways, beside SGLD on all rows: (1) location of a bivariate t, (2) locations of a Gaussian
mixture, (3) the warped Gaussian, (4) location of a Gaussian of growing dimension. The divergence of
what comes out from the posterior, KL(posterior | approximation), is estimated from nearest
neighbours of draws, for (4) from their moments; "exact" is what other exact draws get.

The posteriors are known: (1) and (3) as densities on a grid, (4) in closed form, (2) by long exact
chains, mirrored. SGLD and SGHMC (momentum drawn anew every three steps) have 50 rows a step as in
the paper, and smaller and smaller steps as long as the divergence becomes smaller ("nan" if the
chains diverge with each of them); SGLD-CV, which the paper does not have here, takes the step and
rows that "auto" finds. The data are made anew in every run; the paper has ten runs (``--runs 10``,
the better part of an hour).
"""

import warnings
from functools import partial

import numpy as np
from _papers import Parser, figure, save_figure

from skbayes_sg.combine import COMBINERS, agreement
from skbayes_sg.diagnostics import gaussian_kl, nearest_neighbour_kl
from skbayes_sg.dynamics import HMC, SGHMC, SGLD
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.gradients import ControlVariate, Minibatch
from skbayes_sg.inspection.known_posteriors import (
    GaussianLocation,
    MixtureLocations,
    TLocation,
    WarpedLocation,
    location_posterior,
)
from skbayes_sg.priors import Normal
from skbayes_sg.recipe.choose import sample_posterior
from skbayes_sg.recipe.request import Request
from skbayes_sg.schedules import Constant
from skbayes_sg.shards.sample import Sharded, combine_shards, sample_shards

S, ROWS = 20, 50
STEPS, THIN = (0.3, 0.1, 0.03, 0.01, 0.003), 2.0  # whitened; draws are a time of THIN apart
SCALE = np.array([[1.0, 0.5], [0.5, 1.0]])
METHODS = ["consensus", "nonparametric", "semiparametric", "weierstrass"]


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


def mixture(rng, n):
    truth = np.array([[0.3, 0.1], [-0.3, -0.1]])
    x = truth[rng.integers(0, 2, 10_000)] + rng.standard_normal((10_000, 2))
    target = location_posterior(MixtureLocations(np.eye(2)), x, Normal(scale=5.0))
    request = Request(sampler=HMC(), n_draws=n, n_chains=2, seed=int(rng.integers(1 << 30)))
    draws = sample_posterior(target, request).draws.reshape(-1, 4)
    both = np.concatenate([draws, draws[:, [2, 3, 0, 1]]])  # the posterior does not tell them apart
    return target, both[rng.permutation(len(both))[:n]]


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


def quietly(work, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*args)


def tuned(target, dynamics, n, seed, divergence):
    """Draws with 50 rows a step: steps become smaller until the divergence does not any more."""
    best, least = np.full((n, target.n_parameters), np.nan), np.inf
    for h in STEPS:
        request = Request(
            sampler=dynamics, gradient=Minibatch(), batch_size=ROWS, step_size=Constant(h),
            n_draws=n // 2, n_chains=2, n_warmup=200, thin=min(100, round(THIN / h)), seed=seed,
        )  # fmt: skip
        try:
            draws = quietly(sample_posterior, target, request).draws.reshape(n, -1)
        except SamplerDivergedError:
            continue
        if divergence(draws) > least:
            break
        best, least = draws, divergence(draws)
    return best


def approximations(target, n, seed, divergence):
    """Draws (n, d) of every method, and what `agreement` says of the shards."""
    request = Request(sampler=HMC(), n_draws=n // 2, n_chains=2, seed=seed)
    outcomes = quietly(sample_shards, Sharded(target, S, seed=seed), request)
    found = {
        name: quietly(combine_shards, outcomes, COMBINERS[name](), seed)[0].draws
        for name in METHODS
    }
    sgld = Request(sampler=SGLD(), gradient=ControlVariate(), n_draws=n // 2, n_chains=2, seed=seed)
    found["SGLD-CV"] = quietly(sample_posterior, target, sgld).draws
    found["SGLD"] = tuned(target, SGLD(), n, seed, divergence)
    found["SGHMC"] = tuned(target, SGHMC(refresh=3), n, seed, divergence)
    shards = [outcome.draws.reshape(n, -1) for outcome in outcomes]
    return {name: draws.reshape(n, -1) for name, draws in found.items()}, agreement(shards)


def kl_of_draws(truth, draws):
    """NaN for chains that diverged at every step."""
    return nearest_neighbour_kl(truth, draws) if np.isfinite(draws).all() else np.nan


def compare(make, runs, n, seed):
    """(KL of each method in each run, draws of the last run, agreement of its shards)."""
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        target, exact = make(rng, 2 * n)
        truth, other = exact[:n], exact[n:]
        divergence = partial(kl_of_draws, truth)
        found, check = approximations(target, n, seed + run, divergence)
        found["exact"] = other
        rows.append({name: divergence(draws) for name, draws in found.items()})
    return rows, found, check


def kl_of_moments(mean, covariance, draws):
    return gaussian_kl(mean, covariance, draws.mean(axis=0), np.cov(draws.T))


def dimensions(sizes, runs, n, seed):
    """{dimension: KL of each method in each run} for Gaussians."""
    rows: dict = {d: [] for d in sizes}
    for d in sizes:
        for run in range(runs):
            rng = np.random.default_rng([seed, d, run])
            target, mean, covariance = gaussian(rng, d)
            divergence = partial(kl_of_moments, mean, covariance)
            found, _ = approximations(target, n, seed + run, divergence)
            root = np.linalg.cholesky(covariance)
            found["exact"] = mean + rng.standard_normal((n, d)) @ root.T
            rows[d].append({name: divergence(draws) for name, draws in found.items()})
    return rows


# -- what comes out --------------------------------------------------------------------------------

NAMES = [*METHODS, "SGLD", "SGLD-CV", "SGHMC", "exact"]


def table(title, rows):
    """Mean and standard deviation over runs."""
    values = np.array([[row[name] for name in NAMES] for row in rows])
    for label, row in (("mean", values.mean(axis=0)), ("sd", values.std(axis=0))):
        cells = "  ".join(f"{value:10.3f}" for value in row)
        print(f"{title if label == 'mean' else '':16}{label:4}{cells}", flush=True)


def plot(results, by_dimension, folder):
    made, axes = figure(4, len(NAMES), width=1.75, height=2.0)
    for row, (title, (kl, draws, _)) in zip(axes, results.items(), strict=False):
        low, high = np.quantile(draws["exact"][:, :2], [0.001, 0.999], axis=0)
        pad = 0.3 * (high - low)
        for ax, name in zip(row, NAMES, strict=True):
            ax.plot(*draws[name][:, :2].T, ".", ms=1.5, alpha=0.4)
            mean = np.mean([one[name] for one in kl])
            said = "diverged" if np.isnan(mean) else f"KL {mean:.2f}"
            ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]), xticks=[], yticks=[])
            ax.set_ylim(low[1] - pad[1], high[1] + pad[1])
            ax.set_title(f"{name}\n{said}", fontsize=8)
        row[0].set_ylabel(title)
    for ax in axes[3]:
        ax.remove()
    last = made.add_subfigure(axes[3, 0].get_subplotspec().get_gridspec()[3, :]).subplots(1, 4)
    for ax, (title, (kl, _, _)) in zip(last, results.items(), strict=False):
        boxes = [[one[name] for one in kl if np.isfinite(one[name])] for name in NAMES]
        ax.boxplot(boxes, vert=False)
        ax.set_yticks(range(1, len(NAMES) + 1), NAMES, fontsize=7)
        ax.set_title(f"KL, {title}", fontsize=8)
    for k, name in enumerate(NAMES):
        values = np.array([[one[name] for one in kl] for kl in by_dimension.values()])
        places = np.array(list(by_dimension)) + 0.08 * (k - 3)
        spread = values.std(axis=1)
        last[3].errorbar(
            places, values.mean(axis=1), spread, fmt="o-", label=name, markersize=3, linewidth=1
        )
    last[3].set(yscale="log", xlabel="dimension", xticks=list(by_dimension))
    last[3].set_title("KL, Gaussian", fontsize=8)
    made.legend(
        *last[3].get_legend_handles_labels(), fontsize=7, loc="outside lower right", ncols=8
    )
    save_figure(folder, "baker_2019_divide_and_conquer", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--runs", type=int, default=2, quick=1)
    parser.add_argument("--draws", type=int, default=200, quick=100)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 12], quick=[2])
    args = parser.parse_args()
    results = {}
    heads = "  ".join(f"{name[:10]:>10}" for name in NAMES)
    print(f"KL of the approximation from the posterior, over {args.runs} runs\n{'':20}{heads}")
    targets = {"bivariate t": heavy_tails, "warped Gaussian": warped, "Gaussian mixture": mixture}
    for title, make in targets.items():
        results[title] = compare(make, args.runs, args.draws, 1)
        rows, _, check = results[title]
        table(title, rows)
        said = ", ".join(f"{name} {check[name]:.2g}" for name in ("mean_shift", "variance_shift"))
        print(f"    agreement of the shards of the last run: {said}", flush=True)
    by_dimension = dimensions(args.dimensions, args.runs, args.draws, 1)
    for d, rows in by_dimension.items():
        table(f"Gaussian, d = {d}", rows)
    if args.output:
        plot(results, by_dimension, args.output)


if __name__ == "__main__":
    main()
