"""Divide and conquer: what workers bring, what combining costs, and how near it comes.

    python examples/benchmarks/subposteriors.py [--repeats 3] [--quick]

(1) Throughput: 4 shards of 400,000 made rows by one worker, two threads, two processes of joblib's,
and two processes of a Dask cluster; 2000 draws a chain, and 20,000. (2) Seconds of one thread to
combine 100 shards of 1000 draws of 55 parameters. (3) 286,048 rows of covertype (classes 2 and 4):
means and standard deviations of consensus beside those of all rows, and what `combine_check_` has
predicted. The load of the machine is printed: ratios mean something where it is below 0.3 before
the script starts.
"""

import os
import time
import warnings
from functools import partial

import joblib
import numpy as np
from _problems import covertype_2_4
from _tables import Parser, save, show, some

from skbayes_sg import BayesianLogisticRegression, combine

PRODUCTS = ("gaussian_product", "kernel_product", "semiparametric_product", "weierstrass_product")
DRAWS = {False: (2000, 20_000), True: (100,)}


def made(n=400_000, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ np.linspace(-1.0, 1.0, d) + rng.logistic(size=n) > 0).astype(int)


def quietly(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


def timed(work, *args):
    """(seconds of the clock, result)"""
    began = time.perf_counter()
    result = work(*args)
    return time.perf_counter() - began, result


def throughput(repeats, n_rows, draws):
    """Median seconds of a fit with 4 shards, however its workers are made; few draws, and many."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("without Dask, and so without throughput: pip install 'skbayes_sg[dask]'")
        return []
    X, y = made(n_rows)
    ways = {"1 worker": (None, 1), "2 threads": ("threading", 2), "2 processes": ("loky", 2)}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        return [
            row
            for n_draws in draws
            for row in compared(ways | {"2 of Dask's": ("dask", 2)}, n_draws, repeats, X, y)
        ]


def compared(ways, n_draws, repeats, X, y):
    rows, draws = [], {}
    for name, (backend, n_jobs) in ways.items():
        model = BayesianLogisticRegression(
            n_subposteriors=4, n_draws=n_draws, n_jobs=n_jobs, random_state=0
        )
        with joblib.parallel_config(backend) if backend else warnings.catch_warnings():
            quietly(model, X, y)  # compiles, and starts workers
            seconds = [timed(quietly, model, X, y)[0] for _ in range(repeats)]
        draws[name] = model.posterior_.flat
        rows.append({"draws": n_draws, "workers": name, "seconds": float(np.median(seconds))})
    for row in rows:
        row["throughput"] = rows[0]["seconds"] / row["seconds"]
        row["same draws"] = bool((draws[row["workers"]] == draws["1 worker"]).all())
    return rows


def combining(S=100, T=1000, d=55):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, d)) / 8 + np.eye(d)
    draws = [(rng.standard_normal(d) + rng.standard_normal((T, d))) @ A for _ in range(S)]
    rows = []
    for name in (*PRODUCTS, "consensus_average", "agreement"):
        function = getattr(combine, name)
        function([x[:100] for x in draws[:2]])  # compiles
        began = time.process_time()
        function(draws)
        rows.append({"function": name, "seconds": time.process_time() - began})
    return rows


def real_rows(n_rows, n_draws):
    problem = covertype_2_4()
    if problem is None:
        print("without covertype: covtype_2v4_286k.npz is not at hand")
        return []
    X, y, prior = problem
    X, y = some(n_rows, X, y)
    options = {"prior": prior, "random_state": 0, "n_jobs": -1}
    whole = quietly(BayesianLogisticRegression(n_draws=2 * n_draws, **options), X, y).posterior_
    rows = []
    for S in (2, 4):
        shards = BayesianLogisticRegression(n_subposteriors=S, n_draws=n_draws, **options)
        fit = quietly(shards, X, y)
        off = np.abs((fit.posterior_.mean() - whole.mean()) / whole.std())
        ratio, check = fit.posterior_.std() / whole.std(), fit.combine_check_
        row = {"rows": len(X), "shards": S, "error": off.max(), "predicted": check["mean_shift"]}
        row |= {"+-": check["mean_shift_error"], "sd low": ratio.min(), "sd high": ratio.max()}
        rows.append(row)
    return rows


def main():
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3, quick=1)
    parser.add_argument("--rows", type=int, default=400_000, quick=3000)
    args = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{os.cpu_count()} processors; load before the start: {load:.2f}")
    parts = {
        "combining": partial(combining, *((4, 200, 5) if args.quick else ())),
        "real_rows": partial(real_rows, *((20_000, 100) if args.quick else (1_000_000, 2000))),
        "throughput": partial(throughput, args.repeats, args.rows, DRAWS[args.quick]),
    }
    for name, part in parts.items():
        rows = part()
        if rows:
            show(rows)
            save(args.output, f"subposteriors_{name}", rows)


if __name__ == "__main__":
    main()
