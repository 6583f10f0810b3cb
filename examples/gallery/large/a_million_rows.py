"""
How long do a million rows take?
================================

A table with a million rows lies on disk, and need not fit into memory: `fit` reads a memory-mapped
array in blocks. How does the time of a fit grow with the rows, and how does it compare with that of
`LogisticRegression`?

The seconds below are those of the machine that has built this page, so look at the ratios.
"""

import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLogisticRegression

QUICK = "--quick" in sys.argv
sizes = [500, 2000] if QUICK else [10_000, 100_000, 1_000_000]
rng = np.random.default_rng(0)
truth = rng.normal(size=10) * 0.5


def write(folder, n):
    """A file of n rows, written in blocks."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, 10))
    y = np.empty(n, dtype=int)
    for start in range(0, n, 100_000):
        block = rng.normal(size=(min(100_000, n - start), 10))
        X[start : start + len(block)] = block
        y[start : start + len(block)] = block @ truth + rng.logistic(size=len(block)) > 1.0
    X.flush()
    return y


def seconds(model, X, y):
    began = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - began


# %%
# The first fit is not timed, because it compiles the kernels, or loads them from disk.
BayesianLogisticRegression(random_state=0).fit(rng.normal(size=(500, 10)), np.arange(500) % 2)
took = {"BayesianLogisticRegression": [], "LogisticRegression": []}
with tempfile.TemporaryDirectory() as name:
    for n in sizes:
        y = write(Path(name), n)
        X = np.load(Path(name) / "X.npy", mmap_mode="r")
        model = BayesianLogisticRegression(random_state=0)
        took["BayesianLogisticRegression"].append(seconds(model, X, y))
        took["LogisticRegression"].append(seconds(LogisticRegression(), np.array(X), y))
        least = model.diagnostics_["min_ess"]
        print(f"{n:9} rows: sampler {model.sampler_!r}, effective draws at least {least:.0f}")
        del X

# %%
figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for label, values in took.items():
    axis.loglog(sizes, values, "o-", label=label)
    print(f"{label:28}" + "".join(f"{value:9.2f} s" for value in values))
axis.set(xlabel="rows of 10 columns", ylabel="seconds of a fit")
axis.legend()

# %%
# **Takeaway.** The whole posterior of a large table takes about as long as a few fits of a point
# estimate, because its rows are needed only around the mode; and the file is never loaded at once.
