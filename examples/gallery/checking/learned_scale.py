"""
How wide should the prior be?
=============================

A prior that is too wide lets useless columns in, and one that is too narrow shrinks useful ones. Do
we have to search for the right width? The scale can be a parameter with a prior of its own; and if
most columns are useless, the horseshoe prior has one scale for each column.

The table is simulated: of forty columns five matter.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.metrics import neg_log_predictive_density_scorer
from skbayes_sg.priors import HalfCauchy, Horseshoe, Normal

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
columns = 10 if QUICK else 40
truth = np.zeros(columns)
truth[:5] = [2.0, -1.5, 1.0, 0.7, -0.5]
X = rng.normal(size=(80, columns))
y = X @ truth + rng.normal(size=80)
X_new = rng.normal(size=(500, columns))
y_new = X_new @ truth + rng.normal(size=500)

# %%
priors = {
    "scale 0.1": Normal(scale=0.1),
    "scale 10": Normal(scale=10.0),
    "learned scale": Normal(scale=HalfCauchy(1.0)),
    "horseshoe": Horseshoe(n_relevant=5),
}
options = {"n_draws": 200, "n_chains": 2} if QUICK else {}
models = {
    name: BayesianLinearRegression(prior=prior, random_state=0, **options).fit(X, y)
    for name, prior in priors.items()
}
for name, model in models.items():
    score = neg_log_predictive_density_scorer(model, X_new, y_new)
    print(f"{name:15} log density of new rows {score:7.3f}")
print(f"the scale that was learned: {models['learned scale'].prior_scale_:.2f}")
print(f"columns that matter, by the horseshoe: {models['horseshoe'].m_eff_:.1f}")

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 4.5), layout="constrained", sharey=True, sharex=True)
places = np.arange(columns)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    low, high = model.posterior_.interval(0.9, "coef")
    axis.hlines(places, low, high, color="C0")
    axis.plot(truth, places, "x", color="C1", markersize=4)
    axis.set_title(name, loc="left", fontsize="small")
axes[0].set(ylabel="column", xlabel="coefficient, 90 % interval", xlim=(-3, 3))

# %%
# **Takeaway.** A learned scale saves the search, but one scale for all columns pulls large
# coefficients down where most of the others are useless: there the horseshoe predicts best.
