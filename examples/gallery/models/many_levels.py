"""
A column with 5000 levels
=========================

A table of sales has 5000 shops, and most shops have few rows. Is a shop with three good weeks a
good shop? One-hot columns believe the mean of its rows; a model without the column ignores it. With
group effects each shop is pulled towards the others, the more so the fewer rows it has.

The table is simulated, so that the effects are known.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skbayes_sg import BayesianLinearRegression

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
shops, n = (100, 1000) if QUICK else (5000, 30_000)
shop = rng.choice(shops, n, p=rng.dirichlet(np.full(shops, 0.7)))
effect = 0.8 * rng.normal(size=shops)
X = pd.DataFrame({"price": rng.normal(size=n), "shop": shop})
sales = 5.0 - 0.5 * X["price"] + effect[shop] + 1.5 * rng.normal(size=n)
rows = np.bincount(shop, minlength=shops)
print(f"{(rows > 0).sum()} shops; half of them have at most {np.median(rows):.0f} rows")

# %%
options = {"n_draws": 200, "n_chains": 2} if QUICK else {}
model = BayesianLinearRegression(group_effects=["shop"], random_state=0, **options).fit(X, sales)
table = model.effects_.to_frame()
print(f"standard deviation between shops: {model.group_std_[0]:.2f} (0.8 made the table)")

# %%
# The figure shows estimates for the shops against the true effects; the colour is their number of
# rows. With few rows the mean of a shop says little, and its effect is pulled towards zero.
seen = np.flatnonzero(rows)
left_over = sales - model.intercept_ - model.coef_[0] * X["price"]
means = left_over.groupby(X["shop"]).mean().to_numpy()
found = table["mean"].to_numpy()
figure, axes = plt.subplots(
    1, 2, figsize=(9.5, 3.8), layout="constrained", sharex=True, sharey=True
)
for axis, (name, values) in zip(
    axes, {"mean of its rows": means, "effect": found}.items(), strict=True
):
    points = axis.scatter(effect[seen], values, c=np.log10(rows[seen]), s=4)
    error = np.sqrt(np.mean((values - effect[seen]) ** 2))
    axis.axline((0.0, 0.0), slope=1.0, color="0.7", linewidth=0.8)
    axis.set_title(f"{name}: root mean square error {error:.2f}", loc="left", fontsize="small")
    axis.set(xlabel="truth", ylim=(-5.0, 5.0))
figure.colorbar(points, ax=axes, label="log10 of the rows of a shop")
inside = (table["5%"] <= effect[seen]) & (effect[seen] <= table["95%"])
print(f"90 % intervals hold {inside.mean():.1%} of the true effects")

# %%
# **Takeaway.** Give columns with many levels to `group_effects`: levels with few rows borrow from
# the others, and each effect has an interval.
