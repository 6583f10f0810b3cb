"""Categories of whole numbers are counted, with the answer that sorting gives."""

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
