"""The default on a table with rare levels: seconds, certificate, and errors against references.

    python examples/benchmarks/hard_table.py [--seeds 2] [--draws 1000] [--n-jobs -1] [--quick]

Some of the 44 one-hot columns have levels with one label only, so that the posterior is far from
Gaussian. Each number has one of these references:

* Seconds: `LogisticRegression` on the same table, fitted beside every fit.
* Errors of means, standard deviations, and 5 % and 95 % quantiles: `reference` below, which is
  written in NumPy alone. Hamiltonian Monte Carlo, with 64 chains that start around the mode,
  samples a density in which 10 000 rows are exact and the others quadratic; all rows enter the
  importance weights of its draws. Its errors are about 1/sqrt(ESS).
* Scatter between seeds: the mean over all seeds with the same number of draws.
* "20 000 rows", a random part of the table with a posterior of its own: ``sampler="hmc"`` of the
  package, which uses all rows at every step; `reference` is compared with it as well.

Stochastic gradients that are asked for (BAOAB, four chains of 500 draws, `thin` steps apart) are in
the comparison and the figure: their step must be so small here that they hardly move.

The k of a multivariate t around the Laplace approximation says whether that would be a reference
too; its weights are useless from 0.7 on. Errors are in posterior standard deviations, and the worst
over all coefficients. The figures of the documentation are those of ``--seeds 5 --draws 1000
2000``.
"""

import time
from functools import partial

import numpy as np
from _problems import covertype_shaped
from _tables import Parser, needed, save, save_figure, show, some
from arviz_stats.base import array_stats
from scipy import linalg
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.convergence import ess_bulk, rhat

N_CHAINS, ACCEPTANCE, LENGTH, MOST_STEPS = 64, 0.9, 2.0, 48
START = 0.1  # spread of the chains around the mode
SHORT = 5, 10.0  # every fifth trajectory has steps a tenth as long, which climb down steep walls
KEPT = 4096  # draws of the reference that get weights


# -- a reference in NumPy -------------------------------------------------------------------------


def expit(x):
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def softplus(x):
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


class Table:
    """U in φ around its mode: g·φ + |φ|²/2 + the remainders r_i(z_i·φ) of the rows."""

    def __init__(self, X, y):
        A = np.column_stack([X, np.ones(len(X))])
        A *= np.where(y == y.max(), -1.0, 1.0)[:, None]  # row i has the loss softplus(A_i θ)
        precision = np.append(np.ones(X.shape[1]), 10.0**-2)
        self.mode = np.zeros(A.shape[1])
        step = 1.0
        while np.abs(step).max() > 1e-3:
            step = self._newton(A, precision)
        self.F = linalg.inv(linalg.cholesky(self._hessian(A, precision)))
        self.eta, self.Z = A @ self.mode, A @ self.F
        self.p = expit(self.eta)
        self.w = self.p * (1.0 - self.p)
        self.g = self.F.T @ (A.T @ self.p + precision * self.mode)

    def _hessian(self, A, precision):
        p = expit(A @ self.mode)
        root = np.sqrt(p * (1.0 - p))[:, None] * A
        return root.T @ root + np.diag(precision)

    def _newton(self, A, precision):
        """A Newton step, halved until U falls; in units of the Laplace approximation."""

        def value(theta):
            return softplus(A @ theta).sum() + 0.5 * precision @ theta**2

        H, before = self._hessian(A, precision), value(self.mode)
        step = linalg.solve(H, A.T @ expit(A @ self.mode) + precision * self.mode, assume_a="pos")
        for _ in range(20):
            if value(self.mode - step) <= before + 1e-6:
                break
            step = 0.5 * step
        self.mode = self.mode - step
        return step * np.sqrt(np.diag(H))

    def remainder(self, rows, u):
        """r_i(u) of rows, for u of shape (n_rows, n_draws)."""
        eta, p, w = self.eta[rows, None], self.p[rows, None], self.w[rows, None]
        return softplus(eta + u) - softplus(eta) - p * u - 0.5 * w * u**2

    def remainders(self, phi, rows):
        """Sum of the remainders of rows, at each draw."""
        blocks = np.array_split(rows, max(1, len(rows) * len(phi) // 4_000_000))
        return sum(self.remainder(block, self.Z[block] @ phi.T).sum(axis=0) for block in blocks)

    def by_remainder(self):
        """Rows in descending order of their remainders two standard deviations away."""
        u = 2.0 * linalg.norm(self.Z, axis=1)[:, None] * [-1.0, 1.0]
        return np.argsort(-np.abs(self.remainder(slice(None), u)).max(axis=1))

    def quadratic(self, phi):
        return phi @ self.g + 0.5 * (phi**2).sum(axis=1)


def hamiltonian(table, rows, n_trajectories, rng):
    """Draws (chains, draws, parameters) of e^-(quadratic + remainders of some rows), and ε."""
    Z, eta = (a[rows].astype(np.float32) for a in (table.Z, table.eta))
    p0, w = (a[rows].astype(np.float32) for a in (table.p, table.w))

    def value(phi):
        return table.quadratic(phi) + table.remainders(phi, rows)

    def slope(phi):
        u = phi.astype(np.float32) @ Z.T
        return table.g + phi + (expit(eta + u) - p0 - w * u) @ Z

    phi, warmup = START * rng.standard_normal((N_CHAINS, len(table.g))), n_trajectories // 2
    here, log_epsilon, average, draws = value(phi), np.log(0.03), 0.0, []
    for t in range(warmup + n_trajectories):
        epsilon = np.exp(log_epsilon if t < warmup else average) * rng.uniform(0.8, 1.2)
        epsilon /= SHORT[1] if t % SHORT[0] == 0 else 1.0
        n_steps = int(np.clip(LENGTH * rng.uniform(0.5, 1.5) / epsilon, 1, MOST_STEPS))
        velocity = rng.standard_normal(phi.shape)
        before, moved = here + 0.5 * (velocity**2).sum(axis=1), phi
        velocity = velocity - 0.5 * epsilon * slope(moved)
        for k in range(n_steps):
            moved = moved + epsilon * velocity
            last = k == n_steps - 1
            velocity = velocity - (0.5 if last else 1.0) * epsilon * slope(moved)
        there = value(moved)
        chance = np.exp(np.minimum(before - there - 0.5 * (velocity**2).sum(axis=1), 0.0))
        accepted = rng.random(N_CHAINS) < chance
        phi, here = np.where(accepted[:, None], moved, phi), np.where(accepted, there, here)
        if t < warmup:
            if t % SHORT[0]:
                log_epsilon += 2.0 / np.sqrt(t + 10.0) * (chance.mean() - ACCEPTANCE)
            average += log_epsilon / (warmup - warmup // 2) if t >= warmup // 2 else 0.0
        else:
            draws.append(phi)
    return np.stack(draws, axis=1), float(np.exp(average))


def reference(table, n_trajectories, n_exact=10_000, seed=987654):
    """Draws θ of the posterior, their weights, and what is known of both."""
    rng, order = np.random.default_rng(seed), table.by_remainder()
    draws, epsilon = hamiltonian(table, order[:n_exact], n_trajectories, rng)
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    found = {"ESS": float(ess_bulk(draws).min())}
    found["R-hat"] = float(rhat(draws).max())
    found["ESS of squares"] = float(ess_bulk(squares).min())
    flat = draws.reshape(-1, draws.shape[2])
    phi = flat[rng.permutation(len(flat))[:KEPT]]
    weights, k = np.full(len(phi), 1.0 / len(phi)), np.nan
    if n_exact < len(order):
        log_weights, k = array_stats.psislw(table.remainders(phi, order[n_exact:]))
        weights = np.exp(log_weights)
    found |= {"epsilon": epsilon, "k": float(k)}
    found |= {"ESS of weights": float(1.0 / (weights**2).sum())}
    return table.mode + phi @ table.F.T, weights, found


def k_of_t(table, size, seed=987654):
    """Pareto k of the weights of a t with ten degrees of freedom around the mode."""
    rng, D = np.random.default_rng(seed), len(table.g)
    phi = rng.standard_normal((size, D)) / np.sqrt(rng.chisquare(10, size) / 10)[:, None]
    values = table.quadratic(phi) + table.remainders(phi, np.arange(len(table.eta)))
    log_q = -0.5 * (10 + D) * np.log1p((phi**2).sum(axis=1) / 10)
    return float(array_stats.psislw(values + log_q)[1])


# -- comparisons ----------------------------------------------------------------------------------


def moments(draws, weights=None):
    """Rows: mean, sd, 5 % and 95 % quantile of every parameter."""
    weights = np.full(len(draws), 1.0 / len(draws)) if weights is None else weights
    mean = weights @ draws
    order = np.argsort(draws, axis=0)
    share = np.cumsum(weights[order], axis=0)
    quantiles = [
        [draws[order[np.searchsorted(share[:, j], q), j], j] for j in range(draws.shape[1])]
        for q in (0.05, 0.95)
    ]
    return np.array([mean, np.sqrt(weights @ (draws - mean) ** 2), *quantiles])


def errors(found, true):
    """Worst errors of `moments` against others."""
    off, ratio = np.abs(found - true) / true[1], found[1] / true[1]
    row = {"error": off[0].max(), "sd low": ratio.min(), "sd high": ratio.max()}
    return row | {"q05": off[2].max(), "q95": off[3].max()}


def flat_draws(fit):
    return fit.posterior_.flat.reshape(-1, fit.posterior_.flat.shape[-1])


def timed(work, *args):
    began = time.perf_counter()
    result = work(*args)
    return time.perf_counter() - began, result


def default(X, y, prior, seed, n_draws, n_jobs, **options):
    """A fit of the default."""
    options |= {"n_draws": n_draws, "random_state": seed, "n_jobs": n_jobs}
    return BayesianLogisticRegression(prior=prior, **options).fit(X, y)


def fits(X, y, prior, args):
    """One row for every number of draws and seed, and the draws of the last fit."""
    default(X, y, prior, 0, args.draws[0], args.n_jobs)  # compiles what is not compiled yet
    rows, found = [], []
    for seed in range(args.seeds):
        for n_draws in args.draws:
            beside, _ = timed(LogisticRegression(max_iter=1000).fit, X, y)
            took, fit = timed(default, X, y, prior, seed, n_draws, args.n_jobs)
            row = {"draws": fit.n_chains * n_draws, "seed": seed, "sampler": fit.sampler_}
            row |= {"seconds": took, "LogisticRegression": beside, "ratio": took / beside}
            row["k"] = fit.diagnostics_.get("pareto_k", np.nan)
            row["ESS"] = fit.diagnostics_["min_ess"]
            rows.append(row)
            found.append(moments(flat_draws(fit)))
    return rows, np.array(found), flat_draws(fit)


def scatter(rows, found):
    """Root mean square and worst deviation from the mean over seeds, by number of draws."""
    table = []
    for n in sorted({row["draws"] for row in rows}):
        own = np.array([row["draws"] == n for row in rows])
        middle = found[own].mean(axis=0)
        off = (found[own] - middle) / middle[1]
        size = np.sqrt((off**2).mean(axis=0)).max(axis=1)
        ratios = [row["ratio"] for row in rows if row["draws"] == n]
        ks = [row["k"] for row in rows if row["draws"] == n]
        table.append({
            "draws": n, "seeds": int(own.sum()), "median ratio": np.median(ratios),
            "worst ratio": max(ratios), "k low": min(ks), "k high": max(ks),
            "rms mean": size[0], "rms sd": size[1], "rms q05": size[2], "rms q95": size[3],
            "worst mean": np.abs(off[:, 0]).max(), "worst sd": np.abs(off[:, 1]).max(),
        })  # fmt: skip
    return table


def part_of_the_table(X, y, prior, args):
    """Rows of errors on a random part, against Hamiltonian Monte Carlo of the package."""
    X, y = some(args.part, X, y)
    X = X[:, X.std(axis=0) > 0.0]
    options = {"n_draws": args.hmc_draws, "thin": 1, "random_state": 1, "n_jobs": args.n_jobs}
    hmc = BayesianLogisticRegression(prior=prior, sampler="hmc", **options).fit(X, y)
    true = moments(flat_draws(hmc))
    fit = default(X, y, prior, 0, args.draws[0], args.n_jobs)
    theta, weights, _ = reference(Table(X, y), args.trajectories)
    rows = [{"of": f"default ({fit.sampler_})"} | errors(moments(flat_draws(fit)), true)]
    rows += [{"of": "reference"} | errors(moments(theta, weights), true)]
    return rows, hmc.diagnostics_["min_ess"]


def figure(table, draws, chains, theta, weights):
    """Densities of the coefficient that is most skewed in the reference."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sd = np.sqrt((table.F**2).sum(axis=1))
    mean, spread = moments(theta, weights)[:2]
    skewness = weights @ ((theta - mean) / spread) ** 3
    j = int(np.abs(skewness).argmax())
    made, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    edges = np.linspace(*np.quantile(theta[:, j], [0.0005, 0.9995]), 61)
    ax.hist(theta[:, j], edges, weights=weights, density=True, color="0.8", label="reference")
    ax.hist(draws[:, j], edges, density=True, histtype="step", color="C0", label="default")
    ax.hist(chains[:, j], edges, density=True, histtype="step", color="C2", label="BAOAB")
    ends = table.mode[j] - 3 * sd[j], table.mode[j] + 3 * sd[j]
    x = np.linspace(min(edges[0], ends[0]), max(edges[-1], ends[1]), 400)
    height = np.exp(-0.5 * ((x - table.mode[j]) / sd[j]) ** 2) / (sd[j] * np.sqrt(2 * np.pi))
    ax.plot(x, height, color="C1", label="Laplace approximation")
    ax.set(xlabel=f"coefficient {j}, skewness {skewness[j]:.1f}", ylabel="density")
    ax.legend()
    return made


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=435_000, quick=12_000)
    parser.add_argument("--seeds", type=int, default=2, quick=1)
    parser.add_argument("--draws", type=int, nargs="+", default=[1000], quick=[200])
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--trajectories", type=int, default=250, quick=20)
    parser.add_argument("--thin", type=int, default=500, quick=10)
    parser.add_argument("--part", type=int, default=20_000, quick=2000)
    parser.add_argument("--hmc-draws", type=int, default=2000, quick=100)
    args = parser.parse_args()
    needed("covtype_sample10k.npz")
    X, y, prior = covertype_shaped(args.rows)
    rows, found, draws = fits(X, y, prior, args)
    spread = scatter(rows, found)
    show(spread)
    took, table = timed(Table, X, y)
    print(f"\nmode of the reference in {took:.1f} s")
    print(f"k of a t around the Laplace approximation: {k_of_t(table, 1000):.2f}")
    took, (theta, weights, known) = timed(reference, table, args.trajectories)
    print("reference in", f"{took:.0f} s:", {name: round(x, 2) for name, x in known.items()})
    true = moments(theta, weights)
    rows = [row | errors(own, true) for row, own in zip(rows, found, strict=True)]
    laplace = (
        table.mode + np.random.default_rng(0).standard_normal((KEPT, len(true[0]))) @ table.F.T
    )
    named = [{"of": "mean over all seeds"} | errors(found.mean(axis=0), true)]
    named += [{"of": "Laplace approximation"} | errors(moments(laplace), true)]
    steps = {"sampler": "baoab", "thin": args.thin, "n_warmup": 100 * args.thin}
    took, chains = timed(partial(default, **steps), X, y, prior, 0, 500, args.n_jobs)
    chains = flat_draws(chains)
    named += [{"of": f"BAOAB, {took:.0f} s"} | errors(moments(chains), true)]
    for part in (rows, named):
        print()
        show(part)
    small, ess = part_of_the_table(X, y, prior, args)
    print(f"\n{args.part} rows, against Hamiltonian Monte Carlo (smallest ESS {ess:.0f})")
    show(small)
    save(args.output, "hard_table", [*rows, *spread, *named, *small])
    if args.output is not None:
        save_figure(args.output, "hard_table", figure(table, draws, chains, theta, weights))


if __name__ == "__main__":
    main()
