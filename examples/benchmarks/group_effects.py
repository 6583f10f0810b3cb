"""Group effects: seconds, and seconds per effective draw, beside peers that are installed.

    python examples/benchmarks/group_effects.py [--only CASE ...] [--slow-peers] [--quick]

Made tables with a column correlated with the groups, uneven levels and a true scale of 0.7: linear
regression with one column of 10 000 levels and a million rows, logistic and Poisson regression with
5000 levels, two crossed columns, and logistic regression with a million rows and 50 000 levels,
whose predicted time is told before it runs. "ESS/s" is the smallest effective sample size of
coefficients and scales, and that of some effects, by the seconds of the whole fit. Peers
(statsmodels' MixedLM, gpboost) are fitted where they are installed; so is NUTS of NumPyro, with
effects in units of their scale, in the small cases, whose rows it finishes in a minute, and with
``--slow-peers`` in those with one column of levels, on 100 000 rows. Where other work shares the
machine, compare CPU seconds.
"""

import time
import warnings

import numpy as np
from _tables import Parser, save, show

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.diagnostics.convergence import ess_mean

CASES = {  # estimator, rows, columns, levels, draws of each of two chains
    "linear": (BayesianLinearRegression, 1_000_000, 5, (10_000,), 2000),
    "logistic": (BayesianLogisticRegression, 100_000, 5, (5000,), 1000),
    "poisson": (BayesianPoissonRegressor, 100_000, 5, (5000,), 750),
    "small linear": (BayesianLinearRegression, 3000, 5, (150,), 1000),
    "small logistic": (BayesianLogisticRegression, 3000, 5, (150,), 1000),
    "crossed linear": (BayesianLinearRegression, 100_000, 3, (1000, 2000), 1000),
    "crossed logistic": (BayesianLogisticRegression, 100_000, 3, (1000, 2000), 750),
    "large logistic": (BayesianLogisticRegression, 1_000_000, 5, (50_000,), 200),
}
NUTS_DRAWS = 300  # and as many to warm up
MOST_ROWS_OF_PEERS = 100_000
DEFAULT = [name for name in CASES if name != "large logistic"]


def made(kind, n, d, sizes, seed=0):
    """Rows, whose last columns are groups, and responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = []
    for L in sizes:
        share = rng.gamma(1.0, size=L)
        codes.append(rng.choice(L, n, p=share / share.sum()))
    effects = [0.7 * rng.normal(size=L) for L in sizes]
    X[:, -1] = 0.7 * rng.normal(size=sizes[0])[codes[0]] + 0.71 * X[:, -1]
    eta = 0.3 * X.sum(axis=1) - 0.5 + sum(u[c] for u, c in zip(effects, codes, strict=True))
    if kind is BayesianLogisticRegression:
        y = (rng.logistic(size=n) < eta).astype(int)
    elif kind is BayesianPoissonRegressor:
        y = rng.poisson(np.exp(eta)).astype(float)
    else:
        y = eta + 0.8 * rng.normal(size=n)
    return np.column_stack([X, *codes]), y


def ours(name, quick):
    kind, n, d, sizes, n_draws = CASES[name]
    if quick:
        n, sizes, n_draws = max(n // 500, 200), tuple(max(5, L // 500) for L in sizes), 50
    X, y = made(kind, n, d, sizes)
    groups = list(range(d, X.shape[1]))
    model = kind(group_effects=groups, n_draws=n_draws, n_chains=2, n_jobs=2, random_state=0)
    began, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    for warning in told:
        print(f"{name}: {warning.message}")
    ess = ess_mean(model.posterior_.flat)
    stds = np.atleast_1d(model.posterior_.std("group_std"))
    pairs = zip(model.group_std_, stds, strict=True)
    tau = ", ".join(f"{mean:.3f} +- {std:.3f}" for mean, std in pairs)
    row = {"case": name, "rows": n, "levels": sum(sizes), "s": seconds, "CPU s": busy, "tau": tau}
    row["ESS/s"] = ess.min() / seconds
    row["ESS/s effects"] = model.diagnostics_.get("effects_min_ess", 2 * n_draws) / seconds
    return row, X, y


def peers(name, X, y, d):
    """Seconds and the scale that peers find, those that are installed."""
    rows = []
    try:
        import gpboost as gpb
    except ImportError:
        print(f"{name}: without gpboost, which cannot be imported")
    else:
        likelihood = {"linear": "gaussian", "logistic": "bernoulli_logit", "poisson": "poisson"}
        model = gpb.GPModel(group_data=X[:, d:], likelihood=likelihood[name.split()[-1]])
        began = time.perf_counter()
        model.fit(y=y, X=np.column_stack([np.ones(len(y)), X[:, :d]]))
        found = np.sqrt(np.asarray(model.get_cov_pars()).ravel())
        rows.append({"case": f"{name}: gpboost (a point)", "s": time.perf_counter() - began})
        rows[-1]["tau"] = ", ".join(f"{value:.3f}" for value in found)
    if name not in ("linear", "small linear"):
        return rows
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM
    except ImportError:
        print(f"{name}: without statsmodels, which cannot be imported")
        return rows
    n = min(len(y), MOST_ROWS_OF_PEERS)
    began = time.perf_counter()
    found = MixedLM(y[:n], np.column_stack([np.ones(n), X[:n, :d]]), groups=X[:n, d]).fit()
    seconds = time.perf_counter() - began
    rows.append({"case": f"{name}: MixedLM, {n} rows (a point)", "s": seconds})
    rows[-1]["tau"] = f"{float(np.sqrt(np.ravel(found.cov_re)[0])):.3f}"
    return rows


def nuts(name, X, y, d):
    """The row of NumPyro's NUTS, where it is installed."""
    try:
        import jax
        import numpyro
        from numpyro import distributions as dist
        from numpyro.infer import MCMC, NUTS
    except ImportError:
        print(f"{name}: without NumPyro, which cannot be imported")
        return []
    jax.config.update("jax_enable_x64", True)
    X, y = X[:MOST_ROWS_OF_PEERS], y[:MOST_ROWS_OF_PEERS]
    design, levels = np.column_stack([np.ones(len(y)), X[:, :d]]), X[:, d].astype(int)

    def model():
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        beta = numpyro.sample("beta", dist.Normal(0.0, 2.5).expand([d + 1]))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([levels.max() + 1]))
        eta = design @ beta + tau * z[levels]
        if "logistic" in name:
            numpyro.sample("y", dist.BernoulliLogits(eta), obs=y)
        elif "poisson" in name:
            numpyro.sample("y", dist.Poisson(jax.numpy.exp(eta)), obs=y)
        else:
            numpyro.sample("y", dist.Normal(eta, numpyro.sample("s", dist.HalfNormal(1.0))), obs=y)

    began = time.perf_counter()
    chain = MCMC(NUTS(model), num_warmup=NUTS_DRAWS, num_samples=NUTS_DRAWS, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    found = chain.get_samples(group_by_chain=True)
    seconds, tau = time.perf_counter() - began, np.asarray(found["tau"])
    draws = np.concatenate([tau[..., None], np.asarray(found["beta"])], axis=2)
    row = {"case": f"{name}: NUTS, {len(y)} rows", "s": seconds}
    row["tau"] = f"{tau.mean():.3f} +- {tau.std():.3f}"
    return [row | {"ESS/s": ess_mean(draws).min() / seconds}]


def main():
    parser = Parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=DEFAULT)
    parser.add_argument("--slow-peers", action="store_true", help="NUTS on 100 000 rows as well")
    args = parser.parse_args()
    rows = []
    for name in args.only:
        row, X, y = ours(name, args.quick)
        d, one_column = CASES[name][2], len(CASES[name][3]) == 1
        rows += [row, *peers(name, X, y, d)]
        if name.startswith("small") or (args.slow_peers and one_column):
            rows += nuts(name, X, y, d)
    show([dict.fromkeys(rows[0], "") | row for row in rows])
    save(args.output, "group_effects", rows)


if __name__ == "__main__":
    main()
