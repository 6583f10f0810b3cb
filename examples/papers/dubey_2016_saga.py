"""SAGA-LD against SGLD (Dubey et al. 2016): figure 2, and the error of the posterior itself.

    python examples/papers/dubey_2016_saga.py [--quick]

Bayesian linear regression with unit noise on the regressions of the paper that are at hand
(concrete, parkinsons, protein), y standardised, and logistic regression on its classifications
(pima, eeg) and on the quantitative columns of covertype (10,000 rows, class 2 or not): ten rows a
step, no preconditioner, prior N(0, 1), start at zero, 70 % training, 10 % validation, 20 % test
rows. As in the paper, SGLD has a decreasing step a (b + t)^-γ (here b one pass, γ = 0.55), SAGA-LD
a constant one and its table filled on the way; both are the best on the validation rows out of the
same values. What is averaged at a pass are the draws of the half before it.

The paper shows the test log-likelihood. It hardly sees the posterior, only that its mode was found;
the second row of the figure is how far posterior means are, in posterior standard deviations, from
those of the exact posterior: in closed form, or a long run of Hamiltonian Monte Carlo.
"""

import numpy as np
from _papers import Parser, figure, fit, needed, run, save_figure, some, standardised
from scipy import stats
from scipy.special import log_expit

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.dynamics import SGLD
from skbayes_sg.engine.target import Target
from skbayes_sg.geometry.frame import build_frame
from skbayes_sg.geometry.mode import find_centre
from skbayes_sg.gradients import SAGA, Minibatch
from skbayes_sg.models import LinearKnownNoise, Logistic
from skbayes_sg.priors import Normal
from skbayes_sg.schedules import Constant, Polynomial
from skbayes_sg.subsampling import Uniform

ROWS, PASSES, PER_PASS, CHAINS = 10, 10, 20, 3
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0)  # times 1/λ, λ the largest curvature at the mode


class Classification:
    """Logistic regression; y is 0 or 1."""

    model = Logistic()

    @staticmethod
    def log_density(eta, y):
        return log_expit(np.where(y == 1, 1.0, -1.0)[:, None] * eta)

    @staticmethod
    def exact(X, y):
        model = fit(X, y, sampler="hmc", fit_intercept=False, n_draws=1000)
        return model.posterior_["coef"].reshape(1, -1, X.shape[1])


class Regression:
    """Linear regression with noise of standard deviation 1."""

    model = LinearKnownNoise()

    @staticmethod
    def log_density(eta, y):
        return stats.norm.logpdf(y[:, None], eta)

    @staticmethod
    def exact(X, y):
        model = BayesianLinearRegression(
            prior=Normal(), noise=1.0, fit_intercept=False, random_state=0
        )
        return model.fit(X, y).posterior_["coef"].reshape(1, -1, X.shape[1])


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


def pima():
    data = needed("pima.npz")
    return Classification, standardised(data["X"], 5.0), data["y"].astype(float)


def eeg():  # a few outliers of the recording are clipped
    data = needed("eeg_eye_state.npz")
    return Classification, standardised(data["X"], 5.0), data["y"].astype(float)


def covertype():
    data = needed("covtype_sample10k.npz")
    return Classification, standardised(data["X"][:, :10]), (data["y"] == 2).astype(float)


def split(X, y):
    """Training, validation and test rows, with a column of ones."""
    X = np.column_stack([X, np.ones(len(X))])
    order, n = np.random.default_rng(0).permutation(len(X)), len(X)
    parts = np.split(order, [int(0.7 * n), int(0.8 * n)])
    return [(X[part], y[part]) for part in parts]


def make_frame(task, X, y):
    """The posterior, in coordinates of its own parameters."""
    prior = Normal()._table((X.shape[1],))
    target = Target(X, y, np.ones(len(y)), task.model, prior, intercept=False)
    return build_frame(
        target, find_centre(target, dense=True, rng=np.random.default_rng(0)), "none"
    )


def curves(frame, gradient, schedule):
    """Draws of all chains, PER_PASS a pass."""
    N = frame.target.n_rows
    thin = max(1, N // (ROWS * PER_PASS))
    start = np.zeros((CHAINS, frame.target.n_parameters))
    pieces, n_draws = (SGLD(), gradient, Uniform()), PASSES * PER_PASS
    return run(frame, *pieces, ROWS, schedule, n_draws=n_draws, thin=thin, start=start)


def late_halves(draws):
    """(passes, draws of the half before them)."""
    for k in range(PER_PASS // 4, draws.shape[1] + 1, PER_PASS // 4):
        yield k / PER_PASS, draws[:, k // 2 : k]


def log_likelihood(task, draws, X, y):
    """Mean log predictive density of the average prediction, over chains."""
    found = []
    for chain in draws:
        density = np.exp(task.log_density(X @ chain.T, y))
        found.append(np.log(np.maximum(density.mean(axis=1), 1e-300)).mean())
    return float(np.mean(found))


def best(task, frame, gradient, schedules, validation):
    """The draws with the step that predicts best at the end."""
    tried = [curves(frame, gradient, schedule) for schedule in schedules]
    finals = [draws[:, -PER_PASS * PASSES // 2 :: 2] for draws in tried]
    scores = [
        log_likelihood(task, d, *validation) if np.isfinite(d).all() else -np.inf for d in finals
    ]
    return tried[int(np.argmax(scores))], STEPS[int(np.argmax(scores))]


def compare(problem, n_rows):
    task, X, y = problem()
    X, y = some(n_rows, X, y)
    train, validation, test = split(X, y)
    frame = make_frame(task, *train)
    largest = frame.curvature_range[1]
    one_pass = frame.target.n_rows / ROWS
    draws = task.exact(*train)
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    sizes = [a / largest for a in STEPS]
    decreasing = [Polynomial(a=h * one_pass**0.55, b=one_pass, gamma=0.55) for h in sizes]
    methods = {
        "SGLD": (Minibatch(), decreasing),
        "SAGA-LD": (SAGA(table="online"), [Constant(h) for h in sizes]),
    }
    found = {"exact": log_likelihood(task, draws[:, ::10], *test)}
    for name, (gradient, schedules) in methods.items():
        draws, step = best(task, frame, gradient, schedules, validation)
        curve = []
        for passes, half in late_halves(draws):
            off = np.sqrt((((half.mean(axis=1) - mean) / sd) ** 2).mean())
            curve.append((passes, log_likelihood(task, half, *test), off))
        found[name] = step, np.array(curve)
    return found


def passes_to(curve, column, bound, sign):
    """First pass from which on a curve stays beyond a bound."""
    inside = sign * curve[:, column] >= sign * bound
    late = np.flatnonzero(~inside)
    k = 0 if len(late) == 0 else late[-1] + 1
    return curve[k, 0] if k < len(curve) else np.inf


def in_words(name, found):
    level = found["exact"] - 0.005
    print(f"{name}: test log-likelihood of the exact posterior {found['exact']:.4f}")
    for method in ("SGLD", "SAGA-LD"):
        step, curve = found[method]
        near, inside = passes_to(curve, 1, level, 1), passes_to(curve, 2, 1.0, -1)
        print(f"    {method:8} step {step:g}/λ: {curve[-1, 1]:.4f} after {PASSES} passes,")
        print(f"             within 0.005 from pass {near:g};")
        print(f"             means off by {curve[-1, 2]:.2f} sd, within 1 sd from pass {inside:g}")
    gain = found["SGLD"][1][-1, 2] / found["SAGA-LD"][1][-1, 2]
    verdict = "as the paper has it" if gain > 1.0 else "not what the paper has"
    print(f"    SGLD's means are {gain:.1f} times as far off as SAGA-LD's: {verdict}.")


def draw(results, folder):
    made, axes = figure(2, len(results))
    for column, (name, found) in zip(axes.T, results.items(), strict=True):
        for method in ("SGLD", "SAGA-LD"):
            passes, density, off = found[method][1].T
            column[0].plot(passes, density, label=method)
            column[1].semilogy(passes, off, label=method)
        column[0].axhline(found["exact"], color="k", linestyle=":", label="exact")
        column[0].set(title=name, ylim=(found["exact"] - 0.06, found["exact"] + 0.01))
        column[1].set_xlabel("passes over the data")
    axes[0, 0].set_ylabel("test log-likelihood a row")
    axes[1, 0].set_ylabel("rms error of means, in sd")
    axes[0, 0].legend(fontsize=8)
    save_figure(folder, "dubey_2016_saga", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, quick=300, help="at most")
    options, results = parser.parse_args(), {}
    problems = (concrete, pima, parkinsons, protein, eeg, covertype)
    for problem in problems[: 2 if options.quick else None]:
        results[problem.__name__] = compare(problem, options.rows)
        in_words(problem.__name__, results[problem.__name__])
    if options.output:
        draw(results, options.output)


if __name__ == "__main__":
    main()
