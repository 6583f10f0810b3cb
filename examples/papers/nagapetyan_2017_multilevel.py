"""Multilevel SGLD (Nagapetyan et al. 2017): figures 2 and 3.

    python examples/papers/nagapetyan_2017_multilevel.py [--quick] [--largest 1000000]

Logistic regression with two standard normal columns and an intercept, prior N(0, I); what is
estimated is E ‖θ - θ₀‖², θ₀ the mode, with N^(1/3) rows a step. Everything is preconditioned by the
inverse Hessian at the mode, and a cost is a number of rows touched; the mode is free for all.

Figure 2: distance of coupled paths, and variances and means of the differences of levels, with the
constants of the paper (m = 5). Figure 3: relative mean square error against cost beside MALA, whose
chains begin at draws of the Laplace approximation, its adaptation not counted; and the cost of a
relative accuracy of 2^-5 against N, of MALA from the mean square error of its averages. The true
value is by quadrature. By default N goes to 10 000, as in the paper.
"""

import itertools

import numpy as np
from _papers import Parser, figure, save_figure
from scipy.special import roots_hermitenorm
from threadpoolctl import threadpool_limits

from skbayes_sg.dynamics import MALA, SGLD
from skbayes_sg.engine.metropolis import LOG_AVERAGE, LOG_STEP
from skbayes_sg.engine.run import Setup, new_chains, sample
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import Full, Minibatch, Taylor
from skbayes_sg.models import Logistic
from skbayes_sg.multilevel import MultilevelSGLD
from skbayes_sg.multilevel.couplings import Antithetic, Plain
from skbayes_sg.multilevel.hierarchy import Hierarchy
from skbayes_sg.multilevel.paths import Paths
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Constant
from skbayes_sg.subsampling import AllRows, Uniform

SIZES = (100, 316, 1000, 3162, 10_000, 100_000, 1_000_000)
VARIANTS = {
    "plain": (Plain(), Minibatch(), 1),
    "antithetic": (Antithetic(), Minibatch(), 1),
    "antithetic, Taylor": (Antithetic(), Taylor(), 1),
    "antithetic, Taylor, averaged": (Antithetic(), Taylor(), 17),
}
METHODS = {"multilevel": {"window": 0.0}, "multilevel, averaged": {}}
H0, SHIFT = 0.5, 5
ACCURACY, LATE = 2.0**-5, 2.0**-4  # that of figure 3b; from where pilots no longer count
MALA_ROWS = 2e9  # that all chains of MALA touch


def make_frame(N):
    rng = np.random.default_rng(N)
    X = rng.standard_normal((N, 2))
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5] - 0.3))).astype(float)
    target = Target(X, y, np.ones(N), Logistic(), Normal()._table((3,)))
    centre = find_centre(target, dense=True, rng=rng, tolerance=1e-3)
    return build_frame(target, centre, "hessian")


def squared_distance(frame):
    """g: of parameters."""
    return lambda theta: ((theta - frame.centre.theta) ** 2).sum(axis=-1)


def truth(frame):
    """E g by Gauss-Hermite quadrature in whitened coordinates."""
    target, g = frame.target, squared_distance(frame)
    nodes, weights = roots_hermitenorm(17 if target.n_rows < 5000 else 9)
    phi = np.array(list(itertools.product(nodes, repeat=3)))
    w = np.array([np.prod(c) for c in itertools.product(weights, repeat=3)])
    theta = frame.theta(phi)
    log_p = -np.array([target.value_and_gradient(t)[0] for t in theta])
    w *= np.exp(log_p - log_p.max() + 0.5 * (phi**2).sum(axis=1))
    return float(w @ g(theta) / w.sum())


# -- figure 2 -------------------------------------------------------------------------------------


def records(frame, variant, level, n_paths, kept=None):
    """Positions θ of coupled paths, and the positions' time after both have begun."""
    coupling, gradient, own = VARIANTS[variant]
    n = round(np.ceil(frame.target.n_rows ** (1.0 / 3.0)))
    pieces = frame.problem(gradient), frame.target.model, gradient, Uniform(), SGLD()
    setup = Setup(*pieces, n, bounds=np.full(3, 1e6))
    hierarchy = Hierarchy(H0, SHIFT, kept or own, 1, n, coupling.n_coarse)
    paths = Paths(setup, coupling, hierarchy, 0)
    return frame.theta(np.concatenate(list(paths.positions(level, 0, n_paths))))


def figure_2(frame, n_paths, finest, folder):
    made, axes = figure(1, 3, height=3.8)
    for level in range(1, finest + 1):
        theta = records(frame, "antithetic, Taylor", level, n_paths, kept=21)
        gap = ((theta[:, :, 0] - theta[:, :, 1:].mean(axis=2)) ** 2).sum(axis=-1).mean(axis=0)
        time = H0 * (SHIFT * level + np.arange(len(gap)))
        axes[0, 0].semilogy(time, gap, label=f"level {level}")
    axes[0, 0].set(title="coupled paths", xlabel="time", ylabel="mean square distance")
    print(f"{'':30}  V_l, levels 1 ... {finest}; β and α on levels 4 ... {finest}")
    for variant in VARIANTS:
        V, m = moments(frame, variant, n_paths, finest)
        late = np.arange(4, finest + 1)
        beta, alpha = (-np.polyfit(late, np.log2(values[3:]), 1)[0] for values in (V, m))
        print(f"{variant:30}  {' '.join(f'{v:.1e}' for v in V)}  β {beta:.2f}  α {alpha:.2f}")
        for axis, values in zip(axes[0, 1:], (V, m), strict=True):
            axis.semilogy(np.arange(1, finest + 1), values, "o-", label=variant)
    axes[0, 1].set(title="variances", xlabel="level")
    axes[0, 2].set(title="means", xlabel="level")
    axes[0, 0].legend(fontsize=7)
    made.legend(
        *axes[0, 1].get_legend_handles_labels(), fontsize=7, loc="outside lower right", ncols=4
    )
    if folder:
        save_figure(folder, "nagapetyan_2017_levels", made)


def moments(frame, variant, n_paths, finest):
    """Variances and means of Δ_l in units of E g, levels 1 to the finest."""
    g, found = squared_distance(frame), []
    unit = (frame.F**2).sum()
    for level in range(1, finest + 1):
        values = g(records(frame, variant, level, n_paths)).mean(axis=1) / unit
        delta = values[:, 0] - values[:, 1:].mean(axis=1)
        found.append((delta.var(), abs(delta.mean())))
    return np.array(found).T


# -- figure 3 -------------------------------------------------------------------------------------


def multilevel(frame, exact, options, accuracies, repetitions):
    """(accuracy, mean cost, relative mean square error) of each accuracy."""
    rows, g = [], squared_distance(frame)
    for accuracy in accuracies:
        runs = [
            MultilevelSGLD(random_state=seed, **options).expect(frame.target, g, rtol=accuracy)
            for seed in range(repetitions)
        ]
        errors = [run.value / exact - 1.0 for run in runs]
        rows.append((accuracy, np.mean([run.cost for run in runs]), np.mean(np.square(errors))))
    return np.array(rows)


def mala(frame, exact, n_chains, n_steps):
    """(0, cost, relative mean square error) of averages over the first steps."""
    pieces = frame.problem(Full()), frame.target.model, Full(), AllRows(), MALA()
    setup = Setup(*pieces, frame.target.n_rows, step_size=Constant(1.0), adapt=True)
    start = np.random.default_rng(0).standard_normal((n_chains, 3))
    with threadpool_limits(1, user_api="blas"):
        _, chains = sample(setup, new_chains(setup, start, 0), min(300, n_steps), 1)
        average = np.mean([chain.record[LOG_AVERAGE] for chain in chains])
        for chain in chains:
            chain.record[LOG_STEP] = average
        setup.adapt = False
        draws, _ = sample(setup, chains, n_steps, 1)
    values = squared_distance(frame)(frame.theta(draws))
    steps = np.unique(np.geomspace(max(1, n_steps // 100), n_steps, 9).astype(int))
    averages = np.stack([values[:, :k].mean(axis=1) for k in steps])
    errors = np.square(averages / exact - 1.0).mean(axis=1)
    return np.column_stack([0.0 * steps, steps * float(frame.target.n_rows), errors])


def cost_at(rows, accuracy):
    """Of a method whose mean square error falls as 1/cost: by the mean of their product."""
    product = rows[len(rows) // 2 :, 1] * rows[len(rows) // 2 :, 2]
    return float(product.mean() / accuracy**2)


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def figure_3(sizes, accuracies, repetitions, mala_rows, folder):
    made, axes = figure(1, 2, width=4.5, height=3.6)
    costs = {name: [] for name in (*METHODS, "MALA")}
    print(f"\nrows touched for a relative accuracy of 2^-5\n{'N':>9}", end="")
    print("".join(f"{name:>24}" for name in costs) + "  MALA / averaged   error / asked")
    fine: list = []
    for N in sizes:
        frame = make_frame(N)
        exact = truth(frame)
        n_chains = int(np.clip(mala_rows / (N * 1000), 8, 50))
        beside = mala(frame, exact, n_chains, int(np.clip(mala_rows / (N * n_chains), 50, 10_000)))
        costs["MALA"].append(cost_at(beside, ACCURACY))
        axes[0, 0].loglog(beside[:, 1] / N, beside[:, 2], ":", color="grey")
        for name, options in METHODS.items():
            rows = multilevel(frame, exact, options, accuracies, repetitions)
            costs[name].append(rows[np.argmin(np.abs(rows[:, 0] - ACCURACY)), 1])
            if options == METHODS["multilevel, averaged"]:
                axes[0, 0].loglog(rows[:, 1] / N, rows[:, 2], "o-", label=f"N = {N}", markersize=3)
        late = np.log(rows[rows[:, 0] <= LATE, 1:])
        fine.append(late - late.mean(axis=0))
        ratio = costs["MALA"][-1] / costs["multilevel, averaged"][-1]
        reached = np.sqrt((rows[:, 2] / rows[:, 0] ** 2).mean())
        print(f"{N:9}" + "".join(f"{costs[name][-1]:24.3g}" for name in costs), end="")
        print(f"{ratio:17.3g}{reached:17.2f}", flush=True)
    cost, error = np.concatenate(fine).T
    print(f"multilevel, averaged: error falls as cost^{(cost @ error) / (cost @ cost) / 2.0:.2f}")
    axes[0, 0].set(xlabel="passes over the data", ylabel="relative mean square error")
    axes[0, 0].set_title("dotted: MALA", fontsize=9)
    made.legend(
        *axes[0, 0].get_legend_handles_labels(), fontsize=7, loc="outside lower left", ncols=5
    )
    for name, values in costs.items():
        growth = slope(sizes, values)
        print(f"{name}: cost grows as N^{growth:.2f}")
        axes[0, 1].loglog(sizes, values, "o-", label=f"{name}: N^{growth:.2f}")
    axes[0, 1].set(xlabel="N", ylabel="rows touched for 2^-5")
    axes[0, 1].legend(fontsize=7)
    if folder:
        save_figure(folder, "nagapetyan_2017_cost", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--largest", type=int, default=10_000, quick=400, help="rows")
    parser.add_argument("--paths", type=int, default=2000, quick=50)
    parser.add_argument("--finest", type=int, default=6, quick=5, help="level")
    parser.add_argument("--repetitions", type=int, default=12, quick=2)
    options = parser.parse_args()
    figure_2(make_frame(1000), options.paths, options.finest, options.output)
    sizes = [N for N in SIZES if options.largest >= N]
    accuracies = 2.0 ** -np.arange(2.0, 6.0 if options.quick else 7.0)
    mala_rows = MALA_ROWS / (1000.0 if options.quick else 1.0)
    figure_3(sizes, accuracies, options.repetitions, mala_rows, options.output)


if __name__ == "__main__":
    main()
