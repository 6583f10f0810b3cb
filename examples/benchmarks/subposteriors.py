"""Divide and conquer: what workers bring, what combining costs, and how near it comes.

(1) Throughput: 4 shards of 400,000 made rows by one worker, two threads, two processes of joblib's,
and two processes of a Dask cluster; 2000 draws a chain, and 20,000. (2) Seconds of one thread to
combine 100 shards of 1000 draws of 55 parameters. (3) 286,048 rows of covertype (classes 2 and 4):
means and standard deviations of consensus beside those of all rows, and what `combine_check_` has
predicted. The load of the machine is printed: ratios mean something where it is below 0.3 before
the script starts.
"""

import argparse
import os
import time
import warnings

import joblib
import numpy as np
from _problems import covertype_2_4
from _tables import save, show

from skbayes_sg import BayesianLogisticRegression, combine


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


def throughput(repeats):
    """Median seconds of a fit with 4 shards, however its workers are made; few draws, and many."""
    from distributed import Client, LocalCluster

    X, y = made()
    ways = {"1 worker": (None, 1), "2 threads": ("threading", 2), "2 processes": ("loky", 2)}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        return [
            row
            for n_draws in (2000, 20_000)
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
    for function in (
        combine.consensus_average, combine.gaussian_product, combine.kernel_product,
        combine.semiparametric_product, combine.weierstrass_product, combine.agreement,
    ):  # fmt: skip
        function([x[:100] for x in draws[:2]])  # compiles
        began = time.process_time()
        function(draws)
        rows.append({"function": function.__name__, "seconds": time.process_time() - began})
    return rows


def real_rows():
    problem = covertype_2_4()
    if problem is None:
        return []
    X, y, prior = problem
    options = {"prior": prior, "random_state": 0, "n_jobs": -1}
    whole = quietly(BayesianLogisticRegression(n_draws=4000, **options), X, y).posterior_
    rows = []
    for S in (2, 4):
        fit = quietly(BayesianLogisticRegression(n_subposteriors=S, n_draws=2000, **options), X, y)
        off = np.abs((fit.posterior_.mean() - whole.mean()) / whole.std())
        ratio, check = fit.posterior_.std() / whole.std(), fit.combine_check_
        rows.append({
            "rows": len(X), "shards": S, "error": off.max(), "predicted": check["mean_shift"],
            "+-": check["mean_shift_error"], "sd low": ratio.min(), "sd high": ratio.max(),
        })  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{os.cpu_count()} processors; load before the start: {load:.2f}")
    for name, rows in (
        ("combining", combining()), ("real_rows", real_rows()),
        ("throughput", throughput(args.repeats)),
    ):  # fmt: skip
        show(rows)
        save(f"subposteriors_{name}", rows)


if __name__ == "__main__":
    main()
