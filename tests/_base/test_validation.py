"""Checks of numbers: one sentence for all pieces, with owner, argument and value."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from problems import binary, quick

from skbayes_sg._base.validation import as_reals, check_positive, check_whole, check_within
from skbayes_sg.dynamics import BAOAB, HMC, SGHMC, SGNHT
from skbayes_sg.exceptions import InvalidParameterError
from skbayes_sg.gradients import Taylor
from skbayes_sg.priors import (
    Gamma,
    HalfNormal,
    HalfStudentT,
    Horseshoe,
    InverseGamma,
    Laplace,
    Normal,
    StudentT,
    Units,
)
from skbayes_sg.schedules import Constant, Cyclical, Polynomial, TwoPhase
from skbayes_sg.subsampling import Adaptive, Preferential

NO_NUMBERS = [True, np.True_, "1", None, [1.0], np.ones(1), 1j]


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -0.5, np.nan, np.inf], ids=repr)
def test_what_is_not_positive(value):
    said = re.escape(f"The rate of Owner(1) must be a positive finite number, got {value!r}.")
    with pytest.raises(InvalidParameterError, match=said):
        check_positive("rate", value, "Owner(1)")


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.5), np.int8(3), Fraction(1, 3)], ids=repr)
def test_what_is_positive(value):
    found = check_positive("rate", value, "Owner(1)")
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("ends", ["()", "[)", "(]", "[]"])
def test_ends_of_an_interval(ends):
    inside = {0.5} | ({0.0} if ends[0] == "[" else set()) | ({1.0} if ends[1] == "]" else set())
    for value in (-0.1, 0.0, 0.5, 1.0, 1.1):
        if value in inside:
            assert check_within("share", value, SGHMC(), 0.0, 1.0, ends) == value
            continue
        said = re.escape(f"The share of SGHMC() must be a number in {ends[0]}0, 1{ends[1]}, got ")
        with pytest.raises(InvalidParameterError, match=said):
            check_within("share", value, SGHMC(), 0.0, 1.0, ends)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, 1.0, np.nan], ids=repr)
def test_what_is_not_whole(value):
    for none in {False, value is not None}:
        wanted = "None or an int of at least 1" if none else "an int of at least 1"
        with pytest.raises(InvalidParameterError, match=f"The n of HMC.* must be {wanted}, got"):
            check_whole("n", value, HMC(), 1, none=none)


def test_what_is_whole():
    assert check_whole("n", 1, HMC(), 1) == 1
    assert check_whole("n", np.int32(4), HMC(), 1, none=True) == 4
    assert check_whole("n", None, HMC(), 1, none=True) is None


@pytest.mark.parametrize(
    "value",
    [2, [1.0, 2], ([1, 2], [3, 4]), np.float32(0.5), np.array([1, np.nan]), pd.Series([1.0, 2.0]),
     pd.Series([1, 2.5], dtype=object), [np.int64(1), Fraction(1, 2)], [np.ones(2), np.ones(2)]],
    ids=repr,
)  # fmt: skip
def test_numbers_and_arrays_of_numbers(value):
    found = as_reals(value)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.array(value, dtype=float))


@pytest.mark.parametrize(
    "value",
    [True, "1", None, [1.0, True], [1.0, "2"], np.array([True]), np.array(["1"]), [[1], [1, 2]],
     1j, np.array([1.0, None]), pd.Series(["a"])],
    ids=repr,
)  # fmt: skip
def test_no_arrays_of_numbers(value):
    with pytest.raises(ValueError, match="is not a number, and no array of numbers"):
        as_reals(value)


def horseshoe(**parameters):
    return Horseshoe(**parameters)._learned((1, 12), Units(columns=lambda: np.ones(12)))


# Every number of a piece, and what checks it.
NUMBERS = {
    (BAOAB, "friction"): BAOAB.parameters,
    (SGHMC, "friction"): SGHMC.parameters,
    (SGHMC, "noise_estimate"): SGHMC.parameters,
    (SGHMC, "refresh"): SGHMC.parameters,
    (SGNHT, "friction"): SGNHT.parameters,
    (SGNHT, "inertia"): SGNHT.parameters,
    (HMC, "trajectory"): HMC.path,
    (Taylor, "share"): lambda piece: piece.check(100, 10),
    (Preferential, "uniform_share"): lambda piece: piece.check(100, 10),
    (Adaptive, "uniform_share"): lambda piece: piece.check(100, 10),
    (Adaptive, "min_size"): lambda piece: piece.check(100, 10),
    (Adaptive, "max_size"): lambda piece: piece.check(100, 10),
    (Constant, "h"): lambda piece: piece(np.arange(3)),
    (Polynomial, "a"): lambda piece: piece(np.arange(3)),
    (Polynomial, "b"): lambda piece: piece(np.arange(3)),
    (Polynomial, "gamma"): lambda piece: piece(np.arange(3)),
    (TwoPhase, "first"): lambda piece: piece(np.arange(3)),
    (TwoPhase, "second"): lambda piece: piece(np.arange(3)),
    (TwoPhase, "switch"): lambda piece: piece(np.arange(3)),
    (Cyclical, "h_max"): lambda piece: piece(np.arange(3)),
    (Cyclical, "cycle"): lambda piece: piece(np.arange(3)),
    (Cyclical, "floor"): lambda piece: piece(np.arange(3)),
    (Normal, "scale"): lambda prior: prior._table((3,)),
    (Normal, "loc"): lambda prior: prior._table((3,)),
    (Laplace, "scale"): lambda prior: prior._table((3,)),
    (StudentT, "df"): lambda prior: prior._table((3,)),
    (HalfNormal, "scale"): lambda prior: prior._table((1,)),
    (HalfStudentT, "df"): lambda prior: prior._table((1,)),
    (Gamma, "shape"): lambda prior: prior._table((1,)),
    (Gamma, "rate"): lambda prior: prior._table((1,)),
    (InverseGamma, "alpha"): lambda prior: prior._table((1,)),
    (InverseGamma, "beta"): lambda prior: prior._table((1,)),
    (Horseshoe, "n_relevant"): lambda prior: horseshoe(**prior.get_params()),
    (Horseshoe, "slab"): lambda prior: horseshoe(**prior.get_params()),
}
REQUIRED = {
    Constant: {"h": 0.1}, Polynomial: {"a": 0.1}, Cyclical: {"h_max": 0.1, "cycle": 5},
    TwoPhase: {"first": 0.2, "second": 0.1, "switch": 5},
}  # fmt: skip
INFINITE = {(SGNHT, "inertia")}  # may be infinite


@pytest.mark.parametrize("wrong", [True, np.True_, "a", np.nan, np.inf, {}], ids=repr)
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: f"{key[0].__name__}-{key[1]}")
def test_every_number_of_a_piece_is_checked(key, wrong):
    (kind, name), check = key, NUMBERS[key]
    if key in INFINITE and wrong is np.inf:
        wrong = -np.inf
    piece = kind(**{**REQUIRED.get(kind, {}), name: wrong})
    with pytest.raises(InvalidParameterError) as error:
        check(piece)
    assert f"The {name} of " in str(error.value)
    assert kind.__name__ in str(error.value)
    assert f"got {wrong!r}." in str(error.value)


DYNAMICS = [
    (BAOAB, "friction"), (SGHMC, "friction"), (SGHMC, "refresh"), (SGNHT, "friction"),
    (SGNHT, "inertia"), (HMC, "trajectory"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("piece", "wrong"), itertools.product(DYNAMICS, ["a", [2.0], np.nan]), ids=repr
)
def test_fits_name_the_number_of_a_sampler(piece, wrong):
    # "auto" asks dynamics for relaxation times, and so on, before it asks for their parameters.
    kind, name = piece
    X, y = binary(200, 3)
    with pytest.raises(InvalidParameterError, match=f"The {name} of {kind.__name__}.* got "):
        quick(sampler=kind(**{name: wrong}), step_size="auto").fit(X, y)
