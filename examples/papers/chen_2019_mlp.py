"""vrSG-MCMC for perceptrons with one hidden layer (Chen et al. 2019): figures 2, 5, 6, 8 and 9.

    python examples/papers/chen_2019_mlp.py [--chains 1] [--quick]

784-100-10 on MNIST and 3072-100-10 on CIFAR-10, sigmoid units, prior N(0, 1) of all weights: SGLD
with n = 10 rows a step, vrSG-MCMC with n1 = 100, n2 = 10 and a new anchor every m = 10 steps, and
SVRG-LD, whose anchor of all rows is renewed every N/n2 steps; then vrSG-MCMC with n1 from 100 to
2000 on CIFAR-10. A pass is as many gradients of rows as there are rows: a step of vrSG-MCMC takes
2 n2 + n1/m = 30 of them, one of SGLD 10. SGLD with 30 rows a step is beside them.

The steps of the list, to which the paper's 0.25 and 0.01 belong, multiply the gradient of the
*mean* loss, as in the paper; the step size h of the package is 2/N times that. Of each method the
step with the smallest test loss over the second half of the run is shown, as in the paper. Errors
and losses are those of single draws, as there, and in the table also those of the averaged
probabilities of the draws of the second half. No preconditioner, temperature 1, chains from random
weights.

CIFAR-10 is the first 10,000 + 2,000 images here. Needs mnist.npz and cifar10_12k.npz.
"""

import numpy as np
from _papers import Parser, figure, needed, save_figure, save_table
from scipy.special import log_softmax, logsumexp

from skbayes_sg._base.threads import one_blas_thread
from skbayes_sg.dynamics import SGLD
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.gradients import SVRG, Minibatch
from skbayes_sg.kernels.layout import frozen
from skbayes_sg.models import Softmax
from skbayes_sg.networks.architecture import make_network
from skbayes_sg.networks.chain import new_chain
from skbayes_sg.networks.minibatches import MinibatchSampler
from skbayes_sg.networks.prior_scales import make_groups
from skbayes_sg.networks.problem import NetworkProblem
from skbayes_sg.networks.run import predictors_of

UNITS, CLASSES, N2, M = 100, 10, 10, 10
ANCHORS = (100, 200, 300, 400, 500, 600, 700, 1000, 2000)
STEPS = {"MNIST": (0.25, 1.0), "CIFAR-10": (0.01, 0.03, 0.1)}
SHOWN = 5000  # rows of the training data whose error and loss are measured
MEASURES = ("test error", "test loss", "training error", "training loss")


def data(name, n_rows):
    """(training rows, labels, test rows, labels): pixels between 0 and 1."""
    found = needed({"MNIST": "mnist.npz", "CIFAR-10": "cifar10_12k.npz"}[name])
    parts = []
    for part in ("train", "test"):
        X, y = found[f"X_{part}"][:n_rows], found[f"y_{part}"][:n_rows]
        parts += [X.reshape(len(X), -1).astype(np.float32) / np.float32(255.0), y.astype(float)]
    return parts


def problem_of(X, y):
    """The posterior of the network."""
    network = make_network((X.shape[1], UNITS, CLASSES), "logistic")
    facts, d = frozen(np.column_stack([y, np.ones(len(y))])), X.shape[1]
    return NetworkProblem(
        X, facts, np.zeros(d, np.float32), np.ones(d, np.float32), network, Softmax(CLASSES),
        make_groups(network), prior_scale=1.0,
    )  # fmt: skip


class Method:
    """A gradient: rows a step, rows of the anchor (0 for none), and steps between anchors."""

    def __init__(self, n, anchor=0, refresh=M):
        self.n, self.anchor, self.refresh = n, anchor, refresh

    def rows_read(self, n_steps):
        """Gradients of rows in so many steps."""
        if not self.anchor:
            return self.n * n_steps
        return 2 * self.n * n_steps + self.anchor * -(-n_steps // self.refresh)

    def steps_within(self, n_rows):
        """The largest number of steps that read no more rows."""
        low, high = 0, n_rows
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.rows_read(middle) <= n_rows else (low, middle - 1)
        return low

    def sampler(self, h):
        """SGLD with this gradient, from the very start."""
        anchored = SVRG(refresh=self.refresh, anchor_size=self.anchor)
        return MinibatchSampler(
            SGLD(), self.n, h=h, n_warmup=0, thin=1, preconditioned=False,
            gradient=anchored if self.anchor else Minibatch(),
        )  # fmt: skip


def methods(n_rows):
    """The methods of figure 2, by name."""
    return {
        "SGLD, n = 10": Method(N2),
        "SGLD, n = 30": Method(3 * N2),
        "vrSG-MCMC": Method(N2, min(100, n_rows)),
        "SVRG-LD": Method(N2, n_rows, n_rows // N2),
    }


def log_probabilities(problem, chain, X):
    """(n, classes) of rows under the position of the chain."""
    eta = predictors_of(problem.network, chain.theta[None], X, chain.scratch)
    return log_softmax(eta[0], axis=1)


def error_and_loss(log_p, y):
    """Share of wrong classes, and mean negative log probability of the right ones."""
    wrong = float((log_p.argmax(axis=1) != y).mean())
    return wrong, -float(log_p[np.arange(len(y)), y.astype(int)].mean())


def curve(problem, method, step, grid, test, seed):
    """(measures at each pass of the grid, error and loss of averaged probabilities).

    NaN where the chain has diverged.
    """
    N, train = problem.n_rows, (problem.X[:SHOWN], problem.facts[:SHOWN, 0])
    sampler, chain = method.sampler(2.0 * step / N), new_chain(problem, seed, 0)
    chain.prior[0] = 1.0
    sampler.start(problem, chain)
    sampler.warm_up(problem, chain)
    found, taken, late = np.full((len(grid), 4), np.nan), 0, []
    for k, passes in enumerate(grid):
        target = method.steps_within(round(passes * N))
        try:
            sampler.run(problem, chain, target - taken)
        except SamplerDivergedError:
            return found, (np.nan, np.nan)
        taken = target
        log_p = log_probabilities(problem, chain, test[0])
        shown = log_probabilities(problem, chain, train[0])
        found[k] = *error_and_loss(log_p, test[1]), *error_and_loss(shown, train[1])
        if k >= len(grid) // 2:
            late.append(log_p)
    averaged = logsumexp(late, axis=0) - np.log(len(late))
    return found, error_and_loss(averaged, test[1])


def best(problem, method, steps, grid, test, n_chains):
    """(curves (chains, points, 4), averaged (chains, 2), step) of the best step."""
    tried = []
    for step in steps:
        runs = [curve(problem, method, step, grid, test, seed) for seed in range(n_chains)]
        curves, averaged = (np.array(part) for part in zip(*runs, strict=True))
        late = curves[:, len(grid) // 2 :, 1].mean()
        tried.append((late if np.isfinite(late) else np.inf, curves, averaged, step))
    return min(tried, key=lambda one: one[0])[1:]


def compare(name, X, y, test, wanted, steps, grid, n_chains):
    """{method: curves}, and rows of the table."""
    problem, found, rows = problem_of(X, y), {}, []
    for label, method in wanted.items():
        curves, averaged, step = best(problem, method, steps, grid, test, n_chains)
        found[label], at = curves, np.searchsorted(grid, 1.0)
        row = {"data": name, "method": label, "step": step}
        row |= {"steps a pass": round(method.steps_within(100 * len(y)) / 100)}
        row |= {"error, 1 pass": float(curves[:, at, 0].mean())}
        row |= {f"{what}, end": float(curves[:, -1, k].mean()) for k, what in enumerate(MEASURES)}
        row |= {"averaged error": float(averaged[:, 0].mean())}
        row |= {"averaged loss": float(averaged[:, 1].mean())}
        rows.append(row)
        print(
            f"{name:9}{label:17}step {step:<5g} error {row['error, 1 pass']:.3f} after a pass, "
            f"{row['test error, end']:.3f} after {grid[-1]:g}; loss {row['test loss, end']:.3f}; "
            f"averaged {row['averaged error']:.3f} and {row['averaged loss']:.3f}", flush=True,
        )  # fmt: skip
    return found, rows


def panels(axes, found, grid, title):
    """The four measures against passes, one curve a method, with the range over chains."""
    for k, (ax, what) in enumerate(zip(axes, MEASURES, strict=True)):
        for number, (label, curves) in enumerate(found.items()):
            style = "--" if number >= 5 else "-"
            mean = curves[:, :, k].mean(axis=0)
            ax.plot(grid, mean, style, label=label, lw=1.2, color=f"C{number}")
            ends = curves[:, :, k].min(axis=0), curves[:, :, k].max(axis=0)
            ax.fill_between(grid, *ends, alpha=0.2, lw=0, color=f"C{number}")
        late = np.nanmin([curves[:, :, k].mean(axis=0) for curves in found.values()], axis=1)
        top = np.nanmax([curves[:, 3:, k].mean(axis=0) for curves in found.values()])
        ax.set(ylim=(0.9 * late.min(), min(top, 6.0 * late.min())), title=f"{title}: {what}")
        ax.title.set_size(9)
        ax.set_xlabel("passes over the data", fontsize=8)
        ax.tick_params(labelsize=8)


def draw(parts, grid, folder, name):
    made, axes = figure(len(parts), 4, width=3.2, height=2.8)
    for row, (title, found) in zip(axes, parts.items(), strict=True):
        panels(row, found, grid, title)
    marks = axes[0, 0].get_legend_handles_labels()
    made.legend(*marks, fontsize=8, ncols=5, loc="outside lower center")
    save_figure(folder, name, made)


def run(options, grid):
    found, rows, sets = {}, [], {name: data(name, options.rows) for name in STEPS}
    for name, (X, y, *test) in sets.items():
        work = methods(len(y)), STEPS[name][: 1 if options.quick else None], grid, options.chains
        found[name], more = compare(name, X, y, test, *work)
        rows += more
    X, y, *test = sets["CIFAR-10"]
    sizes = [n1 for n1 in ANCHORS if n1 < len(y)][: 2 if options.quick else None]
    wanted = {"SGLD, n = 10": Method(N2)} | {f"n1 = {n1}": Method(N2, n1) for n1 in sizes}
    steps = STEPS["CIFAR-10"][1:2]
    varied, more = compare("CIFAR-10", X, y, test, wanted, steps, grid, options.chains)
    save_table(options.output, "chen_2019_mlp", rows)
    save_table(options.output, "chen_2019_mlp_anchors", more)
    if options.output:
        draw(found, grid, options.output, "chen_2019_mlp")
        draw({"CIFAR-10": varied}, grid, options.output, "chen_2019_mlp_anchors")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--passes", type=float, default=6.0, quick=1.0)
    parser.add_argument("--rows", type=int, default=60_000, quick=500, help="most rows of a set")
    options = parser.parse_args()
    early = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75])
    grid = np.append(early, np.arange(1.0, options.passes + 0.1, 0.5))
    with one_blas_thread:  # products are small
        run(options, grid)


if __name__ == "__main__":
    main()
