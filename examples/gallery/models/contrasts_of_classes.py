"""
What tells one class from another?
==================================

There are three kinds of wine and thirteen measurements. Which of these tell the second kind from
the third? The coefficients of a single class do not answer this: only differences between classes
change probabilities. `Posterior.contrast` returns the posterior of the differences.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.plots import CoefficientDisplay

QUICK = "--quick" in sys.argv
X, y = load_wine(return_X_y=True, as_frame=True)
kind = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
scale = StandardScaler().set_output(transform="pandas")  # keeps the names of the columns
model = make_pipeline(
    scale, BayesianLogisticRegression(n_draws=100 if QUICK else 1000, random_state=0)
).fit(X, kind)
posterior = model[-1].posterior_

# %%
# The figure shows differences of the log-odds, for one standard deviation of a column.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharex=True)
for (first, reference), axis in zip(
    (("Barolo", "Grignolino"), ("Barbera", "Grignolino")), axes, strict=True
):
    contrast = posterior.contrast(first, reference=reference)
    CoefficientDisplay.from_posterior(contrast, ax=axis)
    labels = [label.get_text().partition(", ")[2] for label in axis.get_yticklabels()]
    axis.set_yticks(range(len(labels)), labels)
    axis.set_title(f"{first} against {reference}", loc="left", fontsize="small")

# %%
# A contrast is a posterior, so that a mean over its draws answers any question about it. How
# probable is it that more proline speaks for Barolo?
proline = posterior.contrast("Barolo", reference="Grignolino")["coef[Barolo - Grignolino, proline]"]
print(f"probability that it does: {(proline > 0).mean():.3f}")
lower, upper = model[-1].odds_ratio_interval(first="Barolo", reference="Grignolino")
j = list(X.columns).index("proline")
print(f"odds ratio of one standard deviation: {lower[0, j]:.1f} to {upper[0, j]:.1f} (90 %)")

# %%
# **Takeaway.** With three or more classes, compare classes, not coefficients.
