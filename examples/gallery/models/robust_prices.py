"""
Prices with typing errors
=========================

In a table of prices a few are wrong: a digit too many, another currency, the price of a lot in
place of that of a piece. Which coefficients can be believed, and which rows are suspicious?

The table is simulated, so that we know the true coefficients and the wrong rows.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
from skbayes_sg.metrics import interval_coverage
from skbayes_sg.plots import CoefficientDisplay

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n = 150 if QUICK else 400
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["area", "age", "distance", "floor"])
truth = np.array([0.5, -0.2, -0.3, 0.0])
log_price = X.to_numpy() @ truth + 0.15 * rng.normal(size=n)
wrong = rng.random(n) < 0.05
written = log_price + np.where(wrong, rng.choice([-1.0, 1.0], n) * np.log(10.0), 0.0)
print(f"{wrong.sum()} of {n} prices have a digit too many or too few")

# %%
# A model with normal noise has to explain the errors, and therefore takes all prices as noisy. A
# model with Student's t noise expects a few values far away.
normal = BayesianLinearRegression(random_state=0).fit(X, written)
robust = BayesianRobustRegression(random_state=0).fit(X, written)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharex=True)
for model, axis in zip((normal, robust), axes, strict=True):
    CoefficientDisplay.from_estimator(model, points={"truth": truth}, ax=axis)
    axis.set_title(type(model).__name__, loc="left", fontsize="small")

# %%
# The same holds for predictions of correct prices: the intervals of both models cover, but those of
# one are far wider.
X_new = pd.DataFrame(rng.normal(size=(500, 4)), columns=X.columns)
new = X_new.to_numpy() @ truth + 0.15 * rng.normal(size=500)
for model in (normal, robust):
    lower, upper = model.predict_interval(X_new)
    covered, width = interval_coverage(new, lower, upper), np.mean(upper - lower)
    print(f"{type(model).__name__:26} covers {covered:.0%}, width {width:.2f}")

# %%
# A row is suspicious if its price is improbable given its columns: the log density of each row
# finds the wrong rows.
density = robust.predict_log_density(X, written)
suspicious = np.argsort(density)[: wrong.sum()]
print(f"{wrong[suspicious].mean():.0%} of the {wrong.sum()} least probable prices are wrong")
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.plot(robust.predict(X)[~wrong], density[~wrong], ".", color="C0", label="right")
axis.plot(robust.predict(X)[wrong], density[wrong], "x", color="C1", label="wrong")
axis.set(xlabel="predicted log price", ylabel="log density of what is written")
axis.legend()

# %%
# **Takeaway.** Heavy-tailed noise keeps a few wrong rows from deciding coefficients and widths, and
# the density of each row says where to look.
