"""Regression on a table with mixed columns: intervals that cover, and a decision made with them.

    python examples/intervals_and_decisions.py [--data diabetes | housing]

A `ColumnTransformer` in front of `BayesianLinearRegression`; the coverage of its intervals by
cross-validation; and a decision: a number has to be named in advance, and naming too much costs
three times as much as naming too little. The best number is then the 25 % quantile of what is
predicted, not its mean. "diabetes" comes with scikit-learn; "housing" are 20 640 districts of
California (`cal_housing.npz` in the folder that the variable SKBAYES_SG_DATA names).
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.metrics import (
    interval_coverage,
    neg_coverage_error_scorer,
    neg_crps_scorer,
    neg_log_predictive_density_scorer,
    unwrapped,
)

DATA = Path(os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[2] / "shared" / "data"))
TOO_MUCH, TOO_LITTLE = 3.0, 1.0


def diabetes():
    """Progression of the disease within a year: body measurements, blood serum, sex, age group."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X["sex"] = X["sex"].map({1.0: "a", 2.0: "b"})  # which is which is not documented
    X["age"] = pd.cut(X["age"], [0, 35, 50, 65, 100], labels=["-35", "-50", "-65", "65-"])
    return X, y, ["sex", "age"], ["bmi", "bp", "s5"]


def housing():
    """Logarithm of the median value of houses: where they are, how old, who lives there."""
    z = np.load(DATA / "cal_housing.npz")
    X = pd.DataFrame(z["X"], columns=z["feature_names"])
    names = {name.lower(): name for name in X.columns}
    X["region"] = [
        f"{a:.0f} {b:.0f}" for a, b in zip(X[names["longitude"]], X[names["latitude"]], strict=True)
    ]
    people = X[names["population"]]
    X["rooms a head"] = np.log(X[names["totalrooms"]] / people)
    X["people a household"] = np.log(people / X[names["households"]])
    numbers = [names["medianincome"], names["housingmedianage"], "rooms a head",
               "people a household"]  # fmt: skip
    return X[["region", *numbers]], np.log(z["y"].astype(float)), ["region"], numbers


def make_model(categories, curved):
    """Splines of some columns, one column for each level of others, the rest as it is."""
    columns = ColumnTransformer(
        [
            ("levels", OneHotEncoder(handle_unknown="ignore", min_frequency=10), categories),
            ("curves", SplineTransformer(n_knots=5, degree=3, include_bias=False), curved),
        ],
        remainder="passthrough",
    )
    return make_pipeline(columns, BayesianLinearRegression(random_state=0))


def cross_validated(model, X, y):
    """Means over five folds of the scores of whole predictive distributions."""
    scores = {
        "log density": neg_log_predictive_density_scorer, "CRPS": neg_crps_scorer,
        "error of the 90 % coverage": neg_coverage_error_scorer,
    }  # fmt: skip
    found = cross_validate(model, X, y, scoring=scores, cv=5)
    return {name: found[f"test_{name}"].mean() for name in scores}


def cost(named, y):
    """What naming these numbers costs on average when y is what happens."""
    return np.where(named > y, TOO_MUCH * (named - y), TOO_LITTLE * (y - named)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["diabetes", "housing"], default="diabetes")
    X, y, categories, curved = globals()[parser.parse_args().data]()
    model = make_model(categories, curved)
    print(f"{len(y)} rows; five-fold cross-validation:")
    for name, value in cross_validated(model, X, y).items():
        print(f"  {name:28}{value:8.3f}")

    parts = train_test_split(X, y, test_size=0.3, random_state=0)
    X_train, X_test, y_train, y_test = parts
    model.fit(X_train, y_train)
    final, rows = unwrapped(model, X_test)  # the estimator, and the columns as it sees them
    print(f"\n{len(y_test)} rows kept back; sampler {final.sampler_!r}, 90 % intervals cover "
          f"{interval_coverage(y_test, *final.predict_interval(rows)):.1%}")  # fmt: skip
    epistemic, aleatoric = final.predict_std_components(rows)
    print(f"standard deviation of a prediction: {np.median(aleatoric):.3g} of noise, "
          f"{np.median(epistemic):.2g} because the coefficients are not known "
          f"({epistemic.max():.2g} where least is known)")  # fmt: skip

    share = TOO_LITTLE / (TOO_LITTLE + TOO_MUCH)
    by_quantile = cost(final.predict_quantiles(rows, share), y_test)
    by_mean = cost(model.predict(X_test), y_test)
    print(f"\nnaming too much costs {TOO_MUCH:g}, too little {TOO_LITTLE:g} a unit. Cost of")
    print(f"  the predicted mean          {by_mean:8.3f}")
    print(f"  the {share:.0%} quantile            {by_quantile:8.3f}   "
          f"({1.0 - by_quantile / by_mean:.0%} less)")  # fmt: skip


if __name__ == "__main__":
    main()
