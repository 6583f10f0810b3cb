"""Matrix factorisation: error and coverage against time, beside myFM and SMURFF; how steps scale.

    python examples/benchmarks/factorisation.py [--sizes 5 6] [--seconds 5] [--quick]

Three parts. (1) ml-100k, 80 % of the ratings for training (order of ``default_rng(0)``), rank 16:
root mean square error of the posterior mean, clipped to 1 to 5, and coverage of 90 % intervals
(mean and standard deviation of a normal law) while a chain runs. myFM gives means alone. Both
others are left out where they are not installed. (2) Time of a step of `SparseSGLD` on made tables
of 10^5, 10^6, ... ratings. (3) Error against time of all samplers on these tables, whose true rank
is 16, with noise of standard deviation 0.8 and users and items of uneven popularity.

Seconds are those of one processor, as the system counts them, for the chain alone: without reading
data and without what is computed for this figure, which takes as long again or longer. The figure
of the documentation needs ``--sizes 5 6 7 --seconds 20`` and half an hour.
"""

import contextlib
import io
import time

import numpy as np
from _tables import Parser, data_file, save, save_figure, show, some
from scipy import sparse
from threadpoolctl import threadpool_limits

from skbayes_sg.factorisation import (
    Gibbs,
    NormalWishart,
    SparseSGHMC,
    SparseSGLD,
    UserBlockSGLD,
)
from skbayes_sg.factorisation.chains import RatingModel, new_chain, predictions
from skbayes_sg.factorisation.problem import make_problem

MADE = {4: (500, 300), 5: (2000, 1000), 6: (7000, 3500), 7: (70_000, 10_000)}
SAMPLERS = {
    "gibbs": (Gibbs(share=1.0), 10),
    "sgld": (SparseSGLD(), 20),
    "sgld, control variate": (SparseSGLD(gradient="control_variate"), 20),
    "sghmc": (SparseSGHMC(), 20),
    "user_block": (UserBlockSGLD(), 10),
}
LARGE = {
    "gibbs": (Gibbs(share=1.0), 2),
    "gibbs, started on a share": (Gibbs(share=0.02), 2),
    "user_block": (UserBlockSGLD(step_size=1.2), 3),
    "sgld": (SparseSGLD(step_size=0.8), 6),
}


class Table:
    """Standardised training ratings as a problem, and ratings to be predicted."""

    def __init__(self, codes, y, n_train, offsets, limits=None):
        self.centre, self.scale = y[:n_train].mean(), y[:n_train].std()
        z = (y - self.centre) / self.scale
        self.problem = make_problem(codes[:n_train], z[:n_train], offsets, 16)
        self.codes, self.y, self.limits = codes[n_train:], y[n_train:], limits


def movielens(quick):
    """ml-100k, a tenth of it if `quick`; None where it is not at hand."""
    data = data_file("ml-100k.npz")
    if data is not None:
        user, item, y = data["user"], data["item"], data["rating"].astype(float)
    elif quick:
        print("without ml-100k, which is not at hand")
        return None
    else:
        from skbayes_sg.datasets import fetch_movielens

        try:
            (user, item), y = (a.T for a in fetch_movielens(return_X_y=True))
        except OSError as error:
            print(f"without ml-100k: {error}")
            return None
    user, item, y = some(10_000 if quick else 100_000, user, item, y)
    order = np.random.default_rng(0).permutation(len(y))
    _, user = np.unique(user, return_inverse=True)
    _, item = np.unique(item, return_inverse=True)
    n = user.max() + 1
    codes = np.stack([user, item + n], axis=1).astype(np.int32)[order]
    return Table(codes, y[order], len(y) * 4 // 5, np.array([0, n, n + item.max() + 1]), (1.0, 5.0))


def made(exponent, seed=0):
    """A table of 10^exponent training ratings."""
    (n_users, n_items), N = MADE[exponent], 10**exponent
    rng = np.random.default_rng(seed)
    user = (n_users * rng.random(N + 50_000) ** 1.5).astype(np.int32)
    item = (n_items * rng.random(N + 50_000) ** 2).astype(np.int32)
    P, Q = (0.45 * rng.standard_normal((n, 16)) for n in (n_users, n_items))
    y = 3.5 + 0.4 * rng.standard_normal(n_users)[user] + 0.5 * rng.standard_normal(n_items)[item]
    for k in range(0, len(y), 10**6):
        some = slice(k, k + 10**6)
        y[some] += np.einsum("nk,nk->n", P[user[some]], Q[item[some]])
    y += 0.8 * rng.standard_normal(len(y))
    codes = np.stack([user, item + n_users], axis=1)
    return Table(codes, y, N, np.array([0, n_users, n_users + n_items]))


class Averages:
    """The posterior mean and its error as draws come in."""

    def __init__(self, table):
        self.table, self.n, self.sums = table, 0, np.zeros((4, len(table.y)))

    def add(self, chain, with_means):
        """Add the state of a chain."""
        F = chain.F
        if with_means:
            F = F.copy()
            F[: len(chain.means)] = chain.means
        g, f = predictions(F[self.table.codes]), predictions(chain.F[self.table.codes])
        noise = 1.0 / (chain.noise.alpha * chain.noise.w[self.table.codes].prod(axis=1))
        self.sums += np.stack([g, f, f**2, noise])
        self.n += 1

    def score(self):
        """(root mean square error, coverage)."""
        g, f, squares, noise = self.sums / self.n
        return judged(self.table, g, np.sqrt(np.maximum(squares - f**2, 0.0) + noise))


def judged(table, mean, sd):
    """(root mean square error, coverage) of standardised predictions."""
    mean, sd = table.centre + table.scale * mean, table.scale * sd
    if table.limits:
        mean = np.clip(mean, *table.limits)
    inside = np.abs(table.y - mean) <= 1.6449 * sd
    return np.sqrt(np.mean((mean - table.y) ** 2)), inside.mean()


def run(table, sampler, n_warmup, seconds, seed=0):
    """(seconds, error, coverage) after each pass, until the time is over."""
    model = RatingModel(table.problem, NormalWishart())
    warm_kernels(sampler)
    began, apart, points = time.process_time(), 0.0, []
    chain = new_chain(model, seed, 0)
    chain.n_warmup, averages = n_warmup, Averages(table)
    with threadpool_limits(1, user_api="blas"):
        sampler.begin(model, chain)
        while not points or points[-1][0] < seconds:
            sampler.sweep(model, chain)
            chain.passes += 1
            stopped = time.process_time()
            if chain.passes <= n_warmup:
                averages = Averages(table)
            averages.add(chain, sampler.has_means)
            points.append((stopped - began - apart, *averages.score()))
            apart += time.process_time() - stopped
    return points


def warm_kernels(sampler):
    """Compile all kernels, which is not counted."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 9, 60), 9 + rng.integers(0, 9, 60)], axis=1)
    problem = make_problem(
        codes.astype(np.int32), rng.standard_normal(60), np.array([0, 9, 18]), 16
    )
    model = RatingModel(problem, NormalWishart())
    chain = new_chain(model, 0, 0)
    sampler.begin(model, chain)
    sampler.sweep(model, chain)


def one_hot(table, codes):
    """Ratings as rows with two ones, for myFM."""
    n, d = len(codes), table.problem.n_rows
    columns, starts = codes.ravel().copy(), np.arange(0, 2 * n + 1, 2, dtype=np.int32)
    return sparse.csr_matrix((np.ones(2 * n), columns, starts), (n, d))


def myfm(table, n_draws):
    """(seconds, error, NaN) of myFM."""
    from myfm import MyFMRegressor

    X, y = one_hot(table, table.problem.codes), table.problem.y * table.scale + table.centre
    began = time.process_time()
    sizes = np.diff(table.problem.offsets).tolist()
    model = MyFMRegressor(rank=16, random_seed=0)
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
        model.fit(X, y, n_iter=n_draws, n_kept_samples=n_draws - 5, group_shapes=sizes)
    seconds = time.process_time() - began
    mean = (model.predict(one_hot(table, table.codes)) - table.centre) / table.scale
    return seconds, judged(table, mean, np.full(len(mean), np.nan))[0], np.nan


def smurff(table, n_draws, precision=1.5):
    """(seconds, error, coverage) of SMURFF's BPMF, with the precision of the noise given."""
    from smurff import FixedNoise, TrainSession

    n_users, n_items = np.diff(table.problem.offsets)

    def matrix(codes, y):
        return sparse.coo_matrix((y, (codes[:, 0], codes[:, 1] - n_users)), (n_users, n_items))

    y = table.problem.y * table.scale
    train = matrix(table.problem.codes, y)
    test = matrix(table.codes, table.y - table.centre)
    began = time.process_time()
    chain = {"num_latent": 16, "burnin": 5, "nsamples": n_draws - 5, "seed": 1, "num_threads": 1}
    session = TrainSession(priors=["normal", "normal"], verbose=0, **chain)
    session.addTrainAndTest(train, test, FixedNoise(precision), is_scarce=True)
    found = session.run()
    seconds = time.process_time() - began
    # What it calls "var" is a sum of squares over the draws.
    mean, variance, y = (
        np.array([getattr(p, a) for p in found]) for a in ("pred_avg", "var", "val")
    )
    own = Table.__new__(Table)
    own.centre, own.scale, own.y, own.limits = table.centre, 1.0, y + table.centre, table.limits
    return seconds, *judged(own, mean, np.sqrt(variance / (n_draws - 6) + 1.0 / precision))


def others(table):
    """Points of the other packages, where they are installed and work."""
    found = {}
    for name, call in (("myFM", myfm), ("SMURFF", smurff)):
        try:
            found[name] = [call(table, n) for n in (30, 60, 100, 200)]
        except ImportError:
            print(f"without {name}: not installed")
        except (TypeError, AttributeError, RuntimeError) as error:
            print(f"without {name}: {error!r}")
    return found


def time_of_steps(table, sampler, n_ratings=10**6):
    """Nanoseconds a rating of single steps, without what happens once a pass."""
    model = RatingModel(table.problem, NormalWishart())
    chain = new_chain(model, 0, 0)
    chain.F[:] = 0.3 * chain.rng.standard_normal(chain.F.shape)
    sampler.new_memory(model, chain)
    B = sampler.ratings_a_step(table.problem)
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        sampler.take_steps(model, chain, sampler.time_of_a_pass(), False, n_ratings // B)
        best = min(best, time.process_time() - began)
    return 1e9 * best / (n_ratings // B * B)


def table_of(name, curves, marks):
    """Rows of the best error by some seconds."""
    rows = []
    for sampler, points in curves.items():
        for mark in marks:
            before = [p for p in points if p[0] <= mark]
            if before:
                seconds, error, coverage = before[-1]
                row = {"data": name, "method": sampler, "seconds": seconds}
                rows.append(row | {"rmse": f"{error:.4f}", "coverage": f"{coverage:.3f}"})
    return rows


def draw(panels, folder):
    """Error and coverage (first panel) against seconds."""
    from matplotlib.figure import Figure

    n_rows = -(-(len(panels) + 1) // 3)
    made = Figure((12.6, 3.6 * n_rows), layout="constrained")
    axes = made.subplots(n_rows, 3, squeeze=False).ravel()
    for ax in axes[len(panels) + 1 :]:
        ax.set_axis_off()
    axes = axes[: len(panels) + 1]
    first = next(iter(panels.values()))
    for name, points in first.items():
        axes[0].semilogx([p[0] for p in points], [p[2] for p in points], ".-", label=name, ms=3)
    axes[0].axhline(0.9, color="k", lw=0.5)
    axes[0].set(ylabel="coverage of 90 % intervals", title=next(iter(panels)), ylim=(0.8, 1.0))
    for ax, (title, curves) in zip(axes[1:], panels.items(), strict=True):
        for name, points in curves.items():
            ax.semilogx([p[0] for p in points], [p[1] for p in points], ".-", label=name, ms=3)
        low = min(p[1] for points in curves.values() for p in points)
        ax.set(title=title, ylabel="RMSE", ylim=(low - 0.005, low + 0.1))
        ax.legend(fontsize=7)
    for ax in axes:
        ax.set_xlabel("seconds of one processor")
        ax.set_xlim(10 ** np.floor(np.log10(ax.get_xlim()[0] * 1.3)))
        ax.xaxis.set_minor_formatter("")
    save_figure(folder, "factorisation", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5, 6], choices=MADE, quick=[4])
    parser.add_argument("--seconds", type=float, default=5.0, quick=0.1, help="of each run")
    options = parser.parse_args()
    panels, rows, steps = {}, [], []
    table = movielens(options.quick)
    if table is not None:
        curves = {n: run(table, s, w, options.seconds) for n, (s, w) in SAMPLERS.items()}
        panels["ml-100k"] = curves | ({} if options.quick else others(table))
        rows += table_of("ml-100k", panels["ml-100k"], (1.0, 2.0, 5.0, 20.0))
    for exponent in options.sizes:
        name, table = f"10^{exponent} ratings", made(exponent)
        steps.append({"data": name, "ns a rating": time_of_steps(table, SparseSGLD())})
        scale = 10.0 ** (exponent - 6)
        seconds = options.seconds * max(1.0, 0.5 * scale)
        panels[name] = {n: run(table, s, w, seconds) for n, (s, w) in LARGE.items()}
        rows += table_of(name, panels[name], (seconds / 8, seconds / 3, seconds))
    show(rows)
    if steps:
        show(steps)
    save(options.output, "factorisation", rows + steps)
    if options.output and panels:
        draw(panels, options.output)


if __name__ == "__main__":
    main()
