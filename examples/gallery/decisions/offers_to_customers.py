"""
Who gets an offer? Churn, calibration and costs
===============================================

Few customers leave each month. An offer that keeps a customer costs 5, and a customer who leaves
costs 100. To whom should we make an offer, and can we believe the probabilities on which this
depends?

The table is simulated: 4000 customers, of whom a few per cent leave, with a contract, a tenure and
complaints.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.metrics import neg_calibration_error_scorer
from skbayes_sg.plots import CoefficientDisplay, ProbabilityDisplay, ReliabilityDisplay

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n = 1000 if QUICK else 4000
X = pd.DataFrame(
    {
        "contract": rng.choice(["month", "year", "two years"], n, p=[0.5, 0.3, 0.2]),
        "tenure": rng.gamma(2.0, 12.0, n).round(),
        "complaints": rng.poisson(0.4, n),
        "bill": rng.normal(60.0, 20.0, n).round(2),
    }
)
score = -3.6 + 0.9 * (X["contract"] == "month") - 0.03 * X["tenure"] + 0.7 * X["complaints"]
left = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), "left", "stayed")
left = pd.Series(left).astype(pd.CategoricalDtype(["stayed", "left"])).cat.codes.to_numpy()
X_train, X_test, y_train, y_test = train_test_split(X, left, test_size=0.5, random_state=0)
print(f"{y_train.sum()} of {len(y_train)} customers left")

# %%
columns = make_column_transformer(
    (OneHotEncoder(drop=["month"]), ["contract"]),
    remainder=StandardScaler(),
    verbose_feature_names_out=False,
)
model = make_pipeline(columns, BayesianLogisticRegression(random_state=0)).fit(X_train, y_train)
CoefficientDisplay.from_estimator(model)

# %%
# Probabilities are right if, of the customers with a probability of 5 %, about 5 % leave. The bars
# show where the shares would lie by chance if the probabilities were right.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
reliability = ReliabilityDisplay.from_estimator(model, X_test, y_test, n_bins=8, ax=axes[0])
most = 1.3 * max(reliability.stated.max(), reliability.happened_share.max())
axes[0].set(xlim=(0.0, most), ylim=(0.0, most))
ProbabilityDisplay.from_estimator(model, X_test, threshold=0.05, ax=axes[1])
axes[1].set_ylim(0.0, 0.6)
print(f"calibration error: {-neg_calibration_error_scorer(model, X_test, y_test):.4f}")

# %%
# An offer pays if the probability exceeds 5 / 100. If the interval of a customer contains this
# threshold, the table does not tell whether an offer pays, and one more fact about this customer is
# worth most.
OFFER, LOSS = 5.0, 100.0
p = model.predict_proba(X_test)[:, 1]
lower, upper = (
    ends[:, 1] for ends in model[-1].predict_proba_interval(model[:-1].transform(X_test))
)
doubtful = (lower < OFFER / LOSS) & (upper > OFFER / LOSS)
offered = p > OFFER / LOSS
spent = {
    "an offer to nobody": LOSS * y_test,
    "an offer to everybody": np.full(len(y_test), OFFER),
    "where it pays": np.where(offered, OFFER, LOSS * y_test),
}
for name, costs in spent.items():
    error = costs.std() / len(costs) ** 0.5
    print(f"{name:24}{costs.mean():6.2f} a customer, standard error {error:.2f}")
print(f"{offered.mean():.0%} get an offer; for {doubtful.mean():.0%} the table does not tell")

# %%
# **Takeaway.** Costs turn probabilities into decisions, so check that the probabilities are right;
# intervals say for whom a decision could still change.
