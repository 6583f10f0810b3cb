"""
Claims of policies that run for different times
===============================================

The claims of insurance policies are small counts, from policies that have run for a month or for
years. How many claims does a policy cause in a year, and are the counts as regular as a Poisson
distribution says?

The table is simulated: rates depend on age and region, and vary from policy to policy by more than
the columns tell.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import BayesianNegativeBinomialRegressor, BayesianPoissonRegressor
from skbayes_sg.metrics import posterior_predictive_check
from skbayes_sg.plots import CoefficientDisplay, PredictiveCheckDisplay

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n = 1000 if QUICK else 4000
X = pd.DataFrame(
    {
        "age": rng.uniform(18, 80, n).round(),
        "power": rng.normal(90.0, 25.0, n).round(),
        "region": rng.choice(["coast", "hills", "town"], n),
    }
)
years = rng.uniform(0.1, 3.0, n)
rate = 0.35 * np.exp(-0.015 * (X["age"] - 45) + 0.4 * (X["region"] == "town"))
claims = rng.poisson(years * rate * rng.gamma(1.0, 1.0, n)).astype(float)
train, test = np.arange(n) < n // 2, np.arange(n) >= n // 2

# %%
# `exposure` says how long each policy has run. Both regressions predict claims for a given time.
columns = make_column_transformer(
    (OneHotEncoder(drop=["hills"]), ["region"]),
    remainder=StandardScaler(),
    verbose_feature_names_out=False,
)


def fit(estimator):
    prepared = columns.fit_transform(X[train])
    names = columns.get_feature_names_out()
    rows = pd.DataFrame(prepared, columns=names)
    return estimator.fit(rows, claims[train], exposure=years[train])


poisson = fit(BayesianPoissonRegressor(random_state=0))
negative_binomial = fit(BayesianNegativeBinomialRegressor(random_state=0))
rows = pd.DataFrame(columns.transform(X[test]), columns=columns.get_feature_names_out())

# %%
# Do the models simulate data like those of the new policies? We compare dispersion, zeros and tails
# of each model's replications with those of the new claims.
figure, axes = plt.subplots(2, 1, figsize=(7.0, 4.6), layout="constrained", sharex=True)
widest = 0.0
for model, axis in zip((poisson, negative_binomial), axes, strict=True):
    check = posterior_predictive_check(model, rows, claims[test], exposure=years[test])
    PredictiveCheckDisplay(check).plot(axis)
    widest = max(widest, axis.get_xlim()[1])
    print(check, end="\n\n")
axes[0].set(xlim=(-widest, widest), xlabel="")

# %%
# The Poisson regression is too sure: its claims vary less than those of the table. Its coefficients
# have intervals that are too narrow for the same reason.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharex=True)
for model, axis in zip((poisson, negative_binomial), axes, strict=True):
    display = CoefficientDisplay.from_estimator(model, ax=axis)
    axis.set_title(type(model).__name__, loc="left", fontsize="small")

# %%
# **Takeaway.** Give counts their exposures, and let a predictive check decide whether they are more
# irregular than a Poisson distribution; if so, the negative binomial regression has honest
# intervals.
