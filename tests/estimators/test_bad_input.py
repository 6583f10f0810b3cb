"""Bad inputs and faults: what is raised, and that the message names what is wrong."""

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
import sklearn
from interrupts import (
    WatchedHMC,
    WatchedStep,
    functions_of,
    heard,
    join_all_but,
    press,
    pressed_at,
    pressed_in,
)
from problems import STOCHASTIC, binary, multinomial, quick
from scipy import sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError

from skbayes_sg import (
    BayesianGaussianMixture,
    BayesianICA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianPMF,
    BayesianPoissonRegressor,
    BayesianRobustRegression,
)
from skbayes_sg.dynamics import SGHMC
from skbayes_sg.exceptions import (
    DrawStoreWarning,
    InvalidParameterError,
    SamplerConvergenceWarning,
    SamplerDivergedError,
    StepSizeWarning,
)
from skbayes_sg.metrics import posterior_predictive_check
from skbayes_sg.model_selection import loo
from skbayes_sg.priors import Flat, HalfCauchy, Laplace, Normal, StudentT

pytestmark = pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.SamplerConvergenceWarning")
X, y = binary()
NAME = "BayesianLogisticRegression"


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


# -- X ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [BayesianGaussianMixture, BayesianICA])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (sparse.csr_array, r"X\.toarray\(\)"),
        (
            lambda rows: pd.DataFrame(rows).astype(pd.SparseDtype(float, 0.0)),
            r"X\.sparse\.to_dense",
        ),
    ],
)
def test_sparse_rows_where_they_must_be_dense(model, kind, remedy):
    rows = np.where(X > 0.5, X, 0.0)
    with pytest.raises(TypeError, match=f"needs dense data, and X is sparse. Use {remedy}"):
        model().fit(kind(rows))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("value", "text"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "inf")]
)
def test_values_of_X_that_are_not_finite(kind, value, text):
    with pytest.raises(ValueError, match=f"Input X contains {text}"):
        quick().fit(kind(changed(X, (3, 1), value)), y)
    with pytest.raises(ValueError, match=f"Input X contains {text}"):
        quick().fit(X, y).predict(kind(changed(X, (3, 1), value)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [1e61, 1e150, 1e300])
def test_values_of_X_whose_squares_overflow(dtype, value):
    value = value if dtype is np.float64 else np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"values of X are too large for {NAME}|infinity"):
            quick().fit(changed(X, (3, 1), value).astype(dtype), y)


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e50, np.array([1e8, 1.0, 1e-8])])
def test_columns_of_any_scale(scale):
    model = quick().fit(X * scale, y)
    assert np.isfinite(model.posterior_.flat).all()
    assert (model.coef_std_ > 0.0).all()


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X[None], "array with dim 3"),
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        (X[:-1], r"inconsistent numbers of samples: \[59, 60\]"),
        (X.astype(complex), "Complex data not supported"),
        (np.full(X.shape, "a"), "could not convert string to float"),
        (np.full(X.shape, np.datetime64("2020-01-01")), r"dates or durations \(datetime64\[D\]\)"),
        (np.full(X.shape, np.timedelta64(1, "s")), r"dates or durations \(timedelta64\[s\]\)"),
    ],
    ids=["1d", "3d", "no rows", "no columns", "lengths", "complex", "text", "dates", "durations"],
)
def test_X_of_the_wrong_kind(bad, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(bad, y[: len(bad)] if len(bad) == 0 else y)


DAYS = pd.Series(np.datetime64("2020-01-01") + np.arange(60))


@pytest.mark.parametrize("others", [{}, {"a": X[:, 0]}], ids=["alone", "beside numbers"])
@pytest.mark.parametrize(
    "column",
    [DAYS, DAYS - DAYS[0], DAYS.dt.tz_localize("UTC"), DAYS.dt.to_period("M")],
    ids=["dates", "durations", "time zone", "periods"],
)
def test_a_column_of_dates(column, others):
    with pytest.raises(ValueError, match="X contains dates or durations"):
        quick().fit(pd.DataFrame(others | {"when": column}), y)


@pytest.mark.parametrize("form", [DAYS, DAYS - DAYS[0], DAYS.to_numpy(), DAYS.to_numpy("M8[D]")])
def test_dates_in_place_of_numbers(form):
    with pytest.raises(ValueError, match=r"^y contains dates or durations"):
        BayesianLinearRegression().fit(X, form)
    with pytest.raises(ValueError, match=r"^y contains dates or durations"):
        BayesianPMF().fit(np.arange(120).reshape(60, 2), form)
    with pytest.raises(ValueError, match=r"^sample_weight contains dates or durations"):
        quick().fit(X, y, sample_weight=form)


MISSING = np.array([None, *y[1:].astype(float)], dtype=object)


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianLinearRegression(),
        BayesianLinearRegression(prior="laplace"),
        BayesianRobustRegression(),
        BayesianPoissonRegressor(),
        BayesianNegativeBinomialRegressor(),
        BayesianMLPRegressor(),
    ],
    ids=repr,
)
def test_a_missing_response_among_objects(estimator):
    with pytest.raises(ValueError, match="Input y contains NaN"):
        estimator.fit(X, MISSING)


def test_a_missing_response_among_objects_in_evaluations():
    model = BayesianLinearRegression(n_draws=50, random_state=0).fit(X, y)
    for evaluation in (loo, posterior_predictive_check):
        with pytest.raises(ValueError, match="Input y contains NaN"):
            evaluation(model, X, MISSING)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.predict_log_density(X, MISSING)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BayesianPMF().fit(np.arange(120).reshape(60, 2), MISSING)


def test_dates_are_classes():
    days = DAYS[:2].to_numpy()[y]
    assert (quick().fit(X, days).classes_ == DAYS[:2].to_numpy()).all()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_numpy_matrix():
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        quick().fit(np.matrix(X), y)


@pytest.mark.parametrize("which", ["X", "y", "sample_weight"])
def test_masked_arrays(which):
    data = {"X": X, "y": y, "sample_weight": np.ones(60)}
    data[which] = np.ma.masked_array(data[which], data[which] > 0.5)
    with pytest.raises(TypeError, match=rf"{which} is a masked array.*{which}\.filled"):
        quick().fit(**data)


def test_masked_array_in_prediction():
    with pytest.raises(TypeError, match=r"X is a masked array.*X\.filled"):
        quick().fit(X, y).predict(np.ma.masked_array(X, X > 0.5))


def with_index(kind, value):
    """A sparse matrix one of whose column (or row) numbers is wrong."""
    S = kind(X)
    if S.format == "coo":
        S.col = S.col.copy()
        S.col[5] = value
    else:
        S.indices = S.indices.copy()
        S.indices[5] = value
    return S


SUPPORT = Path(__file__).parents[1] / "support"
OUTSIDE = r"(indices|column index values).* must be (<|>=|in \[0, 3\))"
FORMATS = [
    sparse.csr_array,
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.bsr_array,
    sparse.coo_matrix,
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("value", [1000, -1])
def test_sparse_indices_outside_the_matrix(kind, value):
    S = with_index(kind, value)
    with pytest.raises(ValueError, match=OUTSIDE):
        quick().fit(S, y)
    with pytest.raises(ValueError, match=OUTSIDE):
        quick().fit(X, y).predict(S)


def test_sparse_row_pointers_outside_the_matrix():
    S = sparse.csr_array(X)
    S.indptr = S.indptr.copy()
    S.indptr[3] = 10**6
    with pytest.raises(ValueError, match="indptr must be a non-decreasing sequence"):
        quick().fit(S, y)


def test_more_columns_than_rows():
    wide = np.random.default_rng(0).normal(size=(20, 30))
    model = quick().fit(wide, y[:20])
    assert np.isfinite(model.posterior_.flat).all()
    with pytest.raises(ValueError, match=r"Improper posterior: prior='flat'.*linearly dependent"):
        quick(prior="flat").fit(wide, y[:20])


def test_dependent_columns():
    model = quick().fit(X[:, [0, 0, 1]], y)
    assert np.isfinite(model.posterior_.flat).all()
    with pytest.raises(ValueError, match=r"Improper posterior: prior='flat'.*linearly dependent"):
        quick(prior="flat").fit(X[:, [0, 0, 1]], y)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        pytest.param(BayesianRobustRegression, {}, marks=pytest.mark.slow),
        (BayesianRobustRegression, {"sampler": "hmc"}),
        (BayesianLinearRegression, {"prior": "laplace"}),
        (BayesianLinearRegression, {"prior": "student_t"}),
    ],
)
@pytest.mark.slow_for("BayesianRobustRegression")
def test_dependent_columns_in_any_unit_of_the_response(estimator, options):
    """All levels of a column, and prices in dollars: only the prior of the intercept is flat."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 300)
    rows = np.c_[rng.normal(size=300), np.eye(4)[level]]
    price = 6.0 * rows[:, 0] + 10.0 * (level == 0) + 4.0 * rng.standard_t(3, 300)
    fits = [
        estimator(random_state=0, n_draws=300, **options).fit(rows, unit * price)
        for unit in (1.0, 1e4, 1e6)
    ]
    for fit, unit in zip(fits[1:], (1e4, 1e6), strict=True):
        shift = (fit.coef_ / unit - fits[0].coef_) / fits[0].coef_std_
        assert np.abs(shift).max() < 0.3
        assert fit.coef_std_ / unit == pytest.approx(fits[0].coef_std_, rel=0.2)


def test_constant_columns():
    model = quick().fit(np.c_[X, np.full(60, 3.0), np.zeros(60)], y)
    assert np.isfinite(model.coef_).all()
    assert (model.coef_std_ > 0.0).all()


def test_a_flat_prior_of_degrees_of_freedom():
    X, rng = np.eye(30)[:, :2], np.random.default_rng(0)
    for flat in ("flat", Flat()):
        with pytest.raises(ValueError, match=r"with a flat df_prior .* have no posterior"):
            BayesianRobustRegression(df_prior=flat).fit(X, rng.normal(size=30))


def test_a_flat_prior_of_three_classes():
    with pytest.raises(ValueError, match=r"of three or more classes, .* prior='flat' leaves"):
        quick(prior="flat").fit(X, np.arange(60) % 3)


def test_separable_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = quick().fit(X, X[:, 0] > 0)
        assert np.isfinite(model.posterior_.flat).all()
        assert np.isfinite(model.predict_log_proba(1e6 * X)).all()
    with pytest.raises(ValueError, match=r"Improper posterior.*separates the classes"):
        quick(prior="flat").fit(X, X[:, 0] > 0)


# -- y and weights ----------------------------------------------------------------------------


def labels(*values, dtype=None):
    return np.array(values, dtype=dtype)[y]


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (None, f"{NAME} estimator requires y to be passed, but the target y is None"),
        (changed(y, 3, np.nan), "Input y contains NaN"),
        (changed(y, 3, np.inf), "Input y contains infinity"),
        (X[:, 0], "Unknown label type: continuous"),
        (np.c_[y, y], "y should be a 1d array"),
        (np.zeros(60, dtype=int), f"{NAME} needs .* 2 classes.*only one class: 0"),
        (np.full(60, "a"), "only one class: 'a'"),
        (labels(1, "b", dtype=object), r"mixed types \['int', 'str'\]"),
        ([1 if label else "b" for label in y], r"mixed types \['int', 'str'\]"),
        (pd.array(np.where(y == 0, None, 1), dtype="Int64"), "Input y contains NaN"),
        (pd.array(["a" if label else None for label in y], dtype="string"), "Input y contains NaN"),
        (pd.Series(["a" if label else None for label in y], dtype="category"), "y contains NaN"),
        (y.astype(object), r"y is an array of int objects.*y\.astype\(int\)"),
        (labels(b"a", b"b"), "y is an array of bytes_ objects"),
        (labels(True, None, dtype=object), r"missing labels: .*\['NoneType', 'bool'\]"),
        (labels("a", None, dtype=object), r"missing labels: .*\['NoneType', 'str'\]"),
        (["a" if label else None for label in y], r"missing labels: .*\['NoneType', 'str'\]"),
        (["a" if label else np.nan for label in y], r"missing labels: .*\['float', 'str'\]"),
        (["a" if label else pd.NA for label in y], r"missing labels: .*\['NAType', 'str'\]"),
    ],
    ids=[
        "none", "nan", "inf", "continuous", "two outputs", "one class", "one class of str",
        "mixed", "mixed list", "nullable int", "nullable str", "category", "int objects",
        "bytes", "bool and None", "str and None", "list with None", "list with NaN", "list with NA",
    ],
)  # fmt: skip
def test_bad_labels(bad, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(X, bad)


def test_one_row():
    with pytest.raises(ValueError, match=f"{NAME} needs samples of at least 2 classes"):
        quick().fit(X[:1], y[:1])


def test_one_class_with_weight():
    with pytest.raises(ValueError, match="only one class: 0"):
        quick().fit(X, y, sample_weight=(y == 0) * 1.0)


@pytest.mark.parametrize("form", [np.asarray, pd.Series, list])
def test_bools_that_are_objects(form):
    model = quick().fit(X, form((y > 0).astype(object)))
    assert model.classes_.dtype == bool
    assert model.score(X, form((y > 0).astype(object))) == model.score(X, y > 0)
    assert np.array_equal(model.posterior_.flat, quick().fit(X, y > 0).posterior_.flat)


def test_labels_in_a_column():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = quick().fit(X, y[:, None])
    assert np.array_equal(model.posterior_.flat, quick().fit(X, y).posterior_.flat)


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (changed(np.ones(60), 3, np.nan), "sample_weight contains NaN"),
        (changed(np.ones(60), 3, np.inf), "sample_weight contains infinity"),
        (changed(np.ones(60), 3, -1.0), "Negative values in data passed to `sample_weight`"),
        (np.zeros(60), "at least one non-zero"),
        (np.full(60, 1e15), r"weights of the rows add up to 6\.0e\+16, .* 1e\+13 at most"),
        (np.full(60, 1e308), "weights of the rows add up to inf"),
        (np.ones(59), r"sample_weight\.shape == \(59,\), expected \(60,\)"),
        (np.ones((60, 1)), "must be 1D array or scalar"),
    ],
    ids=["nan", "inf", "negative", "all zero", "heavy", "overflow", "length", "2d"],
)
def test_bad_weights(weight, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(X, y, sample_weight=weight)


def test_counts_that_are_too_many():
    counts = np.full(60, 1e9)
    with pytest.raises(ValueError, match=r"counts in y add up to 6\.0e\+13, .* 1e\+13 at most"):
        BayesianPoissonRegressor().fit(X, counts, sample_weight=np.full(60, 1e3))
    BayesianPoissonRegressor(n_draws=10).fit(X, counts)


@pytest.mark.parametrize("options", [{}, {"noise": 1.0}, {"prior": "flat", "noise": 1.0}])
@pytest.mark.parametrize("sampler", ["auto", "hmc"])
def test_weights_that_leave_a_flat_prior_without_a_posterior(options, sampler):
    text = "total sample weight 6e-299 leave a parameter with a standard deviation of about"
    model = BayesianLinearRegression(sampler=sampler, n_draws=50, random_state=0, **options)
    with pytest.raises(ValueError, match=text):
        model.fit(X, X[:, 0], np.full(60, 1e-300))
    tiny = model.set_params(sampler="auto").fit(X, X[:, 0], np.full(60, 1e-30))
    assert np.isfinite(tiny.posterior_.std()).all()


def test_rows_without_weight_have_no_influence():
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.5)
    keep = weight > 0.0
    wild = np.where(keep[:, None], X, 1e6)
    for parameters in ({}, STOCHASTIC):
        whole = quick(**parameters).fit(wild, y, sample_weight=weight)
        kept = quick(**parameters).fit(X[keep], y[keep], sample_weight=weight[keep])
        assert np.array_equal(whole.posterior_.flat, kept.posterior_.flat)


# -- parameters -------------------------------------------------------------------------------

WRONG = {
    "n_draws": [0, -3, 2.5, "10", True, np.True_, None],
    "n_chains": [0, 1.5, "many", True],
    "n_warmup": [-1, 1.5, "many", True],
    "thin": [0, 1.5, "many", True],
    "batch_size": [0, -1, 0.0, 1.5, np.nan, True, "ten", None],
    "step_size": [0, -1.0, np.nan, np.inf, True, "big", None],
    "fit_intercept": ["yes", 1, None],
    "preconditioner": ["bogus", 3],
    "prior": ["bogus", 3, None],
    "intercept_prior": ["bogus", 3],
    "sampler": ["bogus", 3, None],
    "gradient": ["bogus", 3, None, "tabulated"],
    "subsampling": ["bogus", 3, None],
    "class_weight": ["bogus", 3, {0: -1}, {0: np.nan}, {0: "heavy"}],
    "random_state": [-1, 2**40, "a", 1.5, np.random.default_rng(0)],
    "n_jobs": [0, 1.5, "all", True],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_wrong_parameters(name, value):
    with pytest.raises(InvalidParameterError, match=NAME) as caught:
        quick(**{name: value}).fit(X, y)
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        (Normal(scale=-1.0), r"scale of prior=Normal\(scale=-1.0\) must be positive, got -1.0"),
        (Normal(scale=True), r"scale of prior=Normal\(scale=True\) must be a number"),
        (Normal(scale="2"), r"scale of prior=Normal\(scale='2'\) must be a number"),
        (Normal(scale=np.ones(5)), r"one value for each feature \(shape \(1, 3\)\)"),
        (Normal(loc=np.nan), r"loc of prior=Normal\(loc=nan\) must be finite"),
        (StudentT(df=0), r"df of prior=StudentT\(df=0\) must be a positive finite number, got 0"),
        (Laplace(scale="wide"), r"scale of prior=Laplace\(scale='wide'\) must be a number"),
    ],
)
def test_wrong_priors(prior, text):
    with pytest.raises(InvalidParameterError, match=f"{NAME}: The {text}|{NAME}.*{text}"):
        quick(prior=prior).fit(X, y)


def test_class_weights_for_other_classes():
    with pytest.raises(ValueError, match=r"The classes, \[0, 1\], are not in class_weight"):
        quick(class_weight={5: 1.0}).fit(X, y)


def test_batches_of_more_rows_than_there_are():
    with pytest.warns(UserWarning, match=f"batch_size of {NAME}, 100, is larger .* 60") as record:
        model = quick(batch_size=100, sampler="sgld", step_size=0.1).fit(X, y)
    assert sum("batch_size" in str(w.message) and "larger" in str(w.message) for w in record) == 1
    assert model.batch_size_ == 60
    assert model.gradient_ == "full"


def test_random_states():
    draws = {
        key: quick(random_state=state).fit(X, y).posterior_.flat
        for key, state in {
            "int": 3, "numpy int": np.int64(3), "none": None, "none again": None,
        }.items()
    }  # fmt: skip
    assert np.array_equal(draws["int"], draws["numpy int"])
    assert not np.array_equal(draws["none"], draws["none again"])
    state = np.random.RandomState(0)
    first, second = (quick(random_state=state).fit(X, y).posterior_.flat for _ in range(2))
    assert not np.array_equal(first, second)
    again = quick(random_state=np.random.RandomState(0)).fit(X, y).posterior_.flat
    assert np.array_equal(first, again)


# -- prediction -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        "predict", "predict_proba", "predict_log_proba", "decision_function",
        "predict_proba_interval", "predict_proba_samples",
    ],
)  # fmt: skip
def test_prediction_before_fit(method):
    with pytest.raises(NotFittedError, match=f"{NAME} instance is not fitted yet"):
        getattr(quick(), method)(X)


def test_another_number_of_features():
    model = quick().fit(X, y)
    with pytest.raises(ValueError, match=f"X has 2 features, but {NAME} is expecting 3"):
        model.predict(X[:, :2])
    model.fit(X[:, :2], y)  # a refit may have any
    assert model.coef_.shape == (1, 2)
    assert model.predict(X[:, :2]).shape == (60,)


def test_feature_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model, nameless = quick().fit(frame, y), quick().fit(X, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- z"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="yet now missing:\n- c"):
        model.predict(frame[["a", "b"]])
    with pytest.warns(UserWarning, match=f"does not have valid feature names, but {NAME}"):
        model.predict(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        nameless.predict(frame)
    with pytest.raises(TypeError, match="all input features have string names"):
        quick().fit(frame.rename(columns={"a": 1}), y)
    with pytest.raises(ValueError, match="unique column names"):
        quick().fit(pd.DataFrame(X, columns=["a", "a", "b"]), y)


def test_the_column_with_text_is_named():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b="x7")
    nullable = frame.astype({"a": "Float64", "b": "category"})
    for table in (frame, frame.astype({"b": "category"}), nullable):
        with pytest.raises(ValueError, match=f"{NAME}: the column 'b' .* float: 'x7'. Encode it"):
            quick().fit(table, y)
    with pytest.raises(ValueError, match="or name it in group_effects"):
        quick().fit(frame, y)
    with pytest.raises(ValueError, match="the column 'b' of X is not numeric"):
        quick(group_effects=["c"]).fit(frame, y)


def test_refit_forgets_names():
    model = quick().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert "coef[x0]" in model.posterior_


@pytest.mark.slow
def test_refit_forgets_variables_that_there_are_no_more():
    model, fresh = quick(prior="horseshoe").fit(X, y), quick().fit(X, y)
    assert {"m_eff_", "prior_scale_"} <= set(vars(model))
    model.set_params(prior="normal").fit(X, y)
    assert set(vars(model)) == set(vars(fresh))
    model.set_params(group_effects=[2]).fit(np.c_[X[:, :2], np.arange(60) % 4], y)
    assert "group_std_" in vars(model)
    model.set_params(group_effects=None).fit(X, y)
    assert set(vars(model)) == set(vars(fresh))


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.1, np.nan])
def test_confidence_levels(level):
    with pytest.raises(ValueError, match=f"confidence_level must lie strictly.*got {level}"):
        quick().fit(X, y).predict_proba_interval(X, level)


@pytest.mark.parametrize("level", [[0.5, 0.9], np.full((1, 1), 0.5)])
def test_several_confidence_levels(level):
    model = quick().fit(X, y)
    with pytest.raises(ValueError, match="confidence_level must"):
        model.predict_proba_interval(X, level)
    with pytest.raises(ValueError, match="confidence_level must"):
        model.odds_ratio_interval(level)
    for interval in (model.posterior_.interval, model.posterior_.hdi, model.posterior_.summary):
        with pytest.raises(ValueError, match="mass must"):
            interval(level)


def test_a_confidence_level_next_to_one_is_between_the_outermost_draws():
    model, level = BayesianLinearRegression(n_draws=50, random_state=0).fit(X, y), 1.0 - 2.0**-53
    lower, upper = model.posterior_.interval(level)
    flat = model.posterior_.flat.reshape(-1, 5)
    np.testing.assert_allclose([lower, upper], [flat.min(axis=0), flat.max(axis=0)])
    lower, upper = model.predict_interval(X, level)
    nearer = model.predict_interval(X, 0.999)
    assert (np.isfinite(upper - lower) & (lower < nearer[0]) & (nearer[1] < upper)).all()


@pytest.mark.parametrize("q", [{0.1, 0.9}, "many", None, [0.1, "many"]])
def test_quantiles_that_are_no_numbers(q):
    with pytest.raises(ValueError, match="quantiles must lie strictly between 0 and 1, got"):
        BayesianLinearRegression(n_draws=5).fit(X, y).predict_quantiles(X, q)


@pytest.mark.parametrize("per", ["x0", [1.0, "a", 2.0], {1.0}, [1.0, 2.0]])
def test_changes_of_columns_that_are_no_numbers(per):
    with pytest.raises(ValueError, match=r"per must be positive.*3 coefficients, got"):
        quick().fit(X, y).odds_ratio_interval(per=per)


def test_control_variates_are_checked_before_scores():
    for model in (quick(), BayesianLinearRegression(n_draws=25)):
        fitted = model.fit(X, y)
        for method in (fitted.posterior_.mean, fitted.posterior_.std):
            with pytest.raises(ValueError, match=r"control_variate must be .*, got 'cubic'"):
                method("coef", control_variate="cubic")
    with pytest.raises(ValueError, match=r"control_variate must be .*, got 'cubic'"):
        fitted.predict(X, control_variate="cubic")
    with pytest.raises(ValueError, match="closed form"):  # and it says why there are none
        fitted.predict(X, control_variate="linear")


@pytest.mark.parametrize("n", [0, 1.5, "all"])
def test_draws_of_the_discrepancy(n):
    with pytest.raises(ValueError, match=rf"max_draws must be an int in \[1, inf\), got {n!r}"):
        quick().fit(X, y).posterior_.ksd(n)


def test_one_draw_gives_no_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = quick(n_draws=1, n_chains=1).fit(X, np.arange(60) % 3)
        assert np.isfinite(model.predict_proba(X)).all()
        repr(model.posterior_.check())


@pytest.mark.parametrize("n", [0, 51, 1.5, True, "all"])
def test_numbers_of_samples(n):
    with pytest.raises(ValueError, match=rf"n_samples must be an int in \[1, 50\], got {n!r}"):
        quick().fit(X, y).predict_proba_samples(X, n)


# -- steps that are too large or too small ----------------------------------------------------


@pytest.mark.parametrize("sampler", ["sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht"])
@pytest.mark.parametrize("batch_size", ["auto", 10])
def test_a_step_that_explodes(sampler, batch_size):
    model = quick(sampler=sampler, step_size=50.0, batch_size=batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepSizeWarning)
        with pytest.raises(SamplerDivergedError) as caught:
            model.fit(X, y)
    text = str(caught.value)
    for part in (
        NAME, "chain 0 diverged at step", "step_size=50", "batch_size=", "coef[x",
        "posterior standard deviations from the centre", "step_size='auto', or one below",
        "largest that is stable",
    ):  # fmt: skip
        if part == "coef[x":
            assert "coef[x" in text or "intercept" in text
        else:
            assert part in text
    assert isinstance(caught.value, FloatingPointError)
    assert not hasattr(model, "posterior_")


@pytest.mark.parametrize("sampler", ["mala", "hmc"])
def test_a_step_that_no_proposal_survives(sampler):
    with pytest.raises(SamplerDivergedError, match=r"chain \d+ accepted no move with step_size=1e"):
        quick(sampler=sampler, step_size=1e6).fit(X, y)


def test_draws_beyond_the_range_of_floats(monkeypatch):
    model = BayesianLinearRegression(n_draws=20, random_state=0).fit(X, X[:, 0])
    before, draw = model.posterior_, BayesianLinearRegression._draw

    def far(self, *args):
        outcome, shards, check = draw(self, *args)
        outcome.draws[0, 3, -1] = 800.0  # the logarithm of the noise
        return outcome, shards, check

    monkeypatch.setattr(BayesianLinearRegression, "_draw", far)
    with pytest.raises(SamplerDivergedError, match="Regression: draws of noise_std have left"):
        model.fit(X, X[:, 0])
    assert model.posterior_ is before


def test_a_large_step_that_does_not_explode():
    Z, z = binary(3000, 4)
    with pytest.warns(StepSizeWarning, match=r"step_size=3 with batch_size=2 .*step_size='auto'"):
        quick(sampler="leimkuhler_matthews", step_size=3.0, batch_size=2, gradient="minibatch").fit(
            Z, z
        )


def test_a_thermostat_with_too_much_noise():
    Z, z = binary(3000, 4)
    with pytest.warns(StepSizeWarning, match="% too large or too small"):
        quick(sampler="sgnht", step_size=0.5, batch_size=2, gradient="minibatch").fit(Z, z)


def test_an_estimate_of_noise_that_is_not_there():
    with pytest.warns(StepSizeWarning, match=r"SGHMC\(.*\) makes .* up to .*% too small where"):
        quick(sampler=SGHMC(noise_estimate=0.5), step_size=0.1).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("default::skbayes_sg.exceptions.SamplerConvergenceWarning")
def test_a_step_that_is_too_small():
    model = quick(sampler="sgld", step_size=1e-7, n_warmup=0, thin=1, n_draws=100)
    with pytest.warns(SamplerConvergenceWarning, match=r"R-hat .* \(.*\), smallest effective") as w:
        model.fit(X, y)
    text = next(str(one.message) for one in w if "R-hat" in str(one.message))
    assert "thin" in text
    assert "n_warmup" in text
    assert "coef[x" in text or "intercept" in text
    assert model.diagnostics_["min_ess"] < 20
    assert model.diagnostics_["max_rhat"] > 1.05


@pytest.mark.slow
def test_every_outcome_is_finite_draws_or_a_named_error():
    """Steps and batches at random: draws are never NaN."""
    rng, ended = np.random.default_rng(0), {"draws": 0, "error": 0}
    Z, z = binary(1500, 3, seed=1)
    for _ in range(25):
        model = quick(
            sampler=str(rng.choice(["sgld", "leimkuhler_matthews", "baoab", "sghmc", "sgnht"])),
            gradient=str(rng.choice(["minibatch", "control_variate", "taylor"])),
            step_size=float(10.0 ** rng.uniform(-2, 3)), batch_size=int(rng.integers(1, 50)),
            thin=1, n_draws=20, random_state=int(rng.integers(1000)),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                draws = model.fit(Z, z).posterior_.flat
            except SamplerDivergedError:
                ended["error"] += 1
                assert not hasattr(model, "posterior_")
            else:
                ended["draws"] += 1
                assert np.isfinite(draws).all()
    assert min(ended.values()) > 0


# -- nothing is lost --------------------------------------------------------------------------


def state_of(model):
    """All that a fitted estimator holds, down to the bytes."""
    return {
        name: value.flat.tobytes() if hasattr(value, "labels")
        else value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(model).items()
    }  # fmt: skip


FAULTS = {
    "labels": (X, np.zeros(60), {}),
    "values": (changed(X, (0, 0), np.nan), y, {}),
    "another width": (changed(X[:, :2], (0, 0), np.inf), y, {}),
    "parameter": (X, y, {"n_draws": -1}),
    "late parameter": (X[:, :2], y, {"prior": Normal(scale=np.ones(7))}),
    "divergence": (X[:, :2], y, {"sampler": "sgld", "step_size": 100.0}),
}


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_refit_changes_nothing(fault):
    bad_X, bad_y, parameters = FAULTS[fault]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = quick().fit(frame, y)
    before, proba = state_of(model), model.predict_proba(frame).tobytes()
    own = {name: getattr(model, name) for name in parameters}
    model.set_params(**parameters)
    with pytest.raises((ValueError, FloatingPointError)):
        model.fit(bad_X, bad_y)
    model.set_params(**own)
    assert state_of(model) == before
    assert model.predict_proba(frame).tobytes() == proba


@pytest.mark.filterwarnings("ignore::skbayes_sg.exceptions.StepSizeWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_first_fit_leaves_nothing(fault):
    bad_X, bad_y, parameters = FAULTS[fault]
    model = quick(**parameters)
    with pytest.raises((ValueError, FloatingPointError)):
        model.fit(bad_X, bad_y)
    assert [name for name in vars(model) if name.endswith("_") and not name.startswith("_")] == []
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- Ctrl-C -----------------------------------------------------------------------------------

LONG = {"n_draws": 100_000, "thin": 50}
CASES = {  # parameters, how chains are watched, shape of X
    "hmc": ({}, WatchedHMC, (2000, 4)),
    "hmc on few rows": ({}, WatchedHMC, (60, 3)),
    "stochastic": (STOCHASTIC, WatchedStep, (3000, 10)),
    "two threads": ({**STOCHASTIC, "n_jobs": 2}, WatchedStep, (3000, 10)),
}


@pytest.fixture
def hears_interrupts():
    with heard():
        yield


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("number", [1, 8])
@pytest.mark.parametrize("case", CASES)
def test_interrupt(case, number):
    """It ends the fit before another chunk of steps begins, and changes nothing."""
    parameters, watched, shape = CASES[case]
    model = quick(**parameters).fit(X, y)
    before, threads = state_of(model), threading.enumerate()
    own, (hook, later) = model.get_params(deep=False), pressed_at(number)
    name = "sampler" if watched is WatchedHMC else "step_size"
    model.set_params(**LONG, **{name: watched(hook=hook)})
    with pytest.raises(KeyboardInterrupt):
        model.fit(*binary(*shape))
    join_all_but(threads)
    assert len(later) < parameters.get("n_jobs", 1)  # what other threads had begun
    assert state_of(model.set_params(**own)) == before


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"batch_size": 20}, STOCHASTIC], ids=["set-up", "fixed"])
def test_interrupt_in_any_function(parameters):
    Z, z = binary(2000, 4)
    model = quick(**parameters).fit(Z, z)
    before = state_of(model)
    found = functions_of(partial(quick(**parameters).fit, X, y))
    for code in found[:: max(1, len(found) // 40)]:
        with pressed_in(code.__eq__), pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert state_of(model) == before, code


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("n_passed", [0, 1, 10, 60])
@pytest.mark.parametrize("parameters", [{"sampler": "hmc"}, STOCHASTIC], ids=["hmc", "stochastic"])
def test_interrupt_while_numba_reads_an_argument(parameters, n_passed):
    model = quick(**parameters).fit(X, y)
    before = state_of(model)
    model.set_params(n_draws=5000)
    unpickle = pressed_in(lambda code: code.co_name == "_numba_unpickle", n_passed, press)
    with unpickle, pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert state_of(model.set_params(n_draws=25)) == before


@pytest.mark.usefixtures("hears_interrupts")
def test_interrupt_of_a_first_fit_leaves_it_unfitted():
    hook, _ = pressed_at(5)
    model = quick(**STOCHASTIC | LONG | {"step_size": WatchedStep(hook=hook)})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- memory, saving, processes ----------------------------------------------------------------


@pytest.mark.slow
def test_many_draws_come_with_a_warning():
    wide, labels = np.eye(400), np.arange(400) % 2
    text = r"2 chains x 400 draws x 401 parameters = 3,849,600 bytes\. Thin more"
    with sklearn.config_context(working_memory=2), pytest.warns(DrawStoreWarning, match=text):
        quick(n_draws=400, thin=1).fit(wide, labels)


def test_draws_beyond_free_memory():
    chunks = []
    model = quick(n_draws=10**9, n_chains=4, sampler=WatchedHMC(hook=lambda: chunks.append(1)))
    with pytest.raises(MemoryError, match=r"free memory: 4 chains x 1000000000 draws x 4 param"):
        model.fit(X, y)
    assert not chunks  # before sampling


def walk(value, path="estimator"):
    """All objects that an estimator holds."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(key, path)
            yield from walk(item, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from walk(item, path)
    elif hasattr(value, "__dict__"):
        for key, item in vars(value).items():
            yield from walk(item, f"{path}.{key}")


@pytest.mark.parametrize("parameters", [{}, STOCHASTIC, {"prior": Normal(scale=2.0), "n_jobs": 2}])
def test_what_a_fitted_estimator_holds(parameters):
    model = quick(**parameters).fit(pd.DataFrame(X, columns=["a", "b", "c"]), labels("no", "yes"))
    plain = (str, int, float, bool, type(None), np.ndarray, np.generic, dict, list, tuple)
    for path, value in walk(model):
        ours = type(value).__module__.startswith("skbayes_sg.")
        assert isinstance(value, plain) or ours, (path, type(value))
        assert not callable(value) or hasattr(value, "get_params"), (path, type(value))
        if isinstance(value, np.ndarray):
            assert value.dtype != object or path.endswith("feature_names_in_"), path


def test_draws_are_not_tied_to_the_data():
    import gc
    import weakref

    data = np.array(X)
    gone = weakref.ref(data)
    model = quick().fit(data, y)
    del data
    gc.collect()
    assert gone() is None
    assert model.posterior_.flat.base is None or model.posterior_.flat.base.nbytes < 1e5


def run_script(source, *options, **environment):
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


STRICT = """
    import warnings, numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler
    from skbayes_sg import BayesianLogisticRegression
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :6]
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    model.predict_proba(X); model.posterior_.summary()
    print(np.abs(model.posterior_.flat).sum())
    try:
        BayesianLogisticRegression(n_draws=True).fit(X, y)
    except ValueError:
        print("checked")
"""


@pytest.mark.slow
def test_clean_fit_in_strict_and_optimised_processes():
    outputs = []
    other = {"PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "7"}
    for options, environment in ((["-W", "error"], {"PYTHONHASHSEED": "8"}), ([], other)):
        result = run_script(STRICT, *options, **environment)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        outputs.append(result.stdout)
    assert "checked" in outputs[0]
    assert len(set(outputs)) == 1


def test_threads_at_once():
    """Two fits in two threads, as they are one after the other."""
    data = [binary(500, 3, seed=seed) for seed in (0, 1)]
    alone = [quick(n_jobs=2).fit(*d).posterior_.flat for d in data]
    together = [None, None]

    def work(i):
        together[i] = quick(n_jobs=2).fit(*data[i]).posterior_.flat

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in (0, 1):
        assert np.array_equal(alone[i], together[i])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_fork_after_threads():
    """A forked child can fit: no OpenMP layer was started."""
    source = """
    import os, sys
    sys.path.insert(0, {tests!r})
    from problems import binary, quick
    X, y = binary()
    quick(n_jobs=2).fit(X, y)
    child = os.fork()
    if child == 0:
        quick(n_jobs=2).fit(X, y)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """.replace("{tests!r}", repr(str(SUPPORT)))
    result = run_script(source, "-W", "ignore")
    assert result.stdout.strip() == "7", result.stderr


def test_multinomial_faults_name_the_class():
    Z, z = multinomial()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StepSizeWarning)
        with pytest.raises(SamplerDivergedError, match=r"coef\[\w+, x\d\]|intercept\[\w+\]"):
            quick(sampler="sgld", step_size=100.0).fit(Z, np.array(["a", "b", "c"])[z])


def test_labels_of_priors_are_those_of_the_columns_in_their_order():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "g": np.arange(40) % 5, "b": rng.normal(size=40)})
    y = 3.0 * X["a"] + 3.0 * X["b"] + rng.normal(size=40)
    scales = pd.Series({"b": 1e-3, "a": 10.0})

    def fitted(scale, rows=X, groups=("g",)):
        prior = Normal(scale=scale)
        options = {"n_draws": 50, "n_chains": 1, "random_state": 0}
        return BayesianLinearRegression(prior=prior, group_effects=groups, **options).fit(rows, y)

    with pytest.raises(InvalidParameterError, match=r"labels \['b', 'a'\].*\['a', 'b'\]"):
        fitted(scales)
    for groups in (["g"], [1]):
        found = fitted(scales[["a", "b"]], groups=groups)
        assert abs(found.coef_[1]) < 0.1 < abs(found.coef_[0])
    with pytest.raises(InvalidParameterError, match="without names"):
        fitted(scales[["a", "b"]], X[["a", "b"]].to_numpy(), None)
    assert fitted(scales.to_numpy()[::-1], X[["a", "b"]].to_numpy(), None).coef_[0] > 2.0
    assert fitted(pd.Series([10.0, 1e-3]), X[["a", "b"]], None).coef_[0] > 2.0


@pytest.mark.slow
def test_labels_of_scale_groups_are_those_of_the_columns_in_their_order():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    groups = pd.Series({"c": "one", "a": "one", "b": "other"})

    def fitted(groups):
        prior = Normal(scale=HalfCauchy(1.0), scale_groups=groups)
        return BayesianLinearRegression(prior=prior, n_draws=20, random_state=0).fit(X, X["a"])

    with pytest.raises(InvalidParameterError, match="The scale_groups of the prior has the labels"):
        fitted(groups)
    assert "prior_scale[other]" in fitted(groups[["a", "b", "c"]]).posterior_.labels


def test_labels_of_changes_are_those_of_the_columns_in_their_order():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    model = BayesianLogisticRegression(n_draws=20, random_state=0).fit(X, X["a"] > 0.0)
    per = pd.Series({"a": 1.0, "b": 2.0})
    of_array, of_series = (model.odds_ratio_interval(per=v) for v in ([1.0, 2.0], per))
    np.testing.assert_array_equal(of_array, of_series)
    with pytest.raises(InvalidParameterError, match=r"per has the labels \['b', 'a'\]"):
        model.odds_ratio_interval(per=per[["b", "a"]])
