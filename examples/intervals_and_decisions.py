"""Regression on a table with mixed columns: intervals that cover, and a decision made with them.

    python examples/intervals_and_decisions.py [--data diabetes | housing] [--quick]

A `ColumnTransformer` in front of `BayesianLinearRegression`; the coverage of its intervals by
cross-validation; and a decision: a number has to be named in advance, and naming too much costs
three times as much as naming too little. The best number is then the 25 % quantile of what is
predicted, not its mean. "diabetes" comes with scikit-learn; "housing" are 20 640 districts of
California (`cal_housing.npz` in the folder that the variable SKBAYES_SG_DATA names).
"""

import numpy as np
import pandas as pd
from _script import Parser, needed
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

TOO_MUCH, TOO_LITTLE = 3.0, 1.0


def diabetes():
    """Progression of the disease within a year: body measurements, blood serum, sex, age group."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X["sex"] = X["sex"].map({1.0: "a", 2.0: "b"})  # which is which is not documented
    X["age"] = pd.cut(X["age"], [0, 35, 50, 65, 100], labels=["-35", "-50", "-65", "65-"])
    return X, y, ["sex", "age"], ["bmi", "bp", "s5"]


def housing():
    """Logarithm of the median value of houses: where they are, how old, who lives there."""
    z = needed("cal_housing.npz")
    X = pd.DataFrame(z["X"], columns=z["feature_names"])
    names = {name.lower(): name for name in X.columns}
    X["region"] = [
        f"{a:.0f} {b:.0f}" for a, b in zip(X[names["longitude"]], X[names["latitude"]], strict=True)
    ]
    people = X[names["population"]]
    X["rooms a head"] = np.log(X[names["totalrooms"]] / people)
    X["people a household"] = np.log(people / X[names["households"]])
    numbers = [names["medianincome"], names["housingmedianage"]]
    numbers += ["rooms a head", "people a household"]
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


def cross_validated(model, X, y, folds):
    """Means over folds of the scores of whole predictive distributions."""
    scores = {
        "log density": neg_log_predictive_density_scorer,
        "CRPS": neg_crps_scorer,
        "error of the 90 % coverage": neg_coverage_error_scorer,
    }
    found = cross_validate(model, X, y, scoring=scores, cv=folds)
    return {name: found[f"test_{name}"].mean() for name in scores}


def cost(named, y):
    """What naming these numbers costs on average when y is what happens."""
    return np.where(named > y, TOO_MUCH * (named - y), TOO_LITTLE * (y - named)).mean()


def main():
    parser = Parser(__doc__)
    parser.add_argument("--data", choices=["diabetes", "housing"], default="diabetes")
    parser.add_argument("--folds", type=int, default=5, quick=2)
    options = parser.parse_args()
    X, y, categories, curved = globals()[options.data]()
    model = make_model(categories, curved)
    print(f"{len(y)} rows; {options.folds}-fold cross-validation:")
    for name, value in cross_validated(model, X, y, options.folds).items():
        print(f"  {name:28}{value:8.3f}")

    parts = train_test_split(X, y, test_size=0.3, random_state=0)
    X_train, X_test, y_train, y_test = parts
    model.fit(X_train, y_train)
    final, rows = unwrapped(model, X_test)  # the estimator, and the columns as it sees them
    covered = interval_coverage(y_test, *final.predict_interval(rows))
    print(f"\n{len(y_test)} rows kept back; sampler {final.sampler_!r}")
    print(f"90 % intervals cover {covered:.1%}")
    epistemic, aleatoric = final.predict_std_components(rows)
    print(f"standard deviation of a prediction: {np.median(aleatoric):.3g} of noise,")
    print(f"  {np.median(epistemic):.2g} because the coefficients are not known")
    print(f"  ({epistemic.max():.2g} where least is known)")

    share = TOO_LITTLE / (TOO_LITTLE + TOO_MUCH)
    by_quantile = cost(final.predict_quantiles(rows, share), y_test)
    by_mean = cost(model.predict(X_test), y_test)
    print(f"\nnaming too much costs {TOO_MUCH:g}, too little {TOO_LITTLE:g} a unit. Cost of")
    print(f"  the predicted mean          {by_mean:8.3f}")
    less = 1.0 - by_quantile / by_mean
    print(f"  the {share:.0%} quantile            {by_quantile:8.3f}   ({less:.0%} less)")


if __name__ == "__main__":
    main()
