"""
Naming a number when errors cost differently
============================================

The progression of a disease has to be predicted a year ahead by a single number, and a number that
is too high costs three times as much as one that is too low. Which number is best? It is not the
mean but a quantile of the predicted distribution, and a model that predicts a distribution returns
it at once.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.metrics import (
    neg_coverage_error_scorer,
    neg_crps_scorer,
    neg_log_predictive_density_scorer,
    unwrapped,
)
from skbayes_sg.plots import CoverageDisplay

QUICK = "--quick" in sys.argv
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X["age"] = pd.cut(X["age"], [0, 35, 50, 65, 100], labels=["-35", "-50", "-65", "65-"])
folds = KFold(3 if QUICK else 10, shuffle=True, random_state=0)

# %%
# The model has splines of some columns, one column for each level of others, and the rest as it is.
columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["sex", "age"]),
    (SplineTransformer(n_knots=5, include_bias=False), ["bmi", "bp", "s5"]),
    remainder="passthrough",
)
model = make_pipeline(columns, BayesianLinearRegression(random_state=0))
scores = {
    "log density": neg_log_predictive_density_scorer,
    "CRPS": neg_crps_scorer,
    "error of the 90 % coverage": neg_coverage_error_scorer,
}
found = cross_validate(model, X, y, scoring=scores, cv=folds)
for name in scores:
    print(f"{name:28}{found[f'test_{name}'].mean():9.3f}")

# %%
# In each fold we name numbers for rows that the model has not seen. The best number is the quantile
# at the share of the costs, 1 / (1 + 3).
TOO_MUCH, TOO_LITTLE = 3.0, 1.0
share = TOO_LITTLE / (TOO_LITTLE + TOO_MUCH)
named = {"mean": np.zeros(len(y)), "quantile": np.zeros(len(y))}
for train, test in folds.split(X):
    model.fit(X.iloc[train], y.iloc[train])
    final, rows = unwrapped(model, X.iloc[test])  # the regression, and the rows as it sees them
    named["mean"][test] = final.predict(rows)
    named["quantile"][test] = final.predict_quantiles(rows, share)


def cost(numbers):
    """Cost of each row."""
    return np.where(numbers > y, TOO_MUCH * (numbers - y), TOO_LITTLE * (y - numbers))


saved = cost(named["mean"]) - cost(named["quantile"])
print(f"cost of naming the mean: {cost(named['mean']).mean():.1f} a row")
print(
    f"saved by the quantile: {saved.mean():.1f}, standard error {saved.std() / len(y) ** 0.5:.1f}"
)

# %%
# Quantiles can be trusted if intervals of all widths hold as many values as they should. We check
# this for the last model, on the rows that its fold kept back.
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
CoverageDisplay.from_estimator(model, X.iloc[test], y.iloc[test], ax=axes[0])
order = np.argsort(named["mean"])
axes[1].plot(y.to_numpy()[order], ".", color="0.7", label="what happened")
axes[1].plot(named["mean"][order], color="C1", label="mean")
axes[1].plot(named["quantile"][order], ".", markersize=3, color="C0", label=f"{share:.0%} quantile")
axes[1].set(xlabel="rows, in the order of the mean", ylabel="progression")
axes[1].legend()

# %%
# **Takeaway.** Predict a distribution, check its coverage, and name the quantile that the costs ask
# for.
