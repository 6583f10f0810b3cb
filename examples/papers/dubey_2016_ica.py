"""ICA and a mixture, SGLD against SAGA-LD (Dubey et al. 2016, sections 5.3 and 5.4).

    python examples/papers/dubey_2016_ica.py [--quick]

**Independent components.** The first 17,730 rows and ten channels of an EEG recording stand in for
the paper's MEG recording of the same size: whitened, four rows in five for training, in random
order, p(y) = 1/(4 cosh²(y/2)), prior N(0, 1) of the entries of W, ten rows a step, start at the
identity. As in the paper, SGLD has a decreasing step a (b + t)^-γ, and SAGA-LD one constant step
for the first pass and another one from then on; both have the best of the same values on a tenth of
the rows. The score at a pass is the test log-likelihood per row under the mean density of the draws
of the half before it.

**Mixture.** 20,000 rows from ½N(μ, 5²) + ½N(20 - μ, 5²) with μ = -5, which alone is unknown, under
the prior N(10, 20²). The posterior is known by quadrature: two modes, at -5 and at 25, of equal
weight by the symmetry of the prior. A chain of either method stays in the mode where it begins.
The figure has the true and the estimated density of μ, as the right of the paper's figure 3.
"""

import numpy as np
from _papers import Parser, figure, needed, run_chains, save_figure, save_table
from scipy.special import logsumexp

from skbayes_sg.custom.row_law import row_law_of
from skbayes_sg.densities.around import frame_around
from skbayes_sg.densities.density import density_target
from skbayes_sg.densities.ica import LogisticSources, log_density
from skbayes_sg.gradients import SAGA, Minibatch
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Polynomial, TwoPhase
from skbayes_sg.subsampling import Uniform

ROWS, CHAINS, PER_PASS = 10, 3, 20
STEPS = (0.03, 0.1, 0.3, 1.0, 3.0)  # over the largest curvature


def whitened(X):
    """Rows of mean 0 and covariance I."""
    X = X - X.mean(axis=0)
    _, sizes, directions = np.linalg.svd(X, full_matrices=False)
    return np.sqrt(len(X)) * X @ (directions.T / sizes)


def scores(draws, rows):
    """(passes, log-likelihoods of a row): of the mean density of the draws of half a pass."""
    half = PER_PASS // 2
    found = []
    for last in range(half, draws.shape[1] + 1, half):
        W = draws[:, last - half : last].reshape(-1, rows.shape[1], rows.shape[1])
        if not np.isfinite(W).all():
            found.append(-np.inf)
            continue
        values = log_density(rows, W[::3])
        found.append(float((logsumexp(values, axis=0) - np.log(len(values))).mean()))
    return np.arange(1, len(found) + 1) * 0.5, np.array(found)


def methods(n_rows, largest):
    """{name: (gradient, {steps in words: schedule})}."""
    one_pass = n_rows / ROWS
    decreasing = {
        f"{a:g}": Polynomial(a=a / largest * one_pass**0.55, b=one_pass, gamma=0.55) for a in STEPS
    }
    phases = {
        f"{a:g}, then {b:g}": TwoPhase(a / largest, b / largest, int(one_pass))
        for a in STEPS
        for b in STEPS
        if b <= a
    }
    return {"SGLD": (Minibatch(), decreasing), "SAGA-LD": (SAGA(table="online"), phases)}


def components(n_rows, passes):
    """{method: (passes, test scores, steps)} on the recording."""
    X = whitened(needed("eeglab_32ch.npz")["X"][:n_rows, :10].astype(float))
    X = X[np.random.default_rng(0).permutation(len(X))]
    n, d = len(X), X.shape[1]
    train, valid, test = np.split(X, [int(0.7 * n), int(0.8 * n)])
    model, table = LogisticSources(d * d), Normal()._table((d * d,))
    target = density_target(model, train, np.ones(len(train)), table)
    frame = frame_around(target, np.eye(d).ravel(), "none")
    thin, found = max(1, len(train) // ROWS // PER_PASS), {}
    start = np.tile(np.eye(d).ravel(), (CHAINS, 1))
    for name, (gradient, schedules) in methods(len(train), frame.curvature_range[1]).items():
        best = None
        for steps, schedule in schedules.items():
            options = {"n_draws": PER_PASS * passes, "thin": thin, "start": start}
            draws, _ = run_chains(frame, gradient, Uniform(), ROWS, schedule, **options)
            last = scores(draws[:, -PER_PASS:], valid)[1][-1]
            if best is None or last > best[0]:
                best = last, draws, steps
        found[name] = *scores(best[1], test), best[2]
    return found


def mixture_of(theta, row):
    """Log density of a row, up to a constant."""
    a = -0.5 * ((row[0] - theta[0]) / 5.0) ** 2
    b = -0.5 * ((row[0] - 20.0 + theta[0]) / 5.0) ** 2
    most = max(a.real, b.real)
    return most + np.log(0.5 * np.exp(a - most) + 0.5 * np.exp(b - most))


def quadrature(x, low, high):
    """Mean and standard deviation of μ within a mode, and (grid, density)."""
    grid = np.linspace(low, high, 2001)
    log_p = -0.5 * ((grid - 10.0) / 20.0) ** 2
    for k, m in enumerate(grid):
        log_p[k] += np.logaddexp(-0.02 * (x - m) ** 2, -0.02 * (x - 20.0 + m) ** 2).sum()
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return p @ grid, np.sqrt(p @ (grid - p @ grid) ** 2), (grid, p / (grid[1] - grid[0]))


def mixture(n_rows, passes):
    """Rows of the table, and {mode: (quadrature, {method: draws})}."""
    rng, rows, drawn = np.random.default_rng(1), [], {}
    x = np.where(rng.random(n_rows) < 0.5, -5.0, 25.0) + 5.0 * rng.standard_normal(n_rows)
    law = row_law_of(mixture_of, None, (False,), (1.0,), 1, "numba")
    target = density_target(
        law, x[:, None], np.ones(n_rows), Normal(loc=10.0, scale=20.0)._table((1,))
    )
    for mode in (-5.0, 25.0):
        mean, sd, density = quadrature(x, mode - 1.5, mode + 1.5)
        drawn[mode] = density, {}
        frame = frame_around(target, np.array([mean]), "none")
        for name, gradient in (("SGLD", Minibatch()), ("SAGA-LD", SAGA())):
            h = 0.3 * sd**2 * (ROWS / n_rows * 5.0 if name == "SGLD" else 1.0)
            options = {"n_draws": 50 * passes, "thin": max(1, n_rows // ROWS // 50)}
            draws, _ = run_chains(
                frame, gradient, Uniform(), ROWS, h, start=np.full((CHAINS, 1), mean), **options
            )
            late = drawn[mode][1][name] = draws[:, draws.shape[1] // 5 :]
            row = {"mode": mode, "method": name, "mean off by (sd)": (late.mean() - mean) / sd}
            rows.append(
                row | {"sd over exact": late.std() / sd, "exact mean": mean, "exact sd": sd}
            )
    return rows, drawn


def draw(found, drawn, folder):
    made, axes = figure(1, 1 + len(drawn))
    for name, (passes, values, _) in found.items():
        axes[0, 0].plot(passes, values, label=name, linewidth=1)
    axes[0, 0].set(xlabel="passes", ylabel="test log-likelihood", title="ICA")
    for axis, (mode, ((grid, p), draws)) in zip(axes[0, 1:], drawn.items(), strict=True):
        for name, values in draws.items():
            axis.hist(values.ravel(), bins=40, density=True, histtype="step", label=name)
        near = p > 1e-4 * p.max()
        axis.plot(grid[near], p[near], "k:", label="exact")
        axis.set(xlabel="μ", title=f"mixture, mode at {mode:g}")
        axis.locator_params(axis="x", nbins=4)
    axes[0, 1].set_ylabel("density")
    axes[0, 1].legend(fontsize=8)
    save_figure(folder, "dubey_2016_ica", made)


def in_words(found, rows):
    for name, (passes, values, steps) in found.items():
        first = values[passes == 1.0][0]
        print(f"ICA, {name:8} (step {steps}): test log-likelihood per row {first:.4f}")
        print(f"    after a pass, {values[-1]:.4f} after {passes[-1]:g}")
    for row in rows:
        print(
            f"mixture at {row['mode']:g}, {row['method']:8}: mean off by "
            f"{row['mean off by (sd)']:+.2f} sd, sd {row['sd over exact']:.2f} times the exact one"
        )


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=17_730, quick=600, help="of the recording")
    parser.add_argument("--passes", type=int, default=10, quick=2)
    parser.add_argument("--points", type=int, default=20_000, quick=500, help="of the mixture")
    options = parser.parse_args()
    found = components(options.rows, options.passes)
    rows, drawn = mixture(options.points, options.passes)
    in_words(found, rows)
    save_table(options.output, "dubey_2016_mixture", rows)
    if options.output:
        draw(found, drawn, options.output)


if __name__ == "__main__":
    main()
