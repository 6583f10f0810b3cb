"""SAGA-LD against SGLD (Dubey et al. 2016): figures 1 and 2, the variances of figure 3, and beyond.

    python examples/papers/dubey_2016_saga.py [--quick]

Bayesian linear regression with unit noise on the regressions of the paper that are at hand
(concrete, parkinsons, protein), and on 50,000 flights in the place of 3droad, y standardised;
logistic regression on its classifications (pima, eeg) and on the quantitative columns of covertype
(10,000 rows, class 2 or not): ten rows a step, no preconditioner, prior N(0, 1), start at zero,
five-fold cross-validation with 70 % training, 10 % validation, 20 % test rows. As in the paper,
SGLD has a decreasing step a (b + t)^-γ (here b one pass, γ = 0.55), SAGA-LD one constant step for
the first pass and another one from then on, and its table filled on the way; both are the best on
the validation rows out of the same values. What is averaged at a pass are the draws of the half
before it.

First row of the figure: the paper's test mean square error (regression) or log-likelihood. It
hardly sees the posterior, only that its mode was found. The second row is how far posterior means
are, in posterior standard deviations, from those of the exact posterior, in closed form or of the
estimator's default. The third is the paper's figure 3: mean square distance of the estimated
gradient from that of all rows, at the positions of the chain. Bands go from the smallest to the
largest of the folds, less what folds differ by under the exact posterior.
"""

import numpy as np
from _papers import (
    Parser,
    figure,
    fit,
    make_frame,
    needed,
    run_chains,
    save_figure,
    save_table,
    some,
    standardised,
)
from scipy import stats
from scipy.special import log_expit

from skbayes_sg.engine.scores import scores_of_rows
from skbayes_sg.gradients import SAGA, Minibatch
from skbayes_sg.models import LinearKnownNoise, Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Polynomial, TwoPhase
from skbayes_sg.subsampling import Uniform

ROWS, PASSES, PER_PASS, CHAINS, FOLDS = 10, 10, 20, 3, 5
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0)  # times 1/λ, λ the largest curvature at the mode


class Classification:
    """Logistic regression; y is 0 or 1."""

    model, title, sign = Logistic(), "test log-likelihood", 1.0

    @staticmethod
    def score(draws, X, y):
        """Mean log density of the rows under the mean prediction of draws."""
        log_p = log_expit(np.where(y == 1, 1.0, -1.0)[:, None] * (X @ draws.T))
        return float(np.log(np.maximum(np.exp(log_p).mean(axis=1), 1e-300)).mean())

    @staticmethod
    def exact(X, y):
        """Mean, standard deviation and some draws."""
        posterior = fit(X, y, fit_intercept=False, n_draws=1000).posterior_
        return posterior.mean(), posterior.std(), posterior.sampled.reshape(-1, X.shape[1])[::10]


class Regression:
    """Linear regression with noise of standard deviation 1."""

    model, title, sign = LinearKnownNoise(), "test mean square error", -1.0

    @staticmethod
    def score(draws, X, y):
        """Mean square error of the mean prediction of draws."""
        return float(((X @ draws.mean(axis=0) - y) ** 2).mean())

    @staticmethod
    def exact(X, y):
        """Mean, standard deviation and the mean as the only draw."""
        covariance = np.linalg.inv(X.T @ X + np.eye(X.shape[1]))
        mean = covariance @ (X.T @ y)
        return mean, np.sqrt(np.diag(covariance)), mean[None]


def concrete():
    data = needed("concrete.npz")
    return Regression, standardised(data["X"]), stats.zscore(data["y"])


def parkinsons():
    data = needed("parkinsons.npz")["data"].astype(float)
    X = standardised(np.delete(data, [0, 4, 5], axis=1), 5.0)
    return Regression, X, stats.zscore(data[:, 5])


def protein():
    data = needed("protein_casp.npz")
    return Regression, standardised(data["X"], 5.0), stats.zscore(data["y"].astype(float))


def flights():
    data = needed("flights_200k.npz")
    columns = [data[name].astype(float) for name in ("distance", "time", "delay")]
    distance, time, delay = some(50_000, *columns)
    X = np.column_stack([distance, distance**2, time, time**2, distance * time])
    return Regression, standardised(X, 5.0), stats.zscore(delay)


def pima():
    data = needed("pima.npz")
    return Classification, standardised(data["X"], 5.0), data["y"].astype(float)


def eeg():  # a few outliers of the recording are clipped
    data = needed("eeg_eye_state.npz")
    return Classification, standardised(data["X"], 5.0), data["y"].astype(float)


def covertype():
    data = needed("covtype_sample10k.npz")
    return Classification, standardised(data["X"][:, :10]), (data["y"] == 2).astype(float)


def folds(X, y, n_folds):
    """Training, validation and test rows of each fold, with a column of ones."""
    X = np.column_stack([X, np.ones(len(X))])
    order, n = np.random.default_rng(0).permutation(len(X)), len(X)
    for k in range(n_folds):
        parts = np.split(np.roll(order, k * n // FOLDS), [int(0.7 * n), int(0.8 * n)])
        yield [(X[part], y[part]) for part in parts]


def curves(frame, gradient, schedule):
    """(draws, PER_PASS a pass; estimated gradients at them, the first at the start)."""
    thin = max(1, frame.target.n_rows // (ROWS * PER_PASS))
    start, n_draws = np.zeros((CHAINS, frame.target.n_parameters)), PASSES * PER_PASS
    draws, chains = run_chains(
        frame, gradient, Uniform(), ROWS, schedule,
        n_draws=n_draws, thin=thin, start=start, keep_slopes=True,
    )  # fmt: skip
    return draws, np.stack([chain.slopes[:n_draws] for chain in chains])


def gradient_errors(frame, draws, slopes):
    """Mean square distance of estimated gradients from those of all rows, at each pass."""
    found = []
    for k in range(PER_PASS // 2, draws.shape[1], PER_PASS // 2):
        theta = draws[:, k - 1]
        exact = scores_of_rows(frame.target, theta) + theta  # the prior is N(0, 1)
        found.append(((slopes[:, k] - exact) ** 2).sum(axis=1).mean())
    return np.array(found)


def late_halves(draws):
    """(passes, draws of the half before them)."""
    for k in range(PER_PASS // 4, draws.shape[1] + 1, PER_PASS // 4):
        yield k / PER_PASS, draws[:, k // 2 : k]


def score(task, draws, rows):
    """Mean over chains."""
    return float(np.mean([task.score(chain, *rows) for chain in draws]))


def best(task, frame, gradient, schedules, validation):
    """(draws, slopes, schedule) with the step that predicts best at the end."""
    found, best_score = None, -np.inf
    for schedule in schedules:
        draws, slopes = curves(frame, gradient, schedule)
        late = draws[:, -PER_PASS * PASSES // 2 :: 2]
        value = task.sign * score(task, late, validation) if np.isfinite(late).all() else -np.inf
        if found is None or value > best_score:
            found, best_score = (draws, slopes, schedule), value
    return found


def methods(frame):
    """{name: (gradient, schedules)}."""
    one_pass, largest = frame.target.n_rows / ROWS, frame.curvature_range[1]
    sizes, switch = [a / largest for a in STEPS], int(one_pass)
    decreasing = [Polynomial(a=h * one_pass**0.55, b=one_pass, gamma=0.55) for h in sizes]
    phases = [TwoPhase(a, b, switch) for a in sizes for b in sizes if b <= a]
    return {"SGLD": (Minibatch(), decreasing), "SAGA-LD": (SAGA(table="online"), phases)}


def one_fold(task, train, validation, test):
    """{method: (passes, scores, errors of means in sd, errors of gradients)}, exact score."""
    frame = make_frame(*train, task.model, Normal())
    mean, sd, some_draws = task.exact(*train)
    found = {}
    for name, (gradient, schedules) in methods(frame).items():
        draws, slopes, _ = best(task, frame, gradient, schedules, validation)
        passes, halves = zip(*late_halves(draws), strict=True)
        scores = [score(task, half, test) for half in halves]
        off = [np.sqrt((((half.mean(axis=1) - mean) / sd) ** 2).mean()) for half in halves]
        errors = gradient_errors(frame, draws, slopes)
        found[name] = np.array(passes), np.array(scores), np.array(off), errors
    return found, task.score(some_draws, *test)


def compare(problem, n_rows, n_folds):
    """(task, {method: arrays over folds}, exact scores of the folds)."""
    task, X, y = problem()
    made = [one_fold(task, *rows) for rows in folds(*some(n_rows, X, y), n_folds)]
    found = {}
    for name in ("SGLD", "SAGA-LD"):
        passes, *rest = zip(*(one[name] for one, _ in made), strict=True)
        found[name] = passes[0], *map(np.array, rest)
    return task, found, np.array([exact for _, exact in made])


def passes_to(passes, off, bound):
    """First pass from which on a curve stays below a bound; the last of the folds."""
    late = np.flatnonzero(off.max(axis=0) > bound)
    k = 0 if len(late) == 0 else late[-1] + 1
    return float(passes[k]) if k < len(passes) else np.inf


def lines(name, task, found, exact):
    """Rows of the table."""
    rows = []
    for method, (passes, scores, off, errors) in found.items():
        row = {"data": name, "method": method, "measure": task.title}
        row |= {"after a pass": float(scores[:, passes == 1.0].mean())}
        row |= {f"after {PASSES}": float(scores[:, -1].mean()), "exact": float(exact.mean())}
        row |= {"sd over folds": float((scores[:, -1] - exact).std())}
        row |= {"means off by (sd)": float(off[:, -1].mean())}
        inside = passes_to(passes, off, 1.0)
        row |= {"within 1 sd from pass": inside if np.isfinite(inside) else "-"}
        row |= {"gradient error, first pass": float(errors[:, 0].mean())}
        rows.append(row | {"gradient error, last": float(errors[:, -1].mean())})
    return rows


def in_words(rows):
    for row in rows:
        level, late = row["after a pass"], row[f"after {PASSES}"]
        print(f"{row['data']}, {row['method']:8} {row['measure']} {level:.4f} after a pass,")
        print(f"    {late:.4f} after {PASSES} (exact {row['exact']:.4f}), means off by", end=" ")
        off, inside = row["means off by (sd)"], row["within 1 sd from pass"]
        print(f"{off:.2f} sd, within 1 sd from pass {inside}")
    off, errors = (
        rows[0][key] / rows[1][key] for key in ("means off by (sd)", "gradient error, last")
    )
    print(
        f"    SGLD's means are {off:.1f} times as far off as SAGA-LD's, and the mean square error"
    )
    print(f"    of its gradients is {errors:.3g} times as large at the end.", flush=True)


def draw(results, folder):
    made, axes = figure(3, len(results), width=2.6, height=2.3)
    for column, (name, (task, found, exact)) in zip(axes.T, results.items(), strict=True):
        for method, (passes, scores, off, errors) in found.items():
            times = passes, passes, np.arange(1, errors.shape[1] + 1) / 2
            level = scores - exact[:, None] + exact.mean()  # folds differ by more than methods
            for axis, x, values in zip(column, times, (level, off, errors), strict=True):
                axis.plot(x, values.mean(axis=0), label=method, linewidth=1)
                axis.fill_between(x, values.min(axis=0), values.max(axis=0), alpha=0.2)
        column[0].axhline(exact.mean(), color="k", linestyle=":", label="exact")
        column[0].set_title(f"{name}\n{task.title}", fontsize=9)
        column[1].set_yscale("log")
        column[2].set(yscale="log", xlabel="passes")
    axes[1, 0].set_ylabel("rms error of means, in sd")
    axes[2, 0].set_ylabel("mean square error\nof the gradient")
    axes[0, 0].legend(fontsize=8)
    save_figure(folder, "dubey_2016_saga", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, quick=300, help="at most")
    parser.add_argument("--folds", type=int, default=FOLDS, quick=1, help="at most five")
    options, results, table = parser.parse_args(), {}, []
    problems = (concrete, parkinsons, protein, flights, pima, eeg, covertype)
    for problem in problems[: 1 if options.quick else None]:
        result = compare(problem, options.rows, options.folds)
        results[problem.__name__] = result
        rows = lines(problem.__name__, *result)
        in_words(rows)
        table += rows
    save_table(options.output, "dubey_2016_saga", table)
    if options.output:
        draw(results, options.output)


if __name__ == "__main__":
    main()
