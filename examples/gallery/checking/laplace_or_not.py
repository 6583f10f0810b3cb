"""
When is a normal approximation enough?
======================================

The normal distribution around the mode of the posterior (the Laplace approximation, which is behind
most tables of standard errors) costs one fit. For some tables it is enough, and for others it is
not: how can one tell?
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.priors import Normal

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
SCALE = 2.5  # of the normal prior


def laplace(X, y):
    """Mode and standard deviations of the normal distribution with the curvature at the mode."""
    A = np.column_stack([X, np.ones(len(X))])
    point = LogisticRegression(C=SCALE**2, max_iter=10_000, tol=1e-8).fit(X, y)
    mode = np.append(point.coef_, point.intercept_)
    p = 1.0 / (1.0 + np.exp(-A @ mode))
    precision = (A.T * (p * (1 - p))) @ A + np.diag([SCALE**-2.0] * X.shape[1] + [1e-4])
    return mode, np.sqrt(np.diag(np.linalg.inv(precision)))


def made(n, n_of_level):
    """A table with a number, and a level that so many rows have."""
    X = pd.DataFrame({"number": rng.normal(size=n), "level": np.arange(n) < n_of_level})
    X = X.astype(float)
    score = -1.5 + X["number"] - 2.5 * X["level"]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int)


# %%
# We simulate two tables: one with many rows of a common level, and one with few rows, of which only
# ten have the level, with hardly an event among them.
tables = {
    "a common level": made(500, 150) if QUICK else made(5000, 1500),
    "a rare level": made(150, 10),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for axis, (title, (X, y)) in zip(axes, tables.items(), strict=True):
    model = BayesianLogisticRegression(prior=Normal(scale=SCALE), random_state=0).fit(X, y)
    draws = model.posterior_["coef[level]"].ravel()
    mode, sd = (values[1] for values in laplace(X, y))
    grid = np.linspace(*np.quantile(draws, [0.0005, 0.9995]), 200)
    axis.hist(draws, 50, density=True, alpha=0.5, label="posterior")
    axis.plot(grid, stats.norm(mode, sd).pdf(grid), color="C1", label="Laplace")
    axis.set(title=title, xlabel="coefficient of the level", yticks=[])
    exact = np.quantile(draws, [0.05, 0.95])
    events = y[X["level"] == 1.0].sum()
    print(f"{title}: {X['level'].sum():.0f} rows of the level, {events} events among them")
    print(f"  90 % interval of the posterior {exact.round(2)}")
    print(f"  of the approximation           {(mode + sd * stats.norm.ppf([0.05, 0.95])).round(2)}")
    print(f"  skewness of the draws          {stats.skew(draws):.2f}")
axes[0].legend()

# %%
# The draws say whether a normal distribution would have been enough: their skewness is then near
# zero. Before it returns draws, the estimator warps its normal distribution along the skewed
# directions, and checks the result by importance weights.
#
# **Takeaway.** With many rows of every level a normal approximation is enough; with rare levels,
# few events or nearly separated classes it is not, and nothing in its own output says so.
