"""Linear regressions with unknown noise against quadrature: references without Monte Carlo error.

    python examples/benchmarks/linear_references.py [--draws 10000] [--only DESIGN] [--quick]

Designs of condition numbers up to 1e6, small and large, normal and flat priors, each prior of σ;
the default, and samplers with stochastic gradients that were asked for. Given σ the coefficients
are Gaussian, so that the posterior is a quadrature over log σ; this script does it by its own
code: a QR factorisation for each σ. Prints the worst errors of means and standard deviations.
"""

import time
import warnings

import numpy as np
from _tables import Parser, data_file, save, show
from scipy import linalg, stats
from sklearn.datasets import load_diabetes

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.exceptions import SamplerDivergedError
from skbayes_sg.priors import Flat, HalfCauchy, HalfNormal, HalfStudentT, InverseGamma, Normal

GATE = 0.05


# -- designs: X, y, scale of the normal prior (None: flat) ------------------------------------


def _made(X, noise, seed):
    rng = np.random.default_rng(seed)
    signal = X @ (rng.normal(size=X.shape[1]) / np.maximum(X.std(axis=0), 1e-12))
    return X, signal + noise * rng.normal(size=len(X))


def small_with_interaction():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 60), rng.normal(100.0, 15.0, 60)
    return (*_made(np.column_stack([a, b, a * b]), 5.0, 1), None)


def few_rows():
    return (*_made(np.random.default_rng(2).normal(size=(15, 4)), 1.0, 3), None)


def scales_over_six_decades():
    X = np.random.default_rng(4).normal(size=(200, 7)) * 10.0 ** np.arange(-3, 4)
    return (*_made(X, 1.0, 5), None)


def collinear(condition=1e6):
    rng = np.random.default_rng(6)
    U, _, V = linalg.svd(rng.normal(size=(500, 6)), full_matrices=False)
    X = 20.0 * (U * np.geomspace(1.0, 1.0 / condition, 6)) @ V
    return (*_made(X, 0.5, 7), None)


def collinear_with_prior():
    return (*collinear()[:2], 10.0)


def powers_of_years():
    years = np.linspace(1950.0, 2020.0, 71)
    X = np.column_stack([years, years**2])
    rng = np.random.default_rng(8)
    return X, 0.3 * (years - 1985.0) + 2.0 * rng.normal(size=71), None


def more_columns_than_rows():
    return (*_made(np.random.default_rng(9).normal(size=(40, 60)), 1.0, 10), 0.5)


def diabetes():
    return (*load_diabetes(return_X_y=True), None)


def diabetes_shrunk():
    return (*load_diabetes(return_X_y=True), 100.0)


def many_rows():
    return (*_made(np.random.default_rng(11).normal(size=(50_000, 10)), 2.0, 12), 1.0)


def _real(name, columns=slice(None)):
    z = data_file(name)
    return None if z is None else (z["X"].astype(float)[:, columns], z["y"].astype(float), None)


def concrete():
    return _real("concrete.npz")


def california():
    return _real("cal_housing.npz")


def protein():
    return _real("protein_casp.npz")


FEW = [few_rows, small_with_interaction, diabetes_shrunk]
AWKWARD = [scales_over_six_decades, collinear, collinear_with_prior, powers_of_years]
LARGER = [more_columns_than_rows, diabetes, many_rows, concrete, california, protein]
DESIGNS = [*FEW, *AWKWARD, *LARGER]

# -- priors of σ, in units of the response -----------------------------------------------------


def log_inverse_gamma(v):
    return stats.invgamma(2.0, scale=0.5).logpdf(v**2) + np.log(v)


NOISE = {
    "half_student_t": (HalfStudentT(df=3, scale=1.0), lambda v: stats.t(3).logpdf(v)),
    "half_cauchy": (HalfCauchy(1.0), lambda v: stats.cauchy.logpdf(v)),
    "half_normal": (HalfNormal(1.0), lambda v: stats.norm.logpdf(v)),
    "inverse_gamma": (InverseGamma(2.0, 0.5), log_inverse_gamma),
    "flat": ("flat", lambda v: 0.0 * v),
}
SETTINGS = {
    "default": {},
    "lm + taylor": {"sampler": "leimkuhler_matthews", "gradient": "taylor"},
    "saga": {"gradient": "saga"},
}


REFUSED = dict.fromkeys(["sampler", "gradient"], "")
REFUSED |= dict.fromkeys(["rows", "s", "ESS", "error", "sd low", "sd high"], np.nan)
REFUSED |= {"verdict": "refused", "warned": ""}


def reference(X, y, scale, log_prior):
    """Means and sds of (coefficients, intercept, σ), by quadrature over log σ."""
    A = np.column_stack([X, np.ones(len(X))])
    size = linalg.norm(A, axis=0)
    Q, R = linalg.qr(A / size, mode="economic")
    c, rest = Q.T @ y, y - Q @ (Q.T @ y)
    root = np.zeros(A.shape[1]) if scale is None else np.r_[np.full(X.shape[1], 1 / scale), 0.0]
    N, rows = len(y), []
    centre = np.log(max(linalg.norm(rest) / np.sqrt(N), 0.05 * y.std()))
    places = centre + np.linspace(-5.0, 5.0, 4001)
    for s in np.exp(places):
        q, r = linalg.qr(np.concatenate([R / s, np.diag(root / size)]), mode="economic")
        mean = linalg.solve_triangular(r, q[: len(R)].T @ (c / s))
        misfit = (rest @ rest + ((c - R @ mean) ** 2).sum()) / s**2
        misfit += ((root / size * mean) ** 2).sum()
        inverse = linalg.solve_triangular(r, np.eye(len(r)))
        log_density = -N * np.log(s) - np.log(np.abs(np.diag(r))).sum() - 0.5 * misfit
        log_density += log_prior(s) + np.log(s)
        rows.append((log_density, mean / size, (inverse**2).sum(axis=1) / size**2, s))
    log_density, means, variances, sigma = (np.array(column) for column in zip(*rows, strict=True))
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ means
    variance = weight @ (variances + (means - mean) ** 2)
    noise = weight @ sigma
    return np.r_[mean, noise], np.sqrt(np.r_[variance, weight @ (sigma - noise) ** 2])


def compare(design, noise, draws):
    """One row for each setting."""
    X, y, scale = design()
    unit = y.std()
    y = y / unit
    scale = None if scale is None else scale / unit
    prior, log_prior = NOISE[noise]
    truth = reference(X, y, scale, log_prior)
    options = {"prior": Flat() if scale is None else Normal(scale=scale), "noise_prior": prior}
    options |= {"n_draws": draws, "random_state": 0}
    A = np.column_stack([X, np.ones(len(X))])
    condition = np.linalg.cond(A / linalg.norm(A, axis=0))
    for setting, own in SETTINGS.items():
        row = {"design": design.__name__, "noise prior": noise, "setting": setting}
        row |= {"n": X.shape[0], "d": X.shape[1], "condition": condition}
        yield row | measured(BayesianLinearRegression(**options, **own), X, y, *truth)


def measured(model, X, y, mean, sd):
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except SamplerDivergedError:
            return REFUSED
    seconds = time.perf_counter() - began
    row = {"sampler": model.sampler_, "gradient": model.gradient_, "rows": model.batch_size_}
    row |= {"s": seconds, "ESS": model.diagnostics_["min_ess"]}
    flat = model.posterior_.flat
    error = np.abs(flat.mean((0, 1)) - mean) / sd
    ratio = flat.std((0, 1)) / sd
    good = error.max() <= GATE and abs(ratio - 1.0).max() <= GATE
    row |= {"error": error.max(), "sd low": ratio.min(), "sd high": ratio.max()}
    row |= {"verdict": "ok" if good else "warned" if caught else "MISS"}
    return row | {"warned": " ".join(sorted({w.category.__name__ for w in caught}))}


def main():
    parser = Parser(__doc__)
    parser.add_argument("--draws", type=int, default=10_000, quick=250)
    parser.add_argument("--only")
    args = parser.parse_args()
    rows = []
    for k, design in enumerate(FEW if args.quick else DESIGNS):
        if (args.only and args.only != design.__name__) or design() is None:
            continue
        for noise in list(NOISE)[k % 5 :: 5] if args.quick else NOISE:
            rows += compare(design, noise, args.draws)
            print(".", end="", flush=True)
    print()
    show(rows)
    save(args.output, "linear_references", rows)


if __name__ == "__main__":
    main()
