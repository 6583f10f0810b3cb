"""Matrix factorisation of ml-100k (Baker, Fearnhead, Fox and Nemeth 2019): figures 7 and 8.

    python examples/papers/baker_2019_factorisation.py [--runs 2] [--steps 600] [--quick]

Figure 7: log predictive density of held-out ratings (a tenth), by the later half of the draws so
far, against time for SGLD, SGLD-CV and SAGA, as the number of users grows, with 5000 ratings a
step; rank 16. As in the paper SGLD and SAGA
start at random and SGLD-CV at a centre near the mode, whose search (here alternating least squares)
is part of its time. Unlike there, rows have steps in proportion to the inverse of their mean
precision at that centre, the same for all three, and prior and noise are held fixed.

Figure 8: the same density over a chain of SGLD-CV, before and after zero-variance post-processing
with the chain's own estimates of the scores, for five seeds. Linear control variates need more
draws than parameters, so this is for the 20 busiest users, the 30 items they rate most and rank 2.

Found: SAGA is behind at every size, as in the paper. With steps that suit the rows SGLD-CV gains
little: it is behind SGLD at equal time with 100 and 300 users, and ahead at the end with all 943.
Post-processing takes off little of the standard deviation.
"""

import time

import numpy as np
from _papers import Parser, figure, needed, save_figure
from scipy.special import logsumexp

from skbayes_sg.factorisation import FixedNormal
from skbayes_sg.factorisation.chains import RatingModel, new_chain, predictions
from skbayes_sg.factorisation.gibbs_updates import draw_column
from skbayes_sg.factorisation.problem import make_problem
from skbayes_sg.factorisation.sparse import curvatures, likelihood_gradient
from skbayes_sg.postprocess import held_out_values

BATCH, STEP, ALPHA, PRIOR = 5000, 0.4, 1.6, FixedNormal(8.0)
EVERY = 10


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
    """A problem with held-out ratings, a start, and the steps of the rows."""

    def __init__(self, codes, y, offsets, rank, seed):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[: len(y) // 10], order[len(y) // 10 :]
        self.problem = make_problem(codes[train], y[train], offsets, rank)
        self.model = RatingModel(self.problem, PRIOR, "known", ALPHA)
        self.codes, self.y = codes[test], y[test]
        self.chain = new_chain(self.model, seed, 0)
        self.chain.hyper = [PRIOR.draw(None, self.chain.F[:1]) for _ in range(2)]
        self.ones = np.ones(self.problem.n_rows)
        at_random = self.chain.F.copy()
        self.centre()
        self.curvatures = curvatures(self.model, self.chain, 1.0)[:, None]  # of all methods
        self.chain.F[:] = at_random

    def centre(self, sweeps=8):
        """Rows near the mode, by alternating least squares."""
        for _ in range(sweeps):
            for column in (1, 0):
                rows = self.problem.rows(column)
                self.chain.F[rows] = draw_column(self.model, self.chain, column)
        return self.chain.F.copy()

    def gradient(self, rows, F):
        """Of the log-likelihood of some ratings."""
        g = np.zeros_like(F)
        codes, y = self.problem.codes[rows], self.problem.y[rows]
        likelihood_gradient(codes, y, F, self.ones, ALPHA, 1.0, g)
        return g

    def terms(self, rows, F):
        """The gradient of each rating for its two rows, (n, 2, D)."""
        x, y = F[self.problem.codes[rows]], self.problem.y[rows]
        e = ALPHA * (y - predictions(x))
        z = x[:, ::-1].copy()
        z[..., -1] = 1.0
        return e[:, None, None] * z

    def density(self, F):
        """Log density of each held-out rating."""
        e = self.y - predictions(F[self.codes])
        return 0.5 * np.log(ALPHA / (2.0 * np.pi)) - 0.5 * ALPHA * e**2


class SGLD:
    def __init__(self, task):
        self.task, self.start = task, task.chain.F.copy()

    def __call__(self, batch, F, share):
        return share * self.task.gradient(batch, F)


class SGLDCV(SGLD):
    def __init__(self, task):
        self.task, self.start = task, task.centre()
        self.full = task.gradient(np.arange(task.problem.n_ratings), self.start)

    def __call__(self, batch, F, share):
        there = self.task.gradient(batch, self.start)
        return self.full + share * (self.task.gradient(batch, F) - there)


class SAGA(SGLD):
    def __init__(self, task):
        super().__init__(task)
        everything = np.arange(task.problem.n_ratings)
        self.table = task.terms(everything, self.start)
        self.total = task.gradient(everything, self.start)

    def __call__(self, batch, F, share):
        change = self.task.terms(batch, F) - self.table[batch]
        added = np.zeros_like(F)
        np.add.at(added, self.task.problem.codes[batch], change)
        estimate = self.total + share * added
        self.table[batch] += change  # after the estimate, which is of the old table
        self.total += added
        return estimate


def chain(task, kind, n_steps, h, seed, batch_size=BATCH):
    """Every few steps: seconds, densities of held-out ratings, positions, estimated scores."""
    began, apart, seconds = time.process_time(), 0.0, []
    densities, draws, scores = [], [], []
    rng, N = np.random.default_rng([seed, 1]), task.problem.n_ratings
    estimate = kind(task)
    F, B = estimate.start.copy(), min(batch_size, N)
    step = h * B / N / task.curvatures
    for k in range(n_steps):
        batch = rng.choice(N, B, replace=False)
        g = estimate(batch, F, N / B) - PRIOR.precision * F
        if k % EVERY == 0:
            stopped = time.process_time()
            seconds.append(stopped - began - apart)
            densities.append(task.density(F))
            draws.append(F.ravel().copy())
            scores.append(g.ravel().copy())
            apart += time.process_time() - stopped
        F += 0.5 * step * g + np.sqrt(step) * rng.standard_normal(F.shape)
    return tuple(map(np.array, (seconds, densities, draws, scores)))


def predictive(densities):
    """Mean log predictive density, with the later half of the draws so far."""
    halves = [logsumexp(densities[k // 2 : k + 1], axis=0) for k in range(len(densities))]
    return [np.mean(h) - np.log(k + 1 - k // 2) for k, h in enumerate(halves)]


def figure_7(sizes, n_runs, n_steps, folder):
    made, axes = figure(1, len(sizes))
    for ax, users in zip(axes[0], sizes, strict=True):
        for kind in (SGLD, SGLDCV, SAGA):
            curves = []
            for seed in range(n_runs):
                task = Task(*ratings(users, seed=seed), 16, seed)
                seconds, densities, _, _ = chain(task, kind, n_steps, STEP, seed)
                curves.append([seconds, predictive(densities)])
            seconds, density = np.mean(curves, axis=0)
            ax.plot(seconds, density, label=kind.__name__)
            at = ", ".join(f"{density[int(s * len(density))]:.3f}" for s in (0.1, 0.3, 0.999))
            print(f"{users} users, {kind.__name__:7} {seconds[-1]:6.1f} s:")
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
        _, densities, draws, scores = chain(task, SGLDCV, n_steps, 0.2, seed, 100)
        keep = slice(len(draws) // 5, None)
        values, x, g = densities[keep].mean(axis=1)[None], draws[keep][None], scores[keep][None]
        after = held_out_values(values, x, g).ravel()
        boxes += [values.ravel(), after]
        print(f"seed {seed}: {x.shape[1]} draws of {x.shape[2]} parameters")
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
    parser.add_argument("--runs", type=int, default=2, quick=1)
    parser.add_argument("--steps", type=int, default=600, quick=130)
    parser.add_argument("--seeds", type=int, default=5, quick=1, help="of figure 8")
    options = parser.parse_args()
    figure_8(20 * options.steps, options.seeds, options.output)
    figure_7(options.users, options.runs, options.steps, options.output)


if __name__ == "__main__":
    main()
