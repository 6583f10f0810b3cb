"""
A network for a table, and where it has seen nothing
====================================================

A curve bends in ways that nobody has written down, and a small network follows it. But what does
the network say where there are no rows: does it know that it does not know?
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from skbayes_sg import BayesianMLPRegressor
from skbayes_sg.metrics import interval_coverage

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)


def curve(x):
    return np.sin(2.0 * x) + 0.3 * x


x = np.r_[rng.uniform(-3.0, -0.5, 60), rng.uniform(1.0, 3.0, 60)]
y = curve(x) + 0.15 * rng.normal(size=120)

# %%
# There are no rows in the gap in the middle, nor at the ends.
options = {"n_draws": 50, "n_chains": 2} if QUICK else {"n_chains": 4}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the quick run: few draws
    model = BayesianMLPRegressor(random_state=0, **options).fit(x[:, None], y)
    point = MLPRegressor(hidden_layer_sizes=(50,), max_iter=3000, random_state=0).fit(x[:, None], y)
grid = np.linspace(-4.5, 4.5, 200)[:, None]
lower, upper = model.predict_interval(grid)
epistemic, aleatoric = model.predict_std_components(grid)

# %%
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.fill_between(grid[:, 0], lower, upper, alpha=0.3, label="90 % predictive interval")
axis.plot(grid, model.predict(grid), label="posterior mean")
axis.plot(grid, point.predict(grid), "--", color="C2", label="MLPRegressor")
axis.plot(grid, curve(grid), color="black", linewidth=0.8, label="truth")
axis.plot(x, y, ".", color="C1", markersize=4, label="rows")
axis.set(xlabel="x", ylabel="y", ylim=(-5, 5))
axis.legend(ncols=2)

# %%
# The figure shows the two parts of the uncertainty: the noise, which more rows do not reduce, and
# the uncertainty of the curve, which grows where there are no rows.
gap = (grid[:, 0] > -0.2) & (grid[:, 0] < 0.7)
near = (grid[:, 0] > 1.2) & (grid[:, 0] < 2.8)
for name, part in {"among the rows": near, "in the gap": gap}.items():
    print(f"{name:15} not known {epistemic[part].mean():.2f}, noise {aleatoric[part].mean():.2f}")
new = np.r_[rng.uniform(-3.0, -0.5, 500), rng.uniform(1.0, 3.0, 500)]
covered = interval_coverage(
    curve(new) + 0.15 * rng.normal(size=1000), *model.predict_interval(new[:, None])
)
print(f"90 % intervals of new rows among the old ones hold {covered:.0%}")

# %%
# **Takeaway.** A network with a posterior fits as a network does, and its intervals open where it
# has seen nothing.
