"""Time and accuracy beside `LogisticRegression` and a Laplace approximation, in one process.

    python examples/benchmarks/speed.py [--repeats 5] [--only NAME] [--no-reference] [--quick]

Times are medians over interleaved repeats, kernels compiled. The reference posterior of each
problem is a run of chains, not of the default's independent draws: Hamiltonian Monte Carlo where
the rows are few, kinetic Langevin dynamics otherwise, with twenty times the draws; it says how far
means (in posterior standard deviations) and standard deviations of the fit and of the Laplace
approximation are off, and how far from the mode `LogisticRegression` stops.
"""

import time
import warnings

import numpy as np
from _problems import LARGE, breast_cancer, pima
from _tables import Parser, save, show
from scipy import linalg
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.convergence import ess_bulk


def laplace(X, y, prior_scale=1.0, intercept_scale=10.0, tolerance=1e-2):
    """Mode by Newton's method, started at `LogisticRegression`'s answer, and inverse Hessian."""
    start = LogisticRegression(C=prior_scale**2, solver="newton-cholesky").fit(X, y)
    theta = np.append(start.coef_[0], start.intercept_)
    precision = np.append(np.full(X.shape[1], prior_scale**-2.0), intercept_scale**-2.0)
    A = np.column_stack([X, np.ones(len(X))])
    target = (y == start.classes_[1]).astype(float)
    while True:
        p = expit(A @ theta)
        root = np.sqrt(p * (1.0 - p))[:, None] * A
        H = root.T @ root + np.diag(precision)
        step = linalg.solve(H, A.T @ (p - target) + precision * theta, assume_a="pos")
        theta = theta - step
        if np.sqrt(step @ H @ step) < tolerance:
            return theta, np.sqrt(np.diag(linalg.inv(H)))


def bayes(X, y, prior, seed=0, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = BayesianLogisticRegression(prior=prior, random_state=seed, n_jobs=-1, **options)
        fit.fit(X, y)
    fit.warned_ = [w.category.__name__ for w in caught]
    return fit


def reference(X, y, prior):
    """(mean, sd, smallest ESS) of a long run."""
    few_rows = len(X) <= 20_000
    options = {"sampler": "hmc" if few_rows else "baoab", "n_draws": 20_000}
    fit = bayes(X, y, prior, seed=987654, **options)
    return fit.posterior_.mean(), fit.posterior_.std(), float(ess_bulk(fit.posterior_.flat).min())


def errors(mean, sd, found_mean, found_sd):
    ratio = found_sd / sd
    return float(np.abs((found_mean - mean) / sd).max()), float(ratio.min()), float(ratio.max())


def timed(work, *args, **options):
    began = time.perf_counter()
    result = work(*args, **options)
    return time.perf_counter() - began, result


def lbfgs(X, y):
    return LogisticRegression(max_iter=1000).fit(X, y)


def newton_cholesky(X, y):
    return LogisticRegression(solver="newton-cholesky").fit(X, y)


def compare(problem, repeats, with_reference):
    X, y, prior = problem()
    bayes(X, y, prior)  # compiles what is not compiled yet
    others = {"lbfgs": lbfgs, "newton-cholesky": newton_cholesky, "laplace": laplace}
    seconds, fits = {name: [] for name in ("bayes", *others)}, []
    for seed in range(repeats):
        found = {"bayes": timed(bayes, X, y, prior, seed)}
        for name, work in others.items():
            found[name] = timed(work, X, y)
        for name, (took, _) in found.items():
            seconds[name].append(took)
        fits.append(found["bayes"][1])
    point = np.append(found["lbfgs"][1].coef_[0], found["lbfgs"][1].intercept_)
    laplace_mean, laplace_sd = found["laplace"][1]
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    row = {"problem": problem.__name__, "n": len(X), "d": X.shape[1], **median}
    row |= {f"bayes/{name}": median["bayes"] / median[name] for name in others}
    row |= {"min ESS": min(fit.diagnostics_["min_ess"] for fit in fits)}
    row |= {"rows": fits[0].batch_size_, "gradient": fits[0].gradient_}
    row |= {"warnings": sum(len(fit.warned_) for fit in fits)}
    row |= {"lbfgs to mode": float(np.abs((point - laplace_mean) / laplace_sd).max())}
    if with_reference:
        mean, sd, size = reference(X, y, prior)
        found = [errors(mean, sd, f.posterior_.mean(), f.posterior_.std()) for f in fits]
        worst = np.array(found)
        row |= {"ref ESS": size, "error": worst[:, 0].max(), "sd low": worst[:, 1].min()}
        row |= {"sd high": worst[:, 2].max()}
        off = errors(mean, sd, laplace_mean, laplace_sd)
        row |= {"Laplace error": off[0], "Laplace sd low": off[1]}
    return row


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, quick=1)
    parser.add_argument("--only")
    parser.add_argument("--no-reference", action="store_true")
    args = parser.parse_args()
    rows = []
    for problem in [breast_cancer] if args.quick else [pima, *LARGE]:
        if args.only in (None, problem.__name__) and problem() is not None:
            rows.append(compare(problem, args.repeats, not args.no_reference))
            show([rows[-1]])
    save(args.output, "speed", rows)


if __name__ == "__main__":
    main()
