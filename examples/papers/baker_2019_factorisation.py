"""Matrix factorisation of ml-100k (Baker, Fearnhead, Fox and Nemeth 2019): figures 7 and 8.

    python examples/papers/baker_2019_factorisation.py [--runs 3] [--steps 1000] [--quick]

Figure 7: log predictive density of held-out ratings (a tenth), by the later half of the draws so
far, against time for SGLD, SGLD-CV and SAGA, as the number of users grows, with 5000 ratings a
step; rank 16. These are the samplers of the library, ``SparseSGLD(gradient=...)``. As in the paper
SGLD and SAGA start at random and SGLD-CV at a centre near the mode, whose search (here alternating
least squares) is part of its time. Unlike there, rows have steps in proportion to the inverse of
their mean precision at that centre, the same for all three, and prior and noise are held fixed.

Figure 8: the same density over a chain of SGLD-CV, before and after zero-variance post-processing
with the scores of `skbayes_sg.factorisation.scores` at the draws, for five seeds. Linear control
variates need more draws than parameters, so this is for the 20 busiest users, the 30 items they
rate most and rank 2.
"""

import time

import numpy as np
from _papers import Parser, figure, needed, save_figure
from scipy.special import logsumexp

from skbayes_sg.factorisation import FixedNormal, SparseSGLD
from skbayes_sg.factorisation.chains import RatingModel, new_chain, predictions
from skbayes_sg.factorisation.gibbs_updates import draw_column
from skbayes_sg.factorisation.problem import make_problem
from skbayes_sg.factorisation.scores import scores
from skbayes_sg.factorisation.sparse import bring_column, curvatures
from skbayes_sg.postprocess import held_out_values

BATCH, STEP, ALPHA, PRIOR = 5000, 0.4, 1.6, FixedNormal(8.0)
EVERY = 20
METHODS = {"SGLD": "minibatch", "SGLD-CV": "control_variate", "SAGA": "saga"}


def ratings(users=None, items=None, seed=0):
    """(codes, standardised ratings, offsets) of some users, most active first or at random."""
    data = needed("ml-100k.npz")
    user, item, y = data["user"].astype(int) - 1, data["item"].astype(int) - 1, data["rating"]
    if items is None:
        chosen = np.random.default_rng(seed).permutation(943)[:users]
        keep = np.isin(user, chosen)
    else:
        keep = np.isin(user, np.argsort(-np.bincount(user))[:users])
        keep &= np.isin(item, np.argsort(-np.bincount(item[keep]))[:items])
    _, u = np.unique(user[keep], return_inverse=True)
    _, i = np.unique(item[keep], return_inverse=True)
    y = (y[keep] - y[keep].mean()) / y[keep].std()
    n = u.max() + 1
    return np.stack([u, i + n], axis=1).astype(np.int32), y, np.array([0, n, n + i.max() + 1])


class Task:
    """A chain on the ratings that are not held out, at random, with the steps of the rows."""

    def __init__(self, codes, y, offsets, rank, seed):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        self.model = RatingModel(
            make_problem(codes[train], y[train], offsets, rank), PRIOR, "known", ALPHA
        )
        self.codes, self.y = codes[test], y[test]
        self.chain = new_chain(self.model, seed, 0)
        self.chain.hyper = [PRIOR.draw(None, self.chain.F[:1]) for _ in range(2)]
        at_random = self.chain.F.copy()
        self.chain.F[:] = self.centre()
        self.curvatures = curvatures(self.model, self.chain, 1.0)
        self.chain.F[:] = at_random

    def centre(self, sweeps=8):
        """Rows near the mode, by alternating least squares."""
        before = self.chain.F.copy()
        for _ in range(sweeps):
            for column in (1, 0):
                rows = self.model.problem.rows(column)
                self.chain.F[rows] = draw_column(self.model, self.chain, column)
        found, self.chain.F[:] = self.chain.F.copy(), before
        return found

    def density(self):
        """Log density of each held-out rating."""
        e = self.y - predictions(self.chain.F[self.codes])
        return 0.5 * np.log(ALPHA / (2.0 * np.pi)) - 0.5 * ALPHA * e**2


def advance(task, sampler, h, n_steps):
    """Take steps, and bring all rows up to date."""
    step, prior = sampler.take_steps(task.model, task.chain, h, False, n_steps)
    for column in range(2):
        bring_column(task.model, task.chain, column, step, (False, 1.0), prior)


def chain(task, gradient, n_steps, h, batch_size=BATCH, every=EVERY, with_scores=False):
    """Every few steps: seconds, densities of held-out ratings, positions and scores if wanted."""
    batch_size = min(batch_size, task.model.problem.n_ratings)
    sampler = SparseSGLD(batch_size=batch_size, gradient=gradient)
    sampler.new_memory(task.model, task.chain)
    spent, found, own = 0.0, [], task.chain
    began = time.process_time()
    own.memory.H = task.curvatures
    if gradient == "control_variate":
        own.memory.centre = task.centre()
        own.F[:] = own.memory.centre
    for _ in range(n_steps // every):
        advance(task, sampler, h, every)
        spent += time.process_time() - began
        more = (own.F.ravel().copy(), scores(task.model, own).ravel()) if with_scores else ()
        found.append((spent, task.density(), *more))
        began = time.process_time()
    return tuple(map(np.array, zip(*found, strict=True)))


def predictive(densities):
    """Mean log predictive density, with the later half of the draws so far."""
    halves = [logsumexp(densities[k // 2 : k + 1], axis=0) for k in range(len(densities))]
    return [np.mean(h) - np.log(k + 1 - k // 2) for k, h in enumerate(halves)]


def figure_7(sizes, n_runs, n_steps, folder):
    made, axes = figure(1, len(sizes))
    for ax, users in zip(axes[0], sizes, strict=True):
        for name, gradient in METHODS.items():
            curves = []
            for seed in range(n_runs):
                task = Task(*ratings(users, seed=seed), 16, seed)
                seconds, densities = chain(task, gradient, n_steps, STEP)
                curves.append([seconds, predictive(densities)])
            seconds, density = np.mean(curves, axis=0)
            spread = np.std(curves, axis=0)[1]
            ax.plot(seconds, density, label=name, lw=1)
            ax.fill_between(seconds, density - spread, density + spread, alpha=0.2, lw=0)
            at = ", ".join(f"{density[int(s * len(density))]:.3f}" for s in (0.1, 0.3, 0.999))
            print(f"{users} users, {name:7} {seconds[-1]:6.1f} s:")
            print(f"    after a tenth, three tenths and all of the steps {at}")
        ax.set(title=f"{users} users", xlabel="seconds", ylim=(-1.5, None))
    axes[0, 0].set_ylabel("log predictive density")
    axes[0, 0].legend()
    if folder:
        save_figure(folder, "baker_2019_factorisation", made)


def figure_8(n_steps, n_seeds, folder):
    made, axes = figure(1, 1, width=5.0)
    boxes = []
    for seed in range(n_seeds):
        task = Task(*ratings(20, 30), 2, seed)
        _, densities, x, g = chain(task, "control_variate", n_steps, 0.2, 100, 10, True)
        keep = slice(len(x) // 5, None)
        values = densities[keep].mean(axis=1)[None]
        after = held_out_values(values, x[keep][None], g[keep][None]).ravel()
        boxes += [values.ravel(), after]
        print(f"seed {seed}: {values.size} draws of {x.shape[1]} parameters")
        print(f"    standard deviation {values.std():.2e} before, {after.std():.2e} after")
    axes[0, 0].boxplot(boxes, showfliers=False, label=None)
    names = [f"{seed}{'*' * zv}" for seed in range(n_seeds) for zv in (0, 1)]
    axes[0, 0].set_xticks(range(1, 2 * n_seeds + 1), names)
    axes[0, 0].set(ylabel="log predictive density", xlabel="seed (*: with zero-variance)")
    if folder:
        save_figure(folder, "baker_2019_factorisation_zv", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[100, 300, 943], quick=[100])
    parser.add_argument("--runs", type=int, default=3, quick=1)
    parser.add_argument("--steps", type=int, default=1000, quick=200)
    parser.add_argument("--seeds", type=int, default=5, quick=1, help="of figure 8")
    options = parser.parse_args()
    figure_8(40 * options.steps, options.seeds, options.output)
    figure_7(options.users, options.runs, options.steps, options.output)


if __name__ == "__main__":
    main()
