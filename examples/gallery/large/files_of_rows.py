"""
Rows in many files
==================

The rows lie in files and need not be brought together. Each file is sampled where it lies, with its
share of the prior, and the draws are combined. Is the result the posterior of all rows?
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.plots import CoefficientDisplay

QUICK = "--quick" in sys.argv
n, parts = (2000, 4) if QUICK else (40_000, 8)
X, y = make_classification(
    n, n_features=8, n_informative=8, n_redundant=0, flip_y=0.2, random_state=0
)

# %%
# Each file holds random rows. Files that are sorted by date or by branch have to be mixed before,
# since every file must contain information about every coefficient.
options = {"n_draws": 300, "random_state": 0}
with tempfile.TemporaryDirectory() as folder:
    for k in range(parts):
        np.save(Path(folder) / f"X{k}.npy", X[k::parts])
        np.save(Path(folder) / f"y{k}.npy", y[k::parts])
    model = BayesianLogisticRegression(**options).fit_shards(folder)
whole = BayesianLogisticRegression(**options).fit(X, y)

# %%
# The figure shows the posterior of the files together, that of one fit of all rows, and that of the
# first file alone.
CoefficientDisplay.from_estimator(
    model, points={"all rows": whole, "first file": model.subposteriors_[0].mean("coef")}
)
off = np.abs(model.coef_ - whole.coef_) / whole.coef_std_
print(f"means are off by at most {off.max():.2f} posterior sd")
print(f"ratios of standard deviations: {(model.coef_std_ / whole.coef_std_).round(2)}")
print({name: round(value, 3) for name, value in model.combine_check_.items()})

# %%
# **Takeaway.** Files of random rows can be sampled one by one; `combine_check_` says whether they
# agree, and a warning says when a combination should not be trusted.
