"""
Which model predicts new rows best?
===================================

Do splines help? Does heavy-tailed noise help? And which columns are needed? Leave-one-out
predictions answer these questions from a single fit of each model, with the standard error of each
difference.
"""

import sys

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import SplineTransformer

from skbayes_sg import BayesianLinearRegression, BayesianRobustRegression
from skbayes_sg.model_selection import compare, loo
from skbayes_sg.plots import CompareDisplay

QUICK = "--quick" in sys.argv
X, y = load_diabetes(return_X_y=True, as_frame=True)
n_draws = 100 if QUICK else 1000
splines = SplineTransformer(n_knots=4, include_bias=False).set_output(transform="pandas")
curved = ["bmi", "bp", "s5"]
columns = {
    "all columns": X,
    "bmi and s5 only": X[["bmi", "s5"]],
    "splines of three": pd.concat(
        [X.drop(columns=curved), splines.fit_transform(X[curved])], axis=1
    ),
}
models = {
    name: (BayesianLinearRegression(n_draws=n_draws, random_state=0), rows)
    for name, rows in columns.items()
}
models["all columns, robust"] = (BayesianRobustRegression(n_draws=n_draws, random_state=0), X)

# %%
# To compare models of different columns, pass the results of `loo` to `compare`.
results = {name: loo(model.fit(rows, y), rows, y) for name, (model, rows) in models.items()}
table = compare(results)
print(table)

# %%
# The bars are two standard errors of the difference, which is computed row by row: rows that are
# hard for one model are hard for the others.
CompareDisplay.from_comparison(table)

# %%
# **Takeaway.** Look at the difference and its standard error, not at the order of the scores: the
# simplest model within two standard errors of the best is a good choice.
