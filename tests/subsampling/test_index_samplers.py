"""Which rows are drawn: chi-square tests of the compiled kernels with real random numbers.

A wrong index sampler hardly moves the posterior, so it has tests of its own. Seeds are fixed, and
p > 1e-6 is asked for: a correct sampler fails one such test in a million.
"""

import itertools
from functools import lru_cache

import cases
import numpy as np
import probe
import pytest
from scenes import make_scene
from scipy import stats

from skbayes_sg.subsampling import Preferential
from skbayes_sg.subsampling.preferential import alias_table

DRAWS = 100_000
LEAST_P = 1e-6
schemes = pytest.mark.parametrize("scheme", cases.SUBSAMPLING)


@lru_cache
def drawn(scheme, n, n_rows=6, seed=0):
    """(rows, coefficients) of many consecutive batches of one chain."""
    rule = cases.SUBSAMPLING[scheme]
    frame = make_scene("gaussian", n_rows=n_rows).frame()
    kernels = probe.Probe(
        frame, None, rule.scheme, batch_size=n, chances=rule.chances(n_rows)
    )  # fmt: skip
    return kernels.batches(DRAWS, np.random.Generator(np.random.SFC64(seed)))


def row_chances(scheme, n_rows):
    """Chance of a row at one position of a batch."""
    p = cases.SUBSAMPLING[scheme].chances(n_rows)
    return np.full(n_rows, 1.0 / n_rows) if p is None else p


def chi_square(counts, chances=None):
    """p-value of counts against their chances; uniform if not given."""
    counts = np.asarray(counts, dtype=float).ravel()
    chances = np.full(len(counts), 1.0 / len(counts)) if chances is None else np.ravel(chances)
    return stats.chisquare(counts, chances * counts.sum()).pvalue


def pairs_of(rows):
    """The number of each batch's pair of rows among the 15 pairs."""
    number = np.full((6, 6), -1)
    for k, (i, j) in enumerate(itertools.combinations(range(6), 2)):
        number[i, j] = number[j, i] = k
    return number[rows[:, 0], rows[:, 1]]


# -- one batch ------------------------------------------------------------------------------------


@schemes
@pytest.mark.parametrize(("n", "n_rows"), [(1, 6), (2, 6), (5, 6), (6, 6), (3, 29)])
def test_every_position_has_the_law_of_a_row(scheme, n, n_rows):
    rows, coefficients = drawn(scheme, n, n_rows)
    chances = row_chances(scheme, n_rows)
    for position in rows.T:
        counts = np.bincount(position, minlength=n_rows)
        assert len(counts) == n_rows
        assert counts.min() > 0  # row 0 and row N - 1 among them
        assert chi_square(counts, chances) > LEAST_P
    np.testing.assert_allclose(coefficients, 1.0 / (n * chances[rows]), rtol=1e-14)


@schemes
@pytest.mark.parametrize(("n", "n_rows"), [(2, 6), (6, 6), (3, 29)])
def test_repeated_rows(scheme, n, n_rows):
    rows, _ = drawn(scheme, n, n_rows)
    ordered = np.sort(rows, axis=1)
    repeats = (np.diff(ordered, axis=1) == 0).any(axis=1).mean()
    if not cases.SUBSAMPLING[scheme].replaces:
        assert repeats == 0.0
        return
    p = row_chances(scheme, n_rows)
    if n == 2:
        expected = (p**2).sum()
        assert abs(repeats - expected) < 5.0 * np.sqrt(expected * (1.0 - expected) / DRAWS)
    assert repeats > 0.0


def test_all_pairs_of_rows_are_equally_likely_without_replacement():
    rows, _ = drawn("uniform_without_replacement", 2)
    assert chi_square(np.bincount(pairs_of(rows), minlength=15)) > LEAST_P
    ordered = np.zeros((6, 6))
    np.add.at(ordered, (rows[:, 0], rows[:, 1]), 1)
    assert chi_square(ordered[~np.eye(6, dtype=bool)]) > LEAST_P


@pytest.mark.parametrize("scheme", [s for s, c in cases.SUBSAMPLING.items() if c.replaces])
def test_rows_of_a_batch_are_independent_with_replacement(scheme):
    rows, _ = drawn(scheme, 2)
    counts = np.zeros((6, 6))
    np.add.at(counts, (rows[:, 0], rows[:, 1]), 1)
    p = row_chances(scheme, 6)
    assert chi_square(counts, np.outer(p, p)) > LEAST_P


def test_all_blocks_are_equally_likely():
    rows, _ = drawn("blocks", 3, 29)
    np.testing.assert_array_equal((rows - rows[:, :1]) % 29, np.tile([0, 1, 2], (DRAWS, 1)))
    assert chi_square(np.bincount(rows[:, 0], minlength=29)) > LEAST_P


# -- consecutive batches --------------------------------------------------------------------------


def test_consecutive_batches_are_independent_without_replacement():
    rows, _ = drawn("uniform_without_replacement", 2)
    pair, table = pairs_of(rows), np.zeros((15, 15))
    np.add.at(table, (pair[:-1], pair[1:]), 1)
    assert chi_square(table) > LEAST_P


@schemes
def test_consecutive_rows_are_independent(scheme):
    rows, _ = drawn(scheme, 2)
    p = row_chances(scheme, 6)
    for now, then in itertools.product(range(2), repeat=2):
        table = np.zeros((6, 6))
        np.add.at(table, (rows[:-1, now], rows[1:, then]), 1)
        assert chi_square(table, np.outer(p, p)) > LEAST_P


@schemes
def test_other_seeds_give_other_batches(scheme):
    assert (drawn(scheme, 2, seed=1)[0] != drawn(scheme, 2, seed=0)[0]).mean() > 0.5


def test_all_rows_come_in_order():
    rows, coefficients = probe.Probe(make_scene("gaussian").frame()).batches(
        3, np.random.Generator(np.random.SFC64(0))
    )
    np.testing.assert_array_equal(rows, np.tile(np.arange(6), (3, 1)))
    np.testing.assert_array_equal(coefficients, np.ones((3, 6)))


# -- the alias table ------------------------------------------------------------------------------


def implied(thresholds, alias):
    """Chances of the rows that a table means."""
    return (thresholds + np.bincount(alias, 1.0 - thresholds, len(alias))) / len(alias)


def laws_of_rows():
    """Laws that are hard on a table: equal, one row, tiny, powers of two, many rows."""
    rng = np.random.default_rng(0)
    return {
        "one": np.ones(1),
        "equal": np.full(7, 1.0 / 7.0),
        "one row takes nearly all": np.r_[1.0 - 9e-9, np.full(9, 1e-9)],
        "halves": np.r_[0.5 ** np.arange(1.0, 40.0), 0.5**39],
        "rare first": np.sort(rng.exponential(size=1000)),
        "rare last": np.sort(rng.exponential(size=1000))[::-1],
        "heavy tails": np.exp(8.0 * rng.normal(size=20_000)),
    }


@pytest.mark.parametrize("name", laws_of_rows())
def test_alias_table_is_exact(name):
    p = laws_of_rows()[name]
    p = p / p.sum()
    thresholds, alias = alias_table(p)
    assert (thresholds >= 0.0).all()
    assert (thresholds <= 1.0).all()
    assert np.abs(implied(thresholds, alias) - p).max() <= 1e-15 * len(p)


def test_rows_without_a_chance_are_never_drawn():
    p = np.array([0.0, 0.5, 0.0, 0.5])
    thresholds, alias = alias_table(p)
    np.testing.assert_allclose(implied(thresholds, alias), p, atol=1e-15)
    assert thresholds[0] == thresholds[2] == 0.0
    with np.errstate(divide="ignore"):
        state = Preferential().state(4, 2, p)
    assert np.isinf(state.chances[[0, 2], 1]).all()  # never looked at
