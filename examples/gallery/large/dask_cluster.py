"""
Rows on a Dask cluster
======================

The rows are partitions of a Dask array, on the workers of a cluster. Must they be brought together?
No: `fit` takes the array as it is, every partition is sampled by the worker that holds it, and only
draws travel.

The cluster of this example lives in this process; a client of a real one is used in the same way.
"""

import sys

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from skbayes_sg import BayesianPoissonRegressor

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n, parts = (2000, 2) if QUICK else (40_000, 4)
X = rng.normal(size=(n, 5))
truth = np.array([0.3, -0.2, 0.1, 0.0, 0.0])
y = rng.poisson(np.exp(0.5 + X @ truth)).astype(float)

# %%
options = {"n_draws": 300, "random_state": 0}
with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None):
    rows = da.from_array(X, chunks=(n // parts, 5)), da.from_array(y, chunks=n // parts)
    model = BayesianPoissonRegressor(**options).fit(*rows)
local = BayesianPoissonRegressor(**options).fit(X, y)
print(f"{len(model.subposteriors_)} partitions")

# %%
# Each partition knows less than all of them together: its intervals are wider by about the root of
# their number.
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
places = np.arange(5)
for k, part in enumerate(model.subposteriors_):
    low, high = part.interval(0.9, "coef")
    label = "one partition" if k == 0 else None
    axis.vlines(places - 0.2 + 0.1 * k, low.ravel(), high.ravel(), color="0.7", label=label)
low, high = model.posterior_.interval(0.9, "coef")
axis.vlines(places + 0.3, low.ravel(), high.ravel(), color="C0", linewidth=3, label="combined")
axis.plot(places + 0.3, local.coef_.ravel(), "x", color="C1", label="one fit of all rows")
axis.plot(places + 0.3, truth, "_", color="black", markersize=12, label="truth")
axis.set(xticks=places, xlabel="column", ylabel="coefficient, 90 % interval")
axis.legend()
off = np.abs(model.coef_ - local.coef_) / local.coef_std_
print(f"means are off by at most {off.max():.2f} posterior sd")

# %%
# **Takeaway.** A Dask array goes into `fit` as a NumPy array does; persist it if its partitions are
# costly to compute, because they are read twice.
