"""Categories of all types, and what a value of one type is among categories of another."""

import datetime

import numpy as np
import pytest

from skbayes_sg._base import categories

RNG = np.random.default_rng(0)
WHOLE = {
    "integers": RNG.integers(-3, 90, 50),
    "8 bits, beyond half of their range": RNG.integers(-128, 128, 400).astype(np.int8),
    "unsigned": RNG.integers(200, 256, 60).astype(np.uint8),
    "floats": RNG.integers(-40, 40, 60).astype(float),
    "single precision": RNG.integers(0, 9, 60).astype(np.float32),
    "far from zero": RNG.integers(0, 9, 60) + 10**12,
    "one": np.array([7]),
}
OTHERS = {
    "fractions": RNG.integers(0, 9, 60) / 2.0,
    "far apart": np.array([0, 1, 10**9]),
    "not a number": np.array([0.0, 1.0, np.nan, 1.0]),
    "infinite": np.array([0.0, np.inf, 1.0]),
    "beyond whole numbers of floats": np.array([2.0**60, 2.0**60 + 256, 2.0**60]),
    "flags": np.array([True, False, True]),
    "text": np.array(["b", "a", "b"]),
    "none": np.empty(0),
}


@pytest.mark.parametrize("name", WHOLE)
def test_counting_gives_what_sorting_gives(name):
    column = WHOLE[name]
    known, codes = categories._of_whole_numbers(column)
    wanted, places = np.unique(column, return_inverse=True)
    np.testing.assert_array_equal(known, wanted, strict=True)
    np.testing.assert_array_equal(codes, places.astype(np.int32), strict=True)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_counted_is_sorted(name):
    column = OTHERS[name]
    assert categories._of_whole_numbers(column) is None
    known, codes = categories.learn(column)
    np.testing.assert_array_equal(known, np.unique(column))
    np.testing.assert_array_equal(known[codes], column)


def objects(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


DAYS = np.array(["2020-03-01", "2020-03-02"], dtype="datetime64[D]")
DATES = {
    "days": DAYS,
    "seconds": DAYS.astype("datetime64[s]"),
    "nanoseconds": DAYS.astype("datetime64[ns]"),
    "dates": objects(datetime.date(2020, 3, 1), datetime.date(2020, 3, 2)),
    "dates and times": objects(datetime.datetime(2020, 3, 1), datetime.datetime(2020, 3, 2)),
}


@pytest.mark.parametrize("own", DATES)
@pytest.mark.parametrize("other", DATES)
def test_a_date_is_the_same_in_all_types(own, other):
    known, _ = categories.learn(DATES[own])
    column = DATES[other][[1, 0, 1]]
    assert categories.encode(column, known).tolist() == [1, 0, 1]
    assert not categories.has_another_type(column, known)


KINDS = {
    "days": DAYS,
    "dates": DATES["dates"],
    "with a time zone": objects(datetime.datetime(2020, 3, 1, tzinfo=datetime.UTC)),
    "numbers": np.array([18322, 18323]),
    "number objects": objects(18322, 2.5),
    "durations": DAYS - np.datetime64("1970-01-01"),
    "strings": np.array(["2020-03-01"]),
    "string objects": objects("2020-03-01"),
    "tuples": objects((1, 2)),
}
SAME = {"days": "dates", "numbers": "number objects", "strings": "string objects"}


@pytest.mark.parametrize("own", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_values_of_different_kinds_are_never_equal(own, other):
    is_same = own == other or SAME.get(own) == other or SAME.get(other) == own
    assert categories.has_another_type(KINDS[other], KINDS[own]) == (not is_same)
    known, _ = categories.learn(KINDS[own])
    codes = categories.encode(KINDS[other], known)
    assert (codes[0] == categories.UNSEEN) == (not is_same)


def test_numbers_are_equal_if_they_are_rounded_alike():
    doses, single = np.array([0.1, 0.2, 0.3, 0.7]), np.float32([0.7, 0.1, 0.5])
    assert categories.encode(single, doses).tolist() == [3, 0, categories.UNSEEN]
    assert categories.encode(doses, np.unique(single)).tolist() == [0, -1, -1, 2]
    near = np.array([1.0, 1.0 + 1e-12])  # equal in single precision, and therefore not rounded
    assert categories.encode(np.float32([1.0]), near).tolist() == [0]
    assert categories.encode(near, near).tolist() == [0, 1]


@pytest.mark.parametrize("n_categories", [1000, 100_000])
def test_keys_are_those_of_the_row_alone(n_categories):
    """Four columns of 100 000 categories have more combinations than int64 has numbers."""
    offsets = n_categories * np.arange(5)
    last = n_categories - 1
    rows = offsets[:4] + np.array([[0, last, last, last], [last, 0, 0, last], [0, last, last, 5]])
    rows = np.concatenate([rows, rows[:1], np.full((1, 4), categories.UNSEEN)])
    key = categories.keys(rows, offsets)
    assert len(set(key.tolist())) == 4
    assert key[0] == key[3]
    for k in range(len(rows)):
        assert categories.keys(rows[k:], offsets).tolist() == key[k:].tolist()
    assert categories.first_duplicate(rows, offsets) == (0, 3)
