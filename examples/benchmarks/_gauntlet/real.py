"""Families of real tables: rows, columns and the response are drawn from well-known data sets.

What real columns are is not chosen by us: integers that repeat, spikes at zero, heavy tails,
columns that are nearly sums of others, units from 1e-4 to 1e5. Any column may be the response. The
sources are scikit-learn's and, where they are at hand, those of `_tables.data_file`.
"""

from functools import lru_cache

import numpy as np
from _tables import data_file
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine

from skbayes_sg.priors import HalfCauchy, Horseshoe, Laplace, Normal, StudentT

from .families import (
    LINEAR,
    LOGISTIC,
    NEGATIVE,
    POISSON,
    ROBUST,
    Case,
    one_hot,
    pick,
    setting,
    standard,
    stored,
    whole,
)

FILES = {
    "pima": ("X", "y"), "concrete": ("X", "y"), "cal_housing": ("X", "y"),
    "protein_casp": ("X", "y"), "parkinsons": ("data",), "covtype_2v4_286k": ("X", "y"),
    "covtype_sample10k": ("X",), "eeg_eye_state": ("X", "y"), "old_faithful": ("X",),
    "flights_200k": ("delay", "distance", "time"), "eeglab_32ch": ("X",), "foetal_ecg": ("X",),
}  # fmt: skip
LOADERS = (load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine)


@lru_cache(maxsize=2)
def _table(name):
    """All columns of a source as floats, the response among them; None where it is not there."""
    for load in LOADERS:
        if name == load.__name__:
            return np.column_stack(load(return_X_y=True)).astype(float)
    z = data_file(f"{name}.npz")
    return None if z is None else np.column_stack([z[key] for key in FILES[name]]).astype(float)


def some_rows(rng, most=3000):
    """Rows of a source with all its columns."""
    names = [*FILES, *(load.__name__ for load in LOADERS)]
    table = next(found for name in rng.permutation(names) if (found := _table(name)) is not None)
    n = min(whole(rng, 12, most), len(table))
    first = rng.integers(len(table) - n + 1)
    chosen = first + np.arange(n) if rng.random() < 0.3 else rng.choice(len(table), n, False)
    return table[chosen]


def split(rng, table, most=8):
    """Some columns, and another one as the response."""
    order = rng.permutation(table.shape[1])
    varying = [j for j in order if np.ptp(table[:, j]) > 0.0] or list(order)
    target = varying[0]
    rest = [j for j in order if j != target][: whole(rng, 1, most)]
    return table[:, rest], table[:, target]


def response_of(rng, y):
    """(estimator, y) with a real column as labels, counts or numbers."""
    values = np.unique(y)
    is_count = (values >= 0).all() and (values == np.round(values)).all()
    kinds = [LOGISTIC, LINEAR, ROBUST, *([POISSON, NEGATIVE] if is_count else [])]
    estimator = pick(rng, *kinds)
    if estimator in (POISSON, NEGATIVE) and y.max() > 1000.0:
        y = np.floor(y / (y.max() / 100.0))
    if estimator != LOGISTIC:
        return estimator, y
    if len(values) <= 4:
        return estimator, y if rng.random() < 0.5 else y == values[0]
    cut = np.quantile(y, pick(rng, 0.02, 0.1, 0.5, 0.5, 0.9))
    return estimator, (y > cut if (y > cut).any() and (y <= cut).any() else y > y.min()).astype(int)


def real_case(rng, X, y, settings=None):
    estimator, y = response_of(rng, y)
    if settings is None:
        settings = setting(rng, estimator, len(y))
        if estimator == NEGATIVE:
            settings.pop("sampler", None)
    return Case(estimator, X, y, options=settings)


def real_numbers(rng):
    """Columns as they are."""
    X, y = split(rng, some_rows(rng))
    made = real_case(rng, X, y)
    made.X = stored(rng, X)
    return made


def levels_of(rng, x, most_values, cuts):
    """The values of a column as levels, or parts of it that end at a few of its quantiles."""
    values, code = np.unique(x, return_inverse=True)
    if len(values) <= most_values:
        return code
    ends = np.unique(np.quantile(x, np.sort(rng.random(whole(rng, *cuts)))))
    return np.unique(np.searchsorted(ends, x), return_inverse=True)[1]


def real_levels(rng):
    """Columns as levels: their own, or those of a column cut into parts of different sizes."""
    X, y = split(rng, some_rows(rng), most=4)
    parts = []
    for x in X.T:
        code = levels_of(rng, x, most_values=12, cuts=(1, 12))
        whole_set = one_hot(code)
        parts.append(whole_set[:, 1:] if rng.random() < 0.5 and code.max() else whole_set)
    return real_case(rng, np.column_stack(parts), y)


def real_derived(rng):
    """Squares, products, ratios, logarithms, differences and sums beside the columns."""
    X, y = split(rng, some_rows(rng), most=4)

    def one():
        a, b = X[:, rng.integers(X.shape[1])], X[:, rng.integers(X.shape[1])]
        safe = np.where(b == 0.0, 1.0, b)
        return pick(rng, a * a, a * b, a / safe, np.log1p(np.abs(a)), a - b, a + b, a**3)

    more = [one() for _ in range(whole(rng, 1, 5))]
    return real_case(rng, np.column_stack([X, *more]), y)


def real_rows_again(rng):
    """Rows drawn with replacement, as in a bootstrap, or as weights."""
    table = some_rows(rng)
    if rng.random() < 0.5:
        X, y = split(rng, table[rng.integers(0, len(table), whole(rng, 20, 4000))])
        return real_case(rng, X, y)
    X, y = split(rng, table)
    made = real_case(rng, X, y)
    w = rng.poisson(1.0, len(y)).astype(float)
    for label in np.unique(made.y)[:4]:
        w[np.flatnonzero(made.y == label)[0]] += 1.0
    made.weight = w
    return made


def real_few_rows(rng):
    """As few rows as columns, or fewer."""
    table = some_rows(rng)
    X, y = split(rng, table[: whole(rng, 5, 40)], most=20)
    return real_case(rng, X, y)


def real_heavy_priors(rng):
    X, y = split(rng, some_rows(rng, 1000), most=6)
    scale = float(10.0 ** rng.uniform(-2.0, 1.0))
    prior = pick(rng, StudentT(df=1.0, scale=scale), StudentT(df=3.0, scale=scale))
    return real_case(rng, X, y, {"prior": pick(rng, prior, Laplace(scale=scale))})


def real_learned_scales(rng):
    X, y = split(rng, some_rows(rng, 600), most=10)
    own = pick(rng, Normal(scale=HalfCauchy()), Normal(scale=HalfCauchy()), Horseshoe())
    estimator, y = response_of(rng, y)
    if estimator == NEGATIVE and isinstance(own, Horseshoe):
        own = Normal(scale=HalfCauchy())
    return Case(estimator, standard(X), y, options={"prior": own})


def real_groups(rng):
    """A column cut into levels as a group effect."""
    X, y = split(rng, some_rows(rng, 1000), most=4)
    code = levels_of(rng, X[:, -1], most_values=40, cuts=(2, 30))
    X = np.column_stack([X[:, :-1], code]).astype(float)
    return real_case(rng, X, y, {"group_effects": [X.shape[1] - 1]})


REAL = {
    family.__name__: family
    for family in [
        real_numbers, real_levels, real_derived, real_rows_again, real_few_rows,
        real_heavy_priors, real_learned_scales, real_groups,
    ]
}  # fmt: skip
