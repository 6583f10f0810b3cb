"""Tables of pyarrow, which NumPy would read wrongly, and dates that would become numbers."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from skbayes_sg import BayesianLDA, BayesianLinearRegression, BayesianPMF
from skbayes_sg._base.tables import decoded, is_arrow, reject_dates

DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    "values",
    [
        list(pd.date_range("2020", periods=3).to_numpy()),
        [0.0, DAY],
        [[1.0, np.timedelta64(2, "s")], [1.0, 2.0]],
        np.array([DAY, None], dtype=object),
        pd.Series([pd.Timestamp("2020-01-01"), 1.0], dtype=object),
    ],
    ids=["NumPy dates", "a date", "rows", "an array of objects", "a series of objects"],
)
def test_dates_in_lists_and_among_objects_are_found(values):
    with pytest.raises(ValueError, match="y contains dates or durations"):
        reject_dates(y=values)


@pytest.mark.parametrize("values", [None, [1.0, 2.0], [[1.0], [1.0, 2.0]], ["a"], np.ones((2, 2))])
def test_other_values_are_left_alone(values):
    reject_dates(X=values)
    assert decoded(values) is values
    assert not is_arrow(values)


def arrow_table(levels, of_dictionary):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    column = pa.array(levels)
    x = np.random.default_rng(0).normal(size=len(levels))
    return pa.table({"x": x, "g": column.dictionary_encode() if of_dictionary else column})


@pytest.mark.parametrize("of_dictionary", [False, True])
def test_nulls_of_dictionaries_are_missing_levels(of_dictionary):
    levels = list("abc" * 40)
    y = np.array([{"a": -2.0, "b": 0.0, "c": 5.0}[level] for level in levels])
    y += np.random.default_rng(1).normal(size=len(y))
    model = BayesianLinearRegression(group_effects=["g"], n_draws=100, random_state=0)
    model.fit(arrow_table(levels, of_dictionary), y)
    missing, known = model.predict(arrow_table([None, "c"], of_dictionary))
    assert abs(known - 5.0) < 1.0
    assert abs(missing - 1.0) < 1.0  # the mean of the levels
    with pytest.raises(ValueError, match="the group column 'g' contains NaN, first in row 1"):
        model.fit(arrow_table(["a", None, *"abcabc"], of_dictionary), y[:8])


def test_nulls_of_dictionaries_are_missing_categories():
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    users = pa.array(["u", None, "v"]).dictionary_encode()
    with pytest.raises(ValueError, match="a category is missing in row 1"):
        BayesianPMF().fit(pa.table({"user": users, "item": ["a", "b", "c"]}), [1.0, 2.0, 3.0])


def test_dates_of_arrow_are_found():
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    days = pa.array(pd.date_range("2020", periods=3))
    for values in (days, pa.chunked_array([days]), pa.table({"a": [1.0, 2.0, 3.0], "t": days})):
        with pytest.raises(ValueError, match=r"contains dates or durations \(timestamp"):
            reject_dates(X=values)


def test_weights_of_a_sum_of_one_are_told():
    X = np.arange(12.0).reshape(6, 2)
    model = BayesianLinearRegression(n_draws=50, random_state=0)
    with pytest.warns(UserWarning, match="6 rows add up to 1: .* as a single one"):
        model.fit(X, X[:, 0], sample_weight=np.full(6, 1.0 / 6.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.fit(X, X[:, 0] ** 2, sample_weight=np.full(6, 0.5))


def test_lazy_frames_are_collected():
    class LazyFrame:  # as that of Polars
        def collect(self):
            return "a frame"

    assert decoded(LazyFrame()) == "a frame"


@pytest.mark.parametrize("X", [["a b", "b c"], np.array(["a b", "b c"])])
def test_texts_are_told_to_be_counted(X):
    with pytest.raises(ValueError, match=r"BayesianLDA: X holds texts, such as 'a b'.*Count"):
        BayesianLDA(2).fit(X)


def test_names_of_groups_that_an_array_has_lost():
    model = BayesianLinearRegression(group_effects=["store"])
    with pytest.raises(ValueError, match=r"positions 0 to 1, and no names.* set_output"):
        model.fit(np.ones((4, 2)), np.arange(4.0))
